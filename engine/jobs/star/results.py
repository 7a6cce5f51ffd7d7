"""What became of a star join: of its streams, of F, and of what joined."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from engine.jobs.bound.found import Bounds
from engine.jobs.exact.counting import Tally
from engine.jobs.exact.key_totals import KeyLoss


class StreamResult(NamedTuple):
    """What became of one stream."""

    rows: int
    joined: int
    null_keys: int
    rejected: int
    in_order: bool
    budget: int
    peak: int
    exact_peak: int


class FactResult(NamedTuple):
    """What became of F."""

    rows: int
    facts: int
    duplicates: int
    deletes: int
    null_keys: int
    between_ticks: int
    rejected: int


class StarResult(NamedTuple):
    """What a star join came to."""

    streams: tuple[StreamResult, ...]
    peak: int
    """Most tuples of all streams at once; of several memories, the sum of their peaks."""
    fact: FactResult
    exact: Tally | None
    """Of the exact join, where it was to be counted."""
    result: Tally
    top: list[tuple[object, KeyLoss]]
    """Attributes of the first stream that lost most."""
    edges: tuple[int, ...]
    last: int
    """`edges`, `last`: Left edges of the time bins, and the last tick."""
    part: str | None
    """Name of the written file."""
    schema: pa.Schema
    """Of the outputs."""
    seconds: dict[str, float]
    """By stage."""
    rejected: dict[str, tuple[str, int]]
    """Names of the files of rejected rows, and how many there are."""
    bounds: Bounds | None
    """Of the best possible, where that was asked for."""
