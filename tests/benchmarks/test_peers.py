"""`benchmarks/peers`: every engine answers as winnow does, and its tables say what was measured."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from places import BENCHMARKS


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that imports a module of the package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: importlib.import_module(f"peers.{name}")


@pytest.mark.parametrize("what", ["count", "pairs"])
@pytest.mark.parametrize("name", ["W2", "W3"])
def test_all_queries_of_frames_and_sql_answer_alike(
    peers: Any, tmp_path: Path, name: str, what: str
) -> None:
    polars = pytest.importorskip("polars")
    pytest.importorskip("duckdb")
    work = peers("workloads").make(name, 0.005 if name == "W2" else 1.0, tmp_path)
    if what == "pairs" and len(work.files) > 2:
        pytest.skip("pairs are of two streams")
    ours = peers("winnow_joins").queries(work, 1, what)["exact"]()
    assert ours[0] > 100
    threads = polars.thread_pool_size()
    for module in ("duckdb_sql", "polars_frames", "pandas_frames"):
        for query, ask in peers(module).queries(work, threads, what).items():
            outputs, value = ask()
            assert outputs == ours[0], (module, query)
            assert value == pytest.approx(ours[1], rel=1e-9), (module, query)
