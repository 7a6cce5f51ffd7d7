"""What is found out of prepared lanes is kept beside them, and is what a pass finds."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from job_cases import Noting, job, streams

from engine.exact.stream import ExactStream
from engine.exact.unexpired import LiveKeys
from engine.facts.access import DEFAULT_METHOD
from engine.jobs import lane_stats as stats_module
from engine.jobs.exact import key_totals as keys
from engine.jobs.frame import JobLanes
from engine.jobs.lane_stats import StatsTask, lane_stats, profile_of, stats_of_lane
from engine.jobs.replay import lane_task
from engine.jobs.replay.run import run_replay
from engine.lanes import reader
from engine.lanes.manifest import Prepared
from engine.lanes.reader import LaneFiles, streamed
from engine.options.budget import parse_amounts
from engine.policies import ValueKind
from engine.runtime.executors import Executor, SerialExecutor, Stages, ThreadExecutor
from engine.runtime.streams import StreamBatch
from engine.value_model.summary import SUMMARISED


def replay(folder: Path, **options: Any) -> tuple[dict[str, Any], list[str]]:
    """Return a replay's report, but for times, and the functions that ran."""
    executor = Noting()
    asked = {"lanes": 2, "memory": parse_amounts("20%", None, None)} | options
    content = run_replay(job(folder, **asked), executor).content
    for name in ("seconds", "tuples_per_second"):
        content.pop(name, None)
    return content, [name for name, _ in executor.ran]


@pytest.fixture
def files(tmp_path: Path) -> list[LaneFiles]:
    """Return the lanes of archives that were replayed once."""
    streams(tmp_path, seed=3, rows=400)
    replay(tmp_path)
    (folder,) = (tmp_path / "cache").iterdir()
    prepared = Prepared.load(folder)
    return JobLanes(prepared, Stages(SerialExecutor()), DEFAULT_METHOD).files


def profiled(files: list[LaneFiles], windows: tuple[int, int], executor: Executor) -> Any:
    """Return the lanes' profiles."""
    return lane_stats(files, Stages(executor), windows=[windows]).profiles[windows]


def test_the_second_replay_finds_all_statistics_in_the_cache(tmp_path: Path) -> None:
    streams(tmp_path, seed=3, rows=400)
    first, ran = replay(tmp_path)
    assert "stats_of_lane" in ran
    second, ran = replay(tmp_path)
    assert ran == ["replay_lane"]
    assert second == first


def test_what_is_kept_is_what_a_pass_finds(files: list[LaneFiles]) -> None:
    for windows in ((5, 9), (9, 5)):
        fresh = [profile_of(one, windows) for one in files]
        assert profiled(files, windows, SerialExecutor()) == fresh
        noting = Noting()
        assert profiled(files, windows, noting) == fresh
        assert not noting.ran
    for kinds in (list(SUMMARISED), [ValueKind.COUNT], [ValueKind.VALUE]):
        live = ((5, 9),)
        tasks = [StatsTask(one, (), tuple(kinds), live) for one in files]
        summaries = [stats_of_lane(task).summaries for task in tasks]
        for _ in range(2):
            noting = Noting()
            kept = lane_stats(files, Stages(noting), windows=live, kinds=kinds)
            assert repr(kept.summaries) == repr(summaries)
        assert not noting.ran


