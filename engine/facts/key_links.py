"""Which opposite keys a key joins: itself, or those that facts or a predicate give it.

In an equi-join a key joins the opposite key of its own id, and `KeyLinks` is None; the kernels are
then compiled without anything else. Through a fact relation (contract, section 5) the ids of the
two sides have nothing to do with each other: each has the opposite ids that it joins, once for
every fact. Under a predicate every tuple has an id of its own, and links to what it can meet.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import NONE, Integer, Ints, Records, prefetch
from engine.runtime.jit import kernel as compiled

NOBODY = 0
"""Id of tuples that no fact joins: they are never admitted (P2's pre-filter)."""


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


def no_key_links() -> KeyLinks:
    """Return the links of a side that no fact joins."""
    none = np.empty(0, np.int64)
    return KeyLinks(
        np.zeros(2, np.int64), none.astype(np.int32), none.astype(np.int32), none,
        none.astype(np.int32),
    )  # fmt: skip


@compiled
def span(links: KeyLinks | None, key: Integer) -> tuple[Integer, Integer]:
    """Return where a key's links begin and end, places for `linked_key`."""
    if links is None:
        return key, key + 1
    return links.first[key], links.first[key + 1]


@compiled
def linked_key(links: KeyLinks | None, place: Integer) -> Integer:
    """Return the opposite id at a place."""
    if links is None:
        return place
    return np.int64(links.other[place])


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
    return _kept(links.counts, key)


@compiled
def _kept(counts: NDArray[np.int32] | None, key: Integer) -> Integer:
    if counts is None:
        return np.int64(NONE)
    return np.int64(counts[key])


def without_counts(links: KeyLinks) -> KeyLinks:
    """Return links whose changes of counts nobody reads, of the same type."""
    return links._replace(counts=np.zeros(links.first.size, np.int32))


@compiled
def change_counts(links: KeyLinks | None, key: Integer, change: Integer) -> None:
    """Add to the match counts of all that a key joins, where they are kept. O(links of the key)."""
    if links is not None:
        _change(links.counts, links, key, change)


@compiled
def _change(
    counts: NDArray[np.int32] | None, links: KeyLinks, key: Integer, change: Integer
) -> None:
    if counts is not None:
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
    prefetch(links.first, far)
    place = links.first[near]
    if place < links.first[near + 1]:
        prefetch(keys, 2 * np.int64(links.other[place]))
    return True
