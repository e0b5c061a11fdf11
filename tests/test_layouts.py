"""Roles and loops as data: formulas, spellings of the same model, loops, how labels compose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_sql.config import Config
from trace_sql.formula import parse
from trace_sql.loops import Visit
from trace_sql.model import Model, summary_rows, visit_rows
from trace_sql.profile import load_profiles

CONFIGS = Path(__file__).resolve().parents[1] / ".." / "shared" / "facts" / "models" / "configs"

FULL_OF_K3 = [4, 8, 12]
FIELDS: dict[str, Any] = {
    "one": 1,
    "none": None,
    "no": False,
    "minus": -1,
    "zero": 0,
    "word": "ab",
    "list": [3, 1, 2],
    "inner": {"deep": {"four": 4}},
}


def model(**config: Any) -> Model:
    return Model.from_config(config)


def types(found: Model) -> list[str]:
    return [layer.type for layer in found.layers]


def with_role(found: Model, role: str) -> list[int]:
    return [layer.number for layer in found.layers if role in layer.roles]


# --- formulas


@pytest.mark.parametrize(
    ("text", "i", "value"),
    [
        ("one + 2 * 3", 0, 7),
        ("inner.deep.four % 3", 0, 1),
        ("inner.deep.five", 0, None),
        ("N - 1 - i", 2, 7),
        ("(i + 1) % zero == 0", 3, False),
        ("missing + 1", 0, None),
        ("missing != 1", 0, False),
        ("not has(missing) and has(one)", 0, True),
        ("has(no) or has(minus) or has(zero) or has(none)", 0, False),
        ("no == false", 0, True),
        ("list[i] == 2", 2, True),
        ("list[i] == 2", 3, False),
        ('word[i] in ("a", "c")', 0, True),
        ('word[i] in ("a", "c")', 1, False),
        ("i + 1 in list", 2, True),
        ("i in one", 1, True),
        ("i not in list", 0, True),
        ("len(word) + len(list)", 0, 5),
        ("len(one)", 0, None),
        ("max(i - 2, 0)", 1, 0),
        ("min(i, one) + -1", 5, 0),
        ("word < 3", 0, False),
        ("7 // 2", 0, 3),
    ],
)
def test_formulas(text: str, i: int, value: Any) -> None:
    assert parse(text).value(Config(FIELDS, "config").get, i, 10) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "one +",
        "one ** 2",
        "one / 2",
        "__import__('os')",
        "open(word)",
        "max(1)",
        "len(1)",
        "has(1)",
        "list[0]",
        "list[N]",
        "[1]",
        "1.5",
        "a < b < c",
        "one if one else 2",
        "lambda: 1",
        "word.upper()",
        "one in 3",
    ],
)
def test_formulas_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


# --- which profile, and why

COMPRESSED = {"num_hidden_layers": 2, "compress_ratios": [4, 128]}
LATENT = {"num_hidden_layers": 2, "kv_lora_rank": 512}


@pytest.mark.parametrize(
    ("config", "profile", "reason"),
    [
        (
            {"model_type": "deepseek_v41", "architectures": ["DeepseekV4ForCausalLM"]},
            "dsv41",
            "v41",
        ),
        (
            {"architectures": ["DeepseekV4ForCausalLM"], "kv_source_layer_ids": [1]},
            "dsv41",
            "kv_source_layer_ids",
        ),
        (
            {
                "architectures": ["DeepseekV4ForCausalLM"],
                "text_config": {"model_type": "deepseek_v41_text"},
            },
            "dsv4_csa_hca",
            "architectures has DeepseekV4ForCausalLM",
        ),
        ({"model_type": "new", **COMPRESSED}, "dsv4_csa_hca", "compress_ratios"),
        ({"model_type": "new", **COMPRESSED, "kv_source_layers": [0]}, "dsv41", "kv_source"),
        ({"model_type": "kimi_linear"}, "dsv3_mla", "model_type is kimi_linear"),
        ({"model_type": "kimi_linear", "attn_res_block_size": 12}, "kimi_k3", "attn_res_block"),
        (
            {"model_type": "kimi_k3", "text_config": {"model_type": "kimi_linear"}},
            "kimi_k3",
            "model_type is kimi_k3",
        ),
        (
            {"model_type": "kimi_k25", "text_config": {"model_type": "deepseek_v3"}},
            "dsv3_mla",
            "text_config.model_type is deepseek_v3",
        ),
        ({"model_type": "deepseek_v3", "index_topk": 2048}, "mla_dsa", "index_topk"),
        ({"model_type": "new", **LATENT}, "dsv3_mla", "kv_lora_rank"),
        ({"model_type": "new", **LATENT, "index_topk": 64}, "mla_dsa", "index_topk"),
        # Latent attention among other kinds is no DeepSeek-V3.
        (
            {"model_type": "dots3_note", **LATENT, "layer_types": ["full_attention"] * 2},
            "generic_addnorm",
            "no profile claims dots3_note",
        ),
        ({"model_type": "longcat_flash", "num_layers": 2, **LATENT}, "longcat_flash", "is longcat"),
        ({"model_type": "hy_v4", **LATENT, "index_topk": 64}, "hy_v4", "is hy_v4"),
        ({"model_type": "new", "hybrid_override_pattern": "M*"}, "nemotron_h", "hybrid_override"),
        ({"model_type": "llama"}, "generic_addnorm", "no profile claims llama"),
        ({}, "generic_addnorm", "a config without a name"),
        (
            {"model_type": "new", "hybrid_override_pattern": "M*", **COMPRESSED},
            "generic_addnorm",
            "fit dsv4_csa_hca and nemotron_h",
        ),
    ],
)
def test_names_decide_before_fields(config: dict[str, Any], profile: str, reason: str) -> None:
    if profile not in load_profiles():
        pytest.skip(f"the profile {profile} has been removed")
    found = Model.from_config({"num_hidden_layers": 2, **config})
    assert found.profile.name == profile
    assert reason in found.profile_reason


# --- spellings


def test_v4_by_ratios_and_by_layer_types() -> None:
    ratios = [0, 0, 4, 128, 4]
    words = {0: "sliding", 4: "compressed_sparse", 128: "heavily_compressed"}
    by_ratio = model(
        model_type="deepseek_v4", num_hidden_layers=5, compress_ratios=ratios, num_hash_layers=3
    )
    by_type = model(
        model_type="deepseek_v4",
        num_hidden_layers=5,
        layer_types=[f"{words[ratio]}_attention" for ratio in ratios],
        mlp_layer_types=["hash_moe"] * 3 + ["moe"] * 2,
    )
    assert by_ratio.layers == by_type.layers
    assert [layer.compress_ratio for layer in by_type.layers] == ratios


@pytest.mark.parametrize("tail", [0, 1, 3])
def test_ratios_of_drafts_are_cut(tail: int) -> None:
    found = model(num_hidden_layers=2, compress_ratios=[4, 128] + [0] * tail)
    assert types(found) == ["CSA_C4+FIRST", "HCA_C128+FINAL"]


def test_an_unknown_ratio_keeps_its_number() -> None:
    found = model(num_hidden_layers=2, compress_ratios=[16, 4])
    assert types(found) == ["C16+FIRST", "CSA_C4+FINAL"]
    assert found.layers[0].compress_ratio == 16


def test_old_names_of_v41_keys() -> None:
    found = model(
        model_type="deepseek_v41",
        num_hidden_layers=4,
        compress_ratios=[0, 2, 2, 1],
        kv_source_layers=[1],
        index_source_layers=[1, 3],
        candidate_source_layer=3,
    )
    assert with_role(found, "KV_SOURCE") == [1]
    assert with_role(found, "INDEX_SOURCE") == [1, 3]
    assert with_role(found, "CANDIDATE_SOURCE") == [3]


def test_no_candidate_source_is_minus_one() -> None:
    found = model(
        model_type="deepseek_v41",
        num_hidden_layers=2,
        compress_ratios=[0, 2],
        candidate_source_layer_id=-1,
    )
    assert with_role(found, "CANDIDATE_SOURCE") == []


def test_kimi_counts_from_one_and_glm_from_zero() -> None:
    if not {"kimi_k3", "glm5_next"} <= load_profiles().keys():
        pytest.skip("one of the two profiles has been removed")
    ids = {"linear_attn_config": {"full_attn_layers": FULL_OF_K3}}
    kimi = model(model_type="kimi_k3", num_hidden_layers=13, kv_lora_rank=512, **ids)
    glm = model(model_type="glm5_next", num_hidden_layers=13, kv_lora_rank=512, **ids)
    assert with_role(kimi, "FULL") == [3, 7, 11]
    assert with_role(glm, "DSA") == [4, 8, 12]
    listed = ["full_attention" if i in (3, 7, 11) else "linear_attention" for i in range(13)]
    spelled = model(model_type="kimi_linear", num_hidden_layers=13, layer_types=listed)
    assert with_role(spelled, "FULL") == [3, 7, 11]


@pytest.mark.parametrize("word", ["deepseek_sparse_attention", "indexed_attention"])
def test_glm5_next_sparse_layers_by_either_word(word: str) -> None:
    found = model(
        model_type="glm5_next_text", num_hidden_layers=2, layer_types=["linear_attention", word]
    )
    assert with_role(found, "DSA") == [1]


@pytest.mark.parametrize(
    "told",
    [
        {"indexer_types": ["full", "full", "full", "shared", "shared", "shared", "full"]},
        {"index_topk_pattern": "FFFSSSF"},
        {"index_topk_freq": 4, "index_skip_topk_offset": 3},
    ],
)
def test_shared_indexers_by_list_pattern_and_formula(told: dict[str, Any]) -> None:
    found = model(model_type="glm_moe_dsa", num_hidden_layers=7, **LATENT_DSA, **told)
    assert with_role(found, "INDEX_FULL") == [0, 1, 2, 6]
    assert with_role(found, "INDEX_SHARED") == [3, 4, 5]


LATENT_DSA = {"kv_lora_rank": 512, "index_topk": 2048}


@pytest.mark.parametrize(
    "blocks",
    [
        {"hybrid_override_pattern": "ME*-"},
        {"layers_block_type": ["mamba", "moe", "attention", "mlp"]},
        {"layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"]},
    ],
)
def test_nemotron_blocks_by_letter_and_word(blocks: dict[str, Any]) -> None:
    found = model(model_type="nemotron_h", num_hidden_layers=52, **blocks)
    assert types(found) == ["MAMBA", "MOE", "ATTN", "MLP"]
    assert "num_hidden_layers says 52" in dict(summary_rows(found))["Layers"]


def test_the_draft_layers() -> None:
    assert model(num_hidden_layers=2, num_nextn_predict_layers=1).draft_layers == 1
    assert model(num_hidden_layers=2, num_nextn_predict_layers=0).draft_layers is None
    both = {"hybrid_override_pattern": "M*", "mtp_hybrid_override_pattern": "*E"}
    assert model(model_type="nemotron_h", **both).draft_layers == 2


@pytest.mark.parametrize("nest", ["text_config", "language_config", "llm_config"])
def test_nesting_changes_nothing(nest: str) -> None:
    inner = {"model_type": "qwen3_5_text", "num_hidden_layers": 4, "full_attention_interval": 4}
    outer = {"model_type": "wrapper", "vision_config": {"num_hidden_layers": 9}}
    assert types(Model.from_config({**outer, nest: inner})) == types(Model.from_config(inner))
    deep = Model.from_config({**outer, "llm_config": {nest: inner}})
    assert (deep.num_layers, deep.profile.name) == (4, "qwen3_next")


# --- composing


@given(
    ratios=st.lists(st.sampled_from([0, 1, 2, 4, 128]), min_size=1, max_size=12),
    tail=st.integers(0, 3),
    hashed=st.integers(0, 14),
    data=st.data(),
)
def test_roles_add_up_and_never_replace_each_other(
    ratios: list[int], tail: int, hashed: int, data: st.DataObject
) -> None:
    n = len(ratios)
    ids = st.lists(st.integers(0, n - 1), unique=True)
    sources, indexed, engrams = (data.draw(ids) for _ in range(3))
    found = model(
        model_type="deepseek_v41",
        num_hidden_layers=n,
        compress_ratios=ratios + [0] * tail,
        num_hash_layers=hashed,
        kv_source_layer_ids=sources,
        index_source_layer_ids=indexed,
        engram_layer_ids=engrams,
    )
    names = {0: "SWA_ONLY", 1: "V41_C1", 2: "V41_C2", 4: "CSA_C4", 128: "HCA_C128"}
    for i, layer in enumerate(found.layers):
        wanted = {names[ratios[i]]}
        wanted |= {"KV_SOURCE"} if i in sources else set()
        wanted |= {"INDEX_SOURCE"} if i in indexed else set()
        wanted |= {"ENGRAM"} if i in engrams else set()
        wanted |= {"HASH"} if i < hashed else set()
        wanted |= {"FIRST"} if i == 0 else set()
        wanted |= {"FINAL"} if i == n - 1 else set()
        assert set(layer.roles) == wanted
        assert layer.roles[0] == names[ratios[i]]
        assert layer.type == "+".join(layer.roles)
        assert layer.compress_ratio == ratios[i]


# --- loops


def order(found: Model) -> list[tuple[int, int]]:
    """Return (layer, visit) of a whole pass, as the rows tell it."""
    assert found.loops is not None
    depth = found.loops.depth
    assert depth is not None
    rows = visit_rows(found)
    of = {part: [row for row in rows if row.part == part] for part in ("prelude", "core", "coda")}
    core = [
        (row.layer_no, cycle * row.loops + row.loop_no)
        for cycle in range(depth)
        for row in of["core"]
    ]
    return [(r.layer_no, 0) for r in of["prelude"]] + core + [(r.layer_no, 0) for r in of["coda"]]


@pytest.mark.parametrize(
    ("name", "parts", "depth", "source", "varies", "visits"),
    [
        ("Ouro-1.4B", (0, 24, 0), 4, "total_ut_steps", False, 96),
        ("Ouro-2.6B", (0, 48, 0), 4, "total_ut_steps", False, 192),
        ("Huginn-0125", (2, 4, 2), 32, "mean_recurrence", True, 132),
        ("Nanbeige4.2-3B", (0, 22, 0), 2, "num_loops", False, 44),
        ("HRM-Text-1B", (0, 16, 0), 2, "H_cycles", False, 128),
        ("Inkling-2-Mini", (6, 12, 6), 3, "loop_config.num_passes", False, 48),
        ("Parcae-370M", (4, 4, 4), 8, "mean_recurrence", True, 40),
        ("LoopFormer-3block-8iterations", (0, 3, 0), None, "run time", True, None),
    ],
)
def test_loops_of_every_looped_model(
    name: str,
    parts: tuple[int, int, int],
    depth: int | None,
    source: str,
    varies: bool,
    visits: int | None,
) -> None:
    path = CONFIGS / f"{name}.json"
    if not path.exists():
        pytest.skip(f"model configs are not at {CONFIGS}")
    found = Model.from_config(path)
    assert found.loops is not None
    loops = found.loops
    assert (loops.prelude, loops.core, loops.coda) == parts
    assert (loops.depth, loops.depth_source, loops.varies) == (depth, source, varies)
    assert (found.depth, found.depth_varies) == (depth, varies)
    assert loops.visits_per_pass == visits
    if depth is not None:
        assert len(order(found)) == visits
    assert {row.layer_no for row in visit_rows(found)} == set(range(found.num_layers))


def norms(found: Model) -> list[tuple[str, int, int, bool]]:
    return [
        (row.part, row.layer_no, row.loop_no, row.last_only)
        for row in visit_rows(found)
        if row.norm_behind
    ]


OURO = {"model_type": "ouro", "num_hidden_layers": 2, "total_ut_steps": 3}
NANBEIGE = {"model_type": "nanbeige", "num_hidden_layers": 2, "num_loops": 2}
HUGINN = {
    "n_layers_in_prelude": 1,
    "n_layers_in_recurrent_block": 2,
    "n_layers_in_coda": 1,
    "mean_recurrence": 3,
}


@pytest.mark.parametrize(
    ("config", "behind"),
    [
        (OURO, [("core", 1, 0, False)]),
        (NANBEIGE, [("core", 1, 0, False)]),
        ({**NANBEIGE, "skip_loop_final_norm": True}, [("core", 1, 0, True)]),
        (HUGINN, [("core", 2, 0, True), ("coda", 3, 0, False)]),
        (
            {"model_type": "hrm_text", "num_hidden_layers": 2, "H_cycles": 2, "L_cycles": 2},
            [("core", 1, 0, False), ("core", 1, 1, False), ("core", 1, 2, False)],
        ),
        (
            {"model_type": "inkling2_loop_text", "num_hidden_layers": 3, "loop_num_passes": 2}
            | {"loop_layer_index_start": 1, "loop_layer_index_end": 2},
            [("coda", 2, 0, False)],
        ),
        (
            {"model_type": "iquestloopcoder", "num_hidden_layers": 2, "loop_num": 2},
            [("core", 1, 0, True)],
        ),
        (
            {"model_type": "dory", "num_hidden_layers": 4, "n_input_layers": 1}
            | {"n_recurrent_layers": 2, "n_output_layers": 1, "n_recurrent_loops": 2},
            [("coda", 3, 0, False)],
        ),
    ],
)
def test_behind_which_visits_the_final_norm_runs(
    config: dict[str, Any], behind: list[tuple[str, int, int, bool]]
) -> None:
    assert norms(Model.from_config(config)) == behind


def test_the_visits_of_a_cycle() -> None:
    assert visit_rows(Model.from_config(HUGINN)) == [
        Visit("prelude", 0, 0, 0, 1, False, False),
        Visit("core", 0, 1, 0, 1, False, False),
        Visit("core", 1, 2, 0, 1, True, True),
        Visit("coda", 0, 3, 0, 1, True, False),
    ]
    assert order(Model.from_config(HUGINN))[:4] == [(0, 0), (1, 0), (2, 0), (1, 1)]


@pytest.mark.parametrize(
    ("extra", "varies"),
    [
        ({"early_exit_threshold": 1.0}, False),
        ({"early_exit_threshold": 0.9}, True),
        ({"early_exit_threshold": 1}, False),
        ({}, False),
    ],
)
def test_an_exit_threshold_below_one_makes_the_depth_vary(
    extra: dict[str, Any], varies: bool
) -> None:
    assert Model.from_config({**OURO, **extra}).depth_varies is varies


@pytest.mark.parametrize("config", [{}, {"model_type": "nanbeige", "num_loops": 1}])
def test_a_plain_model_has_no_visits(config: dict[str, Any]) -> None:
    found = Model.from_config({"num_hidden_layers": 2, **config})
    assert found.loops is None
    assert visit_rows(found) == []
    assert (found.depth, found.depth_varies) == (None, False)
    assert visit_rows(None) == []
