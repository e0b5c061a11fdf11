"""Documents of known events in many layouts, and what can happen to their bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

KNOWN = ("schemaVersion", "traceEvents", "deviceProperties", "distributedInfo", "WARNING")


@dataclass(frozen=True)
class Digits:
    """A number as the file spells it."""

    text: str


@dataclass(frozen=True)
class Layout:
    """How JSON is spelt: what stands where white space may be."""

    comma: str
    colon: str
    open: str
    close: str
    event_comma: str
    ascii: bool

    def spell(self, value: Any) -> str:
        if isinstance(value, Digits):
            return value.text
        if isinstance(value, dict):
            pairs = (
                f"{self.spell(key)}{self.colon}{self.spell(one)}" for key, one in value.items()
            )
            return f"{{{self.open}{self.comma.join(pairs)}{self.close}}}"
        if isinstance(value, list):
            return f"[{self.comma.join(map(self.spell, value))}]"
        return json.dumps(value, ensure_ascii=self.ascii)


@dataclass(frozen=True)
class Written:
    """A document, the events it holds as JSON texts, and where each of them stands."""

    raw: bytes
    spans: list[tuple[int, int]]

    @property
    def texts(self) -> list[bytes]:
        return [self.raw[begin:end] for begin, end in self.spans]


def write(
    events: list[Any], layout: Layout, head: dict[str, Any], tail: dict[str, Any], *, bare: bool
) -> Written:
    """Spell a document; `bare` leaves out all but the list."""
    out = bytearray()
    if not bare:
        out += b"{" + layout.open.encode()
        for key, value in head.items():
            out += f"{json.dumps(key)}{layout.colon}{layout.spell(value)}{layout.comma}".encode()
        out += f'"traceEvents"{layout.colon}'.encode()
    out += b"[" + layout.open.encode()
    spans = []
    for number, event in enumerate(events):
        out += layout.event_comma.encode() if number else b""
        text = layout.spell(event).encode()
        spans.append((len(out), len(out) + len(text)))
        out += text
    out += layout.close.encode() + b"]"
    if not bare:
        for key, value in tail.items():
            out += f"{layout.comma}{json.dumps(key)}{layout.colon}{layout.spell(value)}".encode()
        out += layout.close.encode() + b"}"
    return Written(bytes(out + layout.close.encode()), spans)


@dataclass(frozen=True)
class Damage:
    """One stretch of bytes, `begin` to `end`, replaced by others."""

    begin: int
    end: int
    by: bytes

    def done_to(self, raw: bytes) -> bytes:
        return raw[: self.begin] + self.by + raw[self.end :]


_SPACES = st.sampled_from(["", "", " ", "\n", "\n  ", "\r\n", "\t"])


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    def around(mark: str) -> str:
        return f"{draw(_SPACES)}{mark}{draw(_SPACES)}"

    return Layout(
        around(","), around(":"), draw(_SPACES), draw(_SPACES), around(","), draw(st.booleans())
    )


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    # What the reader looks for, where it means nothing, and what is no JSON outside of a string.
    ["},{", "} , {", "}]", '"', '\\"},{"', "]}", '"traceEvents": [', "\\", ',"ph":"X"', ",]", ", }"]
    + [
        ":nan,",
        "[inf]",
        "nan",
        "NaN",
        "-inf",
        "\x1e",
        "}\x1e{",
        '{"ph":"X","name":"k"}',
        "C:\\new\\u12",
    ]
    + ["\x00", "\x7f", "\u2028", "é€😀", "null", "[{", "{}", '{"schemaVersion":1']
)
_FLAT = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT
)
VALUES = st.recursive(
    _FLAT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def times(draw: st.DrawFn) -> Any:
    """A time as profilers spell it, exact to the nanosecond, or not."""
    whole = draw(st.sampled_from([0, 1, 17, 5_000_123, 1_767_225_600_123_456]))
    whole += draw(st.integers(0, 999))
    digits = f"{whole}.{draw(st.integers(0, 999)):03}"
    return draw(
        st.sampled_from([Digits(digits), Digits(digits), Digits(str(whole)), digits])
        | st.sampled_from([None, True, Digits("1e3"), Digits("1.0005"), "soon", Digits("1e40")])
    )


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    """An event such as Kineto writes, often with something odd about it."""
    event: dict[str, Any] = {
        "ph": draw(st.sampled_from("XXXXMfsi")),
        "cat": draw(st.sampled_from(["kernel", "cpu_op", "ac2g"])),
        "name": draw(_TEXT),
        "pid": draw(st.integers(0, 9) | st.sampled_from(["", "Spans"])),
        "tid": draw(st.integers(0, 9)),
        "ts": Digits(f"{draw(st.integers(0, 10**9))}.{draw(st.integers(0, 999)):03}"),
        "dur": Digits(str(draw(st.integers(0, 10**6)))),
        "args": {
            "device": draw(st.integers(0, 7)),
            "correlation": draw(st.integers(-1, 2**31)),
            "grid": [draw(st.integers(1, 9)), 1, 1],
        },
    }
    for key in draw(st.sets(st.sampled_from([*event, "nothing"]), max_size=2)):
        event.pop(key, None)
    odd = draw(st.integers(0, 9))
    if odd == 0:
        event[draw(st.sampled_from(["ts", "dur"]))] = draw(times())
    elif odd == 1:
        event["args"] = draw(VALUES)
    elif odd == 2:
        event[draw(_TEXT.filter(lambda key: key not in ("ph", "traceEvents")))] = draw(VALUES)
    elif odd == 3:
        event[draw(st.sampled_from(["s", "bp", "cname", "id"]))] = draw(_TEXT | st.integers(0, 99))
    elif odd == 4:
        event["args"] = {**event.get("args", {}), draw(_TEXT): draw(VALUES)}
    if draw(st.integers(0, 3)) == 0:
        event = dict(draw(st.permutations(list(event.items()))))
    return event


HEADS = st.dictionaries(
    st.sampled_from(["schemaVersion", "deviceProperties", "displayTimeUnit", "mine"]), VALUES
)
TAILS = st.dictionaries(st.sampled_from(["distributedInfo", "WARNING", "traceName", "own"]), VALUES)


@st.composite
def documents(draw: st.DrawFn, *, max_events: int = 10, odd: bool = True) -> Written:
    """A document; with `odd` some elements of its list may be no events."""
    listed: list[Any] = draw(st.lists(events(), max_size=max_events))
    bare = draw(st.integers(0, 5)) == 0
    # A bare list is one of events by its first element.
    if odd and len(listed) >= bare and draw(st.integers(0, 3)) == 0:
        listed.insert(draw(st.integers(int(bare), len(listed))), draw(_FLAT | st.just({})))
    return write(listed, draw(layouts()), draw(HEADS), draw(TAILS), bare=bare)


_BYTES = st.binary(min_size=1, max_size=4) | st.sampled_from(
    [
        b'"',
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\n",
        b"\x00",
        b"\x1e",
        b"\xff",
        b"\xf0\xc3(",
    ]
    + [
        b"nan",
        b"N/A",
        b"-inf",
        b"},{",
        b"}]",
        b"]}",
        b'{"',
        b"\\u12",
        b"\\ud800",
        b"[rank0]: word\n",
    ]
    + [
        b'{"traceEvents":[',
        b'{"ph":"X","name":"new"}',
        b',{"ph":"X","name":"new"},',
        b"\xed\xa0\x80",
    ]
)


@st.composite
def damages(draw: st.DrawFn, raw: bytes) -> Damage:
    """Something that happens to one stretch of `raw`."""
    begin = draw(st.integers(0, len(raw)))
    length = draw(st.sampled_from([0, 1, 1, 2, 7, 30, 150]))
    end = min(begin + length, len(raw))
    what = draw(st.sampled_from(["insert", "replace", "delete", "cut", "again", "shift"]))
    if what == "insert":
        return Damage(begin, begin, draw(_BYTES))
    if what == "replace":
        return Damage(begin, end, draw(_BYTES))
    if what == "delete":
        return Damage(begin, end, b"")
    if what == "cut":
        return Damage(begin, len(raw), b"")
    if what == "again":
        return Damage(begin, begin, raw[begin:end])
    other = draw(st.integers(0, len(raw)))
    return Damage(begin, end, raw[other : other + length])
