"""An estimate through Spark is the estimate of the local engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from estimate_cases import JOIN, SEVERAL, large, linked_archives, several_archives

import winnow
from spark_plugin.executor import SparkExecutor


@pytest.mark.parametrize(
    "asked",
    [
        {"aggregates": SEVERAL, "within": "4%"},
        {"aggregates": SEVERAL, "within": 1e-6},
        {"memory": "20%", "policy": "prob", "within": "4%"},
        {"memory": "20%", "policy": "dgl", "split": "pooled", "within": 1e-6},
    ],
)
def test_spark_gives_the_same_estimate(spark: Any, tmp_path: Path, asked: dict[str, Any]) -> None:
    given: dict[str, Any] = {**large(tmp_path, rows=30_000), **JOIN, **asked}
    local = winnow.estimate(**given)
    distributed = winnow.estimate(**given, executor=SparkExecutor(spark))
    assert distributed.aggregates == local.aggregates
    for report in (local.report, distributed.report):
        del report["seconds"], report["exact"]["seconds"]
    assert distributed.report == local.report


@pytest.mark.parametrize("of", ["facts", "facts and a memory", "several streams"])
def test_spark_gives_the_same_estimate_through_facts_and_of_several_streams(
    spark: Any, tmp_path: Path, of: str
) -> None:
    several = of == "several streams"
    made = several_archives(tmp_path) if several else linked_archives(tmp_path)
    asked: dict[str, Any] = {"aggregates": SEVERAL}
    if several:
        asked = {"aggregates": ["count by b.g", "avg(a.v)"]}
    elif of == "facts and a memory":
        asked = {"memory": "20%", "policy": "prob"}
    given: dict[str, Any] = {**made, **asked, "read": "15%"}
    local = winnow.estimate(**given)
    distributed = winnow.estimate(**given, executor=SparkExecutor(spark))
    assert distributed.aggregates == local.aggregates
    for report in (local.report, distributed.report):
        assert report["how"] == "sample"
        del report["seconds"], report["exact"]["seconds"]
    assert distributed.report == local.report
