"""Which opposite keys a key joins: itself, or those that facts or a predicate give it.

In an equi-join a key joins the opposite key of its own id, and `KeyLinks` is None; the kernels are
then compiled without anything else. Through a fact relation (contract, section 5) the ids of the
two sides have nothing to do with each other: each has the opposite ids that it joins, once for
every fact. Under a predicate every tuple has an id of its own, and links to what it can meet. Where
ids go by value, and the predicate is a band, these are a stretch of ids: those that are counted at
present are bits, and the rest is passed over 64 at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.runtime.bits import counted, drop, following, put
from engine.runtime.jit import NONE, Integer, Ints, Records, prefetch
from engine.runtime.jit import kernel as compiled

NOBODY = 0
"""Id of tuples that no fact joins: they are never admitted (P2's pre-filter)."""


class Stretches(NamedTuple):
    """Links to stretches of ids, of tuples in order of value."""

    first: NDArray[np.int32]
    last: NDArray[np.int32]
    """`first`, `last`: (ids,) int32. Where each id's stretch begins and ends."""
    words: NDArray[np.uint64]
    """(ids / 64,) uint64. Which of the opposite ids are counted at present."""
    blocks: NDArray[np.int32]
    """(ids / 1024,) int32. How many."""
    own_words: NDArray[np.uint64]
    own_blocks: NDArray[np.int32]
    """`own_words`, `own_blocks`: The same of this side's ids."""


class KeyLinks(NamedTuple):
    """The links of one side's ids."""

    first: Ints
    """(ids + 1,) int64. Where each id's links begin; NOBODY has none."""
    other: NDArray[np.int32]
    """(links,) int32. Opposite ids, as often as there are facts that join the two."""
    fact: NDArray[np.int32] | None
    """(links,) int32. Position of the fact; None under a predicate."""
    until: Ints
    """(n,) int64. Ticks from which on ids match nothing any more, ascending (P2's dynamic
    pre-filter)."""
    ended: NDArray[np.int32]
    """(n,) int32. These ids."""
    counts: NDArray[np.int32] | None = None
    """(ids,) int32. Under a predicate the match counts of this side's ids as they stand, which
    change as tuples come and go; None where they are added up by key when they are asked for."""
    stretches: Stretches | None = None
    """Of ids that go by value; `first` and `other` are then empty."""

    @property
    def ids(self) -> int:
        """How many ids there are."""
        return self.first.size - 1 if self.stretches is None else self.stretches.first.size


def no_key_links() -> KeyLinks:
    """Return the links of a side that no fact joins."""
    none = np.empty(0, np.int64)
    return KeyLinks(
        np.zeros(2, np.int64), none.astype(np.int32), none.astype(np.int32), none,
        none.astype(np.int32),
    )  # fmt: skip


@compiled
def span(links: KeyLinks | None, key: Integer) -> tuple[Integer, Integer]:
    """Return where a key's links begin and end, places for `next_link` and `linked_key`."""
    if links is None:
        return key, key + 1
    return _span(links.stretches, links, key)


@compiled
def _span(stretches: Stretches | None, links: KeyLinks, key: Integer) -> tuple[Integer, Integer]:
    if stretches is None:
        return links.first[key], links.first[key + 1]
    end = np.int64(stretches.last[key])
    return following(stretches.words, np.int64(stretches.first[key]), end), end


@compiled
def next_link(links: KeyLinks | None, place: Integer, end: Integer) -> Integer:
    """Return the place of the next link."""
    if links is None:
        return place + 1
    return _next(links.stretches, place, end)


@compiled
def _next(stretches: Stretches | None, place: Integer, end: Integer) -> Integer:
    if stretches is None:
        return place + 1
    return following(stretches.words, place + 1, end)


@compiled
def linked_key(links: KeyLinks | None, place: Integer) -> Integer:
    """Return the opposite id at a place."""
    if links is None:
        return place
    return _other(links.stretches, links.other, place)


@compiled
def _other(stretches: Stretches | None, other: NDArray[np.int32], place: Integer) -> Integer:
    if stretches is None:
        return np.int64(other[place])
    return np.int64(place)


@compiled
def fact(links: KeyLinks | None, place: Integer) -> Integer:
    """Return the fact at a place, -1 in an equi-join."""
    if links is None:
        return np.int32(-1)
    return _at(links.fact, place)


@compiled
def _at(facts: NDArray[np.int32] | None, place: Integer) -> Integer:
    return np.int32(-1) if facts is None else facts[place]


@compiled
def kept_count(links: KeyLinks | None, key: Integer) -> Integer:
    """Return the match count of a key where it is kept, NONE where it is not."""
    if links is None:
        return np.int64(NONE)
    return _kept(links.stretches, links.counts, key)


@compiled
def _kept(stretches: Stretches | None, counts: NDArray[np.int32] | None, key: Integer) -> Integer:
    if stretches is not None:
        first, last = np.int64(stretches.first[key]), np.int64(stretches.last[key])
        return counted(stretches.words, stretches.blocks, first, last)
    if counts is None:
        return np.int64(NONE)
    return np.int64(counts[key])


def without_counts(links: KeyLinks) -> KeyLinks:
    """Return links whose changes of counts nobody reads, of the same type."""
    if (own := links.stretches) is not None:
        words, blocks = np.zeros_like(own.words), np.zeros_like(own.blocks)
        return links._replace(stretches=own._replace(own_words=words, own_blocks=blocks))
    return links._replace(counts=np.zeros(links.first.size, np.int32))


@compiled
def change_counts(links: KeyLinks | None, key: Integer, change: Integer) -> None:
    """Count a key, or no longer, among the matches of all that it joins, where they are kept.

    O(links of the key); of a stretch O(1).
    """
    if links is not None:
        _change(links.stretches, links.counts, links, key, change)


@compiled
def _change(
    stretches: Stretches | None, counts: NDArray[np.int32] | None, links: KeyLinks, key: Integer,
    change: Integer,
) -> None:  # fmt: skip
    if stretches is not None:
        if change > 0:
            put(stretches.own_words, stretches.own_blocks, key)
        else:
            drop(stretches.own_words, stretches.own_blocks, key)
    elif counts is not None:
        for place in range(links.first[key], links.first[key + 1]):
            counts[links.other[place]] += np.int32(change)


@compiled
def joins_nobody(links: KeyLinks | None, key: Integer) -> bool:
    """Tell whether a key is that of tuples that no fact joins."""
    if links is None:
        return False
    return bool(key == NOBODY)


@compiled
def next_ended(links: KeyLinks | None, at: Integer, now: Integer) -> Integer:
    """Return the id at place `at` of those that end, NONE if none has ended by `now`."""
    if links is None:
        return np.int64(NONE)
    if at >= links.until.size or links.until[at] > now:
        return np.int64(NONE)
    return np.int64(links.ended[at])


@compiled
def prefetch_links(links: KeyLinks | None, keys: Records, far: Integer, near: Integer) -> bool:
    """Have the links of two keys brought into the cache; False if they are the keys' own."""
    if links is None:
        return False
    _prefetch(links.stretches, links, keys, far, near)
    return True


@compiled
def _prefetch(
    stretches: Stretches | None, links: KeyLinks, keys: Records, far: Integer, near: Integer
) -> None:
    if stretches is None:
        prefetch(links.first, far)
        place = links.first[near]
        if place < links.first[near + 1]:
            prefetch(keys, 2 * np.int64(links.other[place]))
    else:
        prefetch(stretches.first, far)
        prefetch(stretches.last, far)
        last = np.int64(stretches.last[near])
        other = following(stretches.words, np.int64(stretches.first[near]), last)
        if other < last:
            prefetch(keys, 2 * other)
