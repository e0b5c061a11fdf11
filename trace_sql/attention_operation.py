"""An operation of attention as an object of the metrics."""

from __future__ import annotations

import json
from typing import Any

from trace_sql.safe_text import clean

Row = dict[str, Any]

_SHORT = {
    "c10::BFloat16": "bf16",
    "c10::Half": "fp16",
    "float": "fp32",
    "double": "fp64",
    "c10::Float8_e4m3fn": "fp8_e4m3",
    "c10::Float8_e4m3fnuz": "fp8_e4m3",
    "c10::Float8_e5m2": "fp8_e5m2",
    "long int": "int64",
    "long": "int64",
    "int": "int32",
    "unsigned char": "uint8",
    "signed char": "int8",
    "bool": "bool",
}
"""Short names of types; others keep their own."""
_NAME_ENDS = 75
"""Characters of a kernel's name that are shown."""
_MOST_KERNELS = 6
_ATTENDS = ("core", "combine", "step")
_SHAPE = (
    *("family", "implementation", "direction", "phase", "phase_source", "layer_class", "layers"),
    *("batch", "n_q", "n_kv", "h_q", "h_kv", "d_qk", "d_v", "n_seqs", "max_q", "max_kv"),
    *("q_dtype", "kv_dtype", "o_dtype", "dtype_source", "mask", "window_size", "top_k"),
    *("mask_source", "bias_elements", "latent", "packed", "shape_source", "n_requests"),
    *("flops", "bytes", "formula", "mask_assumption"),
)
_ANALYSIS = (
    *("cause", "evidence", "n_passes", "mean_us", "std_us", "core_us", "overhead_us"),
    *("roofline_us", "n_rated", "floor_us", "floor_kind", "tiles", "tile_us", "launch_us"),
    *("attend_pct", "combine_pct", "write_pct", "copy_pct", "fill_pct", "gemm_pct"),
    *("softmax_pct", "n_copies", "n_fills", "n_kernels", "top_role", "top_kernel", "top_pct"),
    *("n_blocks", "has_older", "n_before", "n_behind", "wrapper_us", "score_us", "page_pct"),
    *("band_lo", "band_hi", "in_band", "band_adj_lo", "band_adj_hi", "n_anomalies"),
    *("peak_status", "peak_note", "problem"),
)


def described(row: Row, kernels: list[Row], whole: Row) -> dict[str, Any]:
    """Return an operation: a row of `attention_ops` with causes, its kernels, and the trace."""
    library = row["library"]
    names = _kernel_names(row, kernels)
    anomaly = bool(row["anomaly"])
    mean, std = row["mean_us"], row["std_us"]
    often = row["n_calls"] > 10 and (row["pct_of_wall"] or 0) >= 5
    return {
        "category": "sdpa_bwd" if row["direction"] == "bwd" else "sdpa_fwd",
        "op_no": row["op_no"],
        "name": row["operation"],
        "count": row["n_calls"],
        "time_ms": rounded(row["sum_us"] / 1e3, 3),
        "percent_of_category": rounded(row["pct_of_category"], 2),
        "percent_of_total": rounded(row["pct_of_wall"], 2),
        "percent_of_busy": rounded(row["pct_of_busy"], 2),
        "efficiency": {
            "tflops_achieved": rounded(row["tflops"], 2),
            "tb_s_achieved": rounded(row["tb_s"], 2),
            "efficiency_percent": rounded(row["efficiency_pct"], 2),
            "mean_efficiency_percent": rounded(row["mean_efficiency_pct"], 2),
            "core_efficiency_percent": rounded(row["core_efficiency_pct"], 2),
            "measured_efficiency_percent": rounded(row["measured_efficiency_pct"], 2),
            "floor_efficiency_percent": rounded(row["floor_efficiency_pct"], 2),
            "bound_type": row["bound"],
            "flops_per_byte": rounded(row["flops_per_byte"], 2),
            "compute_spec": row["precision"] and f"matrix_{row['precision']}",
            "resolved_peak_maf": rounded(row["peak_tflops"], 1),
            "resolved_peak_hbm_bw": rounded(row["hbm_tb_s"], 3),
            "peak_kind": row["peak_kind"],
            "warning": row["problem"],
            "is_anomaly": anomaly,
        },
        "args": arguments(row["input_dims"], row["input_types"]),
        "library": library or "Unknown",
        "launcher_path": row["path"] or (f"{library} (vendor)" if library else "Not found"),
        "kernel_name": "<br>".join(names),
        "kernel_name_trunc": "<br>".join(map(_cut, names)),
        "cov": rounded(std / mean, 3) if often and std is not None and mean else None,
        "high_variance": bool(often and std is not None and mean and std / mean > 1),
        "Input Dims": row["input_dims"],
        "Input type": row["input_types"],
        "has_perf_model": row["roofline_us"] is not None,
        "perf_params": {name: row[name] for name in _SHAPE},
        "kernel_details_summary": [
            {
                "name": kernel["name"],
                "kernel": kernel["kernel"],
                "role": kernel["role"],
                "count": kernel["n_launches"],
                "total_duration_us": rounded(kernel["sum_us"], 3),
                "mean_duration_us": rounded(kernel["mean_us"], 3),
                "percent": rounded(kernel["op_pct"], 2),
            }
            for kernel in kernels
        ],
        "classification": _classification(row, kernels),
        "analysis": {
            **{name: row[name] for name in _ANALYSIS},
            "total_us": row["sum_us"],
            "wall_pct": row["pct_of_wall"],
            "busy_pct": row["pct_of_busy"],
            "efficiency_pct": row["efficiency_pct"],
            "gpu": whole.get("gpu"),
            "units": whole.get("units"),
            "twin": None,
            "beside": None,
            "backward_ratio": None,
        },
    }


