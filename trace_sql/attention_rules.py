"""How attention is recognised: rules over operator names and over kernel names, from profiles/."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from trace_sql.literal import sql_string
from trace_sql.resources import data_folder

_TEXT = "direction implementation library needs layout kv_layout causal_mask mask"
_NUMBERS = (
    "rank layout_flag q k v out bias q_rope k_rope cu_q cu_k max_q max_k page_table lengths causal"
    " causal_else window_left window_right window_size chunk mask_type top_k_of kv_type h_kv_at"
    " d_v_at d_v"
)
OPERATOR_FIELDS: Mapping[str, str] = {
    "family": "VARCHAR",
    **dict.fromkeys(_TEXT.split(), "VARCHAR"),
    **dict.fromkeys(_NUMBERS.split(), "BIGINT"),
}
"""What a rule says of an operator, with its type in SQL."""
KERNEL_FIELDS: Mapping[str, str] = {
    "rule": "VARCHAR",
    "role": "VARCHAR",
    "implementation": "VARCHAR",
    "library": "VARCHAR",
    "direction": "VARCHAR",
    "phase": "VARCHAR",
    "mask": "VARCHAR",
    "place": "VARCHAR",
    "latent": "BOOLEAN",
    "q_heads_at": "BIGINT",
    "kv_heads_at": "BIGINT",
    "seqs_at": "BIGINT",
}
"""What a rule says of a kernel, with its type in SQL."""
KERNEL_TRAITS = (
    "head_dim",
    "head_dim_v",
    "page_size",
    "q_type",
    "kv_type",
    "o_type",
    "fp8",
    "group",
    "causal",
    "window",
)
"""What a kernel's name tells itself: the named groups of a rule's `traits`."""
_ALSO = {"pattern", "traits", "confidence", "examples", "source", "note"}


@dataclass(frozen=True)
class Rule:
    """One rule: what a name that matches `pattern` is; the first rule that matches wins."""

    file: str
    pattern: str
    examples: tuple[str, ...]
    fields: Mapping[str, Any]

    @property
    def traits(self) -> Mapping[str, int]:
        """What the name tells, with the number of its group in the pattern `traits`."""
        return re.compile(self.fields.get("traits", "")).groupindex

    @property
    def values(self) -> str:
        """The fields in the order of their table, as a row of SQL values."""
        kinds = OPERATOR_FIELDS if self.file == "operators.toml" else KERNEL_FIELDS
        return ", ".join(_value(self.fields.get(key)) for key in kinds)


@cache
def operator_rules() -> tuple[Rule, ...]:
    """Return the rules of `profiles/attention/operators.toml`; a pattern is for whole names.

    Raises ValueError for a key that no rule has, which is an error of ours.
    """
    return _rules("operators.toml", "operator", OPERATOR_FIELDS)


@cache
def kernel_rules() -> tuple[Rule, ...]:
    """Return the rules of `profiles/attention/kernels.toml`; a pattern is for a part of a name.

    Raises ValueError for a key that no rule has, which is an error of ours.
    """
    return _rules("kernels.toml", "kernel", KERNEL_FIELDS)


def _rules(file: str, table: str, fields: Mapping[str, str]) -> tuple[Rule, ...]:
    path = data_folder("profiles") / "attention" / file
    found = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))[table]:
        unknown = entry.keys() - fields.keys() - _ALSO
        if unknown:
            raise ValueError(f"{file}: {entry.get('pattern')}: unknown {sorted(unknown)}")
        re.compile(entry["pattern"])
        rule = Rule(file, entry["pattern"], tuple(entry["examples"]), entry)
        if odd := rule.traits.keys() - set(KERNEL_TRAITS):
            raise ValueError(f"{file}: {rule.pattern}: unknown traits {sorted(odd)}")
        found.append(rule)
    return tuple(found)


def _value(value: Any) -> str:
    if value is None:
        return "null"
    return sql_string(value) if isinstance(value, str) else str(value)
