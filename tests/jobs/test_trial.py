"""Trials: equal to full replays where all is replayed, and within their intervals elsewhere."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_cases import stream, table
from sweep_cases import COMMON, drifting, swept
from thorough import guards, repeats

from engine.jobs.allocate.tried import FIRST, SHARES, try_memories
from engine.jobs.frame import Archives, JobLanes, open_job, prepare_job
from engine.jobs.sweep.exact_counter import ExactCounter
from engine.jobs.sweep.task import replay_cells
from engine.jobs.trial import estimate, run, stretches
from engine.jobs.trial.advice import advice_of, is_modelled
from engine.jobs.trial.candidates import COUNTING, POLICIES, Candidate, candidates_of
from engine.jobs.trial.estimate import Drawn, estimated, exactly
from engine.jobs.trial.found import FAVOURED, IMPORTANCE, Pair, Trial, best_of, estimated_pair
from engine.jobs.trial.layout import TrialLayout, lay_out
from engine.jobs.trial.run import run_trial
from engine.jobs.trial.stretches import Stretch, blocks_of, drawn, stretches_of
from engine.lanes.reader import whole_lane
from engine.lanes.stretch import Between, stretch_of
from engine.options.budget import SPLITS, Amount, divided, parse_amount
from engine.options.replay import REPLAY, JobOptions, job_of
from engine.report.advice import doubt
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.executors import SerialExecutor, Stages, ThreadExecutor


class Opened(NamedTuple):
    """A job of archives in a folder, ready to be tried."""

    base: JobOptions
    archives: Archives
    lanes: JobLanes

    def laid_out(self, *memory: str) -> TrialLayout:
        """Return the cells with some memories."""
        amounts = [divided(parse_amount(text, "--memory")) for text in memory]
        return lay_out(self.base, amounts, self.archives, self.lanes)


def opened(folder: Path, **options: Any) -> Opened:
    told = COMMON | {"window": 9, "memory": 12, "cache": folder / "cache"} | options
    files = {side: folder / f"{side}.parquet" for side in ("left", "right")}
    base = job_of(REPLAY.from_keywords({**told, **files}))
    archives = open_job(base)
    return Opened(base, archives, prepare_job(base, archives, Stages(ThreadExecutor(2))))


def written(folder: Path, left: Any, right: Any) -> Path:
    for side, rows in (("left", left), ("right", right)):
        pq.write_table(table(rows), folder / f"{side}.parquet")
    return folder


def bursty(folder: Path, rows: int = 8_000, seed: int = 3) -> Path:
    """Write streams with rare keys and common ones, whose rate goes up and down."""
    rng = np.random.default_rng(seed)
    for side in ("left", "right"):
        rate = 1.0 + 3.0 * (np.arange(rows) // (rows // 40) % 4 == 0)
        ts = np.cumsum(rng.exponential(1.0, rows) * 2 / rate).astype(np.int64)
        keys = np.minimum(rng.zipf(1.5, rows), 400)
        own = {"t": ts, "k": keys, "i": rng.choice([1.0, 2.0, 9.0], rows)}
        pq.write_table(pa.table(own), folder / f"{side}.parquet")
    return folder


def sparse(folder: Path) -> Path:
    """Write streams whose keys hardly ever meet."""
    rng = np.random.default_rng(4)
    for side in ("left", "right"):
        own = {"t": np.sort(rng.integers(0, 8_000, 4_000)), "k": rng.integers(0, 30_000, 4_000),
               "i": rng.exponential(1.0, 4_000)}  # fmt: skip
        pq.write_table(pa.table(own), folder / f"{side}.parquet")
    return folder


def test_a_whole_trial_finds_what_a_sweep_does(tmp_path: Path) -> None:
    job = opened(drifting(tmp_path))
    memories = ("12", "30")
    found = run_trial(job.laid_out(*memories), job.lanes)
    lines = swept(tmp_path, memory=",".join(memories), policies=POLICIES).table.to_pylist()
    wanted = {(line["memory"], line["policy"]): line for line in lines}
    assert (found.exact, found.stretches, found.share) == (True, 0, 1.0)
    for memory, tried in zip(memories, found.found, strict=True):
        own = {one.candidate.policy: one for one in tried if one.candidate.split == "even"
               and one.candidate.estimator == "memory"}  # fmt: skip
        assert own.keys() == {*POLICIES}
        for name, one in own.items():
            line = wanted[memory, name]
            assert one.importance_recall[:] == (line["importance_recall"],) * 3
            assert one.recall[:] == (line["recall"],) * 3
            assert one.budget == (line["memory_left"], line["memory_right"])
        reached = [one.importance_recall.value for one in tried]
        assert reached == sorted(reached, reverse=True)
    assert found.replayed == sum(job.lanes.rows) * sum(map(len, found.found))


def test_an_allocation_tries_all_with_few_memories_and_the_best_with_the_others(
    tmp_path: Path,
) -> None:
    job = opened(drifting(tmp_path))
    amounts = [divided(Amount(share=share)) for share in SHARES]
    layout = lay_out(job.base, amounts, job.archives, job.lanes)
    every = run_trial(layout, job.lanes, measure="recall").found
    points = try_memories(job.base, job.archives, job.lanes)
    assert points.shares == SHARES
    best = set()
    for share, tried, all_tried in zip(SHARES, points.tried, every, strict=True):
        reached = {one.candidate: one for one in all_tried}
        assert all(one == reached[one.candidate] for one in tried)
        if share in FIRST:
            assert len(tried) == len(reached)
            assert tried[0] == next(iter(reached.values()))
            best.add(tried[0].candidate)
        values = [one.recall.value for one in tried]
        assert values == sorted(values, reverse=True)
    for share, tried in zip(SHARES, points.tried, strict=True):
        assert share in FIRST or {one.candidate for one in tried} == best


def test_lanes_are_tried_together(tmp_path: Path) -> None:
    drifting(tmp_path)
    for options in ({"lanes": 3}, {"partition_by": "g"}):
        job = opened(tmp_path, **options)
        (tried,) = run_trial(job.laid_out("20%"), job.lanes).found
        lines = swept(tmp_path, memory="20%", policies=POLICIES, **options).table.to_pylist()
        for line in lines:
            own = Candidate(line["policy"], "even", "memory")
            one = next(one for one in tried if one.candidate == own)
            assert one.importance_recall.value == pytest.approx(
                line["importance_recall"], abs=1e-12
            )
            assert one.budget == (line["memory_left"], line["memory_right"])


def test_stretches_cover_time_once(tmp_path: Path) -> None:
    """Outputs of all stretches are those of the exact join, whatever memories do before."""
    job = opened(bursty(tmp_path, 2_000), window=25)
    (files,), span = job.lanes.files, job.lanes.prepared.span
    assert span is not None
    blocks = blocks_of(span, (25, 25), 70)
    counts = [np.stack([np.diff(np.searchsorted(side.ts, blocks.edges))
                        for side in whole_lane(files.left, files.right)[:2]])]  # fmt: skip
    layout = job.laid_out("100%")
    outputs = 0
    for one in stretches_of(blocks, counts, None):
        part = stretch_of(files, (one.leads[0], one.ticks[1]), one.rows[0])
        counter = ExactCounter(replace(layout.exact, start_ts=one.ticks[0]))
        replay_cells(part, [], 1, [counter])
        outputs += counter.found.outputs
    whole = ExactCounter(layout.exact)
    replay_cells(files, [], 1, [whole])
    assert outputs == whole.found.outputs > 1000
    assert sum(one.work for one in stretches_of(blocks, counts, None)) == pytest.approx(1.0)


@pytest.mark.parametrize("lanes", [1, 3])
def test_a_part_of_a_lane_is_read_as_if_it_were_all(tmp_path: Path, lanes: int) -> None:
    written(tmp_path, stream(1), stream(2))
    for files in opened(tmp_path, lanes=lanes).lanes.files:
        for ticks in ((0, 200), (30, 55), (40, 40), (500, 600)):
            part = stretch_of(files, ticks, 0)
            for own, all_of in zip(
                whole_lane(part.left, part.right)[:2], whole_lane(files.left, files.right)[:2],
                strict=True,
            ):  # fmt: skip
                inside = (all_of.ts >= ticks[0]) & (all_of.ts <= ticks[1])
                for column, wanted in zip(own, all_of, strict=True):
                    assert (column == wanted[inside]).all()
            assert files.left is not None
            with Between(files.left, ticks).open() as rows:
                keys = [b.column("_key").to_numpy() for b in rows.batches(["_key"])]
            assert sum(map(len, keys)) == whole_lane(part.left, None).left.ts.size


def test_draws_are_as_frequent_as_their_work() -> None:
    works = [0.05, 0.4, 0.02, 0.33, 0.2]
    some = [Stretch(0, (i, i), (0, 0), (1, 1), 1, work) for i, work in enumerate(works)]
    starts = (np.arange(4000) + 0.5) / 4000
    hits = np.zeros(len(works))
    for start in starts:
        own = drawn(some, 3, float(start))
        assert own == sorted(own)
        hits += np.bincount(own, minlength=len(works))
        more = drawn(some, 3, float(start), 4)
        assert len(more) == 12
        assert set(own) <= set(more)
    assert hits / hits.sum() == pytest.approx(works, abs=1e-3)


def test_an_estimate_is_the_ratio_and_its_linearised_error_and_that_of_the_warm_up() -> None:
    rng = np.random.default_rng(1)
    exact, work = rng.uniform(4, 10, 20), rng.uniform(0.2, 0.5, 20)
    reached = exact * rng.uniform(0.3, 0.6, 20)
    found = estimated(reached, exact, Drawn(np.zeros((2, 20)), work, 0.1))
    top = sum(y / p for y, p in zip(reached, work, strict=True))
    below = sum(x / p for x, p in zip(exact, work, strict=True))
    ratio = top / below
    squares = sum(((y - ratio * x) / p) ** 2 for y, x, p in zip(reached, exact, work, strict=True))
    t = 2.093024054408263  # of 19 degrees, 97.5 %
    error = 0.015 + t * (0.9 * squares * 20 / 19 / below**2) ** 0.5
    assert found.value == pytest.approx(ratio)
    assert (found.low, found.high) == pytest.approx((ratio - error, ratio + error))


def test_few_stretches_or_one_that_outweighs_the_others_or_parts_of_keys_predict_nothing() -> None:
    some = Drawn(np.zeros((2, 40)), np.full(40, 0.025), 0.1)
    rng = np.random.default_rng(2)
    exact, part = rng.uniform(4, 10, 40), rng.uniform(0.4, 0.6, 40)
    reached = exact * part
    value, low, high = estimated(reached, exact, some)
    assert low is not None
    assert high is not None
    assert 0.4 < low < value < high < 0.6
    of_keys = estimated(reached, exact, some._replace(of_keys=True))
    assert of_keys == (value, None, None)
    again = np.arange(40) % 15
    assert estimated(reached[again], exact[again], some)[1:] == (None, None)
    exact[0] *= 100
    assert estimated(reached, exact, some)[1:] == (None, None)
    assert estimated(np.zeros(40), np.zeros(40), some) == (1.0, None, None)


@pytest.fixture
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let stretches be as short as small archives need them."""
    monkeypatch.setattr(stretches, "ROWS", 40)
    monkeypatch.setattr(stretches, "FEWEST", 0)


