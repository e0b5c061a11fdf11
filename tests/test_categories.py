"""Universal categories and simplified names, matched by DuckDB as the product matches them."""

from __future__ import annotations

import csv
import re
import tomllib
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trace_sql.literal import sql_string
from trace_sql.parameters import simplified_name
from trace_sql.profile import CategoryRule, NameRule, Profile, load_profiles

FACTS = Path(__file__).resolve().parents[1] / ".." / "shared" / "facts" / "models" / "kernels.csv"


def winners(rules: Iterable[CategoryRule], names: Iterable[str]) -> dict[str, int]:
    """Return the index of the rule that wins each name, -1 where none does."""
    cases = " ".join(
        f"WHEN regexp_matches(name, {sql_string(rule.pattern)}) THEN {index}"
        for index, rule in enumerate(rules)
    )
    return ask(f"SELECT name, CASE {cases} ELSE -1 END FROM names", names)


def simplified(profile: Profile, names: Iterable[str]) -> dict[str, str]:
    """Return the simplified name of each raw name."""
    cases = " ".join(
        f"WHEN regexp_matches(name, {sql_string(rule.pattern)}) THEN "
        f"regexp_replace(name, {sql_string(rule.pattern)}, {sql_string(rule.replace)})"
        for rule in profile.resolved_names
    )
    text = f"CASE {cases} ELSE name END"
    for rule in profile.resolved_name_cleanups:
        text = (
            f"regexp_replace({text}, {sql_string(rule.pattern)}, {sql_string(rule.replace)}, 'g')"
        )
    return ask(f"SELECT name, {text} FROM names", names)


def shown(profile: Profile, names: Iterable[str]) -> dict[str, str]:
    """Return the simplified names as the product computes them."""
    return ask(f"SELECT name, {simplified_name(profile)} FROM names", names)


def ask(question: str, names: Iterable[str]) -> dict[str, Any]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE names AS SELECT unnest(?) AS name", [list(names)])
        return dict(connection.execute(question).fetchall())


@pytest.fixture(scope="module")
def kernels() -> Profile:
    return load_profiles()["kernels"]


@pytest.fixture(scope="module")
def own(kernels: Profile) -> dict[str, str]:
    """Return the category of every name of this module, asked once."""
    return categories(kernels, [*TRAPS, *(name for names in UNSEEN.values() for name in names)])


def facts() -> dict[str, str]:
    if not FACTS.exists():
        pytest.skip(f"kernel names are not at {FACTS}")
    with FACTS.open(newline="") as file:
        return {row["kernel_name"]: row["category"] for row in csv.DictReader(file)}


def categories(kernels: Profile, names: Iterable[str]) -> dict[str, str]:
    rules = kernels.resolved_categories
    found = winners(rules, names)
    return {name: rules[index].name if index >= 0 else "other" for name, index in found.items()}


def test_every_known_kernel_has_its_category(kernels: Profile) -> None:
    expected = facts()
    found = categories(kernels, expected)
    wrong = {
        name: (found[name], category)
        for name, category in expected.items()
        if found[name] != category
    }
    assert wrong == {}
    assert len(expected) > 500


def test_python_reads_the_rules_alike(kernels: Profile, own: dict[str, str]) -> None:
    """The same rules walked by Python's own engine: a check on the SQL, not on the rules."""
    patterns = [(re.compile(rule.pattern), rule.name) for rule in kernels.resolved_categories]
    by_hand = {
        name: next((category for pattern, category in patterns if pattern.search(name)), "other")
        for name in own
    }
    assert own == by_hand


NAMES = tomllib.loads(Path(__file__).with_name("kernel_names.toml").read_text("utf-8"))
UNSEEN: dict[str, list[str]] = NAMES["unseen"]
SYMBOLS: list[str] = NAMES["drawn"]["symbols"]


@pytest.mark.parametrize("category", UNSEEN)
def test_unseen_names_of_known_families(own: dict[str, str], category: str) -> None:
    assert {name: own[name] for name in UNSEEN[category] if own[name] != category} == {}


def test_few_kernels_of_the_serving_engines_are_unknown(kernels: Profile) -> None:
    """Symbols as they stand in the engines' sources, drawn without looking at any rule."""
    found = categories(kernels, SYMBOLS)
    unknown = [name for name, category in found.items() if category == "other"]
    assert len(unknown) <= 0.15 * len(SYMBOLS), unknown


