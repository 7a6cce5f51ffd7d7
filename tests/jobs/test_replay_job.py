"""A job's lanes, batches, executors and dropped keys change nothing; its memory is bounded."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_cases import (
    MEMORY,
    SMALL,
    WINDOW,
    Output,
    Rows,
    Streams,
    by_row,
    job,
    only,
    oracle,
    outputs_of,
    peak,
    stream,
    streams,
    table,
)
from places import PYTHONPATH

from engine.archives.roles import Roles
from engine.facts.access import DEFAULT_METHOD
from engine.jobs import frame
from engine.jobs.exact import key_totals as keys_module
from engine.jobs.frame import JobLanes
from engine.jobs.lane_stats import lane_stats
from engine.jobs.replay import lane_task
from engine.jobs.replay.run import run_replay
from engine.jobs.split import LaneModels, lane_budgets
from engine.lanes.manifest import Prepared
from engine.lanes.prepare import prepare
from engine.lanes.reader import lane_batches
from engine.lanes.stored import Stored
from engine.options.budget import Amount, Amounts, parse_amounts, split_budget
from engine.policies import POLICIES
from engine.runtime.executors import Executor, SerialExecutor, Stages, ThreadExecutor
from engine.value_model.summary import SUMMARISED

COMPARED = [
    name for name in sorted(POLICIES) if name not in {"custom", "age", "additive", "multiplicative"}
]
ESTIMATORS = ("memory", "window", "history")


def replayed(
    folder: Path, executor: Executor | None = None, **options: Any
) -> tuple[list[Output], dict[str, Any]]:
    """Replay into a new folder; return the outputs and the report."""
    out = folder / f"out-{next(COUNTER)}"
    report = run_replay(job(folder, out=out, **options), executor or SerialExecutor())
    return outputs_of(pq.read_table(out)), report.content


COUNTER = itertools.count()


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Streams:
    return streams(tmp_path_factory.mktemp("job"), seed=7, rows=300)


def budgets_of(prepared: Prepared, amounts: Amounts, policy: str) -> dict[int, tuple[int, int]]:
    """Return K of each lane by its number, from what its own files tell."""
    lanes = JobLanes(prepared, Stages(SerialExecutor()), DEFAULT_METHOD)
    pair = WINDOW, WINDOW
    stats = lane_stats(
        lanes.files, lanes.stages, windows=[pair], kinds=SUMMARISED, groups=lanes.groups
    )
    models = LaneModels(
        stats.profiles[pair], stats.summaries, (None, None), pair, peaks=stats.peaks[pair]
    )
    found = lane_budgets(amounts, lanes.groups, models, POLICIES[policy])
    return {lane.number: pair for lane, pair in zip(lanes.lanes, found, strict=True)}


def lanes_of(prepared: Prepared) -> Iterator[list[set[int]]]:
    """Yield the rows of left and right in each lane."""
    for lane in prepared.lanes:
        streams = [prepared.stream(lane.number, side) for side in (0, 1)]
        yield [set() if stream is None else rows_of(stream) for stream in streams]


def rows_of(stream: Stored) -> set[int]:
    with stream.open() as rows:
        return {row for batch in rows.batches(["_row"]) for row in batch["_row"].to_pylist()}


def cached(folder: Path, groups: int, lanes: int) -> Prepared:
    """Return the prepared lanes of the only job with so many."""
    found = [Prepared.load(path) for path in (folder / "cache").iterdir()]
    one, = (p for p in found if (p.groups, p.lanes_per_group) == (groups, lanes))  # fmt: skip
    return one


@pytest.mark.parametrize("memory", ["40", "50%"])
@pytest.mark.parametrize("policy", ["dgl", "simpprob", "rand", "additive"])
def test_every_lane_equals_its_own_replay(tmp_path: Path, memory: str, policy: str) -> None:
    sides = stream(80, 300, keys=12), stream(81, 300, keys=12)
    for name, rows in zip(("left", "right"), sides, strict=True):
        pq.write_table(table(rows), tmp_path / f"{name}.parquet")
    amounts = parse_amounts(memory, None, None)
    found, report = replayed(tmp_path, lanes=4, memory=amounts, policy=policy)
    prepared = cached(tmp_path, 1, 4)
    rows_of = list(lanes_of(prepared))
    own = [
        [only(rows, chosen) for rows, chosen in zip(sides, lane, strict=True)] for lane in rows_of
    ]
    budgets = budgets_of(prepared, amounts, policy)
    expected = []
    for number, lane in enumerate(own):
        left, right = budgets.get(number, (0, 0))
        expected += oracle(*lane, budget_left=left, budget_right=right, policy=policy)
    assert found == by_row(expected)
    assert sum(len(left) + len(right) > 0 for left, right in rows_of) > 1
    for side, name in enumerate(("left", "right")):
        half = 20 if memory == "40" else peak(sides[side]) // 2
        assert report["memory"][name] == sum(pair[side] for pair in budgets.values()) == half


def test_lanes_within_partitions_share_the_partitions_budget(tmp_path: Path) -> None:
    sides, groups = (stream(82, 300, keys=9), stream(83, 300, keys=9)), []
    for number, rows in enumerate(sides):
        group = np.random.default_rng(number).integers(0, 2, len(rows)).tolist()
        groups.append(group)
        name = ("left", "right")[number]
        pq.write_table(table(rows, g=group), tmp_path / f"{name}.parquet")
    roles = Roles(("k",), "t", "i", ("g",))
    found, report = replayed(tmp_path, lanes=2, left_roles=roles, right_roles=roles)
    prepared = cached(tmp_path, 2, 2)
    expected = []
    everything = list(lanes_of(prepared))
    budgets = budgets_of(prepared, SMALL["memory"], SMALL["policy"])
    for first in (0, 2):
        own = [
            [only(rows, chosen) for rows, chosen in zip(sides, lane, strict=True)]
            for lane in everything[first : first + 2]
        ]
        values = {groups[0][row] for lane in everything[first : first + 2] for row in lane[0]}
        assert len(values) == 1
        for number, lane in enumerate(own, start=first):
            left, right = budgets[number]
            expected += oracle(*lane, budget_left=left, budget_right=right)
    assert found == by_row(expected)
    assert report["memory"]["left"] == 2 * (MEMORY // 2)


def test_budgets_are_split_by_window_size() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        peaks = rng.integers(0, 50, int(rng.integers(1, 9))).tolist()
        tuples = int(rng.integers(0, 120))
        shares = split_budget(Amount(tuples), peaks)
        assert sum(shares) == (tuples if sum(peaks) or len(peaks) == 1 else 0)
        if sum(peaks) and len(peaks) > 1:
            exact = [tuples * p / sum(peaks) for p in peaks]
            assert all(abs(s - e) < 1 for s, e in zip(shares, exact, strict=True))


def small_batches(rows: int) -> Callable[..., Any]:
    def batches(left: Path | None, right: Path | None, **options: Any) -> Any:
        return lane_batches(left, right, batch_rows=rows, **options)

    return batches


@pytest.mark.parametrize("policy", COMPARED)
def test_executor_splits_and_batches_change_nothing(
    case: Streams, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, policy: str
) -> None:
    estimator = ESTIMATORS[COMPARED.index(policy) % 3]
    options = {"policy": policy, "lanes": 3, "estimator": estimator}
    expected, report = replayed(case.folder, **options)
    monkeypatch.setattr(lane_task, "lane_batches", small_batches(17))
    again, other = replayed(case.folder, ThreadExecutor(3), **options)
    assert again == expected
    assert same(other, report)

    def tiny_splits(*args: Any, cache: Path, **settings: Any) -> Prepared:
        return prepare(*args, folder=cache / "split", split_rows=23, **settings)

    monkeypatch.setattr(frame, "prepare_cached", tiny_splits)
    again, other = replayed(case.folder, cache=tmp_path, **options)
    assert again == expected
    assert same(other, report)


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Tell whether two reports say the same of everything but time and places; sums to 1e-12."""
    apart = {"seconds", "tuples_per_second", "out"}
    for name in a.keys() - apart:
        if not _same(a[name], b[name]):
            return False
    return a.keys() == b.keys()


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[name], b[name]) for name in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, float):
        return bool(a == pytest.approx(b, rel=1e-9, abs=1e-9))
    return bool(a == b)


