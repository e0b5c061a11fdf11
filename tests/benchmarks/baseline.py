"""What a person would write instead: json.load and loops. Run as a script, so nothing else loads.

baseline.py TRACE ANCHOR: sorts the kernels, finds those whose name holds ANCHOR, and sums the
durations by name; one table of the intervals between anchors, as scripts of this kind print it.
"""

from __future__ import annotations

import gzip
import json
import sys
from itertools import pairwise
from typing import Any


def read(path: str) -> list[dict[str, Any]]:
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        document = json.load(file)
    events: list[dict[str, Any]] = document["traceEvents"]
    return events


def main(path: str, anchor: str) -> None:
    kernels = [e for e in read(path) if e.get("ph") == "X" and e.get("cat") == "kernel"]
    kernels.sort(key=lambda event: event["ts"])
    hits = [index for index, event in enumerate(kernels) if anchor in event["name"]]
    sums: dict[str, float] = {}
    for event in kernels:
        sums[event["name"]] = sums.get(event["name"], 0.0) + event["dur"]
    for begin, end in pairwise([*hits, len(kernels)]):
        block = kernels[begin:end]
        wall = block[-1]["ts"] + block[-1]["dur"] - block[0]["ts"]
        print(f"{begin:8d} {len(block):5d} {wall:12.1f} {sum(e['dur'] for e in block):12.1f}")
    for name, total in sorted(sums.items(), key=lambda item: -item[1])[:20]:
        print(f"{total:12.1f} {name[:80]}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
