"""Configs of 39 models: the layer count and the layer types that each really has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trace_sql.errors import BadInputError
from trace_sql.model import Model, summary_rows

CONFIGS = Path(__file__).resolve().parents[1] / ".." / "shared" / "facts" / "models" / "configs"

LAYERS = {
    "DeepSeek-R1": 61,
    "DeepSeek-V3": 61,
    "DeepSeek-V3.2": 61,
    "DeepSeek-V4-Flash": 43,
    "DeepSeek-V4-Flash-0731": 43,
    "DeepSeek-V4-Pro": 61,
    "DeepSeek-V4.1-Flash": 40,
    "GLM-5": 78,
    "GLM-5.2": 78,
    "GLM-5.3": 78,
    "GLM-5.3-Flash": 45,
    "HRM-Text-1B": 16,
    "Huginn-0125": 8,
    "Hy4-preview": 78,
    "Inkling-2-Mini": 24,
    "Kimi-K3": 93,
    "Kimi-Linear-48B-A3B": 27,
    "LongCat-Flash-Chat": 28,
    "LoopFormer-3block-8iterations": 3,
    "Meta-Llama-3-8B": 32,
    "Mixtral-8x7B-v0.1": 32,
    "Nanbeige4.2-3B": 22,
    "Nemotron-3-Nano-30B-A3B": 52,
    "Nemotron-H-8B": 52,
    "Ouro-1.4B": 24,
    "Ouro-2.6B": 48,
    "Parcae-370M": 12,
    "Qwen1.5-0.5B-Chat": 24,
    "Qwen3-8B": 36,
    "Qwen3-Next-80B-A3B": 48,
    "Qwen3.5-27B": 64,
    "Qwen3.5-397B-A17B": 60,
    "Qwen3.8-27B": 64,
    "Qwen3.8-Flash-Next": 48,
    "gemma-4-26B-A4B-it": 30,
    "gemma-4-31B-it": 60,
    "gemma-4-E2B-it": 35,
    "gpt-oss-120b": 36,
    "gpt-oss-20b": 24,
}


def shared(name: str) -> Model:
    path = CONFIGS / f"{name}.json"
    if not path.exists():
        pytest.skip(f"model configs are not at {CONFIGS}")
    return Model.from_config(path)


def types(model: Model) -> list[str]:
    return [layer.type for layer in model.layers]


@pytest.mark.parametrize("name", LAYERS)
def test_every_model_has_its_own_layer_count(name: str) -> None:
    model = shared(name)
    assert model.num_layers == LAYERS[name] == len(model.layers)
    assert [layer.number for layer in model.layers] == list(range(LAYERS[name]))
    assert model.name == name


def test_no_config_is_left_out() -> None:
    if not CONFIGS.is_dir():
        pytest.skip(f"model configs are not at {CONFIGS}")
    assert {path.stem for path in CONFIGS.glob("*.json")} == set(LAYERS)


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
    assert labels[2] == "V41_C2"
    assert labels[20] == "V41_C1"
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


@pytest.mark.parametrize(
    ("name", "layer", "label"),
    [
        ("gpt-oss-20b", 0, "SLIDING+MOE"),
        ("gpt-oss-20b", 23, "FULL+MOE"),
        ("Qwen3-8B", 0, "FULL+DENSE"),
        ("Qwen3-8B", 35, "FULL+DENSE"),
        ("DeepSeek-V3", 2, "MLA+DENSE"),
        ("DeepSeek-V3", 3, "MLA+MOE"),
        ("GLM-5.3", 77, "DSA+MOE"),
        ("GLM-5.3-Flash", 3, "DSA+MOE"),
        ("GLM-5.3-Flash", 0, "LINEAR+DENSE"),
        # Kimi counts from 1: its first full layer 4 is number 3.
        ("Kimi-K3", 3, "FULL+MOE"),
        ("Kimi-K3", 0, "LINEAR+DENSE"),
        ("Kimi-K3", 92, "FULL+MOE"),
        ("Qwen3-Next-80B-A3B", 3, "FULL+MOE"),
        ("Qwen3-Next-80B-A3B", 2, "LINEAR+MOE"),
        ("gemma-4-31B-it", 5, "FULL+DENSE"),
        ("Nemotron-3-Nano-30B-A3B", 5, "ATTN"),
        ("Nemotron-3-Nano-30B-A3B", 1, "MOE"),
        ("Nemotron-H-8B", 1, "MLP"),
        ("Hy4-preview", 0, "DSA+DENSE"),
    ],
)
def test_layer_types(name: str, layer: int, label: str) -> None:
    assert types(shared(name))[layer] == label


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
        ({"num_layers_per_stack": 16, "num_hidden_layers": 128}, 16),
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
        ({"num_hidden_layers": "36"}, "no layer count"),
        ({"num_hidden_layers": 4, "layer_types": ["full_attention"]}, "1 entries for 4 layers"),
        ({"num_hidden_layers": 2, "compress_ratios": [0]}, "1 entries for 2 layers"),
        ({"hybrid_override_pattern": "MX"}, "block 'X' is unknown"),
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
