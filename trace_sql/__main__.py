"""The command `trace-sql`, also as `python -m trace_sql`.

The engine takes half as long to open as all else takes to start, so it is opened beside that.
"""

from __future__ import annotations

import sys

_WITHOUT_ENGINE = {"hardware", "schema", "--help", "-h", "--version"}


def main() -> None:
    if sys.argv[1:] and not _WITHOUT_ENGINE.intersection(sys.argv):
        from trace_sql import engine

        engine.open_early()
    from trace_sql.cli import main as command

    command()


if __name__ == "__main__":
    main()
