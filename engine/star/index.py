"""The index of a star join: versions of keys, and the facts of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.facts.access import group_by
from engine.facts.index import numbered, versions
from engine.facts.index import spans as spans_of
from engine.facts.relation import NEVER
from engine.runtime.errors import SpecError
from engine.runtime.jit import NONE, Ints, jit
from engine.runtime.streams import StreamBatch
from engine.star.layout import Shorts, StarStreams

_MOST = int(np.iinfo(np.int32).max)


class StarFacts(NamedTuple):
    """The fact relation of several streams, by row.

    F is a set. Facts of the same attributes and interval still count each: what else tells them
    apart is not kept here.
    """

    attributes: tuple[Ints, ...]
    """tuple of (n,) int64. Codes of the attribute that joins each stream: those of its
    `StreamBatch.key`."""
    begin: Ints
    end: Ints
    """`begin`, `end`: (n,) int64. Active-time interval, in ticks (see
    `engine.facts.relation.Facts`)."""
    row: Ints
    """(n,) int64. Position in its archive, ascending."""


class StarIndex(NamedTuple):
    """Streams ready to be replayed."""

    streams: StarStreams
    """Without draws."""
    facts: Ints
    """(k,) int64. Positions in F of the facts that have a tuple of every stream; the others join
    nothing."""
    until: tuple[Ints, ...]
    """tuple of (n,) int64. The ticks from which on the tuples of each stream match nothing any
    more: their own if they never do."""


@jit
def _by_version(low: Ints, high: Ints, at: Ints, facts: Shorts) -> None:
    """Go through the versions of each fact; count them in `at`, or write where `at` says."""
    for f in range(len(low)):
        for version in range(low[f], high[f]):
            if len(facts):
                facts[at[version]] = f
            at[version] += 1


class _StreamVersions(NamedTuple):
    """One stream: the versions in which its tuples arrive, and where each fact's begin and end."""

    version: Ints
    arrives: Ints
    ends: Ints
    span: Ints


def _side(
    batch: StreamBatch, group: Ints, attribute: Ints, facts: StarFacts
) -> tuple[_StreamVersions, Ints]:
    every = versions(attribute, facts.begin, facts.end)
    number = numbered(every, group, batch.ts)
    joined = np.flatnonzero(number != NONE)
    used, first, version = np.unique(number[joined], return_index=True, return_inverse=True)
    own = np.full(batch.ts.size, NONE)
    own[joined] = version
    last = np.zeros(used.size, np.int64)
    last[version] = batch.ts[joined]  # the last of equal places stays
    until = batch.ts.copy()
    until[joined] = every.until[number[joined]]
    arrives = np.column_stack([batch.ts[joined][first], last])
    span = np.searchsorted(used, spans_of(every, group_by(attribute), facts.begin, facts.end))
    return _StreamVersions(own, arrives, every.until[used], span), until


def star_index(
    batches: Sequence[StreamBatch], groups: Sequence[Ints], facts: StarFacts
) -> StarIndex:
    """Return the index of streams and F.

    Parameters
    ----------
    batches : sequence of StreamBatch
        Each stream whole, in arrival order.
    groups : sequence of (n,) int64
        Position of each tuple's attribute among the distinct ones of F, ascending; NONE where F
        lacks it.
    facts : StarFacts

    Returns
    -------
    StarIndex
        O(n log n) time for n tuples and facts, and O(facts that join each tuple) at most.

    Raises
    ------
    SpecError
        There are 2^31 tuples, or facts of versions, or more.
    """
    sides, untils = [], []
    for batch, group, attribute in zip(batches, groups, facts.attributes, strict=True):
        own, until = _side(batch, group, attribute, facts)
        sides.append(own)
        untils.append(until)
    spans = np.stack([own.span for own in sides], axis=1)
    alive = np.flatnonzero((spans[:, :, 0] < spans[:, :, 1]).all(axis=1))
    bases = np.concatenate([[0], np.cumsum([own.ends.size for own in sides])])
    spans = spans[alive] + bases[:-1, None]
    first = np.concatenate([[0], np.cumsum([batch.ts.size for batch in batches])])
    size = int((spans[:, :, 1] - spans[:, :, 0]).sum())
    for what, number in (("tuples", int(first[-1])), ("facts of versions", size)):
        if number > _MOST:
            raise SpecError(
                f"the streams have {number} {what}, more than 2^31: cut the archives into parts of "
                "time"
            )
    facts_of, by_version = _facts(spans, int(bases[-1]), size)
    ends, ended, ends_of = _ends(sides, bases)
    streams = StarStreams(
        first,
        np.concatenate([batch.ts for batch in batches]),
        np.concatenate([batch.importance for batch in batches]),
        np.concatenate(
            [
                np.where(s.version == NONE, NONE, s.version + b)
                for s, b in zip(sides, bases, strict=False)
            ]
        ).astype(np.int32),
        np.empty(0),
        facts_of,
        by_version,
        spans.reshape(-1, 2),
        np.concatenate([own.arrives for own in sides]),
        ends,
        ended,
        ends_of,
    )
    return StarIndex(streams, alive, tuple(untils))


def _facts(spans: Ints, versions: int, size: int) -> tuple[Ints, Shorts]:
    """Return the facts of each version, in their order."""
    count, facts = np.zeros(versions, np.int64), np.empty(size, np.int32)
    sides = spans.shape[1]
    for side in range(sides):
        _by_version(spans[:, side, 0].copy(), spans[:, side, 1].copy(), count, facts[:0])
    first = np.concatenate([[0], np.cumsum(count)])
    at = first[:-1].copy()
    for side in range(sides if size else 0):
        _by_version(spans[:, side, 0].copy(), spans[:, side, 1].copy(), at, facts)
    return first, facts


def _ends(sides: Sequence[_StreamVersions], bases: Ints) -> tuple[Ints, Shorts, Ints]:
    """Return when versions end, these versions, and where those of each stream begin."""
    ends, ended, first = [], [], [0]
    for own, base in zip(sides, bases, strict=False):
        finite = np.flatnonzero(own.ends != NEVER)
        order = finite[np.argsort(own.ends[finite], kind="stable")]
        ends.append(own.ends[order])
        ended.append(order + base)
        first.append(first[-1] + order.size)
    return np.concatenate(ends), np.concatenate(ended).astype(np.int32), np.array(first)
