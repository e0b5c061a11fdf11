"""How events and documents look in a text that may be damaged."""

from __future__ import annotations

import json
import re
from typing import Any

from trace_sql.json_value import value_end
from trace_sql.mending import mend
from trace_sql.text_window import TextWindow

HEAD_KEYS = (
    "schemaVersion|traceEvents|displayTimeUnit|deviceProperties|distributedInfo|traceName"
    "|baseTimeNanoseconds|otherData|systemTraceEvents"
)
"""Keys that a document may begin with."""
TOP_KEYS = (
    f"{HEAD_KEYS}|trace_id|metadata|record_shapes|profile_memory|with_(?:stack|flops|modules)|INFO"
    "|WARNING|ERROR|(?:cuda|hip)_(?:driver|runtime)_version|(?:cupti|roctracer)_version"
)
"""Keys beside the list of events that profilers write."""

_LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_KEY = r'"(?:ph|cat|name|pid|tid|ts|dur|args|id|s|bp)"\s*:'
EVENT = re.compile(rf"\{{\s*{_KEY}")
DOCUMENT = re.compile(rf'\{{\s*"(?:{HEAD_KEYS})"\s*:')
NEXT = re.compile(
    rf'(?={DOCUMENT.pattern})|(?<=\}})\s*+(?:,\s*+)?(?P<event>\{{)(?=\s*")'
    r"|(?<=\})\s*+(?P<end>\])\s*+"
    rf'(?P<sure>\Z|\}}\s*(?:\Z|\{{\s*")|,\s*"(?:{TOP_KEYS})"\s*:)?'
)
"""Where a damaged event may end: at the next one, at a further document, at the end of the list.
The end of another list looks like that, unless it is `sure`."""


def may_begin(window: TextWindow, start: int) -> bool:
    """Say whether an event, whole or damaged, or a document may begin there."""
    if DOCUMENT.match(window.text, window.at + start):
        return True
    end = value_end(window, start)
    if end is None:
        return bool(EVENT.match(window.text, window.at + start))
    return is_event(window, start, end)


def loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def is_event(window: TextWindow, start: int, end: int, *, named: bool = False) -> bool:
    value = loaded(window.text[window.at + start : window.at + end])
    if not isinstance(value, dict) or (named and "name" not in value):
        return False
    return isinstance(value.get("ph"), str) or value.keys() >= {"ts", "pid"}


def is_utf8(text: bytes) -> bool:
    """Say whether the strings of a JSON value are text that UTF-8 can hold."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    # What is a pair is told by `mend`.
    return not _LONE_SURROGATE.search(text) or _pairs(text)


def _pairs(text: bytes) -> bool:
    mended = mend(text)
    return mended is not None and mended.text == text
