"""Exact multi-way window joins, as fast as their predicate allows (method `auto`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from engine.exact.checks import EVERY, first_counted, sealed, thread_count
from engine.exact.combine import combine_code, combined
from engine.exact.unexpired import paged
from engine.multiway.exact import layout
from engine.multiway.exact.layout import (
    ExactRules,
    ExactTallies,
    OutputChunk,
    SlicePart,
    weighed_chunk,
)
from engine.multiway.exact.plan import Cut, Keys, cuts, keys_of, memory, part_of, plan_of
from engine.multiway.exact.spans import same
from engine.multiway.exact.sweep import sweep
from engine.multiway.exact.tiles import MakePropose, Tiles
from engine.multiway.predicate import Predicate, condition
from engine.multiway.streams import Attributes, MultiStreams, Windows
from engine.runtime.errors import InputError
from engine.runtime.executors import ordered_map
from engine.runtime.jit import Floats, Ints
from engine.runtime.work import as_here, gauged
from gpu_kernels.combine import MEAN, SUM, neumaier

T = TypeVar("T")
Finish: TypeAlias = Callable[[Ints], T]
"""Makes a chunk of the members of outputs."""

_CHUNK = 1 << 18
_COUNTABLE = 2.0**63 * (1 - 2.0**-40)
_LAST = int(np.iinfo(np.int64).max)


class ExactTotals(NamedTuple):
    """The totals of an exact join."""

    outputs: int
    importance: float
    """Of all outputs, added up with compensation."""
    outputs_by_bin: Ints
    """(b,) int64."""
    importance_by_bin: Floats
    """(b,) float64. By the outputs' ts; nothing without edges."""


