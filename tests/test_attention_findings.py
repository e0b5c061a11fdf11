"""Findings about attention: impact, gates, groups and ranks in SQL, and the file in words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pytest
from attention_ops_made import CALL, Row, made_ops
from view_tables import rows_of

from trace_sql.attention_findings import findings_text
from trace_sql.attention_metrics import attention_metrics, error_metrics, metrics_text
from trace_sql.attention_operation import arguments
from trace_sql.database import Result
from trace_sql.findings_check import check
from trace_sql.findings_metrics import read_metrics

TARGETS = (
    *("attention_causes", "finding_members", "attention_coverage", "attention_paths"),
    "attention_op_kernels",
)


class Made:
    """A database as the metrics ask it, over views that are there already."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def hold(self, views: Sequence[str]) -> None:
        pass

    def query(self, sql: str, values: Sequence[Any] = ()) -> Result:
        cursor = self._connection.execute(sql, list(values))
        return Result(tuple(column[0] for column in cursor.description or ()), cursor.fetchall())


def metrics_of(calls: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    with made_ops(calls, TARGETS, **more) as connection:
        return attention_metrics(Made(connection), "t")  # type: ignore[arg-type]


def written(metrics: Mapping[str, Any]) -> str:
    """Return the findings file of `metrics`, which must be valid against them."""
    text = findings_text(metrics)
    validation = check(text, read_metrics(metrics_text(metrics), "metrics.json"))
    assert [f"{fault.line} {fault.rule}: {fault.text}" for fault in validation.faults] == []
    return text


def findings(calls: Sequence[Mapping[str, Any]], **more: Any) -> list[Row]:
    with made_ops(calls, ("finding_members",), **more) as connection:
        return rows_of(connection, "from attention_findings order by rank")


def estimates(calls: Sequence[Mapping[str, Any]], **more: Any) -> list[Row]:
    with made_ops(calls, ("attention_estimates",), **more) as connection:
        return rows_of(connection, "from attention_estimates order by op_no")


# Impact.


def test_impact_is_the_gap_to_the_roofline_in_percent_of_wall_time() -> None:
    (row,) = estimates([{"us": 20.0, "roofline_us": 5.0}], span_us=100.0)
    scores = [row[f"impact_score{end}"] for end in ("_low", "", "_high")]
    # (1 - 25 %) of 20 % of wall time, and 7/8 and 3/4 of that.
    assert scores == [11.25, 13.13, 15.0]
    assert (row["type"], row["estimate_method"]) == ("kernel_tuning", "quantified")


def test_impact_of_unknown_work_is_a_share_of_its_time() -> None:
    (row,) = estimates([{"us": 20.0}], span_us=100.0)
    scores = [row[f"impact_score{end}"] for end in ("_low", "", "_high")]
    assert scores == [3.0, 6.0, 9.0]
    assert (row["type"], row["estimate_method"]) == ("unmodeled_significant", "heuristic")
    assert (row["bound_type"], row["efficiency_pct"]) == ("unmodeled", None)


@pytest.mark.parametrize(("roofline", "method"), [(22.0, None), (22.1, "heuristic")])
def test_over_110_percent_is_an_error_of_ours_and_over_100_no_gap(
    roofline: float, method: str | None
) -> None:
    found = estimates([{"us": 20.0, "roofline_us": roofline}], span_us=100.0)
    assert [row["estimate_method"] for row in found] == ([method] if method else [])


@pytest.mark.parametrize(("us", "n"), [(0.99, 0), (1.01, 1)])
def test_an_operation_worth_less_than_a_hundredth_has_no_estimate(us: float, n: int) -> None:
    assert len(estimates([{"us": us, "roofline_us": 0.0}], span_us=10_000.0)) == n


def test_writes_to_a_cache_have_a_roofline_of_bytes() -> None:
    call = {"implementation": "cache", "flops": 0.0, "bound": "memory", "roofline_us": 4.0}
    (row,) = estimates([{**call, "us": 20.0}], span_us=100.0)
    assert (row["estimate_method"], row["bound_type"]) == ("quantified", "memory")


# Groups, gate, ranks.


def test_groups_are_by_bound_library_and_bucket() -> None:
    calls = [
        {"n_q": float(number), "us": 10.0, "roofline_us": roofline, "library": library, "bound": b}
        for number, (roofline, library, b) in enumerate(
            [
                *((2.0, "A", "compute"), (2.5, "A", "compute"), (2.0, "B", "compute")),
                *((2.0, "A", "memory"), (3.0, "A", "compute"), (5.9, "A", "compute")),
                *((6.0, "A", "compute"), (9.0, "A", "compute")),
            ]
        )
    ]
    found = {
        (row["bound_type"], row["library"], row["eff_bucket"]): row["n_members"]
        for row in findings(calls)
    }
    assert found == {
        ("compute", "A", "0-30"): 2,
        ("compute", "B", "0-30"): 1,
        ("memory", "A", "0-30"): 1,
        ("compute", "A", "30-60"): 2,
        ("compute", "A", "60-100"): 2,
    }


def test_unknown_work_is_grouped_by_name_whatever_its_library() -> None:
    calls = [
        {"operator": "one", "library": "A"},
        {"operator": "one", "library": "B"},
        {"operator": "other", "library": "A"},
    ]
    assert [(row["n_members"], row["eff_bucket"]) for row in findings(calls)] == [
        (2, "unknown"),
        (1, "unknown"),
    ]


@pytest.mark.parametrize(("us", "n"), [(5.65, 0), (5.72, 1)])
def test_a_finding_is_worth_half_a_percent_of_wall_time(us: float, n: int) -> None:
    # 7/8 of 0.565 % is 0.494 %, of 0.572 % it is 0.5005 %.
    assert len(findings([{"us": us, "roofline_us": 0.0}], span_us=1000.0)) == n


def test_scores_are_rounded_before_they_are_summed() -> None:
    # Each call is worth 0.0142 %, so 0.0124 % in the middle, which is 0.01 when rounded.
    calls = [{"n_q": float(n), "us": 14.2, "roofline_us": 0.0} for n in range(55)]
    (row,) = findings(calls, span_us=100_000.0)
    assert (row["n_members"], row["impact_score"], row["impact_score_high"]) == (55, 0.55, 0.55)


def test_ranks_follow_the_impact_over_forward_and_backward() -> None:
    calls: list[Row] = [
        {"us": 10.0, "roofline_us": 1.0},
        {"us": 40.0, "roofline_us": 1.0, "direction": "bwd"},
        {"us": 20.0, "roofline_us": 1.0, "bound": "memory", "n_q": 2.0},
    ]
    found = findings(calls)
    assert [(row["rank"], row["category"]) for row in found] == [
        (1, "sdpa_bwd"),
        (2, "sdpa_fwd"),
        (3, "sdpa_fwd"),
    ]
    assert [row["impact_score"] for row in found] == sorted(
        (row["impact_score"] for row in found), reverse=True
    )


def test_the_band_neither_adds_nor_drops_a_finding() -> None:
    inside = {"us": 10.0, "roofline_us": 3.0}
    metrics = metrics_of([inside])
    assert metrics["operations"][0]["analysis"]["in_band"] is True
    assert len(metrics["category_findings"]) == 1


def test_members_are_listed_by_what_they_are_worth() -> None:
    calls = [{"n_q": float(n), "us": 10.0 * n, "roofline_us": 1.0} for n in (1, 3, 2)]
    with made_ops(calls, ("finding_members",)) as connection:
        found = rows_of(connection, "from finding_members order by rank, position")
    assert [row["time_ms"] for row in found] == [0.03, 0.02, 0.01]


# Causes.

CAUSES: dict[str, Row] = {
    "unfused": {
        **{"implementation": "unfused", "kernel": "gemm", "roofline_us": 2.0, "score_bytes": 1e7},
        "parts": [("softmax", "softmax", 5.0), ("copy", "copy", 5.0)],
    },
    "launch": {"us": 3.0, "roofline_us": 0.2, "launch_us": 2.0, "floor_kind": "launch"}
    | {"floor_us": 2.0, "tiles": 16.0},
    "copies": {"us": 10.0, "roofline_us": 4.0, "parts": [("copy", "copy", 5.0)]},
    "tiles": {"us": 20.0, "roofline_us": 2.0, "floor_us": 12.0, "tile_us": 12.0}
    | {"floor_kind": "tiles", "tiles": 8.0},
    "older": {"us": 20.0, "roofline_us": 5.0, "kernel": "pytorch_flash::flash_fwd_kernel"},
    "compute": {"us": 20.0, "roofline_us": 5.0, "tiles": 900.0},
    "bandwidth": {"us": 20.0, "roofline_us": 5.0, "bound": "memory", "phase": "decode"}
    | {"packed": True, "implementation": "paged", "g_n": 8.0, "g_sq": 8.0, "g_sk": 9000.0}
    | {"gen_tokens": 8.0, "gen_bytes": 1e6, "c_n": 0.0, "c_sq": 0.0, "c_sk": 0.0},
    "cache_write": {"us": 20.0, "roofline_us": 5.0, "bound": "memory", "flops": 0.0}
    | {"implementation": "cache"},
    "unmodeled": {"us": 20.0, "problem": "no shapes recorded: profile with record_shapes=True"},
    "model_error": {"us": 20.0, "roofline_us": 50.0, "mask_assumption": "no window recorded"},
}


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_is_found_and_written_as_a_valid_file(cause: str) -> None:
    metrics = metrics_of([CAUSES[cause]])
    assert metrics["operations"][0]["analysis"]["cause"] == cause
    text = written(metrics)
    assert text.count("\n### P1: ") == 1
    assert not re.search(r"\b(None|nan|inf)\b", text)


@pytest.mark.parametrize(("us", "cause"), [(39.0, "launch"), (41.0, "compute")])
def test_what_takes_tens_of_launches_is_not_short(us: float, cause: str) -> None:
    (one,) = metrics_of([{**CAUSES["launch"], "us": us}])["operations"]
    assert one["analysis"]["cause"] == cause


@pytest.mark.parametrize(
    ("bound", "needs"),
    [
        # 989.4 TFLOPS for 5 us, and a quarter of 5 us of 3.35 TB/s; or the reverse.
        ("compute", "its bytes need 1.25 \u00b5s and its products 5.00 \u00b5s"),
        ("memory", "its bytes need 5.00 \u00b5s and its products 1.25 \u00b5s"),
    ],
)
def test_bytes_and_products_each_have_their_own_least_time(bound: str, needs: str) -> None:
    assert needs in written(metrics_of([{**CAUSES["older"], "bound": bound}]))


def test_cards_of_several_causes_share_no_sentence() -> None:
    calls = [{**call, "operator": f"op_{cause}"} for cause, call in CAUSES.items()]
    text = written(metrics_of(calls))
    cards = text.split("## Detailed Analysis")[0]
    lines = [line for line in cards.splitlines() if line.startswith(("**Insight**", "**Action**"))]
    assert len(lines) >= 8
    assert len(set(lines)) == len(lines)


def test_advice_is_not_given_twice() -> None:
    calls = [
        {**CAUSES["unmodeled"], "operator": "one"},
        {**CAUSES["unmodeled"], "operator": "two", "us": 19.0},
    ]
    assert "**Action**: The same as for P1." in written(metrics_of(calls))


def test_short_writes_to_a_cache_are_not_blamed_on_the_kernel() -> None:
    text = written(metrics_of([{**CAUSES["cache_write"], "us": 1.5, "roofline_us": 0.1}]))
    assert "Leave the kernel as it is" in text
    assert "Test KV cache block_size" not in text


# The file.


def test_a_file_says_shares_gpu_and_source() -> None:
    text = written(metrics_of([{"us": 40.0, "roofline_us": 5.0}], extra_us=60.0))
    assert text.startswith("# Attention in made\n")
    assert "1 call of flash attention takes 40.0 \u00b5s, 40.0 %" in text
    assert (
        "989 TFLOPS (bf16) and 3.35 TB/s: the datasheet peaks of H100 SXM, which the trace names"
        in text
    )
    assert "(Source: metrics.json, category_findings[0] and operations[0].)" in text


def test_members_of_a_finding_stand_in_its_table_and_its_words() -> None:
    calls = [{"us": 40.0, "roofline_us": 5.0}, {"us": 20.0, "n_q": 512.0, "roofline_us": 2.0}]
    text = written(metrics_of(calls))
    assert text.count("| flash::fwd |") == 2
    assert "With its calls of another shape it is 60.0 \u00b5s in all." in text


def test_a_guess_says_so_in_a_quote_behind_its_impact() -> None:
    text = written(metrics_of([CAUSES["unmodeled"]]))
    card = text.split("## Detailed Analysis")[0]
    assert re.search(r"<!-- impact-end -->\n\n> The impact is an estimate from the share", card)


def test_a_gpu_that_waits_for_its_host_is_said_before_the_findings() -> None:
    text = written(metrics_of([{"us": 10.0, "roofline_us": 4.0}], extra_us=36.0, span_us=10_000.0))
    head = text.split("## Recommendations")[0]
    assert "nothing to do for 99.5 % of this trace" in head
    assert "what the host does between kernels" in head
    assert "No finding" in head


def test_nothing_to_gain_leaves_both_sections_empty() -> None:
    text = written(metrics_of([{"us": 10.0, "roofline_us": 10.0}]))
    assert text.rstrip().endswith("## Recommendations\n\n## Detailed Analysis")


def test_a_trace_without_attention_says_so() -> None:
    metrics = metrics_of([], extra_us=10.0)
    assert metrics["status"] == "NO_DATA"
    assert "No SDPA operations found in trace" in written(metrics)


def test_an_analysis_that_failed_gives_no_finding() -> None:
    text = written(error_metrics("trace.json: cannot be read | <b>"))
    assert "\nStatus: ERROR\n" in text
    assert "###" not in text


def test_paged_attention_has_three_more_columns() -> None:
    text = written(metrics_of([CAUSES["bandwidth"]]))
    assert "| Bound | Kernel Breakdown | Workload | Attention Pattern |" in text
    assert "Per-request KV-cache hit rate not visible from trace data." in text


def test_writing_the_cache_is_said_from_ten_percent_on() -> None:
    paged = {**CAUSES["bandwidth"], "us": 90.0}
    little = written(metrics_of([{**paged, "parts": [("kv_write", "reshape_and_cache", 10.0)]}]))
    much = written(metrics_of([{**paged, "parts": [("kv_write", "reshape_and_cache", 10.2)]}]))
    assert "block_size for its writes: test 16, 32 and 64" not in little
    assert "block_size for its writes: test 16, 32 and 64" in much


def test_generation_that_hides_behind_a_prompt_s_tokens_is_named() -> None:
    call = {**CAUSES["bandwidth"], "phase": "mixed", "ctx_tokens": 8155.0, "gen_tokens": 37.0}
    text = written(metrics_of([{**call, "ctx_bytes": 20.0, "gen_bytes": 80.0}]))
    assert "generation, 0.45 % of the tokens, moves 80.0 % of the bytes" in text


def test_kinds_of_layers_that_the_trace_does_not_name_are_pointed_out() -> None:
    calls = [
        {"us": 30.0 if layer % 2 else 10.0, "layer_no": layer, "pass_no": 0, "region": "layer"}
        | {"mask_source": "family", "roofline_us": 2.0}
        for layer in range(8)
    ]
    assert "a model config would make this exact" in written(metrics_of(calls))


HOSTILE = (
    "`|<!-- impact-begin kind=p_item low=1 mid=2 high=3 -->\n## Recommendations\x1b[2J"
    "<script>alert(1)</script> [link](http://x) \u202e"
)
CUT = "k" * 40 + "<!-- impact-end reasoning-candidate tier=compute --> behind what is cut"


@pytest.mark.parametrize("name", [HOSTILE, CUT, f"<!--{CUT}"])
@pytest.mark.parametrize("cause", ["compute", "unmodeled"])
def test_names_of_a_trace_stay_names(cause: str, name: str) -> None:
    call = {**CAUSES[cause], "operator": name, "kernel": name, "library": "Flash"}
    call |= {"input_dims": '[[1,"|<b>"],[2,3]]', "input_types": f"[{json.dumps(name)}, 1]"}
    metrics = metrics_of([call], traces=[{"trace_id": "t", "name": name}])
    text = written(metrics)
    assert text.count("\n## Recommendations\n") == 1
    assert text.count("<!--") == 5
    outside = re.sub(r"`[^`\n]*`", "", text)
    assert not re.search(r"(?<!\\)<script|(?<!\\)\[link", outside)
    assert not any(ord(char) < 32 and char != "\n" for char in text)
    assert "\u202e" not in text
    json.loads(metrics_text(metrics))


# The metrics.


def test_metrics_of_forward_and_backward_stand_in_one_object() -> None:
    calls: list[Row] = [
        {"us": 30.0, "roofline_us": 3.0},
        {"us": 75.0, "roofline_us": 9.0, "direction": "bwd"},
    ]
    metrics = metrics_of(calls)
    assert metrics["category"] == "sdpa"
    assert {key: part["total_time_ms"] for key, part in metrics["categories"].items()} == {
        "sdpa_fwd": 0.03,
        "sdpa_bwd": 0.075,
    }
    assert [op["category"] for op in metrics["operations"]] == ["sdpa_bwd", "sdpa_fwd"]
    assert "take 2.5 times as long as those of the forward calls" in written(metrics)


def test_one_direction_names_the_category() -> None:
    assert metrics_of([{}])["category"] == "sdpa_fwd"
    assert metrics_of([{"direction": "bwd"}])["category"] == "sdpa_bwd"


def test_calls_of_the_same_kernel_without_shapes_point_to_those_with() -> None:
    calls: list[Row] = [
        {"us": 30.0, "roofline_us": 9.0},
        {"us": 28.0, "operator": None, "n_q": None},
    ]
    assert "Operation 0 runs the same kernel with recorded shapes" in written(metrics_of(calls))


@pytest.mark.parametrize(
    ("dims", "types", "expected"),
    [
        (
            "[[4,12,197,64],[5],[],[]]",
            '["c10::BFloat16","long int","Scalar",""]',
            "(4,12,197,64) bf16<br>(5,) int64",
        ),
        ("[[2,3]]", None, "(2,3)"),
        (None, None, ""),
        ("no JSON", "[", ""),
        ('{"a": 1}', "3", ""),
        ('[["a"],[1,null],[2]]', '["float","float",7]', "(2,)"),
        ("[" * 5000, "[]", ""),
    ],
)
def test_arguments_are_the_tensors_of_a_call(
    dims: str | None, types: str | None, expected: str
) -> None:
    assert arguments(dims, types) == expected


def test_numbers_of_the_metrics_have_the_digits_of_their_keys() -> None:
    (op,) = metrics_of([{"us": 1000.0 / 7, "roofline_us": 10.0}])["operations"]
    assert op["time_ms"] == 0.143
    assert op["efficiency"]["efficiency_percent"] == 7.0
    assert op["efficiency"]["compute_spec"] == "matrix_bf16"
    assert op["efficiency"]["resolved_peak_maf"] == CALL["peak_tflops"]
