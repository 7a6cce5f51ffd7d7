"""The time slices of an exact multi-way join, and the memory of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.multiway.exact.layout import (
    CELLS,
    EQUI,
    ITEMS,
    RANKS,
    SCAN,
    STATES,
    SUMS,
    TILES,
    Candidates,
    ExactRules,
    ExactTallies,
    Lists,
    Narrow,
    Ranks,
    SlicePart,
)
from engine.multiway.exact.lists import cells, empty_lists, of_codes
from engine.multiway.exact.spans import ranked
from engine.multiway.exact.sweep import closes
from engine.multiway.exact.tiles import Tiles
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, Windows, no_attributes
from engine.runtime.jit import Ints
from engine.runtime.key_table import KeyTable

_FEW = 1 << 13  # tuples of a slice, or more
_MOST = 256  # slices
_LEAST = 4
_SHORT, _LONG = 16, 8  # slices of one window each; windows a slice where there are more
_NARROW = 8  # dimensions up to which distances are looked up in cells
_KEYS = 16  # memory of keys a tuple that slices may touch in all

Keys = tuple[int, Narrow, Narrow]


def plan_of(predicate: Predicate, dimensions: int = 1, *, scored: bool = False) -> int:
    """Return the plan of a predicate, see `layout`.

    Parameters
    ----------
    dimensions : int
        Numbers of a tuple's attributes.
    scored : bool
        Whether the scores of matches are asked for.
    """
    distant = predicate.kind == "distance" and (dimensions > _NARROW or scored)
    if predicate.equal or distant or (predicate.dense and predicate.kind != "distance"):
        return TILES
    known = {"equi": EQUI, "band": RANKS, "distance": CELLS, "inner": ITEMS, "theta": SCAN}
    return known[predicate.kind]


def keys_of(plan: int, streams: MultiStreams, predicate: Predicate) -> Keys:
    """Return how many keys there are, the key of each tuple or item, and cells near each other."""
    own = streams.attributes
    if plan in (EQUI, ITEMS):
        return of_codes(own.code if plan == EQUI else own.item, interned)
    if plan == CELLS:
        return cells(own.value, predicate.bound)
    return 1, np.zeros(0, np.int32), np.zeros((0, 0), np.int32)


def interned(codes: Ints) -> tuple[int, Ints]:
    """Return how many different codes there are, and ids of codes: (n,) int64."""
    table = KeyTable()
    ids = table.intern(codes)
    return table.size, ids.astype(np.int64)


class Cut(NamedTuple):
    """A stretch of time."""

    begin: int
    last: int
    """`begin`, `last`: Outputs with ``begin <= ts <= last`` are its own; both fit int64."""


def within(ts: Ints, cut: Cut) -> tuple[int, int]:
    """Return where the times of a stretch begin and end among ascending ones."""
    begin = int(np.searchsorted(ts, cut.begin))
    return begin, max(begin, int(np.searchsorted(ts, cut.last, "right")))


def cuts(
    streams: MultiStreams, windows: Windows, whole: Cut, keys: int, slices: int | None = None
) -> list[Cut]:
    """Return stretches of about equal size, which depend on the data alone.

    As long as the longest window, or longer where there are many, as every slice repeats the
    insertions of the windows before it. Or, where `slices` are given, into so many.
    """
    sides = range(streams.number)
    spans = [within(streams.ts[streams.part(side)], whole) for side in sides]
    sizes = [high - low for low, high in spans]
    size, longest = sum(sizes), int(np.argmax(sizes))
    if size < 2 * _FEW and slices is None:
        return [whole]
    low, high = spans[longest]
    ts = streams.ts[streams.part(longest)][low:high]
    if slices is not None:
        return _cut_at(ts, whole, min(slices, ts.size))
    share = 1.0 / _MOST
    for side in sides:
        window = int(windows.size[side])
        length = sizes[side] if windows.by_rows[side] else int(ts[-1]) - int(ts[0]) + 1
        share = max(share, window / max(length, 1))
    longs = round(1 / share)
    parts = min(max(_LEAST, min(longs, max(_SHORT, longs // _LONG))), size // _FEW)
    parts = max(1, min(parts, _KEYS * size // (keys * streams.number)))
    return _cut_at(ts, whole, parts)


def _cut_at(ts: Ints, whole: Cut, parts: int) -> list[Cut]:
    """Return stretches with about equally many of the times."""
    first = {int(ts[0])} if ts.size else set()
    inner = sorted({int(ts[len(ts) * p // parts]) for p in range(1, parts)} - first)
    begins, lasts = [whole.begin, *inner], [*(begin - 1 for begin in inner), whole.last]
    return [Cut(*bounds) for bounds in zip(begins, lasts, strict=True)]


def part_of(streams: MultiStreams, windows: Windows, cut: Cut) -> SlicePart:
    """Return the tuples that a stretch of time needs: its own, and those in reach before it."""
    spans = [within(streams.ts[streams.part(side)], cut) for side in range(streams.number)]
    return numbered(streams, windows, cut.begin, spans)


def numbered(
    streams: MultiStreams, windows: Windows, begin: int, spans: Sequence[tuple[int, int]]
) -> SlicePart:
    """Return the tuples that some need which arrive from a time on: those, and what they reach.

    Parameters
    ----------
    begin : int
        No tuple of the spans is older.
    spans : sequence of (int, int)
        Where those of each stream begin and end within it.
    """
    firsts, shifts, owns = [0], [], []
    for side, (own, end) in enumerate(spans):
        span = streams.part(side)
        size = int(windows.size[side])
        if windows.by_rows[side]:
            low = max(0, own - size)
        else:
            least = max(begin - size, np.iinfo(np.int64).min)
            low = int(np.searchsorted(streams.ts[span], least))
        shifts.append(span.start + low - firsts[-1])
        owns.append(firsts[-1] + own - low)
        firsts.append(firsts[-1] + end - low)
    first, shift, own_first = (np.array(own, np.int64) for own in (firsts, shifts, owns))
    return SlicePart(first, shift, own_first)


class SliceMemory(NamedTuple):
    """What the sweep of a slice works on."""

    part: SlicePart
    lists: Lists
    ranks: Ranks
    work: Candidates
    tallies: ExactTallies

    def arrived(self) -> int:
        """Return how many of its own tuples have arrived, also while compiled code runs."""
        return int(np.maximum(self.work.cursor - self.part.own, 0).sum())


def memory(
    rules: ExactRules, streams: MultiStreams, keys: Keys, part: SlicePart, edges: Ints,
    tiles: Tiles | None,
) -> SliceMemory:  # fmt: skip
    """Return the memory of a slice with no live tuples, or, of tiles, all matches.

    O(its tuples, keys); of tiles, see `Tiles.lists`.
    """
    weighed = not (rules.emit or rules.constant >= 0)
    closed = weighed and closes(rules.combine)
    none = SlicePart(*(np.zeros(1, np.int64),) * 2, np.zeros(0, np.int64))
    if rules.plan == RANKS:
        epsilon = rules.condition.bound
        values = streams.attributes.value[:, 0]
        ranks = ranked(part, values, epsilon, least=rules.clique, weighed=weighed)
        lists = empty_lists(SCAN, none, no_attributes(0), (1, *keys[1:]), kept=False, summed=False)
    elif tiles is not None:
        ranks = ranked(none, np.zeros(0), 0.0, least=False, weighed=False)
        lists = tiles.lists(part)
    else:
        ranks = ranked(none, np.zeros(0), 0.0, least=False, weighed=False)
        kept = rules.plan != EQUI or rules.emit or (weighed and not closed)
        lists = empty_lists(rules.plan, part, streams.attributes, keys, kept=kept,
                            summed=rules.plan == EQUI and closed)  # fmt: skip
    work = _work(rules, part, pooled=rules.plan != EQUI, sorts=weighed and not closed)
    bins = max(edges.size - 1, 0)
    tallies = ExactTallies(
        edges, np.zeros(bins, np.int64), np.zeros(bins), np.zeros(STATES, np.int64),
        np.zeros(1, np.int64), np.zeros(SUMS),
    )  # fmt: skip
    return SliceMemory(part, lists, ranks, work, tallies)


def _work(rules: ExactRules, part: SlicePart, *, pooled: bool, sorts: bool) -> Candidates:
    sides = part.own.size
    tuples = int(part.first[-1])
    depths = max(2, sides - 1 if rules.clique else 1)
    pool = (depths * tuples if pooled else 0) + 2 * sides
    begin, size = np.zeros((2, sides, sides), np.int64)
    box_begin, box_size, counter, order, position, top = np.zeros((6, sides), np.int64)
    return Candidates(
        part.first[:-1].copy(), part.first[:-1].copy(),
        np.empty(pool, np.int32), np.empty(pool), np.zeros((tuples if sorts else 0) + 2 * sides),
        begin, size, box_begin, box_size, counter, order, position, top,
        np.full(tuples if rules.plan == ITEMS else 0, np.nan),
    )  # fmt: skip