@guards("engine/jobs/trial", "tests/jobs/test_trial.py")
@pytest.mark.usefixtures("short_stretches")
def test_intervals_cover_in_about_all_seeds(tmp_path: Path) -> None:
    job = opened(bursty(tmp_path, 16_000), window=40, split="even", estimator="memory")
    layout = job.laid_out("10%")
    truth = {one.candidate: one for one in run_trial(layout, job.lanes).found[0]}
    seeds = [*range(16), *repeats(range(16, 400))]
    covered, errors, widths = 0, [], []
    for seed in seeds:
        found = run_trial(layout, job.lanes, seed=seed, tuples=140_000)
        assert not found.exact
        assert found.stretches > 8
        assert 0 < found.share < 0.8
        assert found.replayed <= 140_000
        best = found.found[0][0]
        wanted = truth[best.candidate].importance_recall.value
        value, low, high = best.importance_recall
        errors.append(value - wanted)
        if low is not None and high is not None:
            covered += low <= wanted <= high
            widths.append(high - low)
    assert len(widths) > 0.75 * len(seeds)
    assert covered / len(widths) >= 0.88
    assert abs(np.mean(errors)) < 0.02
    assert 0.005 < max(widths) < 0.3


@pytest.mark.usefixtures("short_stretches")
def test_a_seed_decides_and_an_executor_does_not(tmp_path: Path) -> None:
    job = opened(bursty(tmp_path, 3_000), window=40)
    layout = job.laid_out("5%", "20%")

    def tried(executor: Any, seed: int) -> Trial:
        lanes = replace(job.lanes, stages=Stages(executor))
        return run_trial(layout, lanes, seed=seed, tuples=150_000)

    first = tried(SerialExecutor(), 1)
    assert tried(ThreadExecutor(2), 1) == first
    assert tried(SerialExecutor(), 2).found != first.found


