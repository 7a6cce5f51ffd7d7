"""Exact joins of winnow beside those of other engines, and winnow's joins within less memory.

`workloads.py` makes the streams. Each of `duckdb_sql.py`, `polars_frames.py`, `pandas_frames.py`,
`spark_joins.py` and `winnow_joins.py` has `queries`, which returns by name the ways in which that
engine counts a workload. `worker.py` runs them, each engine in a process of its own, `run.py` all
in turn, and `tables.py` tells what came of it.
"""
