"""Reports: which rows of which views a command shows, and under which headings."""

from __future__ import annotations

from typing import Any

from trace_sql.database import Database, Result
from trace_sql.errors import RefusedError, TraceSqlError
from trace_sql.output import Column, Table

_PASSES = "from pass_table where trace_id = ? order by pass_no"
_LAYERS = "from layer_table where trace_id = ? and pass_no = ? order by loop_no, layer_no"
_MS = 3
_S = 6


def trace_table(db: Database) -> Table:
    """Return the traces of the session."""
    columns = (
        Column("trace_id", "Id"),
        Column("name", "Name", wrap=True),
        Column("run", "Run"),
        Column("rank", "Rank"),
        Column("world_size", "Of"),
        Column("gpu", "GPU", wrap=True),
        Column("n_events", "Events"),
        Column("n_device_events", "Device"),
        Column("span_ms", "Span(ms)", _MS),
        Column("tags", "Tags", wrap=True),
    )
    chosen = ", ".join(c.key for c in columns).replace("span_ms", "span_ns / 1e6 as span_ms")
    rows = db.query(f"select {chosen} from traces order by run, name, trace_id").rows
    return Table("traces", "", columns, rows)


def pass_table(
    db: Database, trace_id: str, phase: str | None = None, *, full: bool = False
) -> Table:
    """Return all passes, or those of a phase: cold start, growth, steady state.

    `full` adds what a line of a terminal has no room for: kind, requests, and how they are known.
    Raises TraceSqlError where no pass is of `phase`.
    """
    passes = db.query(_PASSES, [trace_id])
    widest = passes.only("n_tokens", "end_s", "label")
    told = any(n_tokens is not None for n_tokens, _, _ in widest)
    # Headings fold where long numbers or words would make the table too wide.
    tight = any(
        (n_tokens or 0) >= 10000 or (end_s or 0) >= 10 or len(label or "") > 7
        for n_tokens, end_s, label in widest
    )
    columns = (
        Column("pass_no", "Fwd#"),
        Column("start_s", "Start(s)", _S),
        Column("end_s", "End(s)", _S),
        Column("duration_ms", "Duration(ms)", _MS),
        Column("avg_layer_ms", "Avg Layer(ms)", _MS, wrap=tight),
        Column("first_layer_ms", "First Layer(ms)", _MS, wrap=tight),
        Column("phase" if full else "label", "Phase"),
        *((Column("n_tokens", "Tok"),) if told or full else ()),
        *(_PASS_DETAILS if full else ()),
        Column("notes", "Notes", wrap=True),
    )
    rows = passes.only(*(column.key for column in columns))
    table = Table("passes", "Forward passes", columns, rows)
    return _of_phase(db, trace_id, table, phase)


_PASS_DETAILS = (
    Column("phase_source", "Phase from"),
    Column("kind", "Kind"),
    Column("kind_source", "Kind from"),
    Column("batch_size", "Requests"),
    Column("n_context_requests", "Prefill requests"),
    Column("n_context_tokens", "Prefill tokens"),
    Column("n_generation_requests", "Decode requests"),
    Column("n_generation_tokens", "Decode tokens"),
)


def chosen_pass(
    db: Database, trace_id: str, pass_no: int | None, phase: str | None
) -> tuple[int, str]:
    """Return the pass to report and why.

    A given number must exist and not be refused. Without one it is the first stable pass, of
    `phase` where that is given. Raises RefusedError where several passes are complete and none is
    stable, TraceSqlError for a pass or phase that does not exist.
    """
    if pass_no is not None:
        return pass_no, _named(db, trace_id, pass_no)
    passes = db.query(
        "select pass_no, status, coalesce(phase, 'unknown') as phase, kind from passes"
        " where trace_id = ? order by pass_no",
        [trace_id],
    ).rows
    _require_phase(phase, {own for _, _, own, _ in passes})
    usable = [row for row in passes if row[1] != "refused" and phase in (None, row[2])]
    # What drafts for a model is not what is asked about, unless nothing else is there.
    of_model = [row for row in usable if row[3] == "target"] or usable
    whole = [row for row in of_model if row[1] == "complete"]
    numbers = {row[0] for row in whole}
    steady = db.query(
        "select kind, phase, pass_no from steady_passes where trace_id = ? order by pass_no",
        [trace_id],
    ).rows
    for kind, own, number in steady:
        if number in numbers:
            return int(number), _why_steady(db, trace_id, kind, own, number)
    of_phase = f"{phase} " if phase else ""
    if len(whole or of_model) == 1:
        only = (whole or of_model)[0]
        which = f"complete {of_phase}pass" if whole else f"{of_phase}pass, and it is cut"
        return int(only[0]), f"no steady state, it is the only {which}"
    raise RefusedError(
        f"no steady state among {len(whole)} complete {of_phase}passes (layer 0 within 5 % twice in"
        " a row); choose one with --pass, `trace-sql passes` lists them"
    )


