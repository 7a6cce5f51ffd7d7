"""Which opposite keys a key joins: itself, or those that a fact relation gives it.

In an equi-join a key joins the opposite key of its own id, and `KeyLinks` is None; the kernels are
then compiled without anything else. Through a fact relation (contract, section 5) the ids of the
two sides have nothing to do with each other: each has the opposite ids that it joins, once for
every fact.
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
    fact: NDArray[np.int32]
    """(links,) int32. Position of the fact."""
    until: Ints
    """(n,) int64. Ticks from which on ids match nothing any more, ascending (P2's dynamic
    pre-filter)."""
    ended: NDArray[np.int32]
    """(n,) int32. These ids."""


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
    return links.fact[place]


@compiled
def joins_nobody(links: KeyLinks | None, key: Integer) -> bool:
    """Tell whether no fact joins a key."""
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
