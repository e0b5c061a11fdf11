-- One row a stretch of anchors that is refused, with the reason for a person.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id   VARCHAR  -  the trace
-- pass_no    BIGINT   -  the pass it would be
-- first_hit  BIGINT   -  line_no of its first anchor
-- last_hit   BIGINT   -  line_no of its last anchor
-- reason     VARCHAR  -  counts, residue, nearest reading
select
    p.trace_id,
    p.pass_no,
    p.first_hit,
    p.last_hit,
    case
        when p.status <> 'refused' and c.first_wrong is not null
        then c.first_wrong || ' (' || c.n_with || ' of ' || c.n_slots || ' attention slots hold it)'
        when p.status <> 'refused'
        then
            c.n_frame_wrong
            || ' of '
            || c.n_framed
            || ' kernels lie in another layer than the python frame that launched them'
        when p.n_hits = p.n_expected and r.has_entry and p.n_entries <> 1
        then
            p.n_hits
            || ' anchors fit N='
            || p.n_layers
            || ', but '
            || p.n_entries
            || ' entry kernels open layer 0 where 1 is due'
        else
            p.n_hits
            || ' anchors where '
            || r.hits
            || ' with N='
            || p.n_layers
            || ' gives '
            || p.n_expected
            || ' (residue '
            || p.n_hits
            - p.n_expected
            || ')'
            || case
                when (p.n_hits - r.hits_extra) % r.hits_per_layer = 0
                then '; they would fit N=' || divide(p.n_hits - r.hits_extra, r.hits_per_layer)
                else '; they fit no whole layer count'
            end
    end as reason
from pass_windows as p
join boundary_rules as r using (rule_key)
left join pass_checks as c using (trace_id, pass_no)
where p.status = 'refused' or not c.consistent