def _named(db: Database, trace_id: str, pass_no: int) -> str:
    """Return why a pass is reported that was named; raises where that cannot be."""
    last = db.query("select max(pass_no) from passes where trace_id = ?", [trace_id]).rows[0][0]
    query = "select status, evidence from passes where trace_id = ? and pass_no = ?"
    rows = db.query(query, [trace_id, pass_no]).rows if 0 <= pass_no <= last else []
    if not rows:
        raise TraceSqlError(f"no pass {pass_no}; the trace has passes 0 to {last}")
    status, evidence = rows[0]
    if status == "refused":
        raise RefusedError(f"pass {pass_no} is refused: {evidence}")
    return "chosen with --pass"


def _why_steady(db: Database, trace_id: str, kind: str, phase: str, pass_no: int) -> str:
    changes = db.query(
        "select change_pct from pass_changes where trace_id = ? and kind = ? and phase = ?"
        " and pass_no <= ? order by pass_no desc limit 2",
        [trace_id, kind, phase, pass_no],
    ).rows
    shown = ", ".join(f"{change:+.1f} %" for (change,) in reversed(changes))
    of_phase = "" if phase == "unknown" else f"{phase} "
    return f"first steady {of_phase}pass, layer 0 changed by at most 5 % twice in a row ({shown})"


def _require_phase(phase: str | None, phases: set[str]) -> None:
    if phase is not None and phase not in phases:
        known = ", ".join(sorted(phases))
        raise TraceSqlError(f"no pass of phase {phase!r}; this trace has {known}")


def _of_phase(db: Database, trace_id: str, table: Table, phase: str | None) -> Table:
    """Return the rows of `table`, one a pass, whose pass is of `phase`."""
    if phase is None:
        return table
    phases = dict(
        db.query(
            "select pass_no, coalesce(phase, 'unknown') from passes where trace_id = ?", [trace_id]
        ).rows
    )
    _require_phase(phase, set(phases.values()))
    at = [column.key for column in table.columns].index("pass_no")
    rows = [row for row in table.rows if phases[row[at]] == phase]
    return Table(table.key, table.title, table.columns, rows)


def layer_tables(db: Database, trace_id: str, pass_no: int) -> list[Table]:
    """Return the layers of a pass and their clusters by type, with the profile's columns."""
    labels = _labels(db, trace_id)
    values = _by_key(
        db.query(
            "select loop_no, layer_no, label, sum_dur_ms from layer_column_table"
            " where trace_id = ? and pass_no = ?",
            [trace_id, pass_no],
        )
    )
    found = db.query(_LAYERS, [trace_id, pass_no])
    looped = any(loop_no for (loop_no,) in found.only("loop_no"))
    chosen = ("loop_no", "layer_no", "compress_ratio", "layer_type", "wall_ms", "sum_dur_ms")
    rows = found.only(*chosen, "n_comm", "n_activities", "complete")
    layers = Table(
        "layers",
        f"Layers of pass {pass_no}",
        (
            *((Column("loop_no", "Loop"),) if looped else ()),
            Column("layer_no", "L"),
            Column("compress_ratio", "c_r"),
            Column("layer_type", "Type", wrap=True),
            Column("wall_ms", "Wall(ms)", _MS),
            Column("sum_dur_ms", "SumDur(ms)", _MS),
            *(Column(f"{_key(label)}_ms", label, _MS, part=True) for label in labels),
            Column("n_comm", "AR#"),
            Column("n_activities", "K#"),
        ),
        [
            (
                *((loop_no,) if looped else ()),
                layer_no,
                ratio,
                kind if complete else f"{kind} (cut)",
                wall,
                total,
                *(values.get((loop_no, layer_no, label), 0.0) for label in labels),
                n_comm,
                n_activities,
            )
            for loop_no, layer_no, ratio, kind, wall, total, n_comm, n_activities, complete in rows
        ],
    )
    return [layers, _cluster_table(db, trace_id, pass_no, labels)]


