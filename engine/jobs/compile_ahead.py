"""Has the kernels of replays compiled, several at once, before they are needed one by one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from threading import Thread

import numpy as np

from engine.exact.stream import ExactStream
from engine.jobs.frame import Archives
from engine.lanes.profile import LaneProfile, SideProfile
from engine.replay import kernel
from engine.replay.allocate import Ready
from engine.replay.lane import LaneReplay
from engine.replay.settings import ReplaySettings
from engine.runtime.cache_folders import kernel_cache, shipped_kernels
from engine.runtime.compilation.beside import BESIDE
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.compilation.source import folder_of
from engine.runtime.executors import Executor
from engine.runtime.streams import StreamBatch
from engine.runtime.work import as_here
from engine.value_model.estimate import Estimate, Part, Terms, Valued

_IDS = np.zeros(1, np.int32)
_MANY = 10_000
"""Tuples of archives whose trials take longer to interpret than to compile the kernel for all."""


def begin_for_trials(archives: Archives, executor: Executor) -> None:
    """Have another process compile the kernel of trials, while archives are prepared for one.

    Only where nothing of it has been kept so far, and trials run here: a process takes a second to
    begin. When they need the kernel, they wait for it.
    """
    rows = sum(file.rows or file.size >> 6 for own in archives[:2] for file in own.files)
    if executor.slots or archives.fact is not None or rows < _MANY or BESIDE.most == 1:
        return
    home, shipped, own = kernel_cache(), shipped_kernels(), folder_of(kernel.__name__)
    kept = [folder for folder in (home, shipped) if folder is not None and (folder / own).is_dir()]
    if home is not None and not kept:
        _begin()


@cache
def _begin() -> None:
    Thread(target=_ask, daemon=True).start()


def _ask() -> None:
    with suppress(Exception):  # then it is compiled when it is needed
        BESIDE.call(compile_common)


def compile_common() -> None:
    """Compile the kernel for all policies, or load it."""
    none = SideProfile(0, 0, 0, 0, 0.0)
    settings = ReplaySettings(1, 1, policy="recent")
    _replay_one(LaneReplay(settings, LaneProfile(none, none), (0, 0), emit=False, spares=True))


def compile_ahead(replays: Sequence[LaneReplay], terms: Collection[Terms], *, counts: bool) -> None:
    """Have kernels compiled, or loaded: each replays a tuple that nobody keeps.

    Parameters
    ----------
    replays : sequence of LaneReplay
        New ones within no memory, one of each kind; they are used up.
    terms : collection of Terms
        Of estimates of streams that equal keys join.
    counts : bool
        Whether the exact join is counted as well.
    """
    needed: list[Callable[[], None]] = [partial(_replay_one, replay) for replay in replays]
    needed += [partial(_estimate_one, Estimate(own)) for own in terms]
    if counts and COMPILED.is_all:
        needed.append(_join_one)
    with ThreadPoolExecutor(max(1, min(BESIDE.most, len(needed))), **as_here()) as threads:
        for begun in [threads.submit(one) for one in needed]:
            begun.result()


def _batch(tuples: int) -> StreamBatch:
    none = np.zeros(tuples, np.int64)
    return StreamBatch(none, none, none, np.zeros(tuples))


def _replay_one(replay: LaneReplay) -> None:
    settings = replay.settings
    drawn = np.zeros(1), np.zeros(0)
    ready = Ready(drawn) if settings.samples else None
    if (terms := settings.terms) is not None:
        table = np.zeros((2, 2, terms.buckets))
        ready = Ready(valued=Valued(drawn, (Part(1, 0, table),)))
    for _ in replay.push(_batch(1), _IDS, _batch(0), _IDS[:0], 1, ready):
        raise AssertionError  # one tuple has no outputs


def _estimate_one(estimate: Estimate) -> None:
    estimate.push(_batch(1), _batch(0))
    if COMPILED.is_all:
        estimate.refit()


def _join_one() -> None:
    counts = np.zeros(1, np.int64), np.zeros(1)
    ExactStream(1, 1).push(_batch(1), _IDS, _batch(0), _IDS[:0], *counts)
