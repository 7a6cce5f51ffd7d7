"""What is found out of prepared lanes is kept beside them, and is what a pass finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from job_cases import job, streams

from engine.executors import SerialExecutor
from engine.job.budget import parse_amounts
from engine.job.kept import profiled, summarised
from engine.job.lane_task import LaneFiles, ProfileTask, profile_lane
from engine.job.run import run_replay
from engine.job.stages import Stages
from engine.job.worth_task import WorthTask, file_worths
from engine.models.worth import SUMMARISED
from engine.policies import Worth

T = TypeVar("T")
R = TypeVar("R")


class Noting(SerialExecutor):
    """Notes which functions ran on how many items."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, int]] = []

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``function(item)`` for every item, in order."""
        own = list(items)
        if own:
            self.ran.append((function.__name__, len(own)))
        return super().map(function, own)


def replay(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Return a replay's report, but for times, and the functions that ran."""
    executor = Noting()
    options = job(folder, lanes=2, memory=parse_amounts("20%", None, None))
    content = run_replay(options, executor).content
    for name in ("seconds", "tuples_per_second"):
        content.pop(name, None)
    return content, [name for name, _ in executor.ran]


@pytest.fixture
def files(tmp_path: Path) -> list[LaneFiles]:
    """Return the lanes of archives that were replayed once."""
    streams(tmp_path, seed=3, rows=400)
    replay(tmp_path)
    lanes = sorted((tmp_path / "cache").glob("*/lane-*"))
    return [
        LaneFiles(i, lane / "left.parquet", lane / "right.parquet") for i, lane in enumerate(lanes)
    ]


def test_the_second_replay_looks_no_more(tmp_path: Path) -> None:
    streams(tmp_path, seed=3, rows=400)
    first, ran = replay(tmp_path)
    assert {"profile_lane", "file_worths"} <= set(ran)
    second, ran = replay(tmp_path)
    assert ran == ["replay_lane"]
    assert second == first


def test_what_is_kept_is_what_a_pass_finds(files: list[LaneFiles]) -> None:
    for windows in ((5, 9), (9, 5)):
        tasks = [ProfileTask(one, windows) for one in files]
        fresh = [profile_lane(task) for task in tasks]
        assert profiled(tasks, SerialExecutor(), Stages()) == fresh
        noting = Noting()
        assert profiled(tasks, noting, Stages()) == fresh
        assert not noting.ran
    for kinds in (list(SUMMARISED), [Worth.COUNT], [Worth.VALUE]):
        fresh_worths = [file_worths(WorthTask(one, tuple(kinds))) for one in files]
        for _ in range(2):
            noting = Noting()
            kept = summarised(files, kinds, noting, Stages())
            assert repr(kept) == repr(fresh_worths)
        assert not noting.ran


def test_only_what_is_missing_or_broken_is_found_out_again(files: list[LaneFiles]) -> None:
    tasks = [ProfileTask(one, (7, 7)) for one in files]
    fresh = profiled(tasks, SerialExecutor(), Stages())
    (place,) = files[1].folder.glob("profile-7-7-*.json")
    for content in ("", "[[1, 2", "[[1, 2, 3], []]", "7"):
        place.write_text(content)
        noting = Noting()
        assert profiled(tasks, noting, Stages()) == fresh
        assert noting.ran == [("profile_lane", 1)]


def test_lanes_that_cannot_be_written_are_looked_at_again(
    files: list[LaneFiles], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "write_text", refuse)
    tasks = [ProfileTask(one, (3, 3)) for one in files]
    for _ in range(2):
        noting = Noting()
        assert profiled(tasks, noting, Stages()) == [profile_lane(task) for task in tasks]
        assert noting.ran == [("profile_lane", len(files))]
