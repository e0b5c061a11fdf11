"""The model of a trace, as its config.json tells it: sizes, experts, and the type of each layer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from trace_sql.errors import BadInputError

_NESTED = ("text_config", "language_config", "llm_config")
_LAYER_COUNT = ("num_layers_per_stack", "num_hidden_layers", "n_layer", "n_layers", "num_layers")
"""Tried in order: a stacked model (HRM) may save the product of its loops in the second."""

_SIZES = {
    "hidden_size": ("hidden_size", "n_embd"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "kv_heads": ("num_key_value_heads",),
    "head_dim": ("head_dim",),
    "q_lora_rank": ("q_lora_rank",),
    "kv_lora_rank": ("kv_lora_rank",),
    "o_lora_rank": ("o_lora_rank",),
    "num_experts": ("n_routed_experts", "num_experts", "num_local_experts"),
    "experts_per_token": (
        *("num_experts_per_tok", "num_experts_per_token", "experts_per_token"),
        *("moe_topk", "top_k_experts"),
    ),
    "shared_experts": ("n_shared_experts", "num_shared_experts"),
    "moe_intermediate_size": ("moe_intermediate_size", "expert_ffn_hidden_size"),
    "hc_mult": ("hc_mult", "hc_count"),
    "hc_sinkhorn_iters": ("hc_sinkhorn_iters",),
    "index_heads": ("index_n_heads", "indexer_n_heads"),
    "index_head_dim": ("index_head_dim", "indexer_head_dim"),
    "index_topk": ("index_topk", "indexer_budget"),
    "qk_rope_head_dim": ("qk_rope_head_dim",),
    "sliding_window": ("sliding_window", "sliding_window_size"),
    "num_hash_layers": ("num_hash_layers",),
}
"""Where each size stands, under the names that model families use."""

_STACKS = ("n_layers_in_prelude", "n_layers_in_recurrent_block", "n_layers_in_coda")
_PATTERN = {"M": "MAMBA", "E": "MOE", "-": "MLP", "*": "ATTN"}
"""One letter a block in `hybrid_override_pattern` (Nemotron-H)."""

_BLOCKS = {"mamba": "MAMBA", "moe": "MOE", "mlp": "MLP", "attention": "ATTN"}
"""The same by word in `layers_block_type`."""

_RATIOS = {0: "SWA_ONLY", 4: "CSA_C4", 128: "HCA_C128", 2: "V41_C2", 1: "V41_C1"}
_RATIO_OF_TYPE = {
    "sliding_attention": 0,
    "compressed_sparse_attention": 4,
    "heavily_compressed_attention": 128,
}
"""How transformers spells `compress_ratios` of DeepSeek-V4 in `layer_types`."""

_ATTENTION = {
    "sliding_attention": "SLIDING",
    "full_attention": "FULL",
    "linear_attention": "LINEAR",
    "chunked_attention": "CHUNKED",
    "deepseek_sparse_attention": "DSA",
    "indexed_attention": "DSA",
}


@dataclass(frozen=True)
class Layer:
    """One layer of the config: its 0-based number, its type label, its KV compression ratio."""

    number: int
    type: str
    compress_ratio: int | None


@dataclass(frozen=True)
class Model:
    """The fields of a config that reports show. None: the config does not say."""

    name: str
    architectures: tuple[str, ...]
    model_types: tuple[str, ...]
    """Like `architectures` in order: the outer config's first, then the nested one's."""
    num_layers: int
    hidden_size: int | None
    heads: int | None
    kv_heads: int | None
    head_dim: int | None
    q_lora_rank: int | None
    kv_lora_rank: int | None
    o_lora_rank: int | None
    num_experts: int | None
    experts_per_token: int | None
    shared_experts: int | None
    moe_intermediate_size: int | None
    hc_mult: int | None
    hc_sinkhorn_iters: int | None
    index_heads: int | None
    index_head_dim: int | None
    index_topk: int | None
    qk_rope_head_dim: int | None
    sliding_window: int | None
    num_hash_layers: int | None
    layers: tuple[Layer, ...]

    @property
    def identities(self) -> tuple[str, ...]:
        """Return model types and architectures, each outer name before the nested ones."""
        pairs = zip_longest(self.model_types, self.architectures)
        return tuple(name for pair in pairs for name in pair if name)

    @property
    def attention(self) -> str:
        """Return the kinds of attention in one word."""
        kinds = list(dict.fromkeys(layer.type.split("+")[0].lower() for layer in self.layers))
        if all(layer.compress_ratio is None for layer in self.layers):
            return "+".join(kinds)
        families = {kind.split("_")[0] for kind in kinds} - {"swa"}
        return "_".join(sorted(families)) or "swa"

    def type_counts(self) -> Mapping[str, int]:
        """Return how many layers have each type, in order of first appearance."""
        return Counter(layer.type for layer in self.layers)

    def ratio_counts(self) -> Mapping[str, int]:
        """Return how many layers each compression has, and how many route by hash."""
        compressed = [layer for layer in self.layers if layer.compress_ratio is not None]
        kinds = [layer.type.split("+") for layer in compressed]
        return Counter([kind[0] for kind in kinds] + ["HASH" for kind in kinds if "HASH" in kind])

    @classmethod
    def from_config(cls, config: Path | Mapping[str, Any], name: str | None = None) -> Model:
        """Read a config.json, or one already parsed.

        Nested text_config, language_config and llm_config count as if they stood at the top.
        `name` defaults to the file's name, or its folder's for a plain config.json. Raises
        BadInputError where the file is no JSON object, the layer count is missing or impossible,
        or a list of layers is too short for it.
        """
        where = "config"
        if isinstance(config, Path):
            where = str(config)
            name = name or (config.parent.name if config.name == "config.json" else config.stem)
            config = _read(config)
        fields = _Fields(config, where)
        count = fields.layer_count()
        sizes = {field: fields.number(*keys) for field, keys in _SIZES.items()}
        hidden, heads = sizes["hidden_size"], sizes["heads"]
        if sizes["head_dim"] is None and sizes["kv_lora_rank"] is None and hidden and heads:
            sizes["head_dim"] = hidden // heads if hidden % heads == 0 else None
        if sizes["moe_intermediate_size"] is None and fields.number("num_local_experts"):
            # Every FFN is MoE in these configs, so the one width is the experts'.
            sizes["moe_intermediate_size"] = fields.number("intermediate_size")
        return cls(
            name=name or next(iter((*fields.architectures, *fields.model_types)), "model"),
            architectures=fields.architectures,
            model_types=fields.model_types,
            num_layers=count,
            layers=fields.layers(count),
            **sizes,
        )


def summary_rows(model: Model) -> list[tuple[str, str]]:
    """Return (label, value) rows that describe the model, without what its config does not say."""
    moe, indexed = model.num_experts is not None, model.index_topk is not None
    parts: dict[str, dict[str, object]] = {
        "Heads": {"q": model.heads, "kv": model.kv_heads, "dim": model.head_dim},
        "LoRA ranks": {"q": model.q_lora_rank, "kv": model.kv_lora_rank, "o": model.o_lora_rank},
        "MoE": {
            "experts": model.num_experts,
            "topk": model.experts_per_token if moe else None,
            "shared": model.shared_experts if moe else None,
            "intermediate": model.moe_intermediate_size if moe else None,
        },
        "MHC": {"hc_mult": model.hc_mult, "sinkhorn_iters": model.hc_sinkhorn_iters},
        "NSA": {
            "index_n_heads": model.index_heads,
            "index_head_dim": model.index_head_dim,
            "index_topk": model.index_topk,
            "qk_rope_head_dim": model.qk_rope_head_dim if indexed else None,
            "sliding_window": model.sliding_window if indexed else None,
        },
        "Sliding window": {"": None if indexed else model.sliding_window},
        "compress_ratios": dict(model.ratio_counts()),
        "Layer types": dict(model.type_counts()),
    }
    rows = [
        ("Model", model.name),
        ("Architecture", " / ".join(model.identities)),
        ("Layers", str(model.num_layers)),
        ("Hidden size", str(model.hidden_size or "")),
        ("Attention", model.attention),
    ]
    for label, values in parts.items():
        said = [f"{key} {value}".strip() for key, value in values.items() if value is not None]
        rows.append((label, ", ".join(said)))
    return [(label, value) for label, value in rows if value]


def _read(path: Path) -> Mapping[str, Any]:
    try:
        config = json.loads(path.read_bytes())
    except OSError as problem:
        raise BadInputError(f"{path}: cannot be read ({problem.strerror})") from None
    except json.JSONDecodeError as problem:
        raise BadInputError(
            f"{path}: is no JSON at byte {problem.pos} ({problem.msg}); give a model's config.json"
        ) from None
    except UnicodeDecodeError as problem:
        raise BadInputError(f"{path}: is no UTF-8 at byte {problem.start}") from None
    if not isinstance(config, dict):
        raise BadInputError(f"{path}: is no JSON object; give the model's config.json")
    return config


class _Fields:
    """A config with its nested text config laid over it."""

    def __init__(self, config: Mapping[str, Any], where: str) -> None:
        self.where = where
        inner = [config[key] for key in _NESTED if isinstance(config.get(key), dict)]
        self.data: dict[str, Any] = dict(config)
        for nested in inner:
            self.data.update(nested)
        both = [config, *inner]
        names = [name for part in both for name in part.get("architectures") or ()]
        types = [part["model_type"] for part in both if isinstance(part.get("model_type"), str)]
        self.architectures = tuple(dict.fromkeys(names))
        self.model_types = tuple(dict.fromkeys(types))

    def error(self, problem: str) -> BadInputError:
        return BadInputError(f"{self.where}: {problem}")

    def number(self, *keys: str) -> int | None:
        """Return the first of `keys` that holds a whole number: some models keep lists there."""
        return next((self.data[key] for key in keys if type(self.data.get(key)) is int), None)

    def items(self, key: str, count: int | None = None) -> Sequence[Any] | None:
        """Return a list, cut to the layers of the model: a longer tail belongs to drafts."""
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, list):
            raise self.error(f"{key} is no list")
        if count is not None and len(value) < count:
            raise self.error(f"{key} has {len(value)} entries for {count} layers")
        return value[:count]

    def layer_count(self) -> int:
        blocks = self.data.get("hybrid_override_pattern") or self.items("layers_block_type")
        if blocks:
            return len(blocks)
        # LongCat counts double layers in num_layers; libraries add twice that as num_hidden_layers.
        longcat = any(name.startswith("longcat") for name in self.model_types)
        count = self.number(*(("num_layers",) if longcat else _LAYER_COUNT))
        stacks = [self.number(key) for key in _STACKS]
        if count is None and None not in stacks:
            count = sum(stack for stack in stacks if stack is not None)
        if count is None:
            raise self.error(
                f"no layer count ({', '.join(_LAYER_COUNT)}); give the model's own config.json "
                "or the number of layers"
            )
        if count < 1:
            raise self.error(f"{count} layers are impossible")
        return count

    def layers(self, count: int) -> tuple[Layer, ...]:
        """Return every layer with the label of its attention and FFN."""
        blocks = self._blocks()
        if blocks is not None:
            return tuple(Layer(i, block, None) for i, block in enumerate(blocks))
        ratios = self._ratios(count)
        if ratios is not None:
            return tuple(self._compressed(i, count, ratio) for i, ratio in enumerate(ratios))
        attention, ffn = self._attention(count), self._ffn(count)
        return tuple(Layer(i, f"{attention[i]}+{ffn[i]}", None) for i in range(count))

    def _blocks(self) -> list[str] | None:
        pattern = self.data.get("hybrid_override_pattern")
        words = list(pattern) if pattern else self.items("layers_block_type")
        if not words:
            return None
        names = _PATTERN if pattern else _BLOCKS
        for word in words:
            if word not in names:
                raise self.error(f"block {word!r} is unknown; known: {' '.join(names)}")
        return [names[word] for word in words]

    def _ratios(self, count: int) -> list[int] | None:
        ratios = self.items("compress_ratios", count)
        if ratios is not None:
            if not all(type(ratio) is int for ratio in ratios):
                raise self.error("compress_ratios holds something else than whole numbers")
            return list(ratios)
        types = self.items("layer_types", count)
        if types is not None and "compressed_sparse_attention" in types:
            unknown = set(types) - set(_RATIO_OF_TYPE)
            if unknown:
                raise self.error(f"layer_types mixes compressed layers with {sorted(unknown)}")
            return [_RATIO_OF_TYPE[kind] for kind in types]
        return None

    def _compressed(self, number: int, count: int, ratio: int) -> Layer:
        kinds = self.items("mlp_layer_types", count)
        hashed = (
            kinds[number] == "hash_moe"
            if kinds is not None
            else number < (self.number("num_hash_layers") or 0)
        )
        flags = {"HASH": hashed, "FIRST": number == 0, "FINAL": number == count - 1}
        label = _RATIOS.get(ratio, f"C{ratio}")
        return Layer(number, "+".join([label, *(flag for flag in flags if flags[flag])]), ratio)

    def _attention(self, count: int) -> list[str]:
        types = self.items("layer_types", count)
        if types is not None:
            return [_ATTENTION.get(kind, str(kind).upper()) for kind in types]
        linear = self.data.get("linear_attn_config")
        if isinstance(linear, dict) and isinstance(linear.get("full_attn_layers"), list):
            # Kimi counts its layers from 1.
            first = 1 if any(name.startswith("kimi") for name in self.model_types) else 0
            full = {number - first for number in linear["full_attn_layers"]}
            return ["FULL" if i in full else "LINEAR" for i in range(count)]
        interval = self.number("full_attention_interval")
        if interval:
            return ["LINEAR" if (i + 1) % interval else "FULL" for i in range(count)]
        if self.number("kv_lora_rank"):
            return ["DSA" if self.number("index_topk") else "MLA"] * count
        return ["FULL"] * count

    def _ffn(self, count: int) -> list[str]:
        kinds = self.items("mlp_layer_types", count)
        if kinds is not None:
            return ["DENSE" if kind == "dense" else "MOE" for kind in kinds]
        if not self.number(*_SIZES["num_experts"]):
            return ["DENSE"] * count
        dense = set(self.items("mlp_only_layers") or ())
        first = self.number("first_k_dense_replace") or 0
        step = self.number("decoder_sparse_step") or 1
        return [
            "DENSE" if i < first or i in dense or (i + 1) % step else "MOE" for i in range(count)
        ]
