"""Speed, memory and growth of the command line, as a table: `python -m tests.benchmarks`."""
