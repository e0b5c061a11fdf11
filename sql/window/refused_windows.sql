-- One row a stretch of anchors that is refused, with the reason for a person. A cut pass shows no
-- count of its own: where whole passes contradict the layer count and none holds, it falls too.
-- Where words bound passes, no draft holds without a whole pass of the model.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id   VARCHAR  -  the trace
-- pass_no    BIGINT   -  the pass it would be
-- first_hit  BIGINT   -  line_no of its first anchor
-- last_hit   BIGINT   -  line_no of its last anchor
-- reason     VARCHAR  -  counts, residue, nearest reading
with
    judged as (
        select
            p.trace_id,
            p.pass_no,
            p.first_hit,
            p.last_hit,
            p.status,
            p.is_draft and r.confidence = 'words' as is_draft,
            p.status = 'refused' or not c.consistent as is_wrong,
            case
                when p.status <> 'refused'
                then c.wrong
                when not p.opened and not p.closed
                then p.n_hits || ' anchors of a pass with neither begin nor end in the trace'
                when r.confidence = 'words' and not p.opened
                then p.n_hits || ' anchors of a pass whose begin is not in the trace'
                when p.opened and p.n_hits = p.n_expected and r.has_entry
                then
                    p.n_hits
                    || ' anchors fit N='
                    || p.n_layers
                    || ', but '
                    || p.n_entries
                    || ' kernels before them can open layer 0, which is '
                    || if(p.n_entries = 0, 'none', 'not as many as other layers tell')
                else
                    p.n_hits
                    || ' anchors where '
                    || r.hits
                    || ' with N='
                    || p.n_layers
                    || if(n.is_loop, ' and ' || p.depth || ' loops', '')
                    || ' gives '
                    || p.n_expected
                    || ' (residue '
                    || p.n_hits
                    - p.n_expected
                    || ')'
                    || '; '
                    || n.nearest
            end as reason
        from pass_windows as p
        join boundary_rules as r using (rule_key)
        left join pass_checks as c using (trace_id, pass_no)
        join nearest_readings as n on n.trace_id = p.trace_id and n.pass_no = p.pass_no
    ),

    supported as (
        select
            trace_id,
            bool_or(status = 'complete' and not is_wrong) as has_whole,
            bool_or(status = 'complete' and not is_wrong and not is_draft) as has_target,
            arg_min(reason, pass_no) filter (is_wrong) as first_reason
        from judged
        group by trace_id
    )

select
    j.trace_id,
    j.pass_no,
    j.first_hit,
    j.last_hit,
    case
        when j.is_wrong
        then j.reason
        when j.is_draft
        then 'fewer layers than N, and no whole pass holds' || coalesce(': ' || s.first_reason, '')
        else 'cut, and no whole pass holds: ' || s.first_reason
    end as reason
from judged as j
join supported as s using (trace_id)
where
    j.is_wrong
    or (not s.has_whole and s.first_reason is not null)
    or (j.is_draft and not s.has_target)
