-- One row a distinct activity name that prepares the input of a step: copies from the host, index
-- and metadata kernels. It ends an epilogue where no launch tells.
-- grain: name
-- keep: yes
--
-- name  VARCHAR  -  name as the profiler wrote it
select distinct name
from activities
where
    {% for pattern in prepare_patterns %}
        regexp_matches(name, {{ pattern | quoted }}) or
    {% endfor %}
    false
