"""Has the kernels of cells compiled, several at once, before any cell's time is taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from engine.facts.key_links import no_key_links
from engine.jobs.sweep.cells import Cell
from engine.policies import Structure, age
from engine.replay.allocate import Ready
from engine.replay.lane import LaneReplay
from engine.runtime.beside import BESIDE
from engine.runtime.streams import StreamBatch
from engine.runtime.work import as_here
from engine.value_model.estimate import Estimate, Part, Valued


def compile_for(cells: Sequence[Cell], *, through_facts: bool) -> None:
    """Have kernels compiled, or loaded: each replays a tuple that nobody keeps."""
    kinds = {_kind(own): own for own in cells}
    terms = {own.settings.terms for own in cells if own.settings.terms is not None}
    needed: list[Callable[[], None]] = [
        partial(_replay_one, cell, through_facts=through_facts) for cell in kinds.values()
    ]
    if not through_facts:
        needed += [partial(_estimate_one, Estimate(own)) for own in terms]
    if needed:
        with ThreadPoolExecutor(BESIDE.most, **as_here()) as threads:
            for begun in [threads.submit(one) for one in needed]:
                begun.result()


def _kind(cell: Cell) -> tuple[Structure, bool] | None:
    """Return what kernel a cell is replayed by: that of its kind, or the one for all (None)."""
    own = cell.settings
    return None if cell.spares else (own.structure, own.pooled)


def _batch(tuples: int) -> StreamBatch:
    none = np.zeros(tuples, np.int64)
    return StreamBatch(none, none, none, np.zeros(tuples))


def _replay_one(cell: Cell, *, through_facts: bool) -> None:
    replay = LaneReplay(
        cell.settings, cell.profile, (0, 0), curves=age.as_arrays(cell.curves), emit=False,
        spares=cell.spares,
        key_links=(no_key_links(), no_key_links()) if through_facts else None,
    )  # fmt: skip
    left, right, drawn = _batch(1), _batch(0), (np.zeros(1), np.zeros(0))
    ready = None if cell.sampling is None else Ready(drawn)
    if (terms := cell.settings.terms) is not None:
        table = np.zeros((2, 2, terms.buckets))
        ready = Ready(valued=Valued(drawn, (Part(1, 0, table),)))
    ids = np.zeros(1, np.int32)
    for _ in replay.push(left, ids, right, ids[:0], 1, ready):
        raise AssertionError  # it counts only


def _estimate_one(estimate: Estimate) -> None:
    estimate.push(_batch(1), _batch(0))