@pytest.mark.usefixtures("short_stretches")
@pytest.mark.parametrize("tuples", [10_000, 60_000, 200_000, 1_000_000])
def test_all_memories_are_advised_within_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tuples: int
) -> None:
    monkeypatch.setattr(estimate, "FEWEST", 2)
    job = opened(bursty(tmp_path, 4_000), window=60)
    layout = job.laid_out("1%", "5%", "25%")
    found = run_trial(layout, job.lanes, tuples=tuples)
    assert len(found.found) == 3
    for tried in found.found:
        value, low, high = tried[0].importance_recall
        assert low is not None
        assert high is not None
        assert low <= value <= high
    least = 3 * 3 * sum(job.lanes.rows)  # `yield` with three memories, on everything
    assert found.replayed <= max(tuples, least)


@pytest.mark.usefixtures("short_stretches")
def test_few_tuples_try_every_policy_with_one_split_and_the_best_with_all(tmp_path: Path) -> None:
    job = opened(bursty(tmp_path, 4_000), window=60)
    few = 4 * sum(job.lanes.rows)
    found = run_trial(job.laid_out("10%"), job.lanes, tuples=few)
    assert (found.exact, found.replayed <= few) == (False, True)
    (tried,) = found.found
    assert {one.candidate.policy for one in tried} == {*POLICIES}
    best = tried[0].candidate.policy
    assert {one.candidate.split for one in tried if one.candidate.policy == best} == {*SPLITS}
    others = {one.candidate.split for one in tried[-3:]}
    assert others == {"pooled"}


