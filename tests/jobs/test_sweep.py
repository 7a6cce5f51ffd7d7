"""A sweep: every cell is its own replay, whatever the others, the threads and the lanes are."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from job_cases import streams
from replay_cases import cumulative, remaining
from sweep_cases import FIGURES, alone, assert_cells_are_replays, drifting, swept

from engine.jobs.replay import lane_task
from engine.jobs.sweep import layout, task
from engine.jobs.sweep import shared_batches as feed
from engine.jobs.sweep.broadcast_pool import MOST_BATCHES, BroadcastPool
from engine.lanes.reader import lane_batches
from engine.policies import POLICIES
from engine.replay.lane import LaneReplay
from engine.runtime.executors import SerialExecutor, ThreadExecutor
from engine.runtime.key_table import KeyTable
from engine.runtime.warned import WinnowWarning

EVERY = [name for name in POLICIES if name != "custom"]
GRIDS: dict[str, dict[str, Any]] = {
    "every policy": {"policies": EVERY, "memory": "3,12,40", "seeds": "0:2"},
    "window estimator": {"policies": EVERY, "estimators": "window", "windows": "9,0,30"},
    "history estimator": {"policies": EVERY, "estimators": "history", "memory": "4,50%"},
    "after admission": {
        "policies": "dgl,prob,rand",
        "probe": "after_admission",
        "memory": "10%:100%:30%",
        "windows": [4, 20],
    },
    "lanes": {"policies": "dgl,age,simp", "lanes": 3, "memory": "11,30%", "windows": "5,9"},
    "groups": {
        "policies": "dimpprob,rand,age",
        "partition_by": "g",
        "lanes": 2,
        "memory": "8,60%",
        "estimators": "window",
    },
    "combine and start": {
        "policies": "simpprob,recent",
        "combine": "product",
        "start_ts": 60,
        "memory": "0,1,7,999",
    },
}


def small_batches(rows: int) -> Any:
    def batches(left: Any, right: Any, **options: Any) -> Any:
        return lane_batches(left, right, **options | {"batch_rows": rows})

    return batches


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return drifting(tmp_path_factory.mktemp("sweep"))


@pytest.mark.parametrize("name", GRIDS)
def test_every_cell_equals_its_own_replay(folder: Path, name: str) -> None:
    grid = GRIDS[name]
    found = swept(folder, **grid)
    shared = {
        option: value
        for option, value in grid.items()
        if option not in {"policies", "memory", "windows", "seeds", "estimators", "lanes"}
    }
    assert_cells_are_replays(folder, found, {}, **shared)
    lines = found.table.to_pylist()
    assert len({tuple(line[name] for name in FIGURES) for line in lines}) > len(lines) // 3
    assert [line["cell"] for line in lines] == list(range(len(lines)))


def test_parameters_reach_their_policies_alone(folder: Path) -> None:
    curve = (1.0, 3.0, 2.0)
    given = {
        "alpha": 2.0, "dgl.beta": 0.25, "age_curve": curve, "ties": "importance", "prob.ties": "ts",
        "function": remaining, "A": 2, "multiplicative.A": 0.5,
    }  # fmt: skip
    own = {
        "dgl": {"alpha": 2.0, "beta": 0.25},
        "age": {"curve": curve},
        "prob": {"ties": "ts"},
        "custom": {"function": remaining, "ties": "importance"},
        "additive": {"A": 2, "ties": "importance"},
        "multiplicative": {"A": 0.5, "ties": "importance"},
    }
    found = swept(folder, policies=list(own), memory=[4, 12], params=given)
    assert_cells_are_replays(folder, found, own)
    said = {line["policy"]: line["parameters"] for line in found.table.to_pylist()}
    assert '"function": "replay_cases:remaining"' in said["custom"]
    assert '"alpha": 2.0' in said["dgl"]


def test_a_function_of_ones_own_is_swept(folder: Path) -> None:
    params = {"custom": {"function": cumulative}}
    found = swept(
        folder, policies="custom,dgl", memory="25%:100%:25%", params={"function": cumulative}
    )
    assert_cells_are_replays(folder, found, params)


@pytest.mark.parametrize("policies", [EVERY, ["rand", "dgl"]])  # AGE's curves count exactly too
@pytest.mark.parametrize("estimator", ["memory", "window", "history"])
def test_forgotten_keys_change_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, estimator: str, policies: list[str]
) -> None:
    grid = {"policies": policies, "windows": "2,8,1", "estimators": estimator, "memory": "6,50%"}
    before = swept(folder, **grid).table
    kept: list[int] = []
    true_keep = KeyTable.keep

    def keep(self: Any, alive: Any) -> Any:
        kept.append(int(alive.size - alive.sum()))
        return true_keep(self, alive)

    monkeypatch.setattr(KeyTable, "keep", keep)
    monkeypatch.setattr(feed, "IDLE", 4)
    monkeypatch.setattr(feed, "lane_batches", small_batches(13))
    monkeypatch.setattr(lane_task, "lane_batches", small_batches(13))
    after = swept(folder, **grid).table
    assert after.select(FIGURES).equals(before.select(FIGURES))
    if estimator == "history":
        assert not kept
    else:
        assert len(kept) > 3
        assert sum(kept) > 30


@pytest.mark.parametrize(
    ("policies", "most", "spares"),
    [("dgl,age,rand", 10**6, True), ("dgl,rand,simp", 10**6, None), ("dgl,age,rand", 9, None)],
)
def test_one_kernel_serves_a_sweep_of_many_kinds_of_policies(
    folder: Path, monkeypatch: pytest.MonkeyPatch, policies: str, most: int, spares: bool | None
) -> None:
    """It takes as long to compile as those of three kinds, which replay long lanes faster."""
    monkeypatch.setattr(layout, "TUPLES", most)
    given: set[bool | None] = set()
    made = task.LaneReplay

    def noted(*arguments: Any, **options: Any) -> LaneReplay:
        given.add(options.get("spares", spares))
        return made(*arguments, **options)

    monkeypatch.setattr(task, "LaneReplay", noted)
    swept(folder, policies=policies)
    assert given == {spares}


def test_only_policies_that_draw_are_replayed_by_seed(folder: Path) -> None:
    lines = swept(folder, policies="rand,dgl", memory="20%", seeds="5,7,-1").table.to_pylist()
    assert [(line["policy"], line["seed"]) for line in lines] == [
        ("rand", 5), ("rand", 7), ("rand", -1), ("dgl", None),
    ]  # fmt: skip
    assert len({line["importance"] for line in lines[:3]}) == 3
    assert alone(folder, lines[1], {})["importance"] == lines[1]["importance"]


def test_percentages_are_of_each_windows_own_peak(folder: Path) -> None:
    lines = swept(folder, policies="simp", memory="100%", windows="3,40").table.to_pylist()
    short, long = lines
    assert short["memory_left"] < long["memory_left"]
    assert all(line["recall"] == 1.0 for line in lines)
    assert all(line["peak_memory"] == line["memory_left"] + line["memory_right"] for line in lines)


@pytest.mark.parametrize("executor", [SerialExecutor(), ThreadExecutor(1), ThreadExecutor(7)])
def test_threads_change_nothing(folder: Path, executor: Any) -> None:
    grid = {"policies": "dgl,rand,age", "memory": "5,20%", "partition_by": "g", "windows": "4,9"}
    expected = swept(folder, ThreadExecutor(2), **grid).table.select(FIGURES)
    assert swept(folder, executor, **grid).table.select(FIGURES).equals(expected)


def test_cells_that_do_not_fit_together_take_several_passes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = {"policies": "dgl,rand", "memory": "2,4,8,16", "windows": "4,9"}
    expected = swept(folder, **grid).table.select(FIGURES)
    passes: list[int] = []
    true = task.replay_cells

    def counted(files: Any, cells: Any, *rest: Any) -> Any:
        passes.append(len(cells))
        return true(files, cells, *rest)

    monkeypatch.setattr(task, "replay_cells", counted)
    monkeypatch.setattr(task, "half_of_memory", lambda: 40_000)
    assert swept(folder, **grid).table.select(FIGURES).equals(expected)
    assert sum(passes) == 16
    assert len(passes) > 1


def test_a_lane_is_read_and_its_keys_interned_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, pushes = [], []
    true_push = LaneReplay.push

    def batches(left: Any, right: Any) -> Any:
        read.append((left, right))
        return lane_batches(left, right)

    def push(self: Any, *args: Any) -> Any:
        pushes.append(self.settings.policy)
        return true_push(self, *args)

    monkeypatch.setattr(feed, "lane_batches", batches)
    monkeypatch.setattr(LaneReplay, "push", push)
    swept(folder, policies="dgl,simp,rand", memory="10%:100%:10%", windows="4,9")
    assert len(read) == 1
    assert pushes.count("simp") == 20


@pytest.mark.filterwarnings("ignore:the exact join of left")
def test_no_rows_are_no_cells_lost(tmp_path: Path) -> None:
    nothing = streams(tmp_path, rows=1).folder
    with pytest.warns(WinnowWarning, match="50% of the 1 tuple that .* is none: give 100% or more"):
        found = swept(nothing, policies="dgl,age,rand", memory="50%", windows="0,5")
    assert all(line["recall"] == 1.0 for line in found.table.to_pylist())
    assert found.table.num_rows == 6


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_pool_gives_every_batch_to_every_state_in_order(threads: int) -> None:
    seen: list[list[int]] = [[] for _ in range(9)]
    inside = [threading.Lock() for _ in seen]
    held: list[int] = []

    def state(number: int) -> Any:
        def take(batch: int) -> None:
            assert inside[number].acquire(blocking=False)
            np.sort(np.arange(200 * (number % 4)))
            seen[number].append(batch)
            inside[number].release()

        return take

    def batches() -> Any:
        for batch in range(25):
            held.append(batch - min(len(one) for one in seen))
            yield batch

    with BroadcastPool([state(number) for number in range(len(seen))], threads) as pool:
        for batch in batches():
            pool.publish(batch)
    assert seen == [list(range(25))] * len(seen)
    assert max(held) <= MOST_BATCHES


@pytest.mark.parametrize("where", ["state", "batches"])
def test_a_pool_raises_what_went_wrong_and_stops(where: str) -> None:
    def take(batch: int) -> None:
        if where == "state" and batch == 3:
            raise ValueError("batch 3 is bad")

    def batches() -> Any:
        for batch in range(1000):
            if where == "batches" and batch == 3:
                raise ValueError("batch 3 is bad")
            yield batch

    def run() -> None:
        with BroadcastPool([take, lambda _: None], 2) as pool:
            for batch in batches():
                pool.publish(batch)

    before = threading.active_count()
    with pytest.raises(ValueError, match="batch 3 is bad"):
        run()
    assert threading.active_count() == before
