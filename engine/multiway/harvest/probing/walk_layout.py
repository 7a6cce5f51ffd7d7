"""The layout of walks on the CPU: what they share, and the state of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.multiway.harvest.layout import Admitted, HarvestRules, Plans
from engine.multiway.harvest.probing.matching import Matching
from engine.multiway.streams import MultiStreams
from engine.runtime.bits import WORD
from engine.runtime.jit import Floats, Ints

UNKNOWN = -1
"""In `Walk.number`: the hop has not been reached. In `Walk.depth`: `going` is not known."""


class WalkJoin(NamedTuple):
    """What all walks of a batch share, but for the condition, whose type numba finds slowly."""

    streams: MultiStreams
    rules: HarvestRules
    constant: float
    """Importance of every output; NaN if it differs."""
    matching: Matching
    admitted: Admitted
    plans: Plans


def without_windows(join: WalkJoin) -> WalkJoin:
    """Return a join without what the clock changes, for walks whose matches are found before.

    Other threads may have these while the clock runs.
    """
    none = np.zeros(join.streams.number, np.int64)
    empty = Admitted(join.streams.first, none, none, none[:0], none[:0])
    return join._replace(admitted=empty, matching=join.matching._replace(position=none[:0]))


class Walk(NamedTuple):
    """The state of a walk; of one thread."""

    bounds: Ints
    """(2, runs, 2) int64. Positions of the runs of a plan, and of that of shredded tuples, as the
    last tuple of their direction had them."""
    matches: Ints
    """(room,) int64. Places that agree with tuples."""
    begin: Ints
    """(hops,) int64. Where those of each hop begin: behind those of the hop before, unless they
    were found before the walk."""
    value: Floats
    """(room,) float64. Of band: the values of those of the last hop; there is a word more."""
    going: Ints
    """(room,) int64. Those of the last hop that agree with all members."""
    number: Ints
    read: Ints
    at: Ints
    """`number`, `read`, `at`: (hops,) int64. By hop: how many of `matches` there are; tuples of the
    runs, with each of which a scan compares; the next of the matches."""
    depth: Ints
    """(2,) int64. The hop, -1 at the end; how many of `going` there are."""
    members: Ints
    """(m,) int64. By stream."""
    passes: Ints
    """(hops,) int64. Tuples gone on with at each hop."""


def new_walk(streams: MultiStreams, plans: Plans, found: Ints | None = None, runs: int = 1) -> Walk:
    """Return room for the walks of a thread; memory is used as it is needed.

    Parameters
    ----------
    found : (matches,) int64, optional
        Matches that were found before.
    runs : int
        Of plans that may follow, at most.
    """
    hops = streams.number - 1
    room = int(np.diff(streams.first).max(initial=0)) + 1
    runs = max(runs, int((plans.first[:, -1] - plans.first[:, 0]).max()))
    number, read, at, passes = np.zeros((4, hops), np.int64)
    matches = np.empty(hops * room, np.int64) if found is None else found
    return Walk(
        np.zeros((2, runs, 2), np.int64), matches, np.zeros(hops, np.int64),
        np.empty(room + WORD), np.empty(room, np.int64), number, read, at, np.zeros(2, np.int64),
        np.zeros(hops + 1, np.int64), passes,
    )  # fmt: skip
