"""`python -m trace_sql` is the command `trace-sql`."""

from trace_sql.cli import main

main()
