"""Percentages of memory are of the whole join's peak, whatever its hash lanes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fact_job_cases
import numpy as np
import pyarrow.parquet as pq
import pytest
from job_cases import ROLES, WINDOW, peak, stream, streams, table

import winnow
from engine.archives.source import open_archive
from engine.facts.access import DEFAULT_METHOD
from engine.jobs.frame import JobLanes
from engine.jobs.lane_stats import lane_stats, peaks_of
from engine.lanes import joint
from engine.lanes import write as lanefiles
from engine.lanes.joint import joint_peaks, largest, merged, peaks_tasks
from engine.lanes.prepare import prepare
from engine.runtime.executors import SerialExecutor, Stages
from engine.runtime.streams import StreamBatch

JOIN: dict[str, Any] = {"on": "k", "time": "t", "importance": "i", "window": WINDOW}


@pytest.mark.parametrize("lanes", [1, 2, 16])
@pytest.mark.parametrize(("rows", "span"), [(200, 120), (200, 3), (150, 4000), (3, 5)])
def test_the_joint_peak_is_that_of_the_tuples(
    tmp_path: Path, lanes: int, rows: int, span: int
) -> None:
    case = streams(tmp_path, 3, rows, span=span, keys=9)
    sides = [open_archive(str(tmp_path / f"{name}.parquet"), name) for name in ("left", "right")]
    prepared = prepare(
        *sides, ROLES, ROLES, lanes=lanes, folder=tmp_path / "lanes", bad_rows="error",
        payload=False, executor=SerialExecutor(),
    )  # fmt: skip
    own = JobLanes(prepared, Stages(SerialExecutor()), DEFAULT_METHOD)
    windows = [(0, 1), (WINDOW, WINDOW), (5000, 2)]
    for _ in range(2):  # found, and read again
        stats = lane_stats(own.files, own.stages, windows=windows, groups=own.groups)
        for pair in windows:
            assert stats.peaks[pair] == [(peak(case.left, pair[0]), peak(case.right, pair[1]))]
            assert peaks_of(own, pair) == stats.peaks[pair][0]


@pytest.mark.parametrize("merges", [True, False])
@pytest.mark.parametrize(("rows", "span"), [(400, 900), (300, 40), (200, 4000)])
def test_slices_of_time_have_the_peaks_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, span: int, merges: bool
) -> None:
    case = streams(tmp_path, 3, rows, span=span, keys=9)
    monkeypatch.setattr(lanefiles, "PIECE_ROWS", 10**6 if merges else 1)
    monkeypatch.setattr(lanefiles, "GROUP_ROWS", 20)
    sides = [open_archive(str(tmp_path / f"{name}.parquet"), name) for name in ("left", "right")]
    prepared = prepare(
        *sides, ROLES, ROLES, lanes=3, folder=tmp_path / "lanes", bad_rows="error",
        payload=False, executor=SerialExecutor(), split_rows=30,
    )  # fmt: skip
    windows = [(0, 1), (3, 8)]
    wanted = {pair: (peak(case.left, pair[0]), peak(case.right, pair[1])) for pair in windows}
    files = JobLanes(prepared, Stages(SerialExecutor()), DEFAULT_METHOD).files
    monkeypatch.setattr(joint, "SLICE_ROWS", 40)
    tasks = peaks_tasks(files, windows)
    assert len(tasks) > 1 or span == 40
    assert largest(map(joint_peaks, tasks)) == wanted
    assert peaks_tasks(files, [(span, span)])[0].between is None or span == 40
    monkeypatch.setattr(joint, "_WINDOWS", 0)
    tasks = peaks_tasks(files, windows)
    assert len(tasks) > 3
    assert largest(map(joint_peaks, tasks)) == wanted


def test_streams_are_merged_whole_whatever_their_batches() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        ts = np.sort(rng.integers(0, 12, 40))
        lane, cuts = rng.integers(0, 4, 40), rng.integers(0, 5, 40)
        parts = []
        for one in range(4):
            own = ts[lane == one], ts[lane == one] + 100
            cut = np.sort(cuts[lane == one])
            batches = [
                StreamBatch(own[0][cut == i], own[0][:0], own[1][cut == i], np.zeros(0))
                for i in range(5)
            ]
            parts.append(iter(batches))
        found = list(merged(parts))
        whole = np.concatenate([batch.ts for batch in found])
        assert whole.tolist() == ts.tolist()
        assert np.concatenate([batch.key for batch in found]).tolist() == (ts + 100).tolist()


def test_merging_many_streams_does_not_take_the_square_of_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    none, steps, true = np.zeros(0, np.int64), [], joint._rows  # noqa: SLF001 - what is counted
    monkeypatch.setattr(joint, "_rows", lambda *given: (steps.append(1), true(*given))[1])
    looked_at = {}
    for number in (200, 800):
        parts = np.arange(2 * number).reshape(2, number).T
        batches = [[StreamBatch(np.array([ts]), none, none, none) for ts in own] for own in parts]
        steps.clear()
        found = [batch.ts for batch in merged([iter(own) for own in batches])]
        assert np.concatenate(found).tolist() == list(range(2 * number))
        looked_at[number] = len(steps)
    assert looked_at[800] < 8 * looked_at[200]


def memory_of(lanes: int, **options: Any) -> dict[str, Any]:
    left, right = (table(stream(seed, 300, keys=12)) for seed in (8, 9))
    report = winnow.replay(left, right, lanes=lanes, **(JOIN | options)).report
    return report["memory"] | {"peak": report["peak_memory"]}


@pytest.mark.parametrize("split", ["even", "expected", "pooled", "0.3"])
@pytest.mark.parametrize("policy", ["prob", "simp", "age", "recent"])
def test_a_percentage_is_the_same_memory_in_any_number_of_lanes(split: str, policy: str) -> None:
    one, four, many = (
        memory_of(lanes, policy=policy, memory="37%", split=split) for lanes in (1, 4, 16)
    )
    sides = [peak(stream(seed, 300, keys=12)) for seed in (8, 9)]
    total = sum(sides) * 37 // 100
    if split == "even":
        assert [one["left"], one["right"]] == [own * 37 // 100 for own in sides]
    else:
        assert one["both"] == total
    assert one["both"] == four["both"] == many["both"]
    if split not in ("expected", "pooled"):
        assert one["left"] == four["left"] == many["left"]
    assert many["peak"]["both"] <= one["both"]


def test_each_side_has_a_percentage_of_its_own_peak() -> None:
    given = {"memory_left": "20%", "memory_right": 7, "policy": "simp"}
    one, many = (memory_of(lanes, **given) for lanes in (1, 16))
    assert (one["left"], one["right"]) == (many["left"], many["right"])
    assert one["left"] == peak(stream(8, 300, keys=12)) * 20 // 100


def test_groups_have_a_memory_of_their_own_peak() -> None:
    sides = [stream(seed, 300, keys=12) for seed in (8, 9)]
    groups = [[i % 3 for i in range(len(own))] for own in sides]
    tables = [table(own, g=group) for own, group in zip(sides, groups, strict=True)]
    reports = [
        winnow.replay(
            *tables, lanes=lanes, partition_by="g", memory="50%", policy="prob", **JOIN
        ).report["memory"]
        for lanes in (1, 5)
    ]
    expected = [
        sum(peak([row for row, g in zip(own, group, strict=True) if g == i]) // 2 for i in range(3))
        for own, group in zip(sides, groups, strict=True)
    ]
    for report in reports:
        assert [report["left"], report["right"]] == expected


@pytest.mark.parametrize("split", ["even", "pooled"])
def test_a_percentage_is_the_same_memory_through_facts(split: str) -> None:
    one = fact_job_cases.parted(5)
    fact = fact_job_cases.fact_table(one.facts)
    found = [
        winnow.replay(
            *one.tables, fact=fact, memory="40%", policy="simp", split=split, lanes=lanes,
            **(fact_job_cases.JOIN | fact_job_cases.NAMES),
        ).report["memory"]
        for lanes in (1, 3, 50)
    ]  # fmt: skip
    assert found[0]["both"] > 3
    assert found == [found[0]] * 3


def test_sweeps_bounds_samples_and_profiles_have_the_same_base(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.parquet" for name in ("left", "right")]
    for path, seed in zip(paths, (8, 9), strict=True):
        pq.write_table(table(stream(seed, 300, keys=12)), path)
    sides = [peak(stream(seed, 300, keys=12)) for seed in (8, 9)]
    given = JOIN | {"cache": tmp_path / "cache"}
    grid = {"memory": "37%", "policies": "prob,simp", "splits": "even,pooled", "lanes": "1,16"}
    keys = {name: given[name] for name in ("on", "time", "importance", "cache")}
    rows = winnow.sweep(*paths, windows=str(WINDOW), **(keys | grid)).outputs.to_pylist()
    halves = [own * 37 // 100 for own in sides]
    assert {row["lanes"] for row in rows} == {1, 16}
    for row in rows:
        held = row["memory_left"] + row["memory_right"]
        assert held == (sum(sides) * 37 // 100 if row["split"] == "pooled" else sum(halves))
    for lanes in (1, 4):
        own = given | {"lanes": lanes}
        bound = winnow.bound(*paths, memory="37%", **own).report["memory"]
        assert bound["both"] == sum(sides) * 37 // 100
        fixed = winnow.bound(*paths, memory="37%", split="even", **own).report["memory"]
        assert [fixed["left"], fixed["right"]] == halves
        profile = winnow.profile(*paths, **own).profile
        assert [side.peak for side in profile.streams] == sides
        for method in ("bottom-k", "pps-cluster"):
            sampled = winnow.sample(*paths, memory="37%", method=method, **own).report["memory"]
            assert [sampled["left"], sampled["right"]] == halves