@pytest.mark.usefixtures("short_stretches")
def test_few_outputs_do_not_decide_against_the_favoured(tmp_path: Path) -> None:
    """Each of what stretches see by chance would be chosen in some seed, if none is favoured."""
    sparse(tmp_path)
    job = opened(tmp_path, window=60)
    layout, few = job.laid_out("5%"), 4 * sum(job.lanes.rows)
    trials = [run_trial(layout, job.lanes, seed=seed, tuples=few) for seed in range(8)]
    favoured = [trial.found[0][0].candidate[:2] == FAVOURED for trial in trials]
    assert sum(favoured) >= 6
    every = run_trial(layout, job.lanes)
    for trial in trials:
        (advice,) = advice_of([(None, None)], trial)
        assert trial.outputs is not None
        assert f"{trial.outputs} outputs on what was drawn" in (doubt(advice) or "")
    (advice,) = advice_of([(None, None)], every)
    assert advice["outputs"] is doubt(advice) is None


@pytest.mark.usefixtures("short_stretches")
def test_few_outputs_let_the_favoured_and_others_be_replayed_on_everything(tmp_path: Path) -> None:
    job = opened(sparse(tmp_path), window=60)
    layout, tuples = job.laid_out("5%", "10%"), 12 * sum(job.lanes.rows)
    every = run_trial(layout, job.lanes).found
    for seed in range(6):
        trial = run_trial(layout, job.lanes, seed=seed, tuples=tuples)
        assert trial.exact
        assert trial.replayed <= tuples
        for tried, whole in zip(trial.found, every, strict=True):
            truth = {one.candidate: one.importance_recall for one in whole}
            (favoured,) = (own for one, own in truth.items() if one[:2] == FAVOURED)
            assert tried[0].importance_recall == truth[tried[0].candidate]
            assert tried[1].importance_recall == truth[tried[1].candidate]
            assert tried[0].importance_recall >= favoured


