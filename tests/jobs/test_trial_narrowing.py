"""Rounds on stretches end when it is clear what is best, or all that may be replayed has been."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_trial import Opened, bursty, opened, sparse

from engine.jobs.sweep.exact_counter import ExactCounter
from engine.jobs.sweep.task import replay_cells
from engine.jobs.trial import narrowing, stretches
from engine.jobs.trial.found import IMPORTANCE
from engine.jobs.trial.narrowing import Narrowing
from engine.jobs.trial.replays import Replays
from engine.jobs.trial.run import run_trial
from engine.jobs.trial.screened import CLOSE, screens
from engine.jobs.trial.stretches import DRAWS, affordable


@pytest.fixture(autouse=True)
def _short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "ROWS", 40)
    monkeypatch.setattr(stretches, "FEWEST", 1)


def begun(job: Opened, left: int, first: int = DRAWS, memory: str = "10%") -> Narrowing:
    """Return what narrows after a first round under the cells of all policies and splits."""
    layout = job.laid_out(memory)
    found, number = affordable(job.lanes, layout.exact, (1, 1), 4 * sum(job.lanes.rows))
    assert number >= first
    rounds = Narrowing(layout, Replays(layout, job.lanes), found, first, 0.3, IMPORTANCE, left)
    rounds.replay(screens(layout)[-2].cells)
    return rounds


def test_what_is_clear_costs_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrowing, "OUTPUTS", 100)
    job = opened(bursty(tmp_path, 40_000), window=30)
    rows = sum(job.lanes.rows)
    found = run_trial(job.laid_out("20%"), job.lanes, tuples=4 * rows)
    assert found.replayed < 2.5 * rows
    best, *_ = found.found[0]
    recall = best.importance_recall
    assert recall.high - recall.low < 0.2
    layout = job.laid_out("20%")
    exact = ExactCounter(layout.exact)
    results = replay_cells(job.lanes.files[0], layout.cells[0], 2, [exact])
    full = {layout.places[one.cell].candidate: one.importance for one in results}
    assert full[best.candidate] > (1 - 2 * CLOSE) * max(full.values())


def test_few_outputs_are_not_clear(tmp_path: Path) -> None:
    job = opened(sparse(tmp_path), window=40)
    rows = sum(job.lanes.rows)
    found = run_trial(job.laid_out("10%"), job.lanes, tuples=4 * rows)
    assert 2 * rows < found.replayed <= 4 * rows
    assert found.stretches > DRAWS


def test_more_draws_hold_those_before(tmp_path: Path) -> None:
    rounds = begun(opened(bursty(tmp_path), window=30), 10**9)
    before, known = set(rounds.draws()), dict(rounds.known)
    left = rounds.left
    rounds.replay([0, 1], 2)
    assert before < set(rounds.draws())
    assert 0 < left - rounds.left < 2 * (10**9 - left)
    assert rounds.known[0] != known[0]
    assert {cell for cell in known if rounds.known[cell] == known[cell]} >= {*known} - {0, 1}


def test_all_is_drawn_at_last_and_then_nothing_is_left_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(narrowing, "OUTPUTS", 10**9)
    job = opened(bursty(tmp_path, 2_000), window=60)
    rounds = begun(job, 10**12)
    last = rounds.narrowed(screens(rounds.layout)[-2])
    assert {*rounds.draws()} == {*range(len(rounds.stretches))}
    assert len(last) > 1
    for cell in last:
        assert rounds.known[cell].gain_over(rounds.known[last[0]], IMPORTANCE)[1] < 1e-6


@pytest.mark.parametrize("memory", ["10%", "1%"])
@pytest.mark.parametrize("part", [0.0, 0.3, 1.0, 4.0])
def test_no_more_is_replayed_than_is_allowed(tmp_path: Path, memory: str, part: float) -> None:
    job = opened(bursty(tmp_path, 4_000), window=60)
    allowed = int(part * sum(job.lanes.rows))
    rounds = begun(job, 10**9, memory=memory)
    replayed, rounds.left = rounds.replays.replayed, allowed
    last = rounds.narrowed(screens(rounds.layout)[-2])
    assert rounds.left >= 0
    assert rounds.replays.replayed - replayed <= allowed
    assert last


@pytest.mark.parametrize(("most", "counted"), [(0, 40), (500, 400), (200, 200)])
def test_stretches_of_long_archives_count_more_tuples(
    most: int, counted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = opened(bursty(tmp_path, 20_000), window=1)
    rows = sum(job.lanes.rows)
    monkeypatch.setattr(stretches, "MOST_ROWS", most)
    monkeypatch.setattr(stretches, "PART", rows // 400)
    exact = job.laid_out("10%").exact
    found, number = affordable(job.lanes, exact, (1, 1), 4 * rows)
    assert rows / len(found) == pytest.approx(counted, rel=0.05)
    assert number > stretches.MANY
    fewer, _ = affordable(job.lanes, exact, (1, 1), 2 * stretches.MANY * 100)
    assert rows / len(fewer) == pytest.approx(min(100, counted), rel=0.05)
