"""The model of a trace, as its config.json tells it: sizes, the roles of its layers, its loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trace_sql.config import Config
from trace_sql.formula import Formula
from trace_sql.layout import Layout
from trace_sql.loops import Loops, Visit, read_loops
from trace_sql.profile import Profile, infer
from trace_sql.roles import layer_roles

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

_FOREIGN = {
    "is_encoder_decoder": "an encoder and a decoder, two stacks of layers",
    "_diffusers_version": "a part of a diffusion pipeline",
}
"""Configs whose layer count would be read as something that it is not."""


@dataclass(frozen=True)
class Layer:
    """One layer of the config: 0-based number, roles, their type label, KV compression ratio."""

    number: int
    roles: tuple[str, ...]
    compress_ratio: int | None

    @property
    def type(self) -> str:
        """Return the roles as one label; empty where the config does not tell any."""
        return "+".join(self.roles)


@dataclass(frozen=True)
class Model:
    """The fields of a config that reports show. None: the config does not say."""

    name: str
    config: Config = field(repr=False)
    profile: Profile = field(repr=False)
    profile_reason: str
    num_layers: int
    num_layers_source: str
    """The formula in config keys that counts the layers."""
    draft_layers: int | None
    """Layers of the draft (multi-token prediction) model beside it."""
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
    loops: Loops | None
    """None: a pass runs every layer once."""

    @property
    def architectures(self) -> tuple[str, ...]:
        return self.config.architectures

    @property
    def model_types(self) -> tuple[str, ...]:
        """Like `architectures` in order: the outer config's first, then the nested one's."""
        return self.config.model_types

    @property
    def identities(self) -> tuple[str, ...]:
        return self.config.identities

    @property
    def depth(self) -> int | None:
        """Return how often a pass repeats the core; None without loops or where runtime decides."""
        return self.loops.depth if self.loops else None

    @property
    def depth_varies(self) -> bool:
        return self.loops is not None and self.loops.varies

    @property
    def attention(self) -> str:
        """Return the kinds of attention in one word."""
        kinds = list(dict.fromkeys(layer.roles[0].lower() for layer in self.layers if layer.roles))
        if all(layer.compress_ratio is None for layer in self.layers):
            return "+".join(kinds)
        families = {kind.split("_")[0] for kind in kinds} - {"swa"}
        return "_".join(sorted(families)) or "swa"

    def type_counts(self) -> Mapping[str, int]:
        """Return how many layers have each type, in order of first appearance."""
        return Counter(layer.type for layer in self.layers if layer.roles)

    def ratio_counts(self) -> Mapping[str, int]:
        """Return how many layers each compression has, and how many route by hash."""
        compressed = [layer for layer in self.layers if layer.compress_ratio is not None]
        hashed = ["HASH" for layer in compressed if "HASH" in layer.roles]
        return Counter([layer.roles[0] for layer in compressed] + hashed)

    @classmethod
    def from_config(
        cls,
        config: Path | Mapping[str, Any],
        name: str | None = None,
        profile: Profile | None = None,
    ) -> Model:
        """Read a config.json, or one already parsed, by `profile` or the one that fits it.

        Nested text_config, language_config and llm_config count as if they stood at the top.
        `name` defaults to the file's name, or its folder's for a plain config.json. Raises
        BadInputError where the file is no JSON object, or no language model's, where the layer
        count is missing, impossible or told twice, or a list of layers does not fit it.
        """
        if isinstance(config, Path):
            name = name or (config.parent.name if config.name == "config.json" else config.stem)
            fields = Config.read(config)
        else:
            fields = Config(config, "config")
        found, reason = (profile, "option") if profile else infer(fields)
        layout = found.resolved_layout
        for key, what in _FOREIGN.items():
            if fields.get(key):
                raise fields.error(f"{key} says that it is {what}; give a language model's own")
        count, source = _layer_count(layout, fields)
        sizes = {size: fields.number(*keys) for size, keys in _SIZES.items()}
        hidden, heads = sizes["hidden_size"], sizes["heads"]
        if sizes["head_dim"] is None and sizes["kv_lora_rank"] is None and hidden and heads:
            sizes["head_dim"] = hidden // heads if hidden % heads == 0 else None
        if sizes["moe_intermediate_size"] is None and fields.number("num_local_experts"):
            # Every FFN is MoE in these configs, so the one width is the experts'.
            sizes["moe_intermediate_size"] = fields.number("intermediate_size")
        return cls(
            name=name or next(iter((*fields.architectures, *fields.model_types)), "model"),
            config=fields,
            profile=found,
            profile_reason=reason,
            num_layers=count,
            num_layers_source=source,
            draft_layers=_first(layout.drafts, fields, count) or None,
            layers=_layers(layout, fields, count),
            loops=read_loops(layout.loops, fields, count),
            **sizes,
        )


def visit_rows(model: Model | None) -> list[Visit]:
    """Return the rows of `trace_visits`, without their trace: none for a model without loops.

    The visits of part core are those of one cycle; a pass repeats them `model.depth` times.
    """
    return list(model.loops.visits()) if model and model.loops else []


def geometry_rows(model: Model) -> list[tuple[int | bool | str | None, ...]]:
    """Return the rows of `trace_geometry`, without their trace: the attention of each layer.

    Layer, heads of query and of key and value, head size of query and of value, keys of a window,
    keys that sparse attention chooses, keys of a compressed block, whether key and value are one
    compressed tensor (then the sizes are those of its space, in which a decode step works), head
    sizes of query and value where it is expanded, as prefill does, and the type of activations.
    """
    latent = model.kv_lora_rank is not None
    size = model.head_dim
    size_v: int | None = size
    if model.kv_lora_rank is not None:
        size = model.kv_lora_rank + (model.qk_rope_head_dim or 0)
        size_v = model.kv_lora_rank
    kv_heads = 1 if latent else model.kv_heads or model.heads
    nope, wide_v = (model.config.number(key) for key in ("qk_nope_head_dim", "v_head_dim"))
    wide = nope + (model.qk_rope_head_dim or 0) if latent and nope else None
    dtype = _DTYPES.get(str(model.config.get("torch_dtype") or model.config.get("dtype")))
    return [
        (
            *(layer.number, model.heads, kv_heads, size, size_v),
            *_reach(model, layer),
            latent or layer.compress_ratio in _BLOCKS,
            *(wide, wide_v if wide else None, dtype),
        )
        for layer in model.layers
    ]


def _reach(model: Model, layer: Layer) -> tuple[int | None, int | None, int | None]:
    """Return the keys of a layer's window, those that it chooses, and how many are one block."""
    if layer.compress_ratio in _BLOCKS:
        chosen = model.index_topk if layer.compress_ratio == _CHOSEN else None
        return model.sliding_window, chosen, layer.compress_ratio
    window = model.sliding_window if _WINDOWS & set(layer.roles) else None
    return window, model.index_topk, None