def test_draws_tell_what_is_clearly_worse() -> None:
    """By differences on the same draws: recalls themselves may differ more between draws."""
    exact = np.array([[10.0, 100.0, 40.0, 70.0, 20.0]] * 2)
    some = Drawn(exact, np.full(5, 0.2), 0.0)
    shares = np.array([0.9, 0.2, 0.6, 0.4, 0.8])
    best, less, other = (
        estimated_pair(some, np.stack([exact[0] * recalled, exact[1] * weighed]), 240.0)
        for recalled, weighed in (
            (shares, shares), (shares, shares - 0.05), (shares, shares[::-1] - 0.05),
        )
    )  # fmt: skip
    assert less.is_behind(best, IMPORTANCE)
    assert not less.is_behind(best, "recall")
    assert not best.is_behind(less, IMPORTANCE)
    assert not other.is_behind(best, IMPORTANCE)


@pytest.mark.usefixtures("short_stretches")
@pytest.mark.parametrize("seed", range(3))
def test_what_is_clearly_worse_on_stretches_is_not_replayed_on_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    job = opened(bursty(tmp_path, 8_000), window=40)
    layout, rows = job.laid_out("10%"), sum(job.lanes.rows)
    (every,) = run_trial(layout, job.lanes).found
    monkeypatch.setattr(run._Rounds, "_everything", False)  # noqa: SLF001 - as of a longer archive
    trial = run_trial(layout, job.lanes, seed=seed, tuples=28 * rows)
    (tried,) = trial.found
    assert trial.exact
    assert trial.stretches >= run.RATHER
    assert trial.replayed < 24 * rows
    assert tried[0].importance_recall.value >= 0.98 * every[0].importance_recall.value
    truth = {one.candidate: one for one in every}
    whole = [one for one in tried if one == truth[one.candidate]]
    assert whole == tried[: len(whole)]
    assert 2 <= len(whole) < len(every) / 2
    assert any(one.candidate[:2] == FAVOURED for one in whole)


