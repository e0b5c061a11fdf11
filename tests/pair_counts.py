"""Which keys a query sees under each mask, by asking every pair: what formulas are held against."""

from __future__ import annotations

from collections.abc import Callable

Sees = Callable[[int, int], bool]
"""Says whether a query at a place among the keys sees the key at another place."""


def seen(n_q: int, n_kv: int, sees: Sees) -> list[list[int]]:
    """Return the keys that each query sees; the last query stands at the last key."""
    places = range(n_kv - n_q, n_kv)
    return [[key for key in range(n_kv) if sees(place, key)] for place in places]


def dense(place: int, key: int) -> bool:
    return True


def causal_br(place: int, key: int) -> bool:
    return key <= place


def causal_tl(n_q: int, n_kv: int) -> Sees:
    """Return a mask that counts both from their first: the places are shifted back for it."""
    return lambda place, key: key <= place - (n_kv - n_q)


def window(size: int) -> Sees:
    return lambda place, key: place - size < key <= place


def band(left: int, right: int) -> Sees:
    return lambda place, key: place - left <= key <= place + right


def chunked(size: int) -> Sees:
    return lambda place, key: key <= place and key // size == place // size


def pairs(n_q: int, n_kv: int, sees: Sees) -> int:
    return sum(len(keys) for keys in seen(n_q, n_kv, sees))


def keys(n_q: int, n_kv: int, sees: Sees) -> int:
    """Return how many keys at least one query sees."""
    return len({key for listed in seen(n_q, n_kv, sees) for key in listed})


def topk_pairs(n_q: int, n_kv: int, k: int) -> int:
    """Return the pairs where a query keeps k of the keys that a causal mask shows it."""
    return sum(min(k, len(listed)) for listed in seen(n_q, n_kv, causal_br))
