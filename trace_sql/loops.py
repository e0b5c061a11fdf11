"""Models that visit their layers more than once a pass: prelude, core in cycles, coda."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from trace_sql.config import Config
from trace_sql.formula import Formula

NORMS = ("every", "last", "end")
"""Where the final norm runs: behind every run of the core; behind the core's last run of a pass,
and behind the coda again; once, at the end of the pass."""


@dataclass(frozen=True)
class LoopRule:
    """How to read a family's loops from its config; the formulas count layers and cycles."""

    prelude: tuple[Formula, ...]
    coda: tuple[Formula, ...]
    core: tuple[Formula, ...]
    runs: tuple[Formula, ...]
    depth: tuple[Formula, ...]
    varies: Formula | None
    norm: str
    norm_once: Formula | None


class Visit(NamedTuple):
    """One visit of a layer: a row of `trace_visits` without its trace."""

    part: str
    """prelude, core or coda; the core's visits are those of one cycle."""
    position: int
    """0-based within the part."""
    layer_no: int
    loop_no: int
    """0-based visit of the layer within one cycle."""
    loops: int
    """Visits of the layer in one cycle."""
    norm_behind: bool
    """Whether a final norm runs behind this visit."""
    last_only: bool
    """Whether it does so in the last cycle of a pass alone."""


@dataclass(frozen=True)
class Loops:
    """The order of a pass: `prelude` layers, `core` layers `runs` times a cycle, `coda` layers.

    `depth` counts the cycles; None: the runtime decides. `varies`: the runtime may take another
    depth than the config names, pass by pass.
    """

    prelude: int
    core: int
    coda: int
    runs: int
    depth: int | None
    depth_source: str
    varies: bool
    norm: str

    @property
    def visits_per_pass(self) -> int | None:
        if self.depth is None:
            return None
        return self.prelude + self.core * self.runs * self.depth + self.coda

    def visits(self) -> Iterator[Visit]:
        """Return the visits of prelude, one cycle of the core, and coda, in order."""
        for position in range(self.prelude):
            yield Visit("prelude", position, position, 0, 1, False, False)
        for position in range(self.core * self.runs):
            run, layer = divmod(position, self.core)
            every = layer == self.core - 1 and self.norm == "every"
            at_end = position == self.core * self.runs - 1
            last = at_end and not every and (self.norm == "last" or not self.coda)
            yield Visit(
                *("core", position, self.prelude + layer, run, self.runs, every or last, last)
            )
        for position in range(self.coda):
            behind = position == self.coda - 1
            layer = self.prelude + self.core + position
            yield Visit("coda", position, layer, 0, 1, behind, False)


def read_loops(rule: LoopRule | None, config: Config, count: int) -> Loops | None:
    """Return the loops of a config of `count` layers; None where every layer runs once.

    Raises BadInputError where the parts do not add up to the layers, or a count is impossible.
    """
    if rule is None:
        return None

    def number(formulas: tuple[Formula, ...], default: int) -> int:
        values = (formula.number(config.get, count) for formula in formulas)
        return next((value for value in values if value is not None), default)

    prelude, coda = number(rule.prelude, 0), number(rule.coda, 0)
    core, runs = number(rule.core, count - prelude - coda), number(rule.runs, 1)
    if min(prelude, coda) < 0 or min(core, runs) < 1 or prelude + core + coda != count:
        raise config.error(
            f"{prelude} layers before, {core} in and {coda} behind the loop are not the model's "
            f"{count} layers"
        )
    named = ((formula, formula.number(config.get, count)) for formula in rule.depth)
    source, depth = next(
        ((formula.text, value) for formula, value in named if value is not None),
        ("run time", None),
    )
    if depth is not None and depth < 1:
        raise config.error(f"{source} is {depth}: a loop runs at least once")
    if depth == 1 and runs == 1 and not coda:
        return None
    once = rule.norm_once is not None and rule.norm_once.holds(config.get)
    varies = depth is None or (rule.varies is not None and rule.varies.holds(config.get))
    norm = "end" if once else rule.norm
    return Loops(prelude, core, coda, runs, depth, source, varies, norm)
