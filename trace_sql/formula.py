"""Formulas over the fields of a config.json, as profiles write them. Nothing is ever executed.

`i` is a 0-based layer, `N` the layer count, any other name a (dotted) key of the config. There are
whole numbers, texts, true and false, `+ - * % //`, comparisons, `in`, `and or not`, `max`, `min`,
`len`, `has(key)` (the config says something there) and `key[i]`, the entry of layer i in a list
or the letter of layer i in a string. What a config does not say is None: a sum with it is None, a
comparison with it is false.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

_SUMS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_CALLS = {"max": 2, "min": 2, "len": 1, "has": 1}
_WORDS = {"true": True, "false": False}

Fields = Callable[[str], Any]


@dataclass(frozen=True)
class Formula:
    """A formula with the keys that it reads, those of lists with one entry a layer apart."""

    text: str
    tree: ast.expr = field(repr=False, compare=False)
    keys: frozenset[str]
    per_layer: frozenset[str]

    def value(self, fields: Fields, i: int = 0, n: int = 0) -> Any:
        """Return what the formula gives for layer `i` of `n`."""
        return _value(self.tree, fields, i, n)

    def number(self, fields: Fields, n: int = 0) -> int | None:
        """Return its whole number; None where the config lacks a key of it."""
        found = self.value(fields, n=n)
        return found if type(found) is int else None

    def holds(self, fields: Fields, i: int = 0, n: int = 0) -> bool:
        return _told(self.value(fields, i, n))

    def members(self) -> Iterator[tuple[str, ast.expr]]:
        """Return (key of a list of layer ids, what is looked for in it)."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In):
                key = _key(node.comparators[0])
                if key is not None:
                    yield key, node.left

    def strangers(self, fields: Fields, n: int) -> list[tuple[str, int]]:
        """Return (key, id) of every id in a list of layer ids that no layer of `n` has."""
        found = []
        for key, sought in self.members():
            mine = {_value(sought, fields, i, n) for i in range(n)}
            if any(type(layer) is not int for layer in mine):
                continue
            ids = fields(key) if isinstance(fields(key), list) else []
            found += [(key, layer) for layer in ids if layer not in mine]
        return found


def parse(text: str) -> Formula:
    """Parse a formula; raises ValueError that says what is wrong with it."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise ValueError(f"{text!r} cannot be parsed") from None
    keys: set[str] = set()
    per_layer: set[str] = set()
    _check(tree, keys, per_layer)
    return Formula(text, tree, frozenset(keys), frozenset(per_layer))


def _key(node: ast.expr) -> str | None:
    """Return the dotted key that a node names."""
    if isinstance(node, ast.Attribute):
        outer = _key(node.value)
        return outer and f"{outer}.{node.attr}"
    if isinstance(node, ast.Name) and node.id not in ("i", "N", *_WORDS):
        return node.id
    return None


def _check(node: ast.expr, keys: set[str], per_layer: set[str]) -> None:
    if key := _key(node):
        keys.add(key)
        return
    match node:
        case ast.Name() | ast.Constant(value=int() | str()):
            return
        case ast.Subscript(value=listed, slice=ast.Name(id="i")) if key := _key(listed):
            keys.add(key)
            per_layer.add(key)
            return
        case ast.Call(func=ast.Name(id=name), args=inner, keywords=[]) if _CALLS.get(name) == len(
            inner
        ) and (name in ("max", "min") or _key(inner[0])):
            pass
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SUMS:
            inner = [left, right]
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
            inner = [operand]
        case ast.BoolOp(values=inner):
            pass
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[right]) if _key(
            right
        ):
            inner = [left, right]
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[ast.Tuple(elts)]):
            inner = [left, *elts]
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
            inner = [left, right]
        case _:
            raise ValueError(f"{ast.unparse(node)!r} is no part of a formula")
    for part in inner:
        _check(part, keys, per_layer)


def _told(value: Any) -> bool:
    """Whether a config says something with a value: not null, false, 0, empty, nor -1."""
    return bool(value) and value != -1


def _value(node: ast.expr, fields: Fields, i: int, n: int) -> Any:
    if key := _key(node):
        return fields(key)
    match node:
        case ast.Name(id=name):
            return _WORDS.get(name, i if name == "i" else n)
        case ast.Constant(value=value):
            return value
        case ast.Subscript(value=listed):
            entries = fields(_key(listed) or "")
            is_list = isinstance(entries, list | str) and i < len(entries)
            return entries[i] if is_list else None
        case ast.Call(func=ast.Name(id=name), args=args):
            values = [_value(arg, fields, i, n) for arg in args]
            if name == "has":
                return _told(values[0])
            if name == "len":
                return len(values[0]) if isinstance(values[0], list | str) else None
            whole = all(type(value) is int for value in values)
            return (max if name == "max" else min)(values) if whole else None
        case ast.UnaryOp(op=op, operand=operand):
            value = _value(operand, fields, i, n)
            if isinstance(op, ast.Not):
                return not _told(value)
            return -value if type(value) is int else None
        case ast.BoolOp(op=op, values=parts):
            results = (_told(_value(part, fields, i, n)) for part in parts)
            return all(results) if isinstance(op, ast.And) else any(results)
        case ast.BinOp(left=left, op=op, right=right):
            return _sum(op, _value(left, fields, i, n), _value(right, fields, i, n))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compared(op, _value(left, fields, i, n), _list(right, fields, i, n))
    raise AssertionError(f"{ast.dump(node)} passed the check")


def _list(node: ast.expr, fields: Fields, i: int, n: int) -> Any:
    if isinstance(node, ast.Tuple):
        return [_value(item, fields, i, n) for item in node.elts]
    return _value(node, fields, i, n)


def _sum(op: ast.operator, left: Any, right: Any) -> int | None:
    if type(left) is not int or type(right) is not int:
        return None
    if isinstance(op, ast.Mod | ast.FloorDiv) and right == 0:
        return None
    return _SUMS[type(op)](left, right)


def _compared(op: ast.cmpop, left: Any, right: Any) -> bool:
    if left is None or right is None:
        return False
    if isinstance(op, ast.In | ast.NotIn):
        # A single id stands for a list of one.
        among = left in (right if isinstance(right, list) else [right])
        return among == isinstance(op, ast.In)
    ordered = type(left) in (int, float) and type(right) in (int, float)
    equality = isinstance(op, ast.Eq | ast.NotEq)
    return _COMPARISONS[type(op)](left, right) if ordered or equality else False
