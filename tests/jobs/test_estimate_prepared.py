"""Archives without order or statistics whose lanes were prepared: stretches of these are read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pc
import pytest
from estimate_cases import assert_exact, streams
from test_estimate_by_keys import JOIN, TEXTS, crowd, shuffled
from thorough import guards

import winnow
from engine.commands import main
from engine.jobs.estimate import prepared
from engine.lanes import parts, write
from engine.lanes.stored import RunPieces
from engine.runtime.executors import SerialExecutor, ThreadExecutor

EVERY = [*TEXTS, "count every 100"]


def prepare(cache: Path, given: dict[str, Any], *more: str) -> None:
    """Write the lanes of a join's archives."""
    named = ("left", "right", "on", "time", "importance", "partition_by")
    flags = [
        text
        for name in named
        if name in given
        for text in (f"--{name.replace('_', '-')}", given[name])
    ]
    words = ["prepare", *flags, "--engine", "local", "--cache", str(cache)]  # not Spark, if it runs
    assert main([*words, *more]) == 0


@pytest.mark.parametrize("kind", ["parquet", "csv", "sorted csv"])
@pytest.mark.parametrize("partitions", [False, True])
def test_everything_is_the_oracles(tmp_path: Path, kind: str, partitions: bool) -> None:
    tables = streams(3)
    if kind == "sorted csv":  # whose lanes are pieces of runs
        places = {side: str(tmp_path / f"{side}.csv") for side in ("left", "right")}
        for table, place in zip(tables, places.values(), strict=True):
            pc.write_csv(table, place)
    else:
        places = shuffled(tmp_path, tables, kind)
    given = {**places, "on": "k", "time": "t", "importance": "w"}
    given |= {"partition_by": "p"} if partitions else {}
    texts = ["count", "sum(importance)", "count every 100"]
    if kind == "sorted csv":
        prepare(tmp_path / "cache", given, "--columns", "ids")
    else:
        texts.append("count by left.g")
        prepare(tmp_path / "cache", given)
    found = winnow.estimate(
        **given, window_left=30, window_right=55, aggregates=texts, within=1e-6,
        cache=tmp_path / "cache",
    )  # fmt: skip
    assert found.report["lanes"].startswith(str(tmp_path / "cache"))
    keys = ("k", "p") if partitions else ("k",)
    assert set(found.aggregates) == set(texts)
    assert_exact(found.aggregates, tables, windows=(30, 55), keys=keys)


@guards("engine/jobs/estimate", "engine/sampling", "tests/jobs/test_estimate_prepared.py")
def test_a_part_of_the_lanes_holds_the_truth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "GROUP_ROWS", 50)
    given = {**shuffled(tmp_path, crowd(), "csv"), **JOIN, "window": 3}
    true = winnow.estimate(**given, aggregates=TEXTS[:3], within=1e-9)
    assert "lanes" not in true.report
    prepare(tmp_path / "cache", given)
    given["cache"] = tmp_path / "cache"
    held = Counter[str]()
    for seed in range(12):
        found = winnow.estimate(**given, aggregates=EVERY, read="30%", seed=seed)
        assert found.report["how"] == "sample"
        assert found.report["read"]["share"] < 0.4
        assert found.report["rows"] == true.report["rows"]
        for text in TEXTS[:3]:
            [line] = found.aggregates[text].to_pylist()
            wanted = true.aggregates[text]["estimate"][0].as_py()
            held[text] += line["low"] < wanted < line["high"]
    assert min(held.values()) >= 9  # of 12; of 240 seeds 95 % hold the sums, 93 % the average
    runs = [
        winnow.estimate(**given, aggregates=EVERY, read="30%", executor=executor)
        for executor in (SerialExecutor(), ThreadExecutor(3))
    ]
    assert runs[0].aggregates == runs[1].aggregates


def test_lanes_that_do_not_do_are_left(tmp_path: Path) -> None:
    given = {**shuffled(tmp_path, crowd(2000), "csv"), **JOIN, "within": 1e-6}
    prepare(tmp_path / "cache", given, "--columns", "ids")
    asked = {**given, "cache": tmp_path / "cache"}
    for more, used in (
        ({}, True),
        ({"aggregates": "avg(left.v)"}, False),  # they have no such column
        ({"sizes": "keys"}, False),
        ({"cache": tmp_path / "other"}, False),
        ({"importance": "v", "bad_rows": "quarantine"}, False),
    ):
        report = winnow.estimate(**{**asked, **more}).report
        assert ("lanes" in report) == used, more


def test_parts_of_runs_are_where_their_rows_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_ROWS", 70)
    [table, other] = streams(1)
    places = {side: str(tmp_path / f"{side}.csv") for side in ("left", "right")}
    for own, place in zip((table, other), places.values(), strict=True):
        pc.write_csv(own, place)
    given = {**places, "on": "k", "time": "t"}
    prepare(tmp_path / "cache", given, "--columns", "ids")
    [folder] = [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]
    stored = prepared.Prepared.load(folder).stream(0, 0)
    assert isinstance(stored, RunPieces)
    ts = np.array([t for t, k in zip(*(table.column(c).to_pylist() for c in "tk"), strict=True)
                   if k is not None])  # fmt: skip
    found = list(parts.parts_of(stored, [], [parts.IMPORTANCE]))
    assert len(found) > 3
    begin = 0
    for part in found:
        assert (part.first, part.last) == (ts[begin], ts[begin + part.rows - 1])
        assert np.isnan(part.ranges).tolist() == [[True, True]]  # runs have no statistics
        begin += part.rows
    assert begin == ts.size