_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_WINDOWS = {"SLIDING", "SWA", "SWA_ONLY"}
"""Roles of layers whose attention sees a window of keys and nothing else."""
_CHOSEN = 4
_BLOCKS = {0, _CHOSEN, 128}
"""Keys that are compressed into one beside a window; of blocks of 4 some are chosen."""


def _first(formulas: tuple[Formula, ...], config: Config, count: int = 0) -> int | None:
    values = (formula.number(config.get, count) for formula in formulas)
    return next((value for value in values if value is not None), None)


def _layer_count(layout: Layout, config: Config) -> tuple[int, str]:
    """Return the layer count and the formula that gives it."""
    formulas = layout.count
    named = ((formula, formula.number(config.get)) for formula in formulas)
    formula, count = next(((f, value) for f, value in named if value is not None), (None, None))
    if formula is None or count is None:
        for one in formulas:
            if (found := config.get(one.text)) is not None:
                raise config.error(f"{one.text} is {found!r}, which is no whole number of layers")
        raise config.error(
            f"no layer count ({', '.join(one.text for one in formulas)}); give the model's own "
            "config.json"
        )
    if count < 1:
        raise config.error(f"{count} layers are impossible")
    for key in formula.keys:
        told = {part[key] for part in config.parts if type(part.get(key)) is int}
        if len(told) > 1:
            raise config.error(
                f"{key} is {' and '.join(map(str, sorted(told)))} in one config; "
                "give the text model's own config.json"
            )
    for key, fitting in layout.agree:
        stated = config.number(key)
        fits = [one.number(config.get, count) for one in fitting]
        if stated is not None and stated not in fits:
            raise config.error(
                f"contradicts itself: {formula.text} makes {count} layers, {key} is {stated}"
            )
    return count, formula.text


def _layers(layout: Layout, config: Config, count: int) -> tuple[Layer, ...]:
    tail = max(0, _first(layout.tail, config, count) or 0)
    roles = layer_roles(layout.roles, layout.parts, config, count, tail)
    by_role = dict(layout.ratios)
    told = config.get("compress_ratios") if by_role else None
    ratios = told if isinstance(told, list) else [by_role.get(next(iter(r), "")) for r in roles]
    return tuple(
        Layer(i, of_layer, ratios[i] if type(ratios[i]) is int else None)
        for i, of_layer in enumerate(roles)
    )


def summary_rows(model: Model) -> list[tuple[str, str]]:
    """Return (label, value) rows that describe the model, without what its config does not say."""
    moe, indexed, loops = model.num_experts, model.index_topk, model.loops
    key, stated = model.num_layers_source, model.config.number("num_hidden_layers")
    parts: dict[str, dict[str, object]] = {
        "Layers": {
            "": f"{model.num_layers}" + (f" ({key})" if key != "num_hidden_layers" else ""),
            "num_hidden_layers says": stated if stated != model.num_layers else None,
        },
        "Draft layers": {"": model.draft_layers},
        "Hidden size": {"": model.hidden_size},
        "Attention": {"": model.attention or None},
        "Heads": {
            "q": model.heads,
            "kv": model.kv_heads,
            "dim": model.head_dim,
            "global kv": model.config.number("num_global_key_value_heads"),
            "global dim": model.config.number("global_head_dim"),
        },
        "LoRA ranks": {"q": model.q_lora_rank, "kv": model.kv_lora_rank, "o": model.o_lora_rank},
        "MoE": {
            "experts": moe,
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
        "Loops": {
            "prelude": loops.prelude or None,
            "core": f"{loops.core} x {loops.runs}" if loops.runs > 1 else loops.core,
            "coda": loops.coda or None,
            "depth": f"{loops.depth or 'unknown'} ({loops.depth_source})",
            "visits a pass": loops.visits_per_pass,
            "may vary": "by pass" if loops.varies else None,
        }
        if loops
        else {},
        "Layer types": dict(model.type_counts()),
    }
    rows = [("Model", model.name), ("Architecture", " / ".join(model.identities))]
    for label, values in parts.items():
        said = [f"{key} {value}".strip() for key, value in values.items() if value is not None]
        rows.append((label, ", ".join(said)))
    return [(label, value) for label, value in rows if value]
