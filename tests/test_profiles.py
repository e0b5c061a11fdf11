"""Profile files: every example holds in DuckDB, and every mistake in a file names file and key."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest

from trace_sql.errors import UsageError
from trace_sql.hits import parse_hits
from trace_sql.literal import sql_string
from trace_sql.model import Model
from trace_sql.profile import (
    Boundary,
    Profile,
    infer,
    load_profiles,
)
from trace_sql.resources import data_folder

GOLDEN = Path(__file__).resolve().parents[1] / ".." / "shared" / "golden"
TRACES = Path(__file__).resolve().parents[1] / ".." / "shared" / "traces"
PROFILES = load_profiles()


@cache
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def value(expression: str) -> Any:
    row = connection().execute(f"SELECT {expression}").fetchone()
    assert row is not None
    return row[0]


@cache
def matches(pattern: str, name: str) -> bool:
    return bool(value(f"regexp_matches({sql_string(name)}, {sql_string(pattern)})"))


def winner(profile: Profile, name: str) -> tuple[str, str]:
    """Return category and pattern of the first rule that matches."""
    rules = profile.resolved_categories
    cases = " ".join(
        f"WHEN regexp_matches({sql_string(name)}, {sql_string(rule.pattern)}) THEN {index}"
        for index, rule in enumerate(rules)
    )
    found = value(f"CASE {cases} END")
    return ("other", "") if found is None else (rules[found].name, rules[found].pattern)


CATEGORY_CASES = [
    pytest.param(profile, rule, id=f"{profile.name}-{index}-{rule.name}")
    for profile in PROFILES.values()
    for index, rule in enumerate(profile.categories)
]
BOUNDARIES = [
    pytest.param(boundary, id=boundary.name)
    for profile in PROFILES.values()
    for boundary in profile.boundaries
]


@pytest.mark.parametrize(("profile", "rule"), CATEGORY_CASES)
def test_each_category_rule_wins_its_examples(profile: Profile, rule: Any) -> None:
    for example in rule.examples:
        assert winner(profile, example) == (rule.name, rule.pattern), example


def test_name_rules_give_their_examples() -> None:
    for profile in PROFILES.values():
        cleanups = profile.resolved_name_cleanups
        for rule in profile.names:
            for raw, simple in rule.examples:
                first = next(r for r in profile.resolved_names if matches(r.pattern, raw))
                assert first == rule, raw
                assert rewritten([(rule, "")], cleanups, raw) == simple
        for rule in profile.name_cleanups:
            for raw, simple in rule.examples:
                firsts = [r for r in profile.resolved_names if matches(r.pattern, raw)][:1]
                assert rewritten([(r, "") for r in firsts], cleanups, raw) == simple


def rewritten(first: Iterable[Any], cleanups: Iterable[Any], raw: str) -> str:
    text = sql_string(raw)
    for rule, flags in [*first, *((cleanup, "g") for cleanup in cleanups)]:
        pattern, replace = sql_string(rule.pattern), sql_string(rule.replace)
        text = f"regexp_replace({text}, {pattern}, {replace}, '{flags}')"
    return str(value(text))


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_boundary_examples(boundary: Boundary) -> None:
    patterns: dict[str, tuple[str, ...]] = {
        "anchor": (boundary.anchor,),
        "entry": (boundary.entry,) if boundary.entry else (),
        "exit": (boundary.exit,) if boundary.exit else (),
        "lead_in": boundary.lead_in,
    }
    for key, rules in patterns.items():
        examples = boundary.examples[key]
        for example in examples:
            assert any(matches(rule, example) for rule in rules), (key, example)
        for rule in rules:
            assert any(matches(rule, example) for example in examples), (key, rule)
    for name in boundary.examples["not"]:
        for key in ("anchor", "entry", "exit"):
            for rule in patterns[key]:
                assert not matches(rule, name), (key, name)
    for example in boundary.examples["entry"]:
        assert not matches(boundary.anchor, example)
    for example in boundary.examples["anchor"]:
        assert not any(matches(rule, example) for rule in patterns["entry"])


@pytest.mark.parametrize("table", ["prepare_kernels", "prologue_start"])
@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda p: p.name)
def test_examples_of_lists_of_patterns(profile: Profile, table: str) -> None:
    rules = getattr(profile, table)
    examples = getattr(profile, f"{table.split('_')[0]}_examples")
    for example in examples:
        assert any(matches(rule, example) for rule in rules)
    for rule in rules:
        assert any(matches(rule, example) for example in examples)


def test_some_profile_has_each_list_of_patterns() -> None:
    assert any(profile.prepare_kernels for profile in PROFILES.values())
    assert any(profile.prologue_start for profile in PROFILES.values())


# --- real traces: what a boundary's count says about them


def device_names(trace: str) -> list[str]:
    """Return the kernel names of a trace in device order."""
    path = TRACES / f"{trace}.json.gz"
    if not path.exists():
        pytest.skip(f"traces are not at {TRACES}")
    import gzip

    events = [
        event
        for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        if event.get("ph") == "X" and event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    ]
    events.sort(key=lambda event: (event["ts"], event["tid"]))
    return [event["name"] for event in events]


def golden(trace: str) -> dict[str, Any]:
    path = GOLDEN / f"{trace}.json"
    if not path.exists():
        pytest.skip(f"golden truths are not at {GOLDEN}")
    return dict(json.loads(path.read_text()))


def boundary(profile: str, name: str) -> Boundary:
    return next(b for b in PROFILES[profile].resolved_boundaries if b.name == name)


def hits(pattern: str, names: list[str]) -> list[int]:
    known = {name: matches(pattern, name) for name in set(names)}
    return [index for index, name in enumerate(names) if known[name]]


@pytest.mark.parametrize(
    ("trace", "profile", "name", "layers"),
    [
        ("sglang_qwen3_8b_decode_mi300x", "qwen_dense", "aiter_add_rmsnorm_quant", 36),
        ("vllm_gpt_oss_20b_decode_mi300x", "gpt_oss", "ck_tile_rmsnorm2d", 24),
        ("vllm_gpt_oss_120b_prefill_b200", "gpt_oss", "vllm_fused_add_rms_norm", 36),
    ],
)
def test_fused_boundaries_stand_where_the_golden_layers_do(
    trace: str, profile: str, name: str, layers: int
) -> None:
    rule, names = boundary(profile, name), device_names(trace)
    assert rule.entry is not None
    anchors, entries = hits(rule.anchor, names), hits(rule.entry, names)
    truth = golden(trace)["layer_boundary"]
    assert len(anchors) == rule.hits.count(layers)
    assert entries == truth["start_gpu_indices"][:1]
    assert anchors[0::2] == truth["mid_gpu_indices"]
    assert anchors[1:-1:2] == truth["start_gpu_indices"][1:]
    assert anchors[-1] == truth["final_norm_gpu_index"]


@pytest.mark.parametrize(
    "trace",
    [
        "sglang_qwen3_8b_decode_mi300x",
        "vllm_gpt_oss_20b_decode_mi300x",
        "vllm_gpt_oss_120b_prefill_b200",
    ],
)
def test_no_other_family_hits_a_golden_trace(trace: str) -> None:
    names = device_names(trace)
    found = {
        rule.name
        for rule in PROFILES["generic"].resolved_boundaries
        if hits(rule.anchor, names) and rule.name != "allreduce_fusion"
    }
    assert len(found) == 1


def test_eager_norms_open_blocks_four_kernels_early() -> None:
    trace = "hf_qwen1_5_0_5b_h100"
    rule, names = boundary("qwen_dense", "transformers_eager_rmsnorm"), device_names(trace)
    truth = golden(trace)["layer_boundary"]
    anchors = hits(rule.anchor, names)
    assert len(anchors) == truth["rsqrt_count"]
    full_pass = anchors[-rule.hits.count(24) :]
    opened = [index - len(rule.lead_in) for index in full_pass]
    for index, pattern in ((i + step, p) for i in opened for step, p in enumerate(rule.lead_in)):
        assert matches(pattern, names[index]), names[index]
    assert opened[0:-1:2] == truth["start_gpu_indices_pass1"]
    assert opened[1:-1:2] == truth["mid_gpu_indices_pass1"]
    assert opened[-1] == truth["final_norm_first_gpu_index"][-1]


# --- formulas


@pytest.mark.parametrize(
    ("text", "layers", "count"),
    [
        ("2*N", 36, 72),
        ("2*N+1", 24, 49),
        ("2*N - 1", 61, 121),
        ("N", 52, 52),
        ("4*(N+1)", 28, 116),
        ("2*N + 1 + 3*1", 48, 100),
        ("N*2-(-1)", 3, 7),
    ],
)
def test_hits_of_so_many_layers(text: str, layers: int, count: int) -> None:
    assert parse_hits(text).count(layers) == count


def test_layers_of_a_role_have_hits_of_their_own() -> None:
    formula = parse_hits("2*N + 1 + 3*PLE")
    assert (formula.role, formula.per_role) == ("PLE", 3)
    assert formula.count(48, of_role=1) == 100


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "-N",
        "N*N",
        "2N",
        "N/2",
        "N**2",
        "M",
        "N+True",
        "N*PLE",
        "N-PLE",
        "N+A+B",
        "(N",
        "__import__('os')",
        "1.5*N",
    ],
)
def test_formulas_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_hits(text)


# --- resolving and inferring


def test_own_rules_stand_before_base_rules_and_the_universal_ones_last() -> None:
    profile = PROFILES["qwen_dense"]
    lineage = [part.name for part in profile.lineage()]
    assert lineage == ["qwen_dense", "generic_addnorm", "fields", "transformers_eager", "kernels"]
    assert profile.resolved_slots == ("attn", "ffn")
    assert PROFILES["gpt_oss"].resolved_columns != PROFILES["generic_addnorm"].resolved_columns
    assert profile.resolved_boundaries[0].name == "vllm_fused_add_rms_norm"
    assert profile.resolved_boundaries[-1].name == "transformers_eager_rmsnorm"
    assert profile.resolved_categories == PROFILES["kernels"].categories


def test_boundary_names_are_unique() -> None:
    count = Counter(rule.name for profile in PROFILES.values() for rule in profile.boundaries)
    assert set(count.values()) == {1}


@pytest.mark.parametrize(
    ("config", "profile"),
    [
        ({"model_type": "gpt_oss"}, "gpt_oss"),
        ({"architectures": ["GptOssForCausalLM"]}, "gpt_oss"),
        ({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}, "qwen_dense"),
        ({"architectures": ["Qwen2ForCausalLM"]}, "qwen_dense"),
        ({"model_type": "wrapper", "text_config": {"model_type": "qwen3"}}, "qwen_dense"),
        ({"model_type": "gpt_oss", "text_config": {"model_type": "qwen3"}}, "gpt_oss"),
        ({"model_type": "llama"}, "generic_addnorm"),
        ({"kv_lora_rank": 512}, "dsv3_mla"),
    ],
)
def test_identity_decides(config: dict[str, Any], profile: str) -> None:
    if profile not in PROFILES:
        pytest.skip(f"the profile {profile} has been removed")
    found, reason = infer(Model.from_config({"num_hidden_layers": 2, **config}))
    assert found.name == profile
    assert reason


def test_no_config_is_generic() -> None:
    assert infer(None) == (PROFILES["generic"], "no config")


# --- mistakes in a file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy = tmp_path / "profiles"
    shutil.copytree(data_folder("profiles"), copy)
    return copy


def replace(old: str, new: str) -> Callable[[str], str]:
    def edit(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return edit


@pytest.mark.parametrize(
    ("file", "edit", "parts"),
    [
        ("gpt_oss", replace("title", "titel"), ["gpt_oss.toml", "titel", "no key"]),
        ("gpt_oss", replace('title = "', 'title = 3 # "'), ["gpt_oss.toml", "title", "str"]),
        ("gpt_oss", replace("[identity]", "[identity"), ["gpt_oss.toml", "no TOML"]),
        ("gpt_oss", replace('"generic_addnorm"', '"nothing"'), ["gpt_oss.toml", "base"]),
        ("gpt_oss", replace('"generic_addnorm"', '"gpt_oss"'), ["base", "circular"]),
        ("gpt_oss", replace('["gpt_oss"]', '["qwen3"]'), ["qwen3", "claimed"]),
        ("gpt_oss", replace('["quant"]', '["quantum"]'), ["columns.Quant", "quantum"]),
        ("gpt_oss", replace('"golden"', '"sure"'), ["confidence", "golden, trace, source"]),
        ("kernels", replace("'(?i)hadamard'", "'(?=hadamard)'"), ["kernels.toml", "RE2"]),
        ("kernels", replace("'(?i)hadamard'", "'('"), ["kernels.toml", "category[14].pattern"]),
        (
            "kernels",
            replace('examples = ["doActivationKernel"]', ""),
            ["kernels.toml", "category[", "examples"],
        ),
        ("generic_addnorm", replace('"2*N"', '"2N"'), ["boundary[0]", "hits"]),
        ("generic_addnorm", replace("first_block = 1", "first_block = -1"), ["first_block"]),
        ("generic_addnorm", replace('last = "epilogue"', 'last = "end"'), ["last", "epilogue"]),
        (
            "generic_addnorm",
            replace("last = ", "exit = 'x'\nlast = "),
            ["boundary[0]", "exit", "is missing"],
        ),
        ("generic_addnorm", replace("entry_ambiguous = true", "entry_ambiguous = 1"), ["bool"]),
        ("generic_addnorm", replace("\nanchor = [\n", "\nanchors = [\n"), ["examples", "anchors"]),
    ],
)
def test_mistakes_name_file_and_key(
    folder: Path, file: str, edit: Callable[[str], str], parts: list[str]
) -> None:
    path = folder / f"{file}.toml"
    path.write_text(edit(path.read_text()))
    with pytest.raises(UsageError) as refused:
        load_profiles(folder)
    message = str(refused.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_a_folder_without_universal_rules_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"kernels\.toml"):
        load_profiles(tmp_path)


def test_the_readme_names_every_key() -> None:
    from trace_sql.profile import _KEYS

    text = (data_folder("profiles") / "README.md").read_text()
    for kind, keys in _KEYS.items():
        for key in keys.split():
            assert f"`{key}`" in text, f"{kind}: {key}"
