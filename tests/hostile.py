"""A trace whose every text attacks whoever shows it: terminals, browsers, spreadsheets, SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

from fixtures import Scenario, kind, make, serving

NAMES = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07\x1b]8;;http://evil.example\x1b\\link",
    "\x9b31mc1\x85next",
    "\u202egnp.exe\u2066\u2069",
    "zero\u200bwidth\u200d\ufeff\u00ad\u2060\u3164\ufe0f\U000e0120",
    "line\nbreak\r\ttab\x0b\x0c\u2028\u2029",
    "\x00nul\x7fdel\x08\x08\x08",
    "</script><script>alert(1)</script><img src=x onerror=alert(1)>",
    "&lt;b&gt; &amp; &#x3c;i&#62;",
    "a|b`c``d```e<f>",
    "back\\slash\\|bar\\",
    "[click](javascript:alert(1)) ![pic](https://evil.example/x.png)",
    "https://evil.example/?q=1 www.evil.example me@evil.example",
    "**bold** __strong__ ~~gone~~ $x$ #1 # head",
    "=cmd|'/c calc'!A0",
    "+1+cmd()",
    "-2+3",
    "@SUM(1)",
    "\uff1dcmd()",
    "\t=1+1",
    " =1+1",
    "\"quoted\", 'single', comma; semi",
    "'; drop table passes; --",
    "{{ 7 * 7 }} {% raw %} ${HOME} $(id) `id` %s %n {0}",
    "\U0001f680 \U0001f469\u200d\U0001f680 核心 ｗｉｄｅ é e\u0301",
    "\ufffd \ufffe\uffff \ue000",
    "tag\U000e0001\U000e0041",
    "",
    " ",
    "x" * 3000,
]
LAYERS = 3
KEPT = re.compile("(?i)norm|embed|batch")
"""Kernels whose names the split needs."""


def write_hostile(path: Path) -> Path:
    """Write a trace that splits into passes, with each of NAMES wherever text may stand."""
    dense = kind("sglang_llama_nvidia")
    made = make(dense.model_config(layers=LAYERS), dense, Scenario(passes=serving(1, 1, 3)))
    names = cycle(NAMES)
    events = []
    for event in made.events:
        attack = next(names)
        device = event.get("cat") in ("kernel", "gpu_memcpy")
        host = event.get("cat") == "cuda_runtime" or event["ph"] in "si"
        if host or (device and not KEPT.search(event["name"])):
            event["name"] = attack
        elif event.get("cat") == "user_annotation" and "bs=32" in event["name"]:
            event["name"] += attack
        if isinstance(event.get("args"), dict):
            event["args"] |= {attack: attack, "name": attack, "Input Dims": [[attack]]}
        events.append({**event, f"key {attack}": {attack: [attack]}})
    start = events[0]["ts"]
    for name in NAMES:
        place = {"name": name, "pid": name, "tid": name, "ts": start}
        own = {"External id": 1, "Input Dims": [[name]], "Input type": [name]}
        events.append({**place, "ph": "X", "cat": "cpu_op", "dur": 5000, "args": own})
        frame = {"Python id": 1, "Python module id": name}
        events.append({**place, "ph": "X", "cat": "python_function", "dur": 5000, "args": frame})
        events.append({**place, "ph": "i", "cat": name, "s": name, "id": name})
    metadata: dict[str, Any] = {
        **made.metadata,
        "deviceProperties": [{"id": 0, "name": f"GPU {''.join(NAMES)}"}],
        "WARNING": NAMES,
        "ERROR": [f"{name} happened" for name in NAMES],
        "INFO": {name: name for name in NAMES},
        "displayTimeUnit": NAMES[0],
    }
    return write_document(path, metadata, events)


def write_document(path: Path, metadata: dict[str, Any], events: list[dict[str, Any]]) -> Path:
    """Write events of the maker, whose times are nanoseconds, with keys of any text."""
    path.write_text(json.dumps({**metadata, "traceEvents": list(map(_in_us, events))}))
    return path


def write_config(path: Path) -> Path:
    """Write the model's config.json, with hostile text in all that is not needed to read it."""
    content = kind("sglang_llama_nvidia").model_config(layers=LAYERS)
    content = {**content, **dict(zip(NAMES, NAMES, strict=True))}
    content["architectures"] = [*content["architectures"], *NAMES]
    content |= {"hidden_act": NAMES[0], "torch_dtype": NAMES[9], "_name_or_path": "".join(NAMES)}
    content["quantization_config"] = {"quant_method": NAMES[11], "fmt": NAMES[0]}
    path.write_text(json.dumps(content))
    return path


def _in_us(event: dict[str, Any]) -> dict[str, Any]:
    return {key: one / 1000 if key in ("ts", "dur") else one for key, one in event.items()}


def texts(value: Any) -> Iterator[str]:
    """Yield every text inside a value that JSON gave."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from (key, *texts(item))
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