class ExactJoin:
    """The exact multi-way window join of streams in memory.

    By predicate: equal codes are looked up; bands are stretches of the order of value, counted 64
    tuples at a time; distances are looked up in cells of a grid; inner products are added up from
    inverted lists; dense vectors are found by tiles of matrix products; a function is tried on all
    tuples in reach. Outputs are counted as products of lists as far as they are products. Threads
    work on slices of time, which depend on the data alone, and so do the results.

    Parameters
    ----------
    streams : MultiStreams
        2 to 8, each in order of (ts, row).
    graph : {"clique", "star"}
        Whether all members of an output meet, or the latest meets the others.
    combine : {"min", "sum", "product", "max", "mean"}
    start_ts : int, optional
        Outputs before this tick are left out. The time of an output is its latest member's.
    orders : sequence of sequences of int, optional
        For every stream the order in which the others are joined to its tuples, where cliques
        need comparisons; by default the fewest candidates first.
    threads : int, optional
        All CPUs unless given.
    slices : (int, int), optional
        Only the outputs with ``begin <= ts < end``: what slices of time hold adds up.
    top : int, optional
        Of each other stream only the best matches of an output's latest tuple, so many at most; of
        vectors, for two streams or a star.
    propose : callable, optional
        Proposes matches of dense vectors in place of the CPU, see `engine.device.vectors`.

    Examples
    --------
    >>> from engine.multiway.streams import no_attributes, windows_of
    >>> ts = np.array([0, 1, 2, 1, 2, 1, 2, 3])
    >>> codes = no_attributes(8)._replace(code=np.array([7, 7, 8, 7, 8, 7, 8, 7]))
    >>> streams = MultiStreams(np.array([0, 3, 5, 8]), ts, np.arange(8), np.ones(8), codes)
    >>> join = ExactJoin(streams, windows_of([2, 2, 2]), Predicate("equi", ("k",)))
    >>> join.count().outputs
    4
    >>> [chunk.members.tolist() for chunk in join.outputs(100)]
    [[[0, 3, 5], [1, 3, 5], [2, 4, 6], [1, 3, 7]]]
    """

    def __init__(
        self,
        streams: MultiStreams,
        windows: Windows,
        predicate: Predicate,
        *,
        graph: str = "clique",
        combine: str = "min",
        start_ts: int | None = None,
        orders: Sequence[Sequence[int]] | None = None,
        threads: int | None = None,
        slices: tuple[int, int] | None = None,
        top: int | None = None,
        propose: MakePropose | None = None,
    ) -> None:
        begin, end = (EVERY, _LAST + 1) if slices is None else slices
        self._streams, self._predicate = _sealed(streams), predicate
        self._windows = Windows(
            np.array(windows.size, np.int64), np.array(windows.by_rows, np.bool_)
        )
        self._whole = Cut(max(begin, first_counted(start_ts)), min(end, _LAST + 1) - 1)
        self._threads = thread_count(threads)
        self._combine = combine_code(combine)
        self._clique = graph == "clique" and streams.number > 2 and not predicate.transitive
        none = np.zeros((streams.number, 0), np.int64)
        self._order = none if orders is None else np.array(orders, np.int64)
        self._top, self._propose = top, propose
        self._plan = plan_of(predicate, streams.attributes.value.shape[1], scored=top is not None)

    def count(self, edges: Ints | None = None) -> ExactTotals:
        """Return how many outputs there are, and their importance.

        Parameters
        ----------
        edges : (b + 1,) int64, optional
            Ascending times: outputs are also added up by ``edges[i] <= ts < edges[i + 1]``.

        Raises
        ------
        InputError
            If there are more than int64 can count.
        """
        rules = self._rules(emit=False)
        bounds = np.array([] if edges is None else edges, np.int64)
        one = partial(self._slice_totals, rules, bounds)
        parts = self.parts
        if len(parts) == 1 or self._threads == 1:
            found = [one(part) for part in parts]
        else:
            with ThreadPoolExecutor(self._threads, **as_here()) as pool:
                found = list(pool.map(one, parts))
        return _added(found, rules.constant, max(bounds.size - 1, 0))

    def outputs(self, chunk_rows: int = _CHUNK) -> Iterator[OutputChunk]:
        """Yield the outputs, in order of the arrival of their latest member.

        Those of one latest member are in an order that depends on the streams alone.
        O(chunk_rows * threads) memory besides that of the tuples in reach.

        Parameters
        ----------
        chunk_rows : int
            Most outputs a chunk, 1 or more. No chunk is empty.
        """
        return self._chunks(chunk_rows, partial(weighed_chunk, self._streams, self._combine))

    def members(self, chunk_rows: int = _CHUNK) -> Iterator[Ints]:
        """Yield the members of the outputs alone, (n, m) places, in the order of `outputs`."""
        return self._chunks(chunk_rows, np.asarray)

    @property
    def streams(self) -> MultiStreams:
        """What is joined."""
        return self._streams

    @property
    def windows(self) -> Windows:
        """Their windows."""
        return self._windows

    @property
    def whole(self) -> Cut:
        """The time whose outputs there are."""
        return self._whole

    @cached_property
    def parts(self) -> list[SlicePart]:
        """The slices of time that threads work on."""
        if self._whole.begin > self._whole.last or not np.diff(self._streams.first).all():
            return []
        slices = None if self._tiles is None else self._tiles.slices
        found = cuts(self._streams, self._windows, self._whole, self._keys[0], slices)
        return [part_of(self._streams, self._windows, cut) for cut in found]

    @property
    def threads(self) -> int:
        """How many threads work at once."""
        return min(self._threads, len(self.parts))

    @property
    def multiplies(self) -> bool:
        """Whether matches are found by products of matrices, and little else takes time."""
        return not self.is_alone and not self._clique

    @property
    def is_alone(self) -> bool:
        """Whether a thread finds matches without others, which multiply matrices."""
        return self._plan != layout.TILES

    def counted(self, part: SlicePart) -> int:
        """Return how many outputs a part of the join has."""
        none = np.zeros(0, np.int64)
        return int(self._slice_totals(self._rules(emit=False), none, part).total[0])

    def found(self, part: SlicePart, chunk_rows: int = _CHUNK) -> Iterator[OutputChunk]:
        """Yield the outputs of a part of the join."""
        finish = partial(weighed_chunk, self._streams, self._combine)
        return self._slice_chunks(self._rules(emit=True), chunk_rows, finish, part)

    @cached_property
    def _keys(self) -> Keys:
        return keys_of(self._plan, self._streams, self._predicate)

    @cached_property
    def _tiles(self) -> Tiles | None:
        if self._plan != layout.TILES:
            return None
        return Tiles(self._streams, self._windows, self._predicate, self._top, self._propose)

    def _rules(self, *, emit: bool) -> ExactRules:
        return ExactRules(
            self._plan, self._clique, self._combine,
            constant_of(self._streams, self._combine), emit, self._windows.size,
            self._windows.by_rows, self._order, condition(self._predicate),
        )  # fmt: skip

    def _slice_totals(self, rules: ExactRules, edges: Ints, part: SlicePart) -> ExactTallies:
        own = memory(rules, self._streams, self._keys, part, edges, self._tiles)
        none = np.zeros((0, self._streams.number), np.int64)
        with gauged(own.arrived):
            sweep(rules, self._streams, *own, none)
        return own.tallies

    def _chunks(self, rows: int, finish: Finish[T]) -> Iterator[T]:
        source = partial(self._slice_chunks, self._rules(emit=True), rows, finish)
        parts = self.parts
        if len(parts) == 1 or self._threads == 1:
            return (chunk for part in parts for chunk in source(part))
        return ordered_map(source, parts, self._threads)

    def _slice_chunks(
        self, rules: ExactRules, rows: int, finish: Finish[T], part: SlicePart
    ) -> Iterator[T]:
        none = np.zeros(0, np.int64)
        own = memory(rules, self._streams, self._keys, part, none, self._tiles)
        progress = own.tallies.progress
        sides = self._streams.number
        while not progress[layout.DONE]:
            progress[layout.WRITTEN] = 0
            members = paged(rows * sides, np.int64).reshape(rows, sides)
            with gauged(own.arrived):
                sweep(rules, self._streams, *own, members)
            if progress[layout.WRITTEN]:
                found = members[: progress[layout.WRITTEN]]
                # a chunk that is kept should not keep much more
                yield finish(found if 2 * len(found) > rows else found.copy())


