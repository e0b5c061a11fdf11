"""The loops of a looped model: of one pass, compared with each other, and how deep passes go."""

from __future__ import annotations

from trace_sql.database import Database
from trace_sql.errors import TraceSqlError
from trace_sql.literal import sql_string
from trace_sql.output import Column, Table
from trace_sql.reports import view_table

_MS = 3


def loop_tables(
    db: Database, trace_id: str, pass_no: int | None, phase: str | None = None
) -> list[Table]:
    """Return the loops of a pass, if one is named, then all loops compared and the exit depths.

    The last two are of `phase`, where that is given. Empty for a model whose passes visit each
    layer once. Raises TraceSqlError for a pass that the trace does not have, or that has no loops.
    """
    query = "select max(stack_no) from core_layers where trace_id = ?"
    stacks = db.query(query, [trace_id]).rows[0][0]
    if stacks is None:
        return []
    # Only cycles inside cycles have more than one stack of layers.
    stack = (Column("stack_no", "Stack"),) if stacks else ()
    compared = view_table(
        db,
        "loops_compared",
        "Loops of all complete passes, compared",
        (
            Column("label", "Phase"),
            *stack,
            Column("loop_no", "Loop"),
            Column("n_passes", "Passes"),
            Column("median_wall_ms", "Median(ms)", _MS),
            Column("min_wall_ms", "Min(ms)", _MS),
            Column("max_wall_ms", "Max(ms)", _MS),
            Column("ratio", "/Loop 0", 3),
            Column("least_layer_pct", "Least L%", 1),
            Column("most_layer_pct", "Most L%", 1),
            Column("notes", "Notes", wrap=True),
        ),
        "loop_comparison",
        trace_id,
        "kind, phase, stack_no, loop_no",
        _of(phase),
    )
    tables = [compared, *_depth_tables(db, trace_id, phase)]
    return tables if pass_no is None else [_pass_loops(db, trace_id, pass_no, stack), *tables]


def _pass_loops(db: Database, trace_id: str, pass_no: int, stack: tuple[Column, ...]) -> Table:
    table = view_table(
        db,
        "loops",
        f"Loops of pass {pass_no}",
        (
            *stack,
            Column("loop_no", "Loop"),
            Column("n_layers", "Layers"),
            Column("wall_ms", "Wall(ms)", _MS),
            Column("busy_ms", "Busy(ms)", _MS),
            Column("sum_dur_ms", "SumDur(ms)", _MS),
            Column("between_ms", "Between(ms)", _MS),
            Column("share_pct", "Pass%", 1),
            Column("n_activities", "K#"),
            Column("complete", "Whole"),
        ),
        "loop_table",
        trace_id,
        "stack_no, loop_no",
        f"pass_no = {pass_no:d}",
    )
    if not table.rows:
        raise TraceSqlError(f"pass {pass_no} has no loops; `trace-sql passes` lists the passes")
    return table


def _of(phase: str | None) -> str:
    return "true" if phase is None else f"phase = {sql_string(phase)}"


def _depth_tables(db: Database, trace_id: str, phase: str | None) -> list[Table]:
    kinds = (Column("kind", "Kind"), Column("phase", "Phase"))
    return [
        view_table(
            db,
            "exit_depths",
            "Depth of complete passes: runs of the layers that loop",
            (
                *kinds,
                Column("depth", "Depth"),
                Column("n_passes", "Passes"),
                Column("share_pct", "Passes%", 1),
            ),
            "exit_depths",
            trace_id,
            "kind, phase, depth",
            _of(phase),
        ),
        view_table(
            db,
            "exit_savings",
            "What ending before the full depth saves",
            (
                *kinds,
                Column("n_passes", "Passes"),
                Column("avg_depth", "Mean", 2),
                Column("p50_depth", "p50"),
                Column("p90_depth", "p90"),
                Column("min_depth", "Min"),
                Column("max_depth", "Max"),
                Column("full_depth", "Full"),
                Column("n_full", "At full"),
                Column("saving_pct", "Saved%", 1),
            ),
            "exit_savings",
            trace_id,
            "kind, phase",
            _of(phase),
        ),
    ]
