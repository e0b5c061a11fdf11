"""What the prose of a findings file must not say: vendors' words, wrong advice, the unseen."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trace_sql.findings_reader import (
    CARD_LABELS,
    DETAIL_LABELS,
    Body,
    Document,
    Fault,
    Line,
    labelled,
)

_ADVICE = ("**Insight**", "**Action**", "**Reasoning for Slowdown:**", "**Resolution:**")
"""Labels whose text is about what to do, where a library's name does not help."""
_VENDOR_KERNEL = re.compile(r"\b(CUDA|HIP|ROCm|NVIDIA|AMD)[ -]kernels?\b", re.IGNORECASE)
_VENDOR_NAME = re.compile(
    r"\b(cuDNN|MIOpen|cuBLAS(Lt)?|hipBLAS(Lt)?|rocBLAS|AOTriton|AITER|CUTLASS|FlashInfer"
    r"|TensorRT(-LLM)?|TRT-?LLM|xFormers|Composable Kernel|Transformer ?Engine|Tensor Cores?"
    r"|Matrix Cores?|MFMA|WGMMA)\b",
    re.IGNORECASE,
)
_WHAT = r"(SDPA|attention)(\s(kernels?|ops?|operations?|calls?|operators?|backends?|blocks?))?"
_OTHER = r"(?!\s*-|\s(mask|bias|scale|score|cop|wrapper|input|output))"
_FUSE = re.compile(
    rf"\b(fuse|fusing|fusion\sof)\s(\w+[ ,-]+){{0,3}}?{_WHAT}\b{_OTHER}"
    rf"|\b{_WHAT}\s(should|must|can|could|needs? to|has to|have to|to)\s(be\s)?fused?\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(not|never|no|nothing|without|cannot)\b|n't\b", re.IGNORECASE)
_COUNTERS = re.compile(
    r"\b(occupancy|(cache|L1|L2|LLC|TLB)[ -]?(hit|miss)(es)?([ -]rates?)?|hit[ -]rates?"
    r"|miss[ -]rates?|bank conflicts?|register (spill\w*|pressure)|warp stalls?|tile[ -]sizes?"
    r"|block[ -]tile|thread ?block sizes?|shared[ -]memory usage|LDS usage|instruction mix"
    r"|clock (rate|speed|frequency)|power draw|throttl\w+)\b",
    re.IGNORECASE,
)
_UNSEEN = re.compile(
    r"\b(not?|never|cannot|unknown|unseen|hidden|invisible|whether|if|may|might|could|would|can"
    r"|profile|profiler?s?|profiling|counters?|check|tune|tuning|assum\w+|suppos\w+|names?|named"
    r"|confirm|measure)\b|n't\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"`[^`]*`|\"[^\"]*\"|\u201c[^\u201d]*\u201d")


def prose_faults(document: Document) -> Iterator[Fault]:
    """Yield sentences that a findings file must not have; names in `code` are data."""
    for line in _prose(document):
        if match := _VENDOR_KERNEL.search(line.text):
            yield Fault(line.number, "vendor words", f"{match[0]!r}: say GPU kernels")
        for sentence in _sentences(line.text):
            match = _FUSE.search(sentence)
            if match and not _NEGATED.search(sentence[: match.end()]):
                yield Fault(
                    line.number,
                    "fuse advice",
                    f"{match[0]!r}: attention kernels are fused already; give other advice",
                )
            match = _COUNTERS.search(sentence)
            if match and not _UNSEEN.search(sentence):
                yield Fault(
                    line.number,
                    "observability",
                    f"{match[0]!r} is not in a trace; say that it is not visible, or profile it",
                )
    for line in _advice(document):
        if match := _VENDOR_NAME.search(line.text):
            yield Fault(
                line.number,
                "vendor words",
                f"{match[0]!r}: name no vendor's library here; say attention kernel or library",
            )


def _prose(document: Document) -> Iterator[Line]:
    """Yield the paragraphs, each as one line with the number of its first."""
    words: list[str] = []
    start = 0
    for line in (*document.lines, Line(0, "")):
        text = line.text.strip()
        if not text or text.startswith(("|", "<!--", "#", "-", "*", ">")):
            if words:
                yield _without_code(Line(start, " ".join(words)))
            words, start = [], line.number
        elif not words:
            start = line.number
        if text and not text.startswith(("|", "<!--")):
            words.append(text)


def _advice(document: Document) -> Iterator[Line]:
    parts: list[tuple[Body, tuple[str, ...]]] = [
        *((card.body, CARD_LABELS) for card in document.cards),
        *((block.body, DETAIL_LABELS) for block in document.blocks),
    ]
    for body, labels in parts:
        for label, places in labelled(body, labels).items():
            for _, lines in places if label in _ADVICE else ():
                yield from map(_without_code, lines)


def _without_code(line: Line) -> Line:
    return Line(line.number, _CODE.sub(" ", line.text))


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?;])\s+", text)