def test_policies_are_replayed_on_everything_then_the_best_with_all_splits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where windows are too long for stretches."""
    job = opened(bursty(tmp_path, 2_000), window=400)
    layout = job.laid_out("10%")
    (every,) = run_trial(layout, job.lanes).found
    monkeypatch.setattr(run._Rounds, "_everything", False)  # noqa: SLF001 - as of a longer archive
    trial = run_trial(layout, job.lanes)
    (tried,) = trial.found
    assert (trial.exact, trial.stretches) == (True, 0)
    truth = {one.candidate: one for one in every}
    assert tried == [truth[one.candidate] for one in tried]
    first = [one for one in every if one.candidate.split == "pooled"
             and one.candidate.estimator == "memory"]  # fmt: skip
    assert {one.candidate for one in first} <= {one.candidate for one in tried}
    close = [one for one in first
             if one.importance_recall.value >= 0.98 * first[0].importance_recall.value]  # fmt: skip
    policies = {one.candidate.policy for one in close[:2]}
    with_all = {one.candidate for one in every if one.candidate.policy in {*policies, *COUNTING}}
    assert {one.candidate for one in tried} == with_all | {one.candidate for one in first}
    (more,) = run_trial(layout, job.lanes, also=is_modelled).found
    modelled = [one for one in every if is_modelled(one.candidate)]
    assert {(one.candidate.policy, one.candidate.split) for one in modelled} == {
        (policy, split) for policy in ("age", "prob") for split in ("even", "expected")
    }
    assert [one for one in more if is_modelled(one.candidate)] == modelled


def test_what_is_better_than_by_chance_is_chosen(tmp_path: Path) -> None:
    layout = opened(drifting(tmp_path)).laid_out("12")
    cells = {place.candidate[:2]: cell for cell, place in enumerate(layout.places)}
    other, favoured = cells["age", "even"], cells[FAVOURED]
    for seen, first in (
        (100.0, favoured), (1000.0, favoured), (10_000.0, other), (math.inf, other),
    ):  # fmt: skip
        known = {other: Pair(*(exactly(0.35, 1.0),) * 2, seen),
                 favoured: Pair(*(exactly(0.3, 1.0),) * 2, seen)}  # fmt: skip
        assert best_of(layout, known, IMPORTANCE)[0] == first
        assert {*best_of(layout, known, IMPORTANCE, 1)} == {first, favoured}
    equal = dict.fromkeys((other, favoured), Pair(*(exactly(0.3, 1.0),) * 2))
    assert best_of(layout, equal, IMPORTANCE) == sorted(equal)


def test_long_windows_try_the_first_of_the_list_on_everything(tmp_path: Path) -> None:
    job = opened(bursty(tmp_path, 2_000), window=2_000)
    rows = sum(job.lanes.rows)
    found = run_trial(job.laid_out("40"), job.lanes, tuples=7 * rows)
    assert (found.exact, found.stretches) == (True, 0)
    tried = {(one.candidate.policy, one.candidate.split) for one in found.found[0]}
    assert tried == {(policy, "pooled") for policy in POLICIES[:4]}  # 3 + 2 + 1 + 1 times `rows`


def test_many_lanes_of_few_tuples_are_not_all_tried(tmp_path: Path) -> None:
    """A replay of ten tuples takes as long as that of thousands: what it takes to begin and end."""
    rng = np.random.default_rng(5)
    for side in ("left", "right"):
        own = {"t": np.sort(rng.integers(0, 400, 600)), "g": rng.integers(0, 150, 600),
               "k": rng.integers(0, 3, 600), "i": rng.choice([1.0, 2.0, 9.0], 600)}  # fmt: skip
        pq.write_table(pa.table(own), tmp_path / f"{side}.parquet")
    job = opened(tmp_path, partition_by="g")
    layout = job.laid_out("50%")
    replays = len(layout.places) * len(job.lanes.files)
    assert len(job.lanes.files) > 140
    some = run_trial(layout, job.lanes, tuples=500 * stretches.FEWEST)
    assert not some.exact
    assert some.replayed < 0.1 * len(layout.places) * sum(job.lanes.rows)
    every = run_trial(layout, job.lanes, tuples=3 * replays * stretches.FEWEST)
    assert every.exact
    assert every.replayed == len(layout.places) * sum(job.lanes.rows)


def test_a_trial_says_how_much_it_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a long one does not interpret kernels before it compiles them."""
    job = opened(drifting(tmp_path), split="even", estimator="memory")
    expected: list[int] = []
    within = COMPILED.expecting

    def expecting(steps: int) -> AbstractContextManager[None]:
        expected.append(steps)
        return within(steps)

    monkeypatch.setattr(COMPILED, "expecting", expecting)
    layout = job.laid_out("12")
    run_trial(layout, job.lanes)
    steps = [cell.settings.steps for cell in layout.cells[0]]
    assert len(steps) == len(POLICIES)
    assert min(steps) < max(steps)
    assert max(expected) == sum(steps) * sum(job.lanes.rows)
    assert COMPILED.expected == 0


def test_a_trial_of_counts_ranks_by_counts(tmp_path: Path) -> None:
    job = opened(drifting(tmp_path))
    (tried,) = run_trial(job.laid_out("12"), job.lanes, measure="recall").found
    reached = [one.recall.value for one in tried]
    assert reached == sorted(reached, reverse=True)


def test_nothing_is_tried_on_nothing(tmp_path: Path) -> None:
    job = opened(written(tmp_path, [], []))
    found = run_trial(job.laid_out("12"), job.lanes)
    assert found.exact
    assert found.found[0][0].candidate == Candidate("yield", "even", "memory")
    assert found.found[0][0].importance_recall[:] == (1.0, 1.0, 1.0)


def test_candidates_leave_what_is_given(tmp_path: Path) -> None:
    written(tmp_path, stream(1), stream(2))

    def of(**options: Any) -> list[Candidate]:
        return [one for one, _ in candidates_of(opened(tmp_path, **options).base)]

    assert {one.split for one in of(split="expected")} == {"expected"}
    assert {one.estimator for one in of(estimator="window")} == {"window"}
    apart = of(memory=None, memory_left=5, memory_right=3)
    assert {one.split for one in apart} == {"even"}
    assert not {"simp", "simpprob"} & {one.policy for one in of(importance=None)}
    assert not [one for one in of() if one == Candidate("dimpprob", one.split, "history")]
    assert all(a != b for a, b in pairwise(of()))
