"""What of a file could not be read as it stands: repaired or lost; each place is one row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO

from trace_sql.errors import LossyError
from trace_sql.events import LOSS_COLUMNS
from trace_sql.literal import sql_string

if TYPE_CHECKING:
    from trace_sql import engine


DETAIL = 100
"""Bytes of damaged text that are shown."""


class Loss(NamedTuple):
    """One place of the text, `n_bytes` from the 0-based `byte_offset`, on the 1-based `line`.

    `repaired` says that what stands there was kept. `event_id` is the event it became or, where
    nothing was kept, the one that follows; None outside of the event list.
    """

    kind: str
    repaired: bool
    event_id: int | None
    byte_offset: int
    line: int
    n_bytes: int
    detail: str

    @property
    def where(self) -> str:
        """The place in words."""
        return f"byte {self.byte_offset}, line {self.line}"


class Losses:
    """The losses of one reading, in the file `path` meanwhile: there can be millions."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None
        self.n_repaired = 0
        self.n_lost = 0
        self.first: Loss | None = None
        """The first that was lost, else the first that was repaired."""

    def add(self, loss: Loss) -> None:
        if self._file is None:
            self._file = self._path.open("w", encoding="utf-8")
        number = self.n_repaired + self.n_lost
        self._file.write(json.dumps({"loss_no": number, **loss._asdict()}) + "\n")
        if self.first is None or (self.first.repaired and not loss.repaired):
            self.first = loss
        if loss.repaired:
            self.n_repaired += 1
        else:
            self.n_lost += 1

    def close(self) -> None:
        """Drop the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._path.unlink(missing_ok=True)

    def refuse(self, label: str) -> None:
        """Raise LossyError if there are any; `label` is what people call the trace."""
        if self.first is not None:
            raise LossyError(_refusal(label, self.n_lost, self.n_repaired, self.first))

    def make_table(
        self, connection: engine.DuckDBPyConnection, table: str, *, trace_id: str, events: int
    ) -> None:
        """Make `table` of LOSS_COLUMNS; `events` is what event_id is counted from."""
        columns = {name: kind for name, kind in LOSS_COLUMNS.items() if name != "trace_id"}
        if self._file is None:
            values = ", ".join(f"null::{kind} as {name}" for name, kind in LOSS_COLUMNS.items())
            connection.execute(f"create table {table} as select {values} limit 0")
            return
        self._file.flush()
        typed = ", ".join(
            f"{sql_string(name)}: {sql_string(kind)}" for name, kind in columns.items()
        )
        shifted = f"* replace (event_id + {events} as event_id)"
        connection.execute(
            f"create table {table} as select {sql_string(trace_id)} as trace_id, {shifted}"
            f" from read_json({sql_string(self._path)}, format='newline_delimited',"
            f" columns={{{typed}}})"
        )


def refuse_losses(path: Path, label: str) -> None:
    """Raise LossyError if the losses.parquet at `path` holds any."""
    from trace_sql import engine

    columns = [name for name in LOSS_COLUMNS if name not in ("trace_id", "loss_no")]
    with engine.connect() as connection:
        row = connection.execute(
            f"""
            select
                count(*) filter (not repaired),
                count(*) filter (repaired),
                {", ".join(f"min_by({name}, (repaired, loss_no))" for name in columns)}
            from read_parquet({sql_string(path)})
            """
        ).fetchone()
    if row is not None and row[0] + row[1]:
        raise LossyError(_refusal(label, row[0], row[1], Loss(*row[2:])))


def _refusal(label: str, n_lost: int, n_repaired: int, first: Loss) -> str:
    """Return the words for a trace that is not taken because of its losses."""
    return (
        f"{label}: {n_lost} places lost and {n_repaired} repaired, the first: {first.kind} at"
        f" {first.where}; leave --strict out to use what could be read"
    )
