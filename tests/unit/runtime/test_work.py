"""What tasks tell, the bars that show it, and tasks that nobody waits for any more."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

import engine.runtime.work
from engine.runtime.executors import SerialExecutor, Stages, ThreadExecutor
from engine.runtime.work import UnwantedError, gauged, listening, rows_done, told

Told = list[tuple[str, int, int]]


def batches(rows: int) -> int:
    """Go through rows, a hundred at a time."""
    for _ in range(0, rows, 100):
        rows_done(100)
    return rows


def shown(rows: list[int], *, tells: bool = True) -> Told:
    seen: Told = []
    stages = Stages(SerialExecutor(), lambda *own: seen.append(own))
    assert stages.mapped("replay", batches, rows, rows, tells=tells) == rows
    return seen


def test_a_bar_moves_within_a_task() -> None:
    seen = shown([300, 500])
    assert seen[0] == ("replay", 0, 800)
    done = [own[1] for own in seen]
    assert done == sorted(done)
    assert set(done) == set(range(0, 900, 100))


def test_a_bar_of_tasks_that_tell_of_something_else_counts_tasks() -> None:
    assert {own[1:] for own in shown([300, 500], tells=False)} == {(0, 2), (1, 2), (2, 2)}


def test_rows_that_a_task_goes_through_again_do_not_move_a_bar_beyond_its_end() -> None:
    seen: Told = []
    stages = Stages(SerialExecutor(), lambda *own: seen.append(own))
    stages.mapped("count", lambda rows: batches(3 * rows), [200, 200], [200, 200])
    assert max(own[1] for own in seen) == seen[-1][1] == 400


def test_a_stage_shows_how_its_answer_stands() -> None:
    seen: Told = []

    def work(gap: int) -> None:
        told(f"gap {gap} %")

    Stages(SerialExecutor(), lambda *own: seen.append(own)).mapped("bound", work, [5, 2])
    assert [own[0] for own in seen] == ["bound", *["bound: gap 5 %"] * 2, *["bound: gap 2 %"] * 2]


def test_what_compiled_code_counts_is_told_while_it_runs() -> None:
    count, seen = np.zeros(1, np.int64), list[int]()
    with listening(lambda rows, _: seen.append(rows)), gauged(lambda: int(count[0])):
        for count[0] in range(1, 8):
            time.sleep(0.1)
    assert len(seen) > 1
    assert sum(seen) == 7


def test_many_short_blocks_are_read_by_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.runtime.work, "_READ_EVERY", 0.01)
    started: list[threading.Thread] = []

    class Counted(threading.Thread):
        def start(self) -> None:
            started.append(self)
            super().start()

    monkeypatch.setattr(threading, "Thread", Counted)
    heard: list[int] = []
    with listening(lambda rows, _: heard.append(rows)):
        for _ in range(200):
            with gauged(lambda: 0):
                pass
    assert len(started) < 20
    for thread in started:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize("why", [KeyboardInterrupt, ZeroDivisionError])
def test_other_tasks_end_when_they_next_tell_of_themselves(why: type[BaseException]) -> None:
    ended, begun = threading.Event(), threading.Event()

    def work(number: int) -> int:
        if number == 0:
            begun.wait(60)
            raise why
        begun.set()
        try:
            while True:
                rows_done(1)
        except UnwantedError:
            ended.set()
            raise

    with pytest.raises(why):
        list(ThreadExecutor(2).map(work, [0, 1]))
    assert ended.is_set()


def test_tasks_end_when_their_results_are_wanted_no_more() -> None:
    ended = threading.Event()

    def work(number: int) -> int:
        if number == 0:
            return 0
        try:
            while True:
                rows_done(1)
        except UnwantedError:
            ended.set()
            raise

    def some() -> Iterator[int]:
        yield from ThreadExecutor(2).map(work, [0, 1, 2, 3])

    found = some()
    assert next(found) == 0
    found.close()  # type: ignore[attr-defined]
    assert ended.is_set()
