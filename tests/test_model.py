"""Configs of 39 models: the layer count and the layer types that each really has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trace_sql.errors import BadInputError
from trace_sql.model import Model, summary_rows
from trace_sql.profile import load_profiles

CONFIGS = Path(__file__).resolve().parents[1] / ".." / "shared" / "facts" / "models" / "configs"

# Profile, layers, how many layers have each type.
FACTS: dict[str, tuple[str, int, dict[str, int]]] = {
    "DeepSeek-R1": ("dsv3_mla", 61, {"MLA+DENSE": 3, "MLA+MOE": 58}),
    "DeepSeek-V3": ("dsv3_mla", 61, {"MLA+DENSE": 3, "MLA+MOE": 58}),
    "DeepSeek-V3.2": ("mla_dsa", 61, {"DSA+DENSE": 3, "DSA+MOE": 58}),
    "DeepSeek-V4-Flash": (
        "dsv4_csa_hca",
        43,
        {
            "SWA_ONLY+HASH+FIRST": 1,
            "SWA_ONLY+HASH": 1,
            "CSA_C4+HASH": 1,
            "HCA_C128": 20,
            "CSA_C4": 19,
            "CSA_C4+FINAL": 1,
        },
    ),
    "DeepSeek-V4-Pro": (
        "dsv4_csa_hca",
        61,
        {
            "HCA_C128+HASH+FIRST": 1,
            "HCA_C128+HASH": 1,
            "CSA_C4+HASH": 1,
            "HCA_C128": 29,
            "CSA_C4": 28,
            "CSA_C4+FINAL": 1,
        },
    ),
    "DeepSeek-V4.1-Flash": (
        "dsv41",
        40,
        {
            "SWA_ONLY+FIRST": 1,
            "SWA_ONLY+ENGRAM": 1,
            "V41_C2+KV_SOURCE+INDEX_SOURCE": 2,
            "V41_C2": 15,
            "V41_C2+KV_SOURCE+INDEX_SOURCE+ENGRAM": 1,
            "V41_C1+KV_SOURCE+INDEX_SOURCE+CANDIDATE_SOURCE": 1,
            "V41_C1": 14,
            "V41_C1+INDEX_SOURCE": 4,
            "V41_C1+FINAL": 1,
        },
    ),
    "GLM-5": ("mla_dsa", 78, {"DSA+DENSE": 3, "DSA+MOE": 75}),
    "GLM-5.2": (
        "mla_dsa",
        78,
        {"DSA+DENSE+INDEX_FULL": 3, "DSA+MOE+INDEX_SHARED": 57, "DSA+MOE+INDEX_FULL": 18},
    ),
    "GLM-5.3": (
        "mla_dsa",
        78,
        {"DSA+DENSE+INDEX_FULL": 3, "DSA+MOE+INDEX_SHARED": 57, "DSA+MOE+INDEX_FULL": 18},
    ),
    "GLM-5.3-Flash": ("glm5_next", 45, {"LINEAR+DENSE": 3, "LINEAR+MOE": 31, "DSA+MOE": 11}),
    "HRM-Text-1B": ("hrm_text", 16, {"FULL+DENSE": 16}),
    "Huginn-0125": ("huginn", 8, {"FULL+DENSE": 8}),
    "Hy4-preview": (
        "hy_v4",
        78,
        {"DSA+DENSE+INDEX_FULL": 1, "DSA+MOE+INDEX_FULL": 20, "DSA+MOE+INDEX_SHARED": 57},
    ),
    "Inkling-2-Mini": ("inkling_loop", 24, {"SLIDING+MOE": 20, "FULL+MOE": 4}),
    "Kimi-K3": ("kimi_k3", 93, {"LINEAR+DENSE": 1, "LINEAR+MOE": 68, "FULL+MOE": 24}),
    "Kimi-Linear-48B-A3B": (
        "dsv3_mla",
        27,
        {"LINEAR+DENSE": 1, "LINEAR+MOE": 19, "FULL+MOE": 7},
    ),
    "LongCat-Flash-Chat": ("longcat_flash", 28, {"MLA+MOE": 28}),
    "LoopFormer-3block-8iterations": ("loopformer", 3, {"FULL+DENSE": 3}),
    "Meta-Llama-3-8B": ("generic_addnorm", 32, {"FULL+DENSE": 32}),
    "Mixtral-8x7B-v0.1": ("generic_addnorm", 32, {"FULL+MOE": 32}),
    "Nanbeige4.2-3B": ("nanbeige", 22, {"FULL+DENSE": 22}),
    "Nemotron-3-Nano-30B-A3B": ("nemotron_h", 52, {"MAMBA": 23, "MOE": 23, "ATTN": 6}),
    "Nemotron-H-8B": ("nemotron_h", 52, {"MAMBA": 24, "MLP": 24, "ATTN": 4}),
    "Ouro-1.4B": ("ouro", 24, {"FULL+DENSE": 24}),
    "Ouro-2.6B": ("ouro", 48, {"FULL+DENSE": 48}),
    "Parcae-370M": ("huginn", 12, {"FULL+DENSE": 12}),
    "Qwen1.5-0.5B-Chat": ("qwen_dense", 24, {"FULL+DENSE": 24}),
    "Qwen3-8B": ("qwen_dense", 36, {"FULL+DENSE": 36}),
    "Qwen3-Next-80B-A3B": ("qwen3_next", 48, {"LINEAR+MOE": 36, "FULL+MOE": 12}),
    "Qwen3.5-27B": ("qwen3_next", 64, {"LINEAR+DENSE": 48, "FULL+DENSE": 16}),
    "Qwen3.5-397B-A17B": ("qwen3_next", 60, {"LINEAR+MOE": 45, "FULL+MOE": 15}),
    "Qwen3.8-27B": ("qwen3_next", 64, {"LINEAR+DENSE": 48, "FULL+DENSE": 16}),
    "Qwen3.8-Flash-Next": (
        "qwen4_exp",
        48,
        {"LINEAR+MOE": 35, "LINEAR+MOE+PLE": 1, "FULL+MOE+QSA": 12},
    ),
    "gemma-4-26B-A4B-it": ("gemma4", 30, {"SLIDING+MOE": 25, "FULL+MOE": 5}),
    "gemma-4-31B-it": ("gemma4", 60, {"SLIDING+DENSE": 50, "FULL+DENSE": 10}),
    "gemma-4-E2B-it": (
        "gemma4",
        35,
        {
            "SLIDING+DENSE": 12,
            "FULL+DENSE": 3,
            "SLIDING+DENSE+KV_SHARED": 16,
            "FULL+DENSE+KV_SHARED": 4,
        },
    ),
    "gpt-oss-120b": ("gpt_oss", 36, {"SLIDING+MOE": 18, "FULL+MOE": 18}),
    "gpt-oss-20b": ("gpt_oss", 24, {"SLIDING+MOE": 12, "FULL+MOE": 12}),
}
FACTS["DeepSeek-V4-Flash-0731"] = FACTS["DeepSeek-V4-Flash"]


def shared(name: str) -> Model:
    path = CONFIGS / f"{name}.json"
    if not path.exists():
        pytest.skip(f"model configs are not at {CONFIGS}")
    if FACTS[name][0] not in load_profiles():
        pytest.skip(f"the profile {FACTS[name][0]} has been removed")
    return Model.from_config(path)


def types(model: Model) -> list[str]:
    return [layer.type for layer in model.layers]


@pytest.mark.parametrize("name", FACTS)
def test_profile_layers_and_types_of_every_model(name: str) -> None:
    model = shared(name)
    profile, layers, kinds = FACTS[name]
    assert (model.profile.name, model.num_layers, dict(model.type_counts())) == (
        profile,
        layers,
        kinds,
    )
    assert [layer.number for layer in model.layers] == list(range(layers))
    assert sum(kinds.values()) == layers
    assert model.name == name
    assert model.profile_reason


def test_no_config_is_left_out() -> None:
    if not CONFIGS.is_dir():
        pytest.skip(f"model configs are not at {CONFIGS}")
    assert {path.stem for path in CONFIGS.glob("*.json")} == set(FACTS)


@pytest.mark.parametrize(
    ("name", "role", "layers"),
    [
        ("DeepSeek-V4-Flash", "HASH", [0, 1, 2]),
        ("DeepSeek-V4.1-Flash", "SWA_ONLY", [0, 1]),
        ("DeepSeek-V4.1-Flash", "KV_SOURCE", [2, 8, 14, 20]),
        ("DeepSeek-V4.1-Flash", "INDEX_SOURCE", [2, 8, 14, 20, 24, 28, 32, 36]),
        ("DeepSeek-V4.1-Flash", "CANDIDATE_SOURCE", [20]),
        ("DeepSeek-V4.1-Flash", "ENGRAM", [1, 14]),
        ("DeepSeek-V4.1-Flash", "V41_C1", list(range(20, 40))),
        ("Kimi-K3", "FULL", [*range(3, 92, 4), 92]),
        ("Kimi-Linear-48B-A3B", "FULL", [3, 7, 11, 15, 19, 23, 26]),
        ("GLM-5.3-Flash", "DSA", list(range(3, 44, 4))),
        ("GLM-5.2", "INDEX_FULL", [0, 1, *range(2, 78, 4)]),
        ("GLM-5.3", "INDEX_FULL", [0, 1, *range(2, 78, 4)]),
        ("Hy4-preview", "INDEX_FULL", [0, *range(1, 78, 4)]),
        ("Qwen3-Next-80B-A3B", "FULL", list(range(3, 48, 4))),
        ("Qwen3.8-Flash-Next", "QSA", list(range(3, 48, 4))),
        ("Qwen3.8-Flash-Next", "PLE", [1]),
        ("Nemotron-3-Nano-30B-A3B", "ATTN", [5, 12, 19, 26, 33, 42]),
        ("gemma-4-31B-it", "FULL", list(range(5, 60, 6))),
        ("gemma-4-E2B-it", "KV_SHARED", list(range(15, 35))),
        ("gpt-oss-20b", "SLIDING", list(range(0, 24, 2))),
        ("Inkling-2-Mini", "FULL", [5, 11, 17, 23]),
    ],
)
def test_which_layers_have_a_role(name: str, role: str, layers: list[int]) -> None:
    assert [one.number for one in shared(name).layers if role in one.roles] == layers


def test_v4_flash_layers_compose_ratio_hash_and_position() -> None:
    labels = types(shared("DeepSeek-V4-Flash"))
    assert labels[:4] == ["SWA_ONLY+HASH+FIRST", "SWA_ONLY+HASH", "CSA_C4+HASH", "HCA_C128"]
    assert labels[-1] == "CSA_C4+FINAL"
    assert sum(label.startswith("HCA_C128") for label in labels) == 20
    assert sum(label.startswith("CSA_C4") for label in labels) == 21


def test_a_longer_ratio_list_is_cut_to_the_layers() -> None:
    assert types(shared("DeepSeek-V4-Flash-0731")) == types(shared("DeepSeek-V4-Flash"))


def test_v4_pro_starts_compressed() -> None:
    model = shared("DeepSeek-V4-Pro")
    assert types(model)[:2] == ["HCA_C128+HASH+FIRST", "HCA_C128+HASH"]
    assert model.ratio_counts() == {"HCA_C128": 31, "CSA_C4": 30, "HASH": 3}
    assert model.layers[0].compress_ratio == 128


def test_v41_has_no_hash_layers() -> None:
    model = shared("DeepSeek-V4.1-Flash")
    labels = types(model)
    assert labels[0] == "SWA_ONLY+FIRST"
    assert labels[3] == "V41_C2"
    assert labels[20].startswith("V41_C1+KV_SOURCE")
    assert labels[39] == "V41_C1+FINAL"
    assert model.attention == "v41"


def test_transformers_spelling_of_v4_is_the_same() -> None:
    model = Model.from_config(
        {
            "num_hidden_layers": 3,
            "layer_types": [
                "sliding_attention",
                "compressed_sparse_attention",
                "heavily_compressed_attention",
            ],
            "mlp_layer_types": ["hash_moe", "moe", "moe"],
        }
    )
    assert types(model) == ["SWA_ONLY+HASH+FIRST", "CSA_C4", "HCA_C128+FINAL"]


def test_nested_config_is_flattened_and_outer_identity_comes_first() -> None:
    model = shared("Kimi-K3")
    assert model.identities[0] == "kimi_k3"
    assert model.model_types == ("kimi_k3", "kimi_linear")
    assert (model.hidden_size, model.num_experts, model.experts_per_token) == (7168, 896, 16)


def test_vision_layers_are_not_the_models() -> None:
    assert shared("DeepSeek-V4.1-Flash").num_layers == 40


@pytest.mark.parametrize(
    ("extra", "layers"),
    [
        ({"model_type": "longcat_flash", "num_layers": 28, "num_hidden_layers": 56}, 28),
        ({"num_layers_per_stack": 16, "num_hidden_layers": 16}, 16),
        (
            {"num_layers_per_stack": 16, "num_hidden_layers": 128, "H_cycles": 2, "L_cycles": 3},
            16,
        ),
        ({"hybrid_override_pattern": "M-M*", "num_hidden_layers": 52}, 4),
        ({"layers_block_type": ["mamba", "attention"]}, 2),
        ({"n_layer": 12}, 12),
        ({"llm_config": {"num_hidden_layers": 7}}, 7),
    ],
)
def test_which_key_counts_the_layers(extra: dict[str, Any], layers: int) -> None:
    assert Model.from_config(extra).num_layers == layers


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "no layer count"),
        ({"vision_config": {"num_hidden_layers": 32}}, "no layer count"),
        ({"num_hidden_layers": 0}, "0 layers are impossible"),
        ({"num_hidden_layers": "36"}, "num_hidden_layers is '36', which is no whole number"),
        ({"num_hidden_layers": 36.5}, "num_hidden_layers is 36.5, which is no whole number"),
        (
            {"model_type": "glm_moe_dsa", "num_hidden_layers": 2, "kv_lora_rank": 512}
            | {"index_topk": 64, "indexer_types": ["full", "odd"]},
            "is 'odd', which is unknown here",
        ),
        ({"num_hidden_layers": 4, "layer_types": ["full_attention"]}, "1 entries for 4 layers"),
        ({"num_hidden_layers": 1, "layer_types": ["full_attention"] * 4}, "4 entries for 1 layers"),
        (
            {"num_hidden_layers": 2, "compress_ratios": [0] * 6},
            "6 entries for 2 layers and at most 3",
        ),
        (
            {"model_type": "longcat_flash", "num_layers": 28, "num_hidden_layers": 61},
            "num_layers makes 28 layers, num_hidden_layers is 61",
        ),
        (
            {"model_type": "hrm_text", "num_layers_per_stack": 16, "num_hidden_layers": 64}
            | {"H_cycles": 2, "L_cycles": 3},
            "makes 16 layers, num_hidden_layers is 64",
        ),
        (
            {"num_hidden_layers": 61, "text_config": {"num_hidden_layers": 40}},
            "num_hidden_layers is 40 and 61 in one config",
        ),
        (
            {"num_hidden_layers": 2, "linear_attn_config": {"full_attn_layers": [1, 7]}},
            "full_attn_layers names layer 7, but the model has 2 layers",
        ),
        (
            {"n_layers_in_prelude": 2, "n_layers_in_recurrent_block": 4, "n_layers_in_coda": 2}
            | {"n_layers": 9},
            "makes 8 layers, n_layers is 9",
        ),
        (
            {"model_type": "dory", "num_hidden_layers": 8, "n_input_layers": 6}
            | {"n_output_layers": 6, "n_recurrent_loops": 2},
            "are not the model's 8 layers",
        ),
        ({"model_type": "ouro", "num_hidden_layers": 8, "total_ut_steps": 0}, "at least once"),
        ({"model_type": "t5", "num_layers": 8, "is_encoder_decoder": True}, "encoder"),
        ({"num_layers": 19, "_diffusers_version": "0.30"}, "diffusion"),
        (
            {
                "num_hidden_layers": 1,
                "model_type": "deepseek_v4",
                "layer_types": ["full_attention"],
            },
            "'full_attention', which is unknown here",
        ),
        ({"num_hidden_layers": 2, "compress_ratios": [0]}, "1 entries for 2 layers"),
        ({"hybrid_override_pattern": "MX"}, "is 'X', which is unknown here; known: M, E, -, "),
    ],
)
def test_impossible_configs_are_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInputError, match=message) as refused:
        Model.from_config(config)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff"])
def test_unreadable_files_name_themselves(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(BadInputError, match="config.json"):
        Model.from_config(path)


def test_missing_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="cannot be read"):
        Model.from_config(tmp_path / "nothing.json")


def test_a_plain_config_json_is_named_after_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "My-Model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"num_hidden_layers": 2}))
    assert Model.from_config(folder / "config.json").name == "My-Model"


def test_summary_shows_what_the_config_says() -> None:
    rows = dict(summary_rows(shared("DeepSeek-V4-Flash")))
    assert rows["Layers"] == "43"
    assert rows["MoE"] == "experts 256, topk 6, shared 1, intermediate 2048"
    assert rows["MHC"] == "hc_mult 4, sinkhorn_iters 20"
    assert rows["NSA"].startswith("index_n_heads 64, index_head_dim 128, index_topk 512")
    assert rows["compress_ratios"] == "SWA_ONLY 2, CSA_C4 21, HCA_C128 20, HASH 3"
    dense = dict(summary_rows(shared("Qwen1.5-0.5B-Chat")))
    assert dense["Heads"] == "q 16, kv 16, dim 64"
    assert not {"MoE", "MHC", "NSA", "LoRA ranks", "compress_ratios"} & set(dense)
