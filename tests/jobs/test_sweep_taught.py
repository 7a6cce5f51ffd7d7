"""Cells that are replayed from a tick on, before which only an estimate of value learns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_trial import bursty, opened

from engine.jobs.sweep.cells import Cell
from engine.jobs.sweep.task import compile_for, replay_cells
from engine.jobs.trial.lead_in import beginning, taught
from engine.jobs.trial.replays import TAUGHT, WEIGHTS, Replays
from engine.lanes.reader import LaneFiles, whole_lane
from engine.policies import Structure, age
from engine.replay.lane import LaneReplay
from engine.runtime.streams import StreamBatch
from engine.value_model.estimate import Estimate


def cut(batch: StreamBatch, tick: int) -> tuple[StreamBatch, StreamBatch]:
    at = int(np.searchsorted(batch.ts, tick))
    return StreamBatch(*(column[:at] for column in batch)), StreamBatch(
        *(column[at:] for column in batch)
    )


def in_two(files: LaneFiles, cell: Cell, tick: int, *, learns: bool = True) -> tuple[int, float]:
    """Return what a replay of the second part comes to that learns from the first, or does not."""
    batch = whole_lane(files.left, files.right)
    (left_0, left), (right_0, right) = (cut(own, tick) for own in (batch.left, batch.right))
    replay = LaneReplay(
        cell.settings, cell.profile, cell.budget, curves=age.as_arrays(cell.curves), emit=False
    )
    if learns:
        replay.ready(left_0, right_0)
    keys, ids = np.unique(np.concatenate([left.key, right.key]), return_inverse=True)
    left_ids, right_ids = np.split(ids.astype(np.int32), [left.ts.size])
    ready = replay.ready(left, right)
    assert not list(replay.push(left, left_ids, right, right_ids, keys.size, ready))
    return replay.outputs, replay.importance


@pytest.mark.parametrize("split", ["even", "pooled"])
def test_what_is_not_replayed_is_learnt_from(tmp_path: Path, split: str) -> None:
    job = opened(bursty(tmp_path), window=90, policy="yield", split=split)
    layout = job.laid_out("5%")
    (files,), (cell, *_) = job.lanes.files, layout.cells[0]
    first = int(np.quantile(whole_lane(files.left, None).left.ts, 0.6))
    for lead in (first - 200, first - 1, first):
        begun = beginning(cell, lead, first)
        (found,) = replay_cells(files, [taught(begun, lead)], 1)
        assert found[1:3] == in_two(files, begun, lead)
        assert found[1:3] != in_two(files, begun, lead, learns=False)
    (all_of,) = replay_cells(files, [taught(beginning(cell, 0, first), 0)], 1)
    assert all_of[1:3] == replay_cells(files, [beginning(cell, 0, first)], 1)[0][1:3]


def test_only_estimates_of_value_learn_from_what_is_not_replayed(tmp_path: Path) -> None:
    job = opened(bursty(tmp_path, 2_000))
    layout = job.laid_out("5%")
    for place, cell in zip(layout.places, layout.cells[0], strict=True):
        since = taught(cell, 40).since
        assert since == (40 if place.candidate.policy == "yield" else None)


def test_weights_count_what_estimates_learn_from_once(tmp_path: Path) -> None:
    job = opened(bursty(tmp_path, 2_000))
    layout = job.laid_out("5%")
    replays = Replays(layout, job.lanes)
    of = {place.candidate: cell for cell, place in enumerate(layout.places)}
    chosen = {
        name: [cell for one, cell in of.items() if one.policy == name and one.estimator == counted]
        for name, counted in (("yield", "memory"), ("prob", "history"), ("simp", "memory"))
    }
    assert [len(own) for own in chosen.values()] == [3, 3, 3]
    assert replays.weights(chosen["simp"]) == (3, 0)
    assert replays.weights(chosen["prob"]) == (0, 3)
    assert replays.weights(chosen["yield"]) == (3 * WEIGHTS["yield"], TAUGHT)
    assert replays.weights([*chosen["yield"], *chosen["prob"]])[1] == TAUGHT + 3
    assert replays.weights([*chosen["prob"], *chosen["yield"]])[1] == TAUGHT + 3


@pytest.mark.parametrize("through_facts", [False, True])
def test_all_kinds_of_cells_can_be_compiled_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, through_facts: bool
) -> None:
    cells = opened(bursty(tmp_path, 500)).laid_out("12").cells[0]
    replayed: list[Structure] = []
    estimated: list[object] = []
    push = LaneReplay.push

    def noted(self: LaneReplay, *given: object) -> object:
        replayed.append(self.settings.structure)
        return push(self, *given)  # type: ignore[arg-type]

    def refitted(self: Estimate) -> None:
        estimated.append(self)

    monkeypatch.setattr(LaneReplay, "push", noted)
    monkeypatch.setattr(Estimate, "refit", refitted)
    monkeypatch.setattr("engine.jobs.sweep.task._COMPILED_FOR", set())
    for _ in range(2):  # once in a process
        compile_for(cells, through_facts=through_facts, counts=True)
    assert len(replayed) == 1  # by the kernel for all policies
    assert len(estimated) == (not through_facts)
    replayed.clear()
    own = [cell._replace(spares=False) for cell in cells]
    compile_for(own, through_facts=through_facts, counts=True)
    kinds = {(cell.settings.structure, cell.settings.pooled) for cell in own}
    assert len(replayed) == len(kinds)
    assert {*replayed} == {structure for structure, _ in kinds}
