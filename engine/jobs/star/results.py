"""What became of a star join: of its streams, of F, and of what joined."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

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
    """What a star join came to.

    Attributes
    ----------
    exact : Tally or None
        Of the exact join, where it was to be counted.
    top : list of (key, KeyLoss)
        Attributes of the first stream that lost most.
    edges, last
        Left edges of the time bins, and the last tick.
    part : str or None
        Name of the written file.
    schema : pyarrow.Schema
        Of the outputs.
    seconds : dict
        By stage.
    rejected : dict of str to (str, int)
        Names of the files of rejected rows, and how many there are.
    """

    streams: tuple[StreamResult, ...]
    fact: FactResult
    exact: Tally | None
    result: Tally
    top: list[tuple[object, KeyLoss]]
    edges: tuple[int, ...]
    last: int
    part: str | None
    schema: pa.Schema
    seconds: dict[str, float]
    rejected: dict[str, tuple[str, int]]
