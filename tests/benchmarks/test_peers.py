"""`benchmarks/peers`: every engine answers as winnow does, and its tables say what was measured."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from places import BENCHMARKS, ROOT
from thorough import guarded


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that imports a module of the package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: importlib.import_module(f"peers.{name}")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("W2", "count"),
        ("W2", "pairs"),
        *guarded([("W3", "count")], "benchmarks/peers", "tests/benchmarks/test_peers.py"),
    ],
)
def test_all_queries_of_frames_and_sql_answer_alike(
    peers: Any, tmp_path: Path, name: str, what: str
) -> None:
    polars = pytest.importorskip("polars")
    pytest.importorskip("duckdb")
    work = peers("workloads").make(name, 0.005 if name == "W2" else 1.0, tmp_path)
    ours = peers("winnow_joins").queries(work, 1, what)["exact"]()
    assert ours[0] > 100
    threads = polars.thread_pool_size()
    for module in ("duckdb_sql", "polars_frames", "pandas_frames"):
        for query, ask in peers(module).queries(work, threads, what).items():
            outputs, value = ask()
            assert outputs == ours[0], (module, query)
            assert value == pytest.approx(ours[1], rel=1e-9), (module, query)


def test_a_query_that_takes_too_long_is_stopped_and_the_next_one_runs(
    peers: Any, tmp_path: Path
) -> None:
    worker = peers("worker")
    work = peers("workloads").make("W2", 0.005, tmp_path)
    engine = worker.Engine("pandas", work, 1, "count")
    with pytest.raises(worker.StoppedError, match=r"pandas, buckets.*: stopped after 0 s"):
        engine.run(engine.queries[0], 0.0)
    engine.end()
    asked = peers("run").Asked(work, "count", 1, 3, 60.0)
    exact = worker.Run(*peers("winnow_joins").queries(work, 1, "count")["exact"](), 1.0, 1.0, 1.0)
    engine, found = peers("run").first_runs(asked, "pandas", exact)
    engine.end()
    assert len(found) == len(work.widths)
    with pytest.raises(SystemExit, match=r"pandas, buckets.*, but winnow"):
        peers("run").first_runs(asked, "pandas", exact._replace(outputs=exact.outputs + 1))


def row(who: str, commit: str, **more: Any) -> dict[str, Any]:
    return {"workload": "W2", "what": "count", "who": who, "by": {"commit": commit}} | more


def test_what_is_measured_replaces_the_same_engines_rows_of_the_workload(peers: Any) -> None:
    merged = peers("run").merged
    first, second = {"commit": "a"}, {"commit": "b"}
    record = merged({"by": [], "rows": []}, [row("winnow", "a"), row("Polars", "a", query="x"),
                                             row("Polars", "a", query="y")], first)  # fmt: skip
    record = merged(record, [row("DuckDB", "a") | {"workload": "W1"}], first)
    assert record["by"] == [first]
    record = merged(record, [row("winnow", "b"), row("Polars", "b", query="z")], second)
    assert record["by"] == [first, second]
    found = [(own["workload"], own["who"], own.get("query"), own["by"]) for own in record["rows"]]
    assert found == [("W1", "DuckDB", None, 0), ("W2", "winnow", None, 1), ("W2", "Polars", "z", 1)]


def test_tables_tell_the_fastest_query_and_what_was_stopped(peers: Any) -> None:
    tables = peers("tables")
    own = {"tuples": 10, "outputs": 50, "value": 10.0, "cpu": 0.5, "mib": 9, "runs": 3}
    times = {"times": 1.0, "cpu_times": 1.0}
    rows = [
        row("winnow", "a", query="exact", seconds=0.25, **own, **times),
        row("Polars", "a", query="slow", seconds=0.1, **own | {"runs": 1}, **times),
        row("Polars", "a", query="quick", seconds=0.5, **own, times=2.0, cpu_times=3.0),
        row("pandas", "a", query="buckets", stopped=60.0, times=240.0),
    ]
    lines = tables.exact(rows).splitlines()[2:]
    assert lines == [
        "| W2, count: 50 outputs | winnow | exact | 0.25 | 1.0 | 0.5 | 1.0 | 9 | 4e-05 |",
        "|  | Polars | quick | 0.5 | 2.0 | 0.5 | 3.0 | 9 | 2e-05 |",
        "| | pandas | buckets | > 60 | > 240 | | | | |",
    ]
    assert "takes 2.0 times as long on W2, count" in tables.leads(rows)
    less = "winnow within less"
    rows.append(row(less, "a", query="5 % of the memory", seconds=1.0, **own, times=4.0))
    rows.append(row(less, "a", query="50 % of the memory", stopped=60.0, times=240.0))
    assert tables.approximate(rows).splitlines()[2:] == [
        "| W2 | 5 % of the memory | 1 | 4.0 | 9 | 1.000 | 1.000 |"
    ]
    assert [own.title for own in tables.charts(rows)] == [
        "W2: seconds, over winnow's", "Recall by memory, in percent of what the exact join needs",
    ]  # fmt: skip
    assert tables.beside(rows).splitlines()[2:] == [
        "| W2, count | 50 | 0.25 | 9 |  | 2.0 | > 240 |  |  |",
    ]
    assert tables.recalled(rows).splitlines() == [
        "| workload | of the | 5 % | times the exact join |",
        "|---|---|---:|---:|",
        "| W2 | memory | 1.00 / 1.00 | 4.0 to 4.0 |",
    ]
    from_files = row(less, "a", query="exact, from files", seconds=0.5, **own, times=2.0)
    assert tables.recalled([*rows, from_files]).endswith(
        "| W2 | memory | 1.00 / 1.00 | 2.0 to 2.0 |"
    )
    assert tables.approximate([*rows, from_files]).splitlines()[2:] == [
        "| W2 | 5 % of the memory | 1 | 2.0 | 9 | 1.000 | 1.000 |",
        "|  | exact, from files | 0.5 | 1.0 | 9 | 1.000 | 1.000 |",
    ]
    every = *peers("workloads").GENERATED, *peers("workloads").ARCHIVES
    assert tables.left_out(rows).splitlines() == [
        "- W2, count, pandas: stopped after 60 s: buckets.",
        f"- W2, count, {less}: stopped after 60 s: 50 % of the memory.",
        f"- Not measured: {', '.join(name for name in every if name != 'W2')}.",
        "- Not measured: DuckDB, Spark SQL, Spark streams.",
    ]


def test_the_page_tells_what_is_recorded(peers: Any) -> None:
    record = json.loads((BENCHMARKS / "results" / "peers.json").read_text())
    page = (ROOT / "docs" / "peers.md").read_text()
    for mark, text in peers("tables").marked(record).items():
        assert f"<!-- {mark} -->\n{text}\n<!-- end {mark} -->" in page, mark