def passing(seed: int, rows: int = 400) -> Rows:
    """Return a stream whose keys come and go, so that few of them are alive at a time."""
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.integers(0, 300, rows))
    keys = ts // 4 * 3 + rng.integers(0, 4, rows)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], rows)
    return list(zip(ts.tolist(), keys.tolist(), weights.tolist(), strict=True))


@pytest.fixture(scope="module")
def passing_case(tmp_path_factory: pytest.TempPathFactory) -> Streams:
    folder = tmp_path_factory.mktemp("passing")
    sides = passing(1), passing(2)
    for name, rows in zip(("left", "right"), sides, strict=True):
        pq.write_table(table(rows), folder / f"{name}.parquet")
    return Streams(*sides, folder)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"custom"}))
def test_dropped_keys_change_nothing(
    passing_case: Streams, monkeypatch: pytest.MonkeyPatch, policy: str, estimator: str
) -> None:
    drops = []
    true_keep = keys_module.KeyTable.keep

    def keep(self: Any, alive: Any) -> Any:
        drops.append(int(alive.size - alive.sum()))
        return true_keep(self, alive)

    params = {"curve": (1.0, 3.0, 2.0)} if policy == "age" else {}
    settings = {"policy": policy, "estimator": estimator, "parameters": params}
    before, report = replayed(passing_case.folder, **settings)
    monkeypatch.setattr(keys_module.KeyTable, "keep", keep)
    monkeypatch.setattr(keys_module, "IDLE", 4)
    monkeypatch.setattr(lane_task, "lane_batches", small_batches(9))
    after, other = replayed(passing_case.folder, **settings)
    assert after == before
    assert same(other, report)
    if estimator == "history":
        assert drops == []
    else:
        assert len(drops) > 5
        assert sum(drops) > 50
    if policy == "age":
        params = {f"curve_{side}": [1.0, 3.0, 2.0] for side in ("left", "right")}
    left, right = passing_case.left, passing_case.right
    assert after == oracle(left, right, policy=policy, estimator=estimator, params=params)


