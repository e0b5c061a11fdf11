"""What a real kernel takes at least: whole rounds of tiles, and a launch; by arithmetic by hand."""

from __future__ import annotations

import pytest
from rooflines_made import Row, roofline, rooflines


@pytest.mark.parametrize(
    ("gpu", "rate", "call", "n_tiles", "rounds"),
    [
        # One head of 512, 1024 queries: 8 tiles for 304 CUs.
        ("MI300X", 1307.4, {"batch": 1, "h_q": 1, "n_q": 1024}, 8, 1),
        ("MI300X", 1307.4, {"batch": 1, "h_q": 1, "n_q": 16384}, 128, 1),
        ("MI300X", 1307.4, {"batch": 1, "h_q": 24, "n_q": 7431}, 24 * 59, 5),
        ("MI300X", 1307.4, {"batch": 16, "h_q": 16, "n_q": 559}, 1280, 5),
        ("H100 SXM", 989.4, {"batch": 16, "h_q": 16, "n_q": 559}, 1280, 10),
        # Gradients of keys and values go by keys.
        (
            "H100 SXM",
            989.4,
            {"batch": 2, "h_q": 8, "n_q": 100, "n_kv": 1000, "direction": "bwd"},
            2 * 8 * 8,
            1,
        ),
        # Packed sequences: three of 150 are two tiles each.
        ("H100 SXM", 989.4, {"batch": 1, "h_q": 4, "n_q": 450, "n_seqs": 3}, 24, 1),
        ("H100 SXM", 989.4, {"h_q": 4, "n_q": 450, "c_n": 3, "c_sq": 450, "g_n": 0}, 24, 1),
    ],
)
def test_tiles_go_round(gpu: str, rate: float, call: Row, n_tiles: int, rounds: int) -> None:
    flops = 1e12
    row = roofline(gpu, flops=flops, bytes=1, busy_ns=10**9, **call)
    units = {"MI300X": 304, "H100 SXM": 132}[gpu]
    assert row["tiles"] == n_tiles
    assert row["tile_us"] == pytest.approx(rounds * units / n_tiles * flops / rate / 1e6)
    assert row["floor_us"] == row["tile_us"]
    assert row["floor_kind"] == "tiles"
    ratio = row["floor_efficiency_pct"] / row["efficiency_pct"]
    assert ratio == pytest.approx(rounds * units / n_tiles)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        # 32 requests of 1722 keys: 7 parts of 256 keys for each of 8 key heads.
        (
            {"h_q": 64, "h_kv": 8, "c_n": 0, "c_sq": 0, "g_n": 32, "g_sq": 32, "g_sk": 55086},
            32 * 8 * 7,
        ),
        # A window of 128 keys is one part.
        (
            {
                "h_q": 64,
                "h_kv": 8,
                "g_n": 32,
                "g_sq": 32,
                "g_sk": 55086,
                "window_size": 128,
            },
            32 * 8,
        ),
        # Absorbed MLA: 128 heads share a latent key, 4 queries of each are four tiles.
        ({"h_q": 128, "h_kv": 1, "g_n": 2, "g_sq": 8, "g_sk": 2048}, 2 * 4 * 4),
        ({"phase": "decode", "batch": 4, "n_q": 1, "n_kv": 1000, "h_q": 8, "h_kv": 2}, 4 * 2 * 4),
    ],
)
def test_decoding_is_cut_along_the_keys(call: Row, expected: int) -> None:
    row = roofline(flops=1e9, bytes=1e9, busy_ns=10**6, **call)
    assert row["tiles"] == expected


def test_prefill_and_decoding_of_one_call_are_cut_apart() -> None:
    row = roofline(
        flops=3e9,
        ctx_flops=2e9,
        gen_flops=1e9,
        bytes=1,
        busy_ns=10**6,
        h_q=8,
        h_kv=8,
        n_q=260,
        c_n=1,
        c_sq=256,
        g_n=4,
        g_sq=4,
        g_sk=1024,
    )
    assert row["tiles"] == 8 * 2 + 4 * 8
    assert row["tile_us"] == pytest.approx(132 / 16 * 2e9 / 989.4 / 1e6)


def test_a_launch_takes_its_time() -> None:
    call = {"flops": 1e6, "bytes": 1e6, "busy_ns": 10000}
    (row,) = rooflines(call, launch_ns=2000)
    assert (row["floor_kind"], row["floor_us"], row["launch_us"]) == ("launch", 2, 2)
    assert row["floor_efficiency_pct"] == pytest.approx(20)


def test_a_call_that_beats_its_tiles_has_no_floor_above_it() -> None:
    row = roofline(flops=1e9, bytes=1, busy_ns=5000, batch=1, h_q=1, n_q=128)
    assert row["tile_us"] > 100
    assert row["floor_us"] == pytest.approx(5)
    assert row["floor_efficiency_pct"] == pytest.approx(100)


def test_without_lengths_the_roofline_is_the_floor() -> None:
    row = roofline(flops=1e9, bytes=1, busy_ns=5000)
    assert (row["tiles"], row["tile_us"]) == (None, None)
    assert row["floor_us"] == row["roofline_us"]
    assert row["floor_kind"] == "compute"
