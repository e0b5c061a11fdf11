"""Where one JSON value of a text ends."""

from __future__ import annotations

import json
import re
from typing import Any

from trace_sql.mending import is_json
from trace_sql.text_window import TextWindow

MAX_BYTES = 64 << 20
"""Bytes of one value; what is longer is taken for damaged."""

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
_NEAR_END = 16
"""A literal, number or escape that the end of the buffer cuts is found this near to it."""


def _refuse(word: str) -> Any:
    raise ValueError(word)


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def value_end(window: TextWindow, start: int = 0) -> int | None:
    """Return where the value ends that begins `start` characters ahead; None for a damaged one.

    Both count from `window.at`; more is read as needed. Characters beyond ASCII are not looked at.
    """
    while True:
        text, at = window.text, window.at + start
        end: int | None = None
        unfinished = False
        try:
            end = _DECODER.raw_decode(text, at)[1]
        except json.JSONDecodeError as error:
            cut = error.msg.startswith("Unterminated string")
            unfinished = cut or error.pos + _NEAR_END > len(text)
        except RecursionError:
            end = _brackets_end(text, at)
            unfinished = end is None
            if end is not None and not is_json(window.bytes(end - window.at)[start:]):
                return None
        except ValueError:
            return None
        # A number may go on behind what is there.
        sure = end is not None and (text[end - 1] in '"]}' or end + _NEAR_END < len(text))
        if end is not None and (sure or window.ended):
            return end - window.at
        if end is None and (window.ended or not unfinished):
            return None
        if len(text) - at > MAX_BYTES:
            return None
        window.more()


def _brackets_end(text: str, at: int) -> int | None:
    """Return where the list or object at `at` ends, looking at nothing but its brackets."""
    depth = 0
    for match in _TOKEN.finditer(text, at):
        token = match[0]
        if token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
            if depth == 0:
                return match.end()
    return None


def until_value(window: TextWindow, size: int) -> int:
    """Return the size of the colon, and the space around it, that follow `size` characters."""
    more = 0
    colon = False
    while True:
        place = window.at + size + more
        if place >= len(window.text):
            if not window.more():
                return more
            continue
        char = window.text[place]
        if char == ":" and not colon:
            colon = True
        elif char not in " \t\n\r":
            return more
        more += 1
