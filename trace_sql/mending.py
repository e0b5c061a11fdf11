"""Damaged JSON of one value made whole: the rest of it becomes null or U+FFFD."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from trace_sql import engine

_TOKEN = re.compile(
    r"""
      "(?P<string>(?:[^"\\]|\\.)*+)"
    | (?P<number>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)(?=[\s,\]}:]|\Z)
    | (?P<mark>[\[\]{}:,])
    | (?P<space>\s+)
    | (?P<word>[^\s"\[\]{}:,]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_BACKSLASH = re.compile(r"\\(?:(u[0-9a-fA-F]{4})|(.))", re.DOTALL)
_VALUE = re.compile(r"[\s:]*")
_CONTROL = re.compile(r"[\x00-\x1f]")
_SURROGATES = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_WORDS = {"true", "false", "null"}
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}
_DEEP = 500
"""Levels of nesting up to which Python's reader is asked; the engine reads what is deeper."""


@dataclass(frozen=True)
class Mended:
    """A value as JSON in UTF-8, and what was done to it: kinds of `losses`, most telling first."""

    text: bytes
    kinds: tuple[str, ...]


def is_json(text: bytes) -> bool:
    """Say whether `text` is one value of JSON as RFC 8259 has it, in UTF-8, however deep."""
    try:
        words = text.decode()
    except UnicodeDecodeError:
        return False
    if _SURROGATES.search(words) and any(found[1] for found in _SURROGATES.finditer(words)):
        return False
    try:
        json.loads(words, parse_constant=_refuse)
    except ValueError:
        return False
    except RecursionError:
        with engine.connect() as connection:
            row = connection.execute("select json_valid(?)", [words]).fetchone()
        return bool(row and row[0]) and mend(text) == Mended(text, ())
    return True


def mend(text: bytes) -> Mended | None:
    """Return `text`, one value, as JSON, or None where it cannot be told what it should be.

    Bytes that are not UTF-8 and halves of surrogate pairs become U+FFFD, control bytes in a string
    are escaped, backslashes that escape nothing are doubled, words that are no JSON become null,
    commas too many go. Quotes are never moved.
    """
    kinds: dict[str, None] = {}
    try:
        words = text.decode()
    except UnicodeDecodeError:
        words = text.decode(errors="replace")
        kinds["bad_utf8"] = None
    tokens = _tokens(words, kinds)
    if tokens is None:
        return None
    mended = "".join(tokens).encode()
    if not _parses(mended):
        return None
    return Mended(mended, tuple(kinds))


def without_repeats(text: bytes) -> tuple[bytes, list[bytes]]:
    """Return an object of JSON without members whose key comes again, and those members."""
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except RecursionError:
        return text, []
    if not text.startswith(b"{") or len(pairs) == len({key for key, _ in pairs}):
        return text, []
    words = text.decode()
    decode = json.JSONDecoder().raw_decode
    last: dict[str, str] = {}
    repeated = []
    at = 0
    for _ in pairs:
        start = words.index('"', at)
        key, at = decode(words, start)
        at = decode(words, _VALUE.match(words, at).end())[1]  # type: ignore[union-attr]
        if key in last:
            repeated.append(last[key].encode())
        last[key] = words[start:at]
    return f"{{{','.join(last.values())}}}".encode(), repeated


def _parses(text: bytes) -> bool:
    try:
        json.loads(text, parse_constant=_refuse)
    except ValueError:
        return False
    except RecursionError:
        with engine.connect() as connection:
            row = connection.execute("select json_valid(?)", [text.decode()]).fetchone()
        return bool(row and row[0])
    return True


def _tokens(words: str, kinds: dict[str, None]) -> list[str] | None:
    """Return the tokens of a value, mended; None where a string does not end."""
    tokens: list[str] = []
    at = 0
    last = ""
    """The last mark, string or word."""
    comma = -1
    """Where in `tokens` the last comma is, if nothing followed it."""
    while at < len(words):
        match = _TOKEN.match(words, at)
        if match is None:
            return None
        at = match.end()
        kind, token = match.lastgroup, match[0]
        if kind == "space":
            tokens.append(token)
            continue
        if kind == "string":
            token = f'"{_string(match["string"], kinds)}"'
        elif kind == "word":
            token = _word(token, words[at:], kinds)
            if token.endswith('"') and words.startswith('"', at):
                at += 1
        if token in ("]", "}") and comma >= 0:
            tokens[comma] = ""
            kinds["trailing_comma"] = None
        if token == "," and (comma >= 0 or last in ("[", "{", "")):
            kinds["extra_comma"] = None
            continue
        comma = len(tokens) if token == "," else -1
        last = token
        tokens.append(token)
    return tokens


def _word(word: str, rest: str, kinds: dict[str, None]) -> str:
    """Return what stands for a word outside of strings; `rest` follows it."""
    if word in _WORDS:
        return word
    if re.match(r'"?\s*:', rest):
        kinds["unquoted_key"] = None
        return json.dumps(word)
    kinds["bare_constant"] = None
    return _PYTHON_WORDS.get(word, "null")


def _string(inside: str, kinds: dict[str, None]) -> str:
    """Return the inside of a string with what JSON allows there."""
    if "\\" in inside:
        escapes = [found[1] or found[2] for found in _BACKSLASH.finditer(inside)]
        # One that escapes nothing tells that all of them are backslashes of a path.
        if any(len(one) == 1 and one not in '"\\/bfnrt' for one in escapes):
            kinds["lone_backslash"] = None
            inside = _BACKSLASH.sub(_literal, inside)
        elif any(found[1] for found in _SURROGATES.finditer(inside)):
            kinds["lone_surrogate"] = None
            inside = _SURROGATES.sub(lambda found: r"�" if found[1] else found[0], inside)
    if _CONTROL.search(inside):
        kinds["control_character"] = None
        inside = _CONTROL.sub(
            lambda found: _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04x}", inside
        )
    return inside


def _literal(found: re.Match[str]) -> str:
    escape = found[1] or found[2]
    return found[0] if escape in '"\\' else f"\\\\{escape}"


def _refuse(word: str) -> Any:
    raise ValueError(word)
