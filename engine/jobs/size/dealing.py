"""Over how many lanes the keys of a profile are best dealt, and what that gains."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.models.profile.model import ArrivalProfile

_FILLED = 0.8  # of the best speed-up found: from there on more lanes are not worth it


class Lanes(NamedTuple):
    """What hash lanes get of the streams, as expected."""

    shares: NDArray[np.float64]
    """(2, lanes) float64. Part of the tuples of left and right."""
    keys: NDArray[np.float64]
    """(lanes,) float64. Distinct keys."""


def lanes_expected(profile: ArrivalProfile, lanes: int) -> Lanes:
    """Deal the keys of a profile over lanes, by a hash that is as good as that of the lanes.

    Which key lies in which lane is only known once lanes are prepared. Keys that are not listed
    are dealt evenly. O(keys + lanes).
    """
    frequencies = profile.frequencies
    word = frequencies.counts.codes.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)  # splitmix64's
    lane = (word % np.uint64(lanes)).astype(np.int64)
    shares = np.empty((2, lanes))
    for side, name in enumerate(("left", "right")):
        counts = frequencies.counts[1 + side]
        rest = frequencies.rest[name]
        own = np.bincount(lane, counts, lanes) + rest / lanes
        shares[side] = own / max(1.0, own.sum())
    keys = np.bincount(lane, minlength=lanes) + frequencies.rest["keys"] / lanes
    return Lanes(shares, np.asarray(keys, np.float64))


def speed_up(profile: ArrivalProfile, lanes: Lanes, cores: int) -> float:
    """Return how much faster `cores` are than one, if a tuple takes the same time everywhere.

    Lanes are taken by the cores that fall free, the largest first, as the engine does.
    """
    rows = np.array([stream.rows for stream in profile.streams], np.float64)
    work = np.sort(rows @ lanes.shares)[::-1]
    if not work.sum():
        return 1.0
    busy = [0.0] * min(cores, work.size)
    for own in work.tolist():
        heapq.heappushpop(busy, busy[0] + own)
    return float(work.sum() / max(busy))


def lanes_chosen(profile: ArrivalProfile, cores: int) -> int:
    """Return the fewest lanes, in doublings, that keep cores about as busy as lanes can."""
    if cores == 1:
        return 1
    most = [cores << k for k in range(5)]
    found = [speed_up(profile, lanes_expected(profile, lanes), cores) for lanes in most]
    return next(n for n, own in zip(most, found, strict=True) if own >= _FILLED * max(found))