def _cluster_table(db: Database, trace_id: str, pass_no: int, labels: list[str]) -> Table:
    values = _by_key(column_shares(db, trace_id, pass_no))
    rows = db.query(
        "select layer_type, n_layers, avg_wall_ms, avg_sum_dur_ms, wall_share_pct"
        " from cluster_table where trace_id = ? and pass_no = ? order by wall_share_pct desc",
        [trace_id, pass_no],
    ).rows
    return Table(
        "clusters",
        f"Layer clusters of pass {pass_no}",
        (
            Column("layer_type", "Cluster", wrap=True),
            Column("n_layers", "#"),
            Column("avg_wall_ms", "Avg Wall(ms)", _MS),
            Column("avg_sum_dur_ms", "Avg Sum(ms)", _MS),
            Column("wall_share_pct", "Wall%", 1),
            *(Column(f"{_key(label)}_pct", f"{label}%", 1, part=True) for label in labels),
        ),
        [(*row, *(values.get((row[0], label), 0.0) for label in labels)) for row in rows],
    )


def perfetto_tables(
    db: Database,
    trace_id: str,
    pass_no: int | None,
    layers: list[int],
    phase: str | None = None,
) -> list[Table]:
    """Return where passes, and layers of a pass, stand on the Perfetto UI's time axis.

    No `layers` means all. Raises TraceSqlError for a layer or phase that is not there.
    """
    columns = (
        Column("pass_no", "Fwd#"),
        Column("start_s", "Start(s)", 9),
        Column("end_s", "End(s)", 9),
        Column("duration_ms", "Duration(ms)", _MS),
        Column("phase", "Phase"),
    )
    rows = db.query(_PASSES, [trace_id]).only(*(column.key for column in columns))
    title = "Passes, in seconds from the Perfetto UI's zero"
    passes = _of_phase(db, trace_id, Table("passes", title, columns, rows), phase)
    if pass_no is None:
        return [passes]
    found = db.query(_LAYERS, [trace_id, pass_no])
    looped = any(loop_no for (loop_no,) in found.only("loop_no"))
    columns = (
        *((Column("loop_no", "Loop"),) if looped else ()),
        Column("layer_no", "L"),
        Column("compress_ratio", "c_r"),
        Column("layer_type", "Type", wrap=True),
        Column("start_s", "Start(s)", 9),
        Column("end_s", "End(s)", 9),
        Column("wall_ms", "Wall(ms)", _MS),
    )
    rows = found.only(*(column.key for column in columns))
    if layers:
        rows = [row for row in rows if row[1 if looped else 0] in layers]
    title = f"Layers of pass {pass_no}, in seconds from the Perfetto UI's zero"
    ranges = Table("layers", title, columns, rows)
    missing = sorted(set(layers) - {row[1 if looped else 0] for row in ranges.rows})
    if missing:
        raise TraceSqlError(
            f"pass {pass_no} has no layer {', '.join(map(str, missing))};"
            f" `trace-sql layers --pass {pass_no}` lists them"
        )
    return [passes, ranges]


def column_shares(db: Database, trace_id: str, pass_no: int) -> Result:
    """Return layer type, label and percent of the columns of a pass's clusters, largest first."""
    return db.query(
        "select layer_type, label, share_pct from cluster_column_table"
        " where trace_id = ? and pass_no = ? order by share_pct desc nulls last, label",
        [trace_id, pass_no],
    )


def _labels(db: Database, trace_id: str) -> list[str]:
    """Columns in which the trace spends time; the last one, the rest, is always there."""
    rows = db.query(
        "select label from column_times where trace_id = ? and sum_dur_ns > 0 order by position",
        [trace_id],
    ).rows
    return [*(label for (label,) in rows if label != "Other"), "Other"]


def _by_key(result: Result) -> dict[tuple[Any, ...], Any]:
    return {row[:-1]: row[-1] for row in result.rows}


def _key(label: str) -> str:
    return label.lower().replace(" ", "_")


def view_table(
    db: Database,
    key: str,
    title: str,
    columns: tuple[Column, ...],
    view: str,
    trace_id: str,
    order: str,
    condition: str = "true",
) -> Table:
    """Return the columns of `view` for one trace; `order` and `condition` are SQL of ours."""
    chosen = ", ".join(column.key for column in columns)
    sql = f"select {chosen} from {view} where trace_id = ? and {condition} order by {order}"
    return Table(key, title, columns, db.query(sql, [trace_id]).rows)
