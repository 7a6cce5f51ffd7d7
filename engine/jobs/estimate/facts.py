"""Stretches through facts: every tuple stands once for each fact that is active at its arrival.

Two tuples join through a fact that is active at both arrivals (contract, section 5). So tuples
whose keys are the facts that they meet share a key as often as they join.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from engine.archives.canonical import LANE_SEED, codes
from engine.archives.normalise import Normalised
from engine.archives.stretches import Meets
from engine.facts.access import access_by
from engine.facts.lookup import FactLookup
from engine.lanes.facts import FactRelation
from engine.runtime.jit import Ints


@lru_cache(maxsize=2)
def _lookups(relation: FactRelation) -> tuple[FactLookup, FactLookup]:
    """Return what finds the facts of each side's attributes; once for all tasks of a process."""
    table = relation.table
    left, right = (
        FactLookup(table.facts, access_by(relation.access, own), table.values[side])
        for side, own in enumerate((table.facts.a, table.facts.b))
    )
    return left, right


def side_of(relation: FactRelation, side: int) -> Meets:
    """Return what tells the facts that tuples of a side meet."""
    return _OfSide(relation, side)


@dataclass(frozen=True)
class _OfSide:
    relation: FactRelation
    side: int

    def __call__(self, found: Normalised) -> tuple[Ints, Ints]:
        """Return tuples, as often as a fact is active at their arrival, and their new keys.

        Returns
        -------
        (n,) int64, (n,) int64
            Positions among the tuples, ascending; the fact's number, or with partitions a code of
            both.
        """
        lookup = _lookups(self.relation)[self.side]
        parts = [*lookup.matches(self.relation.codes(found), found.ts, found.keys)]
        none = np.empty(0, np.int64)
        row = np.concatenate([none, *(own.arrival for own in parts)])
        fact = np.concatenate([none, *(own.fact for own in parts)])
        if not found.groups:
            return row, fact
        groups = [own.take(pa.array(row)) for own in found.groups]
        return row, codes([pa.array(fact), *groups], LANE_SEED, row.size)
