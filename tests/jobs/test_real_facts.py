"""Real archives through a relation that changes: exact counts as DuckDB's SQL has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from options_given import job_of
from test_real_archives import DATA, pytestmark  # noqa: F401 - skips where there are no archives
from thorough import repeats

from engine.jobs.replay.run import run_replay
from engine.runtime.executors import ThreadExecutor
from spark_plugin.executor import SparkExecutor

DAY, MINUTE = 86_400, 60_000_000


class Star(NamedTuple):
    """Two streams by their attributes, what joins them by its own, and W."""

    left: tuple[str, str]
    right: tuple[str, str]
    fact: tuple[str, str, str]
    window: int
    importance: str

    def paths(self, folder: Path = DATA) -> tuple[str, str, str]:
        """Return the three archives in a folder."""
        left, right, fact = (
            str(folder / f"{name}.parquet") for name in (self.left[0], self.right[0], self.fact[0])
        )
        return left, right, fact

    def told(self, fact: str, **more: Any) -> Any:
        """Return the keywords of a replay."""
        return {
            "left_on": self.left[1], "right_on": self.right[1], "time": "ts",
            "importance": self.importance, "window": self.window, "columns": "ids",
            "fact": fact, "fact_left": self.fact[1], "fact_right": self.fact[2],
        } | more  # fmt: skip


STARS = {
    "bpi2020": Star(
        ("bpi2020/permit_submitted", "key"), ("bpi2020/declaration_paid", "key"),
        ("bpi2020/declaration_submitted", "key", "decl"), 180 * DAY, "importance",
    ),
    "bpi2020 trips": Star(
        ("bpi2020/trip_end", "key"), ("bpi2020/declaration_paid", "key"),
        ("bpi2020/declaration_submitted", "key", "decl"), 180 * DAY, "importance",
    ),
    "gcluster": Star(
        ("gcluster/submit", "key"), ("gcluster/end", "machine"),
        ("gcluster/schedule", "key", "machine"), MINUTE, "priority",
    ),
}  # fmt: skip
CHANGES: dict[str, dict[str, Any]] = {
    "static": {},
    "begins": {"fact_begin": "ts", "fact_id": "ts"},
    "ends": {"fact_end": "ts", "fact_id": "ts"},
}
"""Facts for good; from their event on; up to it."""
EXACT = {
    ("bpi2020", "static"): (5_670, 3_975_873.4835836887),
    ("gcluster", "static"): (8_737_937, 567_898.0),
    ("gcluster", "begins"): (8_070_331, 922_827.0),
}
"""DuckDB's, which takes a minute or two for gcluster."""


def sql(star: Star, change: str, folder: Path = DATA) -> tuple[int, float]:
    """Return outputs and importance of the exact join by DuckDB."""
    left, right, fact = star.paths(folder)
    a, b = star.fact[1:]
    begin, end = ("ts" if change == name else "NULL::BIGINT" for name in ("begins", "ends"))
    query = f"""
        SELECT count(*), coalesce(sum(least(l.{star.importance}, r.{star.importance})), 0)
        FROM '{left}' l
        JOIN (SELECT DISTINCT {a} a, {b} b, {begin} since, {end} until FROM '{fact}') f
          ON f.a = l.{star.left[1]}
        JOIN '{right}' r ON f.b = r.{star.right[1]}
        WHERE (r.ts - l.ts BETWEEN 0 AND {star.window} OR l.ts - r.ts BETWEEN 1 AND {star.window})
          AND (since IS NULL OR since <= least(l.ts, r.ts))
          AND (until IS NULL OR until > greatest(l.ts, r.ts))
    """  # noqa: S608 - our own paths and numbers
    outputs, importance = duckdb.sql(query).fetchall()[0]
    return int(outputs), float(importance)


@pytest.mark.filterwarnings("ignore:the exact join of left")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["bpi2020", "bpi2020 trips"])
def test_exact_counts_are_duckdbs(tmp_path: Path, name: str, change: str) -> None:
    star = STARS[name]
    left, right, fact = star.paths()
    job = job_of(left, right, None, tmp_path, star.told(fact, **CHANGES[change]))
    found = run_replay(job, ThreadExecutor(1)).content["exact"]
    outputs, importance = sql(star, change)
    assert (found["outputs"], found["importance"]) == (outputs, pytest.approx(importance))
    if (name, change) in EXACT:
        assert outputs == EXACT[name, change][0]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("bpi2020", "static"),
        ("gcluster", "begins"),
        *repeats([("bpi2020", "begins"), ("gcluster", "static")]),
    ],
)
def test_through_spark(spark: Any, tmp_path: Path, name: str, change: str) -> None:
    star = STARS[name]
    left, right, fact = star.paths()
    told = star.told(fact, memory="10%", policy="simpprob", **CHANGES[change])
    found = run_replay(job_of(left, right, None, tmp_path, told), SparkExecutor(spark)).content
    exact = found["exact"]["outputs"], found["exact"]["importance"]
    assert exact == pytest.approx(EXACT.get((name, change)) or sql(star, change))
    assert found["result"]["importance"] <= exact[1] * (1 + 1e-12)
    assert found["peak_memory"]["left"] <= found["memory"]["left"]


@pytest.mark.parametrize("change", CHANGES)
def test_the_first_rows_of_gcluster_as_duckdb_joins_them(tmp_path: Path, change: str) -> None:
    star = STARS["gcluster"]
    (tmp_path / "gcluster").mkdir()
    until = pq.read_table(star.paths()[0]).column("ts")[40_000].as_py()
    for source, target in zip(star.paths(), star.paths(tmp_path), strict=True):
        table: pa.Table = pq.read_table(source)
        pq.write_table(table.filter(pa.compute.less(table.column("ts"), until)), target)
    left, right, fact = star.paths(tmp_path)
    job = job_of(left, right, None, tmp_path / "lanes", star.told(fact, **CHANGES[change]))
    found = run_replay(job, ThreadExecutor(1)).content["exact"]
    outputs, importance = sql(star, change, tmp_path)
    assert (found["outputs"], found["importance"]) == (outputs, pytest.approx(importance))
    assert outputs