def _sealed(streams: MultiStreams) -> MultiStreams:
    """Return the streams with arrays of fixed types, so that everything is compiled once."""
    own = streams.attributes
    attributes = Attributes(
        sealed(own.code, np.int64),
        np.require(own.value, np.float64, ["C", "W"]),  # as theta functions take it
        sealed(own.first, np.int64), sealed(own.item, np.int64), sealed(own.weight, np.float64),
    )  # fmt: skip
    return MultiStreams(
        sealed(streams.first, np.int64), sealed(streams.ts, np.int64),
        sealed(streams.row, np.int64), sealed(streams.importance, np.float64), attributes,
    )  # fmt: skip


def constant_of(streams: MultiStreams, combine: int) -> float:
    """Return the importance of every output, NaN if it differs or there is none."""
    sides = streams.number
    step = SUM if combine == MEAN else combine
    value = np.nan
    for side in range(sides):
        own = streams.importance[streams.part(side)]
        if not own.size or not same(own):
            return float("nan")
        value = float(own[0]) if side == 0 else combined(step, value, float(own[0]))
    return value / sides if combine == MEAN else value


def _added(found: Sequence[ExactTallies], constant: float, bins: int) -> ExactTotals:
    """Return the totals of all slices, added up in their order."""
    estimate = sum(float(own.sums[layout.OUTPUTS]) for own in found)
    if estimate > _COUNTABLE:
        raise InputError(
            f"about {estimate:.3g} outputs are more than int64 can count: join shorter windows, "
            "or a slice of time"
        )
    outputs = sum(int(own.total[0]) for own in found)
    by_bin, importance_by_bin = np.zeros(bins, np.int64), np.zeros(bins)
    high = rest = 0.0
    for own in found:
        by_bin += own.outputs
        importance_by_bin += own.importance
        high, rest = neumaier(high, rest, float(own.sums[layout.HIGH]))
        high, rest = neumaier(high, rest, float(own.sums[layout.REST]))
    if constant >= 0:
        importance_by_bin = np.asarray(by_bin * constant, np.float64)
        return ExactTotals(outputs, outputs * constant, by_bin, importance_by_bin)
    return ExactTotals(outputs, high + rest, by_bin, importance_by_bin)
