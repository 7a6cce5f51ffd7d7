"""A sweep through Spark: its cells spread over tasks, and the lines of the local engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sweep_cases import FIGURES, drifting, steady, swept

from engine.jobs.sweep.cells import Cell, cost, deal
from engine.lanes.profile import LaneProfile, SideProfile
from engine.policies import POLICIES
from engine.replay.settings import ReplaySettings
from spark_plugin import submit
from spark_plugin.executor import SparkExecutor


class Watched(SparkExecutor):
    """As on a session of that many cores, remembering what was asked for."""

    def __init__(self, session: Any, width: int) -> None:
        super().__init__(session)
        self._width = width
        self.tasks: list[Any] = []

    def map(self, function: Any, items: Any) -> Any:
        """Run the tasks, and remember them."""
        chosen = list(items)
        self.tasks += [item for item in chosen if hasattr(item, "cells")]
        return super().map(function, chosen)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return drifting(tmp_path_factory.mktemp("spark"))


def test_estimated_cells_are_those_of_the_local_engine(spark: Any, tmp_path: Path) -> None:
    grid = {"policies": "prob,rand", "memory": "20%,50%", "windows": 4, "within": "20%"}
    steady(tmp_path, rows=20_000)
    local = swept(tmp_path, **grid)
    distributed = swept(tmp_path, SparkExecutor(spark), **grid)
    changing = ["seconds", "tuples_per_second"]
    assert local.report["estimated"] == distributed.report["estimated"]
    assert local.report["estimated"][0]["why"] is None
    assert distributed.table.drop(changing) == local.table.drop(changing)


@pytest.mark.parametrize(
    ("width", "tasks", "options"),
    [
        (3, 3, {"lanes": 1, "windows": "4,9"}),
        (2, 3, {"partition_by": "g", "windows": "9,0,30,4"}),
    ],
)
def test_any_number_of_tasks_gives_the_lines_of_the_local_engine(
    spark: Any, folder: Path, width: int, tasks: int, options: dict[str, Any]
) -> None:
    grid = {"policies": "rand,dgl,age,simp,yield", "memory": "4,50%", "seeds": "0,1"} | options
    executor = Watched(spark, width)
    local = swept(folder, **grid)
    distributed = swept(folder, executor, **grid)
    assert distributed.table.select(FIGURES).equals(local.table.select(FIGURES))
    assert len(executor.tasks) >= tasks
    lanes = {task.files.lane for task in executor.tasks}
    for lane in lanes:
        mine = [task for task in executor.tasks if task.files.lane == lane]
        numbers = sorted(cell.number for task in mine for cell in task.cells)
        assert numbers == list(range(distributed.table.num_rows))
        sizes = [len(task.cells) for task in mine]
        assert max(sizes) - min(sizes) <= 3


def test_splits_estimators_and_lanes_give_the_lines_of_the_local_engine(
    spark: Any, folder: Path
) -> None:
    grid: dict[str, Any] = {
        "policies": "prob,age,yield", "memory": "9,30%", "splits": ["even", "expected", 0.8],
        "estimators": "window,history", "lanes": [1, 3], "targets": {"recall": 0.3},
    }  # fmt: skip
    local, distributed = swept(folder, **grid), swept(folder, SparkExecutor(spark), **grid)
    columns = [*FIGURES, "cell", "split", "estimator", "lanes"]
    assert distributed.table.select(columns).equals(local.table.select(columns))
    assert distributed.advice[0].check == local.advice[0].check
    assert local.advice[0].check is not None


def test_the_command_line_sweeps_on_spark_with_nothing_installed(
    spark: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sweep", "--on=k", "--time=t", "--importance=i", "--windows=9", "--engine=spark"]
    words += ["--policies=dgl,simp", "--memory=25%:100%:25%", "--target=recall=0.5"]
    words += [f"--{side}={folder / side}.parquet" for side in ("left", "right")]
    words += [f"--cache={folder / 'cache'}", f"--out={folder / 'out'}"]
    assert submit.main(words) == 0
    shown = capsys.readouterr()
    assert "cheapest" in shown.out
    assert not shown.err
    written = pq.read_table(folder / "out" / "sweep.parquet")
    expected = swept(folder, policies="dgl,simp", memory="25%:100%:25%").table
    assert written.select(FIGURES).equals(expected.select(FIGURES))
    assert spark.version


def cells_of(policies: list[str]) -> list[Cell]:
    side = SideProfile(1000, 0, 999, 400, 1.0)
    return [
        Cell(
            20 * i + j, ReplaySettings(9, 9, policy=policy), (j * 10, j * 10),
            LaneProfile(side, side),
        )
        for i, policy in enumerate(policies)
        for j in range(20)
    ]  # fmt: skip


@pytest.mark.parametrize("groups", [1, 3, 7, 16])
def test_cells_are_dealt_into_groups_that_take_as_long(groups: int) -> None:
    cells = cells_of([name for name in POLICIES if name != "custom"])
    dealt = deal(cells, groups)
    assert sorted(cell.number for group in dealt for cell in group) == list(range(len(cells)))
    costs = [sum(map(cost, group)) for group in dealt]
    assert len(dealt) == groups
    assert max(costs) - min(costs) <= 1.5
    slow = deal(cells_of(["custom", "dgl"]), 4)
    costs = [sum(map(cost, group)) for group in slow]
    assert max(costs) < 1.2 * min(costs)
