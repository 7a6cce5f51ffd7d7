"""Stretches through facts: every tuple stands once for each fact that is active at its arrival.

Two tuples join through a fact that is active at both arrivals (contract, section 5). So tuples
whose keys are the facts that they meet share a key as often as they join.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from engine.archives.canonical import LANE_SEED, codes
from engine.archives.normalise import Normalised
from engine.archives.stretches import Meets
from engine.facts.access import access_by
from engine.facts.lookup import FactLookup
from engine.facts.read import FactTable, read_facts
from engine.facts.relation import parts_of
from engine.lanes.facts import FactInput, summary_of
from engine.runtime.jit import Ints


class _LookedUp(NamedTuple):
    """A fact relation in memory."""

    table: FactTable
    sides: tuple[FactLookup, FactLookup]


@lru_cache(maxsize=2)
def _looked_up(fact: FactInput, access: str, bad_rows: str) -> _LookedUp:
    """Return a fact relation; once for all tasks of a process."""
    table = read_facts(*fact, bad_rows=bad_rows)
    left, right = (
        FactLookup(table.facts, access_by(access, own), table.values[side])
        for side, own in enumerate((table.facts.a, table.facts.b))
    )
    return _LookedUp(table, (left, right))


@dataclass(frozen=True)
class ThroughFacts:
    """The fact relation that joins both streams; a task reads it where it runs.

    Parameters
    ----------
    fact : FactInput
    access : {"scan", "index", "hash", "binary"}
    bad_rows : {"error", "quarantine"}
    """

    fact: FactInput
    access: str
    bad_rows: str

    @property
    def report(self) -> dict[str, int]:
        """What was read of the relation."""
        table = _looked_up(self.fact, self.access, self.bad_rows).table
        return summary_of(table, parts_of(table.facts)).report

    def side(self, side: int) -> Meets:
        """Return what tells the facts that tuples of a side meet."""
        return _OfSide(self, side)

    def met(self, side: int, found: Normalised) -> tuple[Ints, Ints]:
        """Return tuples, as often as a fact is active at their arrival, and their new keys.

        Returns
        -------
        (n,) int64, (n,) int64
            Positions among the tuples, ascending; the fact's number, or with partitions a code of
            both.
        """
        table, sides = _looked_up(self.fact, self.access, self.bad_rows)
        size = found.ts.size
        key = found.key if table.seed == LANE_SEED else codes(found.keys, table.seed, size)
        parts = [*sides[side].matches(key, found.ts, found.keys)]
        none = np.empty(0, np.int64)
        row = np.concatenate([none, *(own.arrival for own in parts)])
        fact = np.concatenate([none, *(own.fact for own in parts)])
        if not found.groups:
            return row, fact
        groups = [own.take(pa.array(row)) for own in found.groups]
        return row, codes([pa.array(fact), *groups], LANE_SEED, row.size)


@dataclass(frozen=True)
class _OfSide:
    facts: ThroughFacts
    side: int

    def __call__(self, found: Normalised) -> tuple[Ints, Ints]:
        """Return tuples by the facts that they meet."""
        return self.facts.met(self.side, found)