def test_payload_of_a_side_that_is_long_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [(t, 1, 1.0) for t in (0, 1, 2, 3, 18, 19)]
    right = [(t, 1, 1.0) for t in range(20)]
    for name, rows in (("left", left), ("right", right)):
        pq.write_table(
            table(rows, p=[f"{name} {t}" for t, *_ in rows]), tmp_path / f"{name}.parquet"
        )
    monkeypatch.setattr(lane_task, "lane_batches", small_batches(8))
    out = tmp_path / "out"
    run_replay(job(tmp_path, out=out, memory=(None, None)), SerialExecutor())
    written = pq.read_table(out)
    assert outputs_of(written) == oracle(left, right, budget_left=None, budget_right=None)
    for side, rows in (("left", left), ("right", right)):
        said = written.column(f"{side}_p").to_pylist()
        places = written.column(f"{side}_row").to_pylist()
        assert said == [f"{side} {rows[row][0]}" for row in places]


MEASURED = """
import resource, sys
from pathlib import Path
from job_cases import job
from engine.runtime.executors import SerialExecutor
from engine.jobs.replay.run import run_replay
folder = Path(sys.argv[1])
options = {"window_left": "2000", "window_right": "2000"}
small = folder.parent / "warm"
run_replay(job(small, out=small / "out", **options), SerialExecutor())
report = run_replay(job(folder, out=folder / "out", **options), SerialExecutor()).content
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, report["result"]["outputs"])
"""


def archive_of(folder: Path, rows: int) -> None:
    """Write two archives whose keys drift, a row a tick."""
    folder.mkdir()
    rng = np.random.default_rng(rows)
    for side in ("left", "right"):
        writer = None
        for begin in range(0, rows, 100_000):
            ts = np.arange(begin, min(begin + 100_000, rows))
            keys = rng.integers(0, 1000, ts.size) + ts // 10_000 * 500
            part = pa.table({"t": ts, "k": keys, "i": rng.random(ts.size), "p": ts.astype(str)})
            writer = writer or pq.ParquetWriter(folder / f"{side}.parquet", part.schema)
            writer.write_table(part)
        assert writer is not None
        writer.close()


def test_memory_is_that_of_the_windows_not_of_the_archive(tmp_path: Path) -> None:
    peaks = {}
    archive_of(tmp_path / "warm", 1_000)
    for name, rows in (("small", 150_000), ("large", 1_500_000)):
        archive_of(tmp_path / name, rows)
        done = subprocess.run(  # noqa: S603 - this interpreter, our own script
            [sys.executable, "-c", MEASURED, str(tmp_path / name)],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": PYTHONPATH},
        )
        (tmp_path / "warm" / "out").rename(tmp_path / f"{name} done")
        peaks[name], outputs = map(int, done.stdout.split())
        assert outputs > 100
    assert peaks["large"] < 1.2 * peaks["small"]
