"""What facts join, as kernels get it: the links of all lanes, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.device.columns import LaneColumns
from engine.facts.key_links import KeyLinks
from engine.replay.settings import ReplaySettings
from engine.runtime.jit import Ints
from gpu_kernels.devices import TooLargeError
from gpu_kernels.replay.layout import FOREVER
from gpu_kernels.replay.run import MOST_MATCHES, PartnerColumns


class Placed(NamedTuple):
    """The links of lanes."""

    columns: PartnerColumns | None
    """None in an equi-join."""
    begins: tuple[tuple[int, int], ...]
    """Where those of each lane's left and right keys begin."""


def windows_to_link(settings: Sequence[ReplaySettings]) -> tuple[int, int] | None:
    """Return within which windows tuples are linked for replays of one lane.

    The longest; None, for all that ever match, where the history estimator counts them.
    """
    if any(each.estimator == "history" for each in settings):
        return None
    return max(each.window_left for each in settings), max(each.window_right for each in settings)


def place_key_links(lanes: Sequence[LaneColumns]) -> Placed:
    """Put the links of lanes behind each other.

    Parameters
    ----------
    lanes : sequence of LaneColumns
        All joined through facts, or none.

    Returns
    -------
    Placed
        O(links * log(links)).

    Raises
    ------
    TooLargeError
        If a key has more matches than kernels count.
    """
    if not lanes or lanes[0].key_links is None:
        return Placed(None, ((0, 0),) * len(lanes))
    parts: list[PartnerColumns] = []
    begins = []
    keys = places = 0
    for lane in lanes:
        most = most_matches(lane)
        if most > MOST_MATCHES:
            raise TooLargeError(
                f"a tuple of a lane may match {most} times and kernels count to {MOST_MATCHES}; "
                "use --device cpu"
            )
        at = []
        for links in lane.key_links or ():
            part = _columns(links)
            at.append(keys)
            parts.append(part._replace(first=part.first + places))
            keys += part.first.size
            places += part.other.size
        begins.append((at[0], at[1]))
    first, other, end = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Placed(PartnerColumns(first, other, end), tuple(begins))


def _columns(links: KeyLinks) -> PartnerColumns:
    """Return a side's links, those of each key ascending."""
    ids = np.repeat(np.arange(links.first.size - 1), np.diff(links.first))
    width = 1 + int(links.other.max(initial=0))
    ordered = ids * width + links.other
    ordered.sort()
    end = np.full(links.first.size, FOREVER)
    end[links.ended] = links.until
    return PartnerColumns(links.first, (ordered % width).astype(np.int32), end)


def most_matches(lane: LaneColumns) -> int:
    """Return the most pairs that one tuple could have with all opposite ones, met or not."""
    if lane.key_links is None:
        return max(lane.left.ts.size, lane.right.ts.size)
    most = 0
    for links, opposite in zip(lane.key_links, (lane.right, lane.left), strict=True):
        sums = _sums(np.bincount(opposite.key, minlength=lane.keys)[links.other])
        most = max(most, int((sums[links.first[1:]] - sums[links.first[:-1]]).max(initial=0)))
    return most


def _sums(values: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