def test_both_sides_of_a_lane_are_read_at_once_where_threads_are_idle(
    files: list[LaneFiles], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = [profile_of(files[0], (5, 9))]
    both = threading.Barrier(2, timeout=20)

    def together(*given: Any) -> Any:
        both.wait()
        return streamed(*given)

    monkeypatch.setattr(stats_module, "streamed", together)
    assert profiled(files[:1], (5, 9), ThreadExecutor(2)) == alone


def test_one_pass_finds_all_that_is_missing(files: list[LaneFiles]) -> None:
    pairs, kinds = [(5, 9), (9, 5), (5, 9)], (ValueKind.VALUE, ValueKind.COUNT)
    profiled(files, (9, 5), SerialExecutor())
    noting = Noting()
    stats = lane_stats(files, Stages(noting), windows=pairs, kinds=kinds)
    assert noting.ran == [("stats_of_lane", len(files))]
    for pair in pairs:
        assert stats.profiles[pair] == [profile_of(one, pair) for one in files]
    live = (5, 9), (9, 5)
    summaries = [stats_of_lane(StatsTask(one, (), kinds, live)).summaries for one in files]
    assert repr(stats.summaries) == repr(summaries)
    noting = Noting()
    again = lane_stats(files, Stages(noting), windows=pairs[:2], kinds=kinds)
    assert not noting.ran
    assert repr(again) == repr(stats)


@pytest.mark.parametrize("held", [0, 100, 500])
def test_lanes_too_long_to_be_held_are_read_again(
    files: list[LaneFiles], monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    task = [StatsTask(one, ((5, 9),), SUMMARISED) for one in files]
    whole = [stats_of_lane(one) for one in task]
    read: list[tuple[str, ...]] = []

    def noting(stored: Any, columns: Any) -> Any:
        read.append(tuple(columns))
        return streamed(stored, columns)

    monkeypatch.setattr(stats_module, "HELD", held)
    monkeypatch.setattr(stats_module, "streamed", noting)
    assert repr([stats_of_lane(one) for one in task]) == repr(whole)
    rows = [sum(side.rows for side in one.profiles[5, 9]) for one in whole]
    assert len(read) == 2 * len(files) + 2 * sum(own > held for own in rows)


def test_only_what_is_missing_or_broken_is_found_out_again(files: list[LaneFiles]) -> None:
    fresh = profiled(files, (7, 7), SerialExecutor())
    (place,) = files[1].folder.glob("profile-7-7-*.json")
    for content in ("", "[[1, 2", "[[1, 2, 3], []]", "7"):
        place.write_text(content)
        noting = Noting()
        assert profiled(files, (7, 7), noting) == fresh
        assert noting.ran == [("stats_of_lane", 1)]


def test_lanes_that_cannot_be_written_are_read_again_by_every_job(
    files: list[LaneFiles], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "write_text", refuse)
    for _ in range(2):
        noting = Noting()
        found = profiled(files, (3, 3), noting)
        assert found == [profile_of(one, (3, 3)) for one in files]
        assert noting.ran == [("stats_of_lane", len(files))]


OTHERS: list[dict[str, Any]] = [
    {"policy": "rand"},
    {"policy": "simpprob", "estimator": "history"},
    {"policy": "prob", "probe": "after_admission"},
    {"memory": parse_amounts("7", None, None)},
    {"memory": parse_amounts(None, "3", "50%")},
]
"""What replays ask for in whose windows the exact join was counted before."""


@pytest.fixture
def few_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drop ids, and merge their counts, at every turn."""
    monkeypatch.setattr(keys, "IDLE", 1)
    monkeypatch.setattr(reader, "BATCH_ROWS", 16)
    monkeypatch.setattr(lane_task, "lane_batches", partial(reader.lane_batches, batch_rows=16))


@pytest.mark.parametrize("dropping", [False, True])
def test_other_replays_say_what_they_say_without_an_exact_join_counted_before(
    tmp_path: Path, dropping: bool, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if dropping:
        request.getfixturevalue("few_idle")
    streams(tmp_path, seed=4, rows=900, span=700, keys=60)
    alone = []
    for number, options in enumerate(OTHERS):
        alone.append(replay(tmp_path, cache=tmp_path / f"own-{number}", **options)[0])
    first, _ = replay(tmp_path)
    assert len(first["lost"]["top_keys"]) > 5
    monkeypatch.setattr(ExactStream, "push", None)  # nothing is counted again
    assert replay(tmp_path)[0] == first
    for options, expected in zip(OTHERS, alone, strict=True):
        assert replay(tmp_path, **options)[0] == expected


def test_what_another_exact_join_came_to_is_not_taken_for_it(tmp_path: Path) -> None:
    streams(tmp_path, seed=5, rows=400)
    replay(tmp_path)
    for options in (
        {"window_left": "3"}, {"window_right": "4"}, {"combine": "sum"}, {"start_ts": "60"},
    ):  # fmt: skip
        fresh, _ = replay(tmp_path, cache=tmp_path / "-".join([*options, "cache"]), **options)
        assert replay(tmp_path, **options)[0] == fresh


def test_an_exact_join_is_counted_whatever_is_kept(tmp_path: Path) -> None:
    streams(tmp_path, seed=5, rows=400)
    exact, _ = replay(tmp_path, memory=(None, None))
    kept = replay(tmp_path)[0]["exact"]
    assert kept == exact["exact"]
    for place in tmp_path.glob("cache/*/lane-*/exact-*.npz"):
        place.write_bytes(b"")
    assert replay(tmp_path, memory=(None, None))[0] == exact


@pytest.mark.parametrize("rest", [0, 10, -30])
def test_a_broken_file_of_an_exact_join_is_written_again(tmp_path: Path, rest: int) -> None:
    streams(tmp_path, seed=6, rows=400)
    first, _ = replay(tmp_path)
    places = sorted(tmp_path.glob("cache/*/lane-*/exact-*.npz"))
    assert len(places) == 2
    whole = [place.read_bytes() for place in places]
    for place in places:
        place.write_bytes(place.read_bytes()[:rest])
    assert replay(tmp_path)[0] == first
    assert [len(place.read_bytes()) for place in places] == [len(one) for one in whole]


def test_an_exact_join_whose_file_seems_encrypted_is_counted_again(tmp_path: Path) -> None:
    streams(tmp_path, seed=6, rows=400)
    first, _ = replay(tmp_path)
    (place, *_) = sorted(tmp_path.glob("cache/*/lane-*/exact-*.npz"))
    content = bytearray(place.read_bytes())
    content[content.index(b"PK\1\2") + 8] |= 0x40
    place.write_bytes(content)
    assert replay(tmp_path)[0] == first


@pytest.mark.parametrize("content", ["[1]", "null", "{}", '"x"', '{"count": {}}', '{"x": [1]}'])
def test_what_is_kept_of_lanes_and_is_of_another_form_is_found_out_again(
    tmp_path: Path, content: str
) -> None:
    streams(tmp_path, seed=6, rows=400)
    first, _ = replay(tmp_path)
    places = list(tmp_path.glob("cache/*/lane-*/*.json"))
    assert {place.name.partition("-")[0] for place in places} == {"summary", "profile", "peaks"}
    for place in places:
        place.write_text(content)
    assert replay(tmp_path)[0] == first


@pytest.mark.parametrize("kind", ["summary", "profile", "peaks"])
def test_what_is_kept_of_lanes_and_was_edited_is_found_out_again(tmp_path: Path, kind: str) -> None:
    streams(tmp_path, seed=6, rows=400)
    first, _ = replay(tmp_path)
    places = list(tmp_path.glob(f"cache/*/lane-*/{kind}-*.json"))
    assert places
    for place in places:
        place.write_text(place.read_text().translate(str.maketrans("123456789", "912345678")))
    assert replay(tmp_path)[0] == first


@pytest.mark.parametrize("windows", [(3, 9), (0, 0), (2**62, 5)])
def test_who_is_in_reach_is_known_without_joining(windows: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(windows) % 97)
    join, live = ExactStream(*windows), LiveKeys(*windows)
    size, counts = 40, (np.zeros(40, np.int64), np.zeros(40))
    for begin in range(0, 300, 20):
        sides: list[Any] = []
        for _ in range(2):
            ts = begin + np.sort(rng.integers(0, 20, rng.integers(0, 8)))
            ids = rng.integers(0, size, ts.size).astype(np.int32)
            sides += [StreamBatch(ts, ts, ids.astype(np.int64), np.ones(ts.size)), ids]
        join.push(*sides, *counts)
        live.push(*sides, size)
        for now in (begin + 19, begin + 21):
            expected = join.live_ids(size, now)
            assert live.live_ids(size, now).tolist() == expected.tolist()
        if begin % 60 == 40:  # those in reach keep a number; others of it come back
            old_to_new = np.where(expected, np.cumsum(expected) - 1, -1)
            join.remap(old_to_new)
            live.remap(old_to_new)
