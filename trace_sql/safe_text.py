"""Text from outside, as text that does no harm where it is shown, and can be stored everywhere."""

from __future__ import annotations

import contextlib
import re

_LONGEST = 4000
"""Characters of a text that people are shown; names of kernels stay below that."""
_UNSEEN = (
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks without a shape, which can carry hidden text."""
_MARKS = r"(?i)[\\`*|<>\[\]~$@]|:(?=//)|(?<=www)\.|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"
"""Of Markdown. An underscore inside a word is none, and names are full of them."""


def utf8(text: str) -> str:
    r"""Return a word of the command line or a file's name as text that UTF-8 can hold.

    Bytes that the locale could not read are read as UTF-8; what is none becomes `\xff`, and half
    of a pair `\ud800`.
    """
    for handler in ("strict", "surrogateescape"):
        with contextlib.suppress(UnicodeEncodeError):
            return text.encode(errors=handler).decode(errors="backslashreplace")
    return text.encode(errors="backslashreplace").decode()


def odd_characters(text: str) -> set[str]:
    """Return the characters of `text` that a terminal obeys or that nobody can see."""
    if text.isascii() and text.isprintable():
        return set()
    return {char for char in set(text) if not char.isprintable() or re.match(_UNSEEN, char)}


def clean(text: str) -> str:
    """Return text that is safe on a terminal and hides nothing: odd characters as escapes."""
    odd = odd_characters(text)
    if not odd:
        return text
    escape = {ord(char): char.encode("unicode_escape").decode("ascii") for char in odd}
    return text.translate(escape)


def readable(text: str) -> str:
    """Return text for people: `clean`, and its begin alone where it is longer than they read."""
    if len(text) <= _LONGEST:
        return clean(text)
    return f"{clean(text[:_LONGEST])}... ({len(text)} characters)"


def escaped(text: str) -> str:
    """Return text with Markdown's own marks escaped, so that it shows as it is and is no link."""
    marked = re.sub(_MARKS, r"\\\g<0>", text).replace("&", "&amp;")
    # Tools that look for comments do not all know that an escaped one is none.
    return marked.replace(r"\<!--", "&lt;!--")