# Each name carries a word of another category.
TRAPS = {
    "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>(x)": "kv_cache",
    "tensorrt_llm::kernels::quantize_with_block_size<x>(flashinfer::QuantizationSFLayout)": "quant",
    "sage_quant_kernel": "quant",
    "create_flashinfer_kv_indices_triton": "memory",
    "triton_poi_fused_addmm_gelu_view_15": "activation",
    "triton_poi_fused__scaled_dot_product_flash_attention_cat_transpose_view_10": "memory",
    "triton_red_fused__to_copy_add_addmm_as_strided_fmha_v3_fwd_mean_mul_rsqrt_view_24": "norm",
    "triton_poi_fused_constant_pad_nd_moe_forward_0": "memory",
    "triton_poi_fused_0": "embedding",
    "_combined_routing_memset": "moe_routing",
    "_finalize_matmul_scatter_bf16": "moe",
    "topk_transform_decode_kernel": "indexer",
    "flashinfer::sampling::TopKRenormProbKernel": "sampling",
    "_topk_forward": "moe_routing",
    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(x)": "comm",
    "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)": "comm",
    "rmsNormLamport": "comm",
    "allreducePacket": "comm",
    "nvjet_tss_256x128_64x4_1x2_h_bz_coopA_TNT": "gemm_fp32",
    "deep_gemm::sm90_bf16_gemm_impl": "gemm_bf16",
    "deep_gemm::sm100_mqa_logits": "indexer",
    "deep_gemm::sm90_tf32_hc_prenorm_gemm_impl": "residual_mix",
    "deep_gemm::sm100_fp8_fp4_mega_moe_impl": "moe",
    "deep_gemm::transpose_and_pack_fp32_into_ue8m0": "quant",
    "silu_mul_fp8_quant_deep_gemm_kernel": "activation",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64>(x)": "gemm_bf16",
    "void at::native::launch_clamp_scalar<float>(x)": "elementwise",
    "flash::flash_fwd_splitkv_mla_combine_kernel": "mla",
    "l2norm_fwd_kernel": "norm",
    "fusedQKNormRopeKernel": "rope",
    "void my::property_kernel<float>(x)": "other",
    "some_new_kernel": "other",
}


@pytest.mark.parametrize("name", TRAPS)
def test_traps(own: dict[str, str], name: str) -> None:
    assert own[name] == TRAPS[name]


def test_simplified_names_are_short_and_plain(kernels: Profile) -> None:
    names = [*facts(), *TRAPS, *(name for unseen in UNSEEN.values() for name in unseen)]
    found = simplified(kernels, names)
    assert {name for name in found.values() if len(name) > 60} == set()
    assert {name for name in found.values() if not name or name.startswith("void ")} == set()


def test_simplified_names_are_stable(kernels: Profile) -> None:
    """A simplified name is its own simplified name."""
    names = [*facts(), *TRAPS, *SYMBOLS, *(name for unseen in UNSEEN.values() for name in unseen)]
    once = set(shown(kernels, names).values())
    again = shown(kernels, once)
    assert {name: again[name] for name in once if again[name] != name} == {}


WORDS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789", min_size=1)
TYPES = st.sampled_from(["float", "__nv_bfloat16", "c10::BFloat16", "128", "true", "(x::Y)1"])


@st.composite
def demangled(draw: st.DrawFn) -> str:
    path = "::".join(draw(st.lists(WORDS, min_size=1, max_size=4)))
    types = ", ".join(draw(st.lists(TYPES, max_size=5)))
    start = draw(st.sampled_from(["", "void ", "void (anonymous namespace)::"]))
    end = draw(st.sampled_from(["", "(int)", ".kd", "({lambda()#1})"]))
    return f"{start}{path}{f'<{types}>' if types else ''}{end}"


@settings(max_examples=25)
@given(st.lists(st.one_of(st.text(max_size=200), demangled()), min_size=1, max_size=20))
def test_a_simplified_name_can_always_be_shown(names: list[str]) -> None:
    found = shown(load_profiles()["kernels"], set(names))
    for name in found.values():
        assert 0 < len(name) <= 60
        assert not any(unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp") for char in name)
        assert name.strip()


@settings(max_examples=25)
@given(st.lists(demangled(), min_size=1, max_size=20))
def test_simplifying_twice_changes_nothing(names: list[str]) -> None:
    kernels = load_profiles()["kernels"]
    once = set(shown(kernels, set(names)).values())
    assert {name: again for name, again in shown(kernels, once).items() if again != name} == {}


def test_number_format_and_tile_stay_in_a_name(kernels: Profile) -> None:
    def gemm(tile: int, kind: str) -> str:
        return (
            "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int>, "
            "cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90Tma<4>, "
            f"cute::tuple<cute::C<{tile}>, cute::C<128>, cute::C<64> >, cutlass::{kind}_t> > >(x)"
        )

    names = [gemm(64, "bfloat16"), gemm(128, "bfloat16"), gemm(64, "half")]
    assert len(set(shown(kernels, names).values())) == len(names)


def test_names_without_a_rule_stay(kernels: Profile) -> None:
    names = ["Memcpy DtoD (Device -> Device)", "Memset (Device)", "_topk_forward"]
    assert simplified(kernels, names) == {name: name for name in names}


def test_first_match_wins_and_cleanups_follow(kernels: Profile) -> None:
    rule = NameRule("^a+", "b", ())
    late = NameRule("^a", "never", ())
    cleanup = NameRule("b", "cc", ())
    profile = replace(load_profiles()["kernels"], names=(rule, late), name_cleanups=(cleanup,))
    assert simplified(profile, ["aab", "x"]) == {"aab": "cccc", "x": "x"}