def _kernel_names(row: Row, kernels: list[Row]) -> list[str]:
    """Return raw names as the Kernel Name cell lists them: those that attend, else all."""
    attending = [kernel for kernel in kernels if kernel["role"] in _ATTENDS]
    shown = kernels if row["implementation"] == "unfused" or not attending else attending
    names = [clean(kernel["name"]) for kernel in shown[:_MOST_KERNELS]]
    if len(names) < 2:
        return names
    return [f"Kernel {number}: {name}" for number, name in enumerate(names, 1)]


def _cut(name: str) -> str:
    prefix, colon, rest = name.partition(": ") if name.startswith("Kernel ") else ("", "", name)
    return prefix + colon + (rest if len(rest) <= _NAME_ENDS else rest[:_NAME_ENDS] + "...")


def _classification(row: Row, kernels: list[Row]) -> dict[str, Any]:
    paged = row["implementation"] == "paged"
    return {
        "is_flash_attention": row["implementation"] == "flash",
        "is_paged_attention": paged,
        "has_perf_model": row["roofline_us"] is not None,
        "attention_type": row["implementation"],
        "kernel_breakdown": [
            {
                "kernel": kernel["kernel"],
                "type": _component(kernel),
                "count": kernel["n_launches"],
                "percent": rounded(kernel["op_pct"], 2),
            }
            for kernel in (kernels if paged else ())
        ],
        "workload_profile": {
            "n_q": row["n_q"],
            "n_kv": row["n_kv"],
            "h_q": row["h_q"],
            "h_kv": row["h_kv"],
            "sum_ctx_tokens": row["ctx_tokens"],
            "sum_gen_tokens": row["gen_tokens"],
            "ctx_ratio": rounded(row["ctx_ratio"], 3),
            "ctx_flops_ratio": rounded(row["ctx_flops_ratio"], 3),
            "gen_bytes_ratio": rounded(row["gen_bytes_ratio"], 3),
            "workload_type": row["workload"],
            "attention_pattern": row["pattern"] or "unknown",
            "gqa_ratio": rounded(row["gqa_ratio"], 2),
        },
    }


def _component(kernel: Row) -> str:
    if kernel["role"] == "kv_write":
        return "reshape_cache"
    if kernel["role"] != "core":
        return str(kernel["role"])
    return "fwd_kernel" if "fwd_kernel" in kernel["name"] else "paged_attention"


def arguments(dims: str | None, types: str | None) -> str:
    """Return the tensors among an operator's inputs as `(4,12,197,64) bf16<br>...`.

    Both are JSON text from the trace; what is no list of numbers is left out.
    """
    shapes, kinds = _list(dims), _list(types)
    parts = []
    for index, shape in enumerate(shapes):
        if not isinstance(shape, list) or not shape:
            continue
        if not all(isinstance(size, int | float) for size in shape):
            continue
        kind = kinds[index] if index < len(kinds) and isinstance(kinds[index], str) else ""
        sizes = ",".join(map(str, shape)) + ("," if len(shape) == 1 else "")
        parts.append(f"({sizes}) {_SHORT.get(kind, clean(kind[:40]))}".rstrip())
    return "<br>".join(parts)


def _list(text: str | None) -> list[Any]:
    try:
        value = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return []
    return value if isinstance(value, list) else []


def rounded(value: Any, digits: int) -> float | None:
    """Return a number of a view with so many digits."""
    return None if value is None else round(float(value), digits)
