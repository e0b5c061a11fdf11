"""How many anchors a pass has, as a formula in the layers of its model."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class Hits:
    """Anchors of one pass: `per_layer` * N + `per_role` * (layers of `role`) + `extra`."""

    text: str
    per_layer: int
    extra: int
    role: str | None = None
    per_role: int = 0

    def count(self, layers: int, of_role: int = 0) -> int:
        """Return the anchors of a pass of `layers` layers, `of_role` of which have the role."""
        return self.per_layer * layers + self.per_role * of_role + self.extra


def parse_hits(text: str) -> Hits:
    """Parse a formula of integers, N, one role in capitals, +, -, * and parentheses.

    It must be linear and grow with N. Raises ValueError that says what is wrong with it.
    """
    try:
        terms = _linear(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError:
        raise ValueError(f"{text!r} cannot be parsed") from None
    roles = [name for name in terms if name not in ("N", "")]
    if terms["N"] < 1:
        raise ValueError(f"{text!r} does not grow with N")
    if len(roles) > 1:
        raise ValueError(f"{text!r} counts more than one role: {', '.join(sorted(roles))}")
    if not roles:
        return Hits(text, terms["N"], terms[""])
    if terms[roles[0]] < 1:
        raise ValueError(f"{text!r} does not grow with {roles[0]}")
    return Hits(text, terms["N"], terms[""], roles[0], terms[roles[0]])


def _linear(node: ast.expr) -> Counter[str]:
    """Return the factor of each name, of 1 under the empty name; nothing is ever evaluated."""
    match node:
        case ast.Name(id=name) if name.isupper():
            return Counter({name: 1})
        case ast.Constant(value=value) if type(value) is int:
            return Counter({"": value})
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _scaled(_linear(inner), -1)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            sum_of = _linear(left)
            sum_of.update(_scaled(_linear(right), 1 if isinstance(op, ast.Add) else -1))
            return sum_of
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            a, b = _linear(left), _linear(right)
            if set(a) <= {""}:
                return _scaled(b, a[""])
            if set(b) <= {""}:
                return _scaled(a, b[""])
            raise ValueError(f"{ast.unparse(node)!r} is not linear")
    raise ValueError(f"{ast.unparse(node)!r} is neither N, a role, a whole number, +, - nor *")


def _scaled(terms: Counter[str], factor: int) -> Counter[str]:
    return Counter({name: factor * number for name, number in terms.items()})
