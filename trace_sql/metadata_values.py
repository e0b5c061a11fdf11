"""Values of the keys beside a list of events: read, mended, joined, shown."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from trace_sql.event_marks import is_utf8
from trace_sql.losses import DETAIL
from trace_sql.mending import mend


def text_of(key: bytes) -> str | None:
    value = value_of(key)
    return value[0] if value is not None and isinstance(value[0], str) else None


@dataclass(frozen=True)
class MendedValue:
    """A value of which `surplus` bytes were left out, and what was done to it."""

    value: Any
    kinds: tuple[str, ...]
    surplus: int


def mended_value(text: bytes) -> MendedValue | None:
    for part in (text, text.removesuffix(b"}")):
        mended = mend(part) if part else None
        loaded = value_of(mended.text) if mended else None
        if mended and loaded:
            kinds = mended.kinds or ("unusual_json",)
            return MendedValue(loaded[0], kinds, len(text) - len(part))
    return None


def joined_values(old: Any, new: Any) -> Any:
    """Return what holds all of two values of one key, None where nothing does."""
    if old == new:
        return new
    if isinstance(old, list) and isinstance(new, list):
        return old + new
    if isinstance(old, dict) and isinstance(new, dict) and old | new == new | old:
        return old | new
    return None


def shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:DETAIL].encode(errors="replace").decode()


def value_of(text: bytes) -> tuple[Any] | None:
    """Return what `text` says, None where it is no JSON in UTF-8."""
    try:
        return (json.loads(text),) if is_utf8(text) else None
    except (ValueError, RecursionError):
        return None
