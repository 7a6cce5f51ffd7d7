"""Trials where windows are too long to draw some of the time: parts of the keys stand for it."""

from __future__ import annotations

import pickle
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_cases import stream, winnow
from test_trial import Opened, bursty, opened, written

from engine.jobs.sweep.cells import Exact
from engine.jobs.sweep.exact_counter import ExactCounter
from engine.jobs.sweep.task import replay_cells, sweep_lane
from engine.jobs.trial import run, stretches
from engine.jobs.trial.by_keys import HELD, LEAST, MOST, of_part, parts_of_keys
from engine.jobs.trial.candidates import COUNTING, SLOW, Candidate
from engine.jobs.trial.found import FAVOURED, KEYS, TIME
from engine.jobs.trial.run import run_trial
from engine.jobs.trial.stretches import Keys
from engine.lanes.key_parts import BUCKETS, buckets_of, part_of
from engine.lanes.reader import streamed, whole_lane
from engine.runtime.executors import SerialExecutor


def churning(folder: Path, rows: int = 8_000) -> Path:
    """Write streams whose keys live for a part of a window: what came last matches most."""
    rng = np.random.default_rng(6)
    begins = np.sort(rng.integers(0, 4 * rows, rows // 12))
    for side in ("left", "right"):
        key = rng.integers(0, begins.size, rows)
        ts = begins[key] + rng.exponential(rows / 80, rows).astype(np.int64)
        order = np.argsort(ts, kind="stable")
        own = {"t": ts[order], "k": key[order], "i": 1.0 + key[order] % 5}
        pq.write_table(pa.table(own), folder / f"{side}.parquet")
    return folder


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("parts", [1, 4, 7])
def test_parts_of_the_keys_are_the_lane(tmp_path: Path, lanes: int, parts: int) -> None:
    written(tmp_path, stream(1), stream(2))
    for files in opened(tmp_path, lanes=lanes).lanes.files:
        whole = whole_lane(files.left, files.right)
        found = [part_of(files, part, parts) for part in range(parts)]
        for side, all_of in ((0, whole.left), (1, whole.right)):
            of = buckets_of(all_of.key) % parts
            for part, own in enumerate(found):
                read = whole_lane(own.left, own.right)[side]
                for column, wanted in zip(read, all_of, strict=True):
                    assert (column == wanted[of == part]).all()
        assert files.left is not None
        assert found[0].left is not None
        times = [batch.ts for batch in streamed(found[0].left, ("_ts",))]
        assert sum(map(len, times)) == whole_lane(found[0].left, None).left.ts.size


def test_buckets_are_as_full_as_each_other() -> None:
    for keys in (np.arange(-(1 << 20), 1 << 20), np.arange(1 << 21) << 40):
        counts = np.bincount(buckets_of(keys), minlength=BUCKETS)
        assert 2 * counts.max() < 3 * (keys.size / BUCKETS + 64)
        assert abs(np.bincount(buckets_of(keys) % 4) / keys.size - 0.25).max() < 0.01


def test_what_parts_come_to_is_what_replays_of_their_tuples_do(tmp_path: Path) -> None:
    job = opened(churning(tmp_path), window=6_000)
    layout = job.laid_out("20%")
    cells, parts = layout.cells[0][::9], 4
    exact = ExactCounter(layout.exact)
    replay_cells(job.lanes.files[0], [], 1, [exact])
    total = Exact(0, 0.0)
    for part in range(parts):
        task = of_part(job.lanes.files[0], cells, [layout.exact], Keys(part, parts))
        for cell, own in zip(cells, task.cells, strict=True):
            assert own.budget == tuple(-(-held // parts) for held in cell.budget)
            assert [side.peak for side in own.profile] == [side.peak for side in cell.profile]
        found = sweep_lane(pickle.loads(pickle.dumps(task)))  # noqa: S301 - as a worker of Spark
        again = replay_cells(task.files, task.cells, 1)
        assert [one[:3] for one in found.cells] == [one[:3] for one in again]
        (own_exact,) = found.exact.values()
        total = Exact(*np.add(total, own_exact).tolist())
    assert total.outputs == exact.found.outputs
    assert total.importance == pytest.approx(exact.found.importance)


def reached(job: Opened, memory: str) -> dict[Any, float]:
    """Return the importance of every candidate's outputs."""
    layout = job.laid_out(memory)
    results = replay_cells(job.lanes.files[0], layout.cells[0], 2)
    return {layout.places[one.cell].candidate: one.importance for one in results}


def test_long_windows_try_all_policies_on_parts_of_the_keys(tmp_path: Path) -> None:
    job = opened(churning(tmp_path), window=12_000)
    rows, full = sum(job.lanes.rows), reached(job, "2%")
    best = max(full.values())
    assert full[Candidate(*FAVOURED, "memory")] < 0.95 * best
    for seed in range(3):
        found = run_trial(job.laid_out("2%"), job.lanes, seed=seed, tuples=4 * rows)
        assert (found.sampled, found.exact) == (KEYS, False)
        assert found.stretches / MOST - 0.001 <= found.share <= found.stretches / LEAST
        assert found.replayed <= 4 * rows
        tried = {one.candidate[::2] for one in found.found[0]}
        assert {*product(COUNTING, ("window", "history"))} - {SLOW} <= tried
        assert full[found.found[0][0].candidate] > 0.97 * best


def test_parts_are_as_many_as_the_draws_need_and_the_memory_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stretches, "FEWEST", 1)
    job = opened(churning(tmp_path), window=6_000)
    rows = sum(job.lanes.rows)

    def parts(memory: str, tuples: float, draws: int = 3) -> tuple[int, int]:
        found = parts_of_keys(job.lanes, job.laid_out(memory).cells, 10, tuples, draws)
        return len(found[0]), found[1]

    assert parts("25%", 10 * rows) == (LEAST, 3)
    assert parts("25%", 2 * rows) == (16, 3)
    assert parts("75%", 0.5 * rows) == (MOST, 3)
    assert parts(str(8 * HELD), 0.5 * rows) == (8, 0)
    assert parts(str(LEAST * HELD - 1), 10 * rows) == (0, 0)


def test_what_cannot_be_parted_goes_by_the_first_of_the_list(tmp_path: Path) -> None:
    """Through facts, the keys of one part join those of others; little memory is not shared."""
    churning(tmp_path)
    keys = pa.array(range(700), pa.int64())
    pq.write_table(pa.table({"a": keys, "b": keys}), tmp_path / "fact.parquet")
    through: dict[str, Any] = {
        "fact": tmp_path / "fact.parquet", "fact_left": "a", "fact_right": "b"
    }  # fmt: skip
    for options, memory in ((through, "8%"), ({}, "40")):
        job = opened(tmp_path, window=20_000, **options)
        found = run_trial(job.laid_out(memory), job.lanes, tuples=4 * sum(job.lanes.rows))
        assert (found.exact, found.stretches, found.sampled) == (True, 0, None)


def test_executors_find_the_same_on_parts(tmp_path: Path) -> None:
    job = opened(churning(tmp_path), window=6_000)
    lanes = job.lanes
    tuples = 4 * sum(lanes.rows)
    found = run_trial(job.laid_out("8%"), lanes, tuples=tuples)
    lanes.stages.executor = SerialExecutor()
    assert run_trial(job.laid_out("8%"), lanes, tuples=tuples) == found


def test_short_windows_draw_some_of_the_time(tmp_path: Path) -> None:
    job = opened(bursty(tmp_path, 60_000), window=40)
    found = run_trial(job.laid_out("80"), job.lanes, tuples=4 * sum(job.lanes.rows))
    assert (found.sampled, found.exact) == (TIME, False)


def test_parts_of_the_keys_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(run, "TUPLES", 0)
    churning(tmp_path)
    found = winnow(tmp_path, policy=None, window=6_000, memory="8%", out=tmp_path / "out")
    advice, said = found.report["advice"], " ".join(capsys.readouterr().out.split())
    assert advice["sampled"] == KEYS
    assert f"{advice['stretches']} parts of the archive's keys" in said
