"""Launches of the range search: rules for a piece, and every query's list of partners."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gpu_kernels.devices import Array, Device
from gpu_kernels.probe.composite import Coded, blocks_for
from gpu_kernels.probe.kernels import count, listed
from gpu_kernels.probe.pieces import Piece
from gpu_kernels.probe.search import BOTH, THREADS, Rule
from gpu_kernels.probe.streams import Windows


class Options(NamedTuple):
    """What a join counts."""

    windows: Windows
    """Of all lanes."""
    mode: np.uint64
    """uint64. Which partners are searched for."""
    start_ts: int | None
    """Outputs before it do not count."""


class Search(NamedTuple):
    """A search for the partners of one side's tuples, ready to launch."""

    arguments: tuple[Array, ...]
    """own, other, distinct, behind, ahead, rule; see `gpu_kernels.probe.kernels.count`."""
    size: int
    """Number of queries."""


class Lists(NamedTuple):
    """The sorted queries' partners, by sorted position on the other side; (n,) int64 each."""

    starts: Array
    counts: Array


def rule_of(coded: Coded, piece: Piece, options: Options) -> Rule | None:
    """Return the rule of a piece for the left side, or None if none of its outputs counts."""
    span, layout = coded.span, coded.layout
    top = span.last_ts - span.first_ts
    start = 0 if options.start_ts is None else max(0, options.start_ts - span.first_ts)
    query_from, query_to = 0, top
    if piece.times is not None:
        query_from = max(0, piece.times[0] - span.first_ts)
        query_to = min(top, piece.times[1] - span.first_ts)
    if start > top or query_from > query_to:
        return None
    numbers = (
        (1 << layout.time_bits) - 1,
        (layout.key_bits + layout.time_bits) % 64,
        int(coded.ranked),
        int(options.mode),
        0,
        top,
        start,
        query_from,
        query_to,
    )
    return Rule(*(np.uint64(number) for number in numbers))


def searches(device: Device, coded: Coded, piece: Piece, options: Options) -> Iterator[Search]:
    """Yield the search of the left tuples and, unless they find all pairs, of the right ones."""
    rule = rule_of(coded, piece, options)
    if rule is None:
        return
    windows = [
        device.upload(window.astype(np.uint64)) for window in options.windows.of(*piece.lanes)
    ]
    for side in range(1 if options.mode == BOTH else 2):
        own, other = coded.sides[side], coded.sides[1 - side]
        arguments = (
            own.codes,
            other.codes,
            coded.distinct,
            windows[1 - side],
            windows[side],
            rule._replace(side=np.uint64(side)),
        )
        yield Search(arguments, len(own.codes))


def count_into(device: Device, search: Search, totals: Array) -> None:
    """Add the outputs of a search to their lanes' totals, (lanes,) int64."""
    device.launch(count, blocks_for(search.size), THREADS, (*search.arguments, totals))


def lists_of(device: Device, search: Search) -> Lists:
    """Return the partners of every query of a search."""
    lists = Lists(*(device.empty(search.size, np.int64) for _ in range(2)))
    device.launch(listed, blocks_for(search.size), THREADS, (*search.arguments, *lists))
    return lists
