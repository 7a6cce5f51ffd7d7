"""How large the values are that aggregates add up, tuple by tuple, for size `values`.

A few tuples can have most of a sum. Left to the same chance as others, a sample without them has
too small a mean and too small a variance; so tuples of large values are kept more often.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from engine.archives import families
from engine.archives.numbers import as_float64
from engine.lanes.parts import IMPORTANCE
from engine.lanes.reader import LaneBatch, LaneFiles, lane_batches
from engine.runtime.jit import Floats
from engine.runtime.streams import SIDES, StreamBatch
from engine.sampling.aggregates.spec import AggregateSpec, added_up
from engine.sampling.sizes import MEAN_DIGITS, rounded

VALUED = 0.4
"""Share of a tuple's size that goes by how large its values are."""


class Values(NamedTuple):
    """The values of one side's tuples that aggregates add up."""

    columns: tuple[str, ...] = ()
    """As lanes store them."""
    means: tuple[float, ...] = ()
    """Of their magnitudes."""

    def factors(self, batch: StreamBatch, payload: pa.Table | None) -> Floats | None:
        """Return by what the sizes of tuples are multiplied: (n,) float64, None if by nothing.

        1 where a tuple's values are as large as they are on average, or where it has none.
        """
        means = zip(self.columns, self.means, strict=True)
        known = [(name, mean) for name, mean in means if 0 < mean < np.inf]
        if not known:
            return None
        large = [np.nan_to_num(_magnitudes(name, batch, payload) / mean, nan=1.0)
                 for name, mean in known]  # fmt: skip
        found: Floats = (1 - VALUED) + VALUED * np.mean(large, axis=0)
        return found


def stored_values(specs: Sequence[AggregateSpec]) -> list[list[tuple[int, str]]]:
    """Return what aggregates add up, as `added_up`, with columns as lanes store them."""
    return [
        [(at, name if name == IMPORTANCE else f"{SIDES[at]}_{name}") for at, name in own]
        for own in added_up(specs, (IMPORTANCE, IMPORTANCE))
    ]


def columns_of(specs: Sequence[AggregateSpec]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns of left and right that aggregates add up, as lanes store them."""
    every = dict.fromkeys(one for own in stored_values(specs) for one in own)
    left, right = (tuple(name for at, name in every if at == side) for side in (0, 1))
    return left, right


def batches(files: LaneFiles, columns: tuple[Collection[str], ...]) -> Iterator[LaneBatch]:
    """Yield a lane with the columns of left and right, as they are stored."""
    names = frozenset(name for own in columns for name in own) - {IMPORTANCE}
    yield from lane_batches(files.left, files.right, payload=names)


@dataclass(frozen=True)
class ValuesTask:
    """A pass over a lane for the mean magnitudes of its values."""

    files: LaneFiles
    columns: tuple[tuple[str, ...], tuple[str, ...]]
    """Of left and right."""


class LaneSums(NamedTuple):
    """Sums of magnitudes, of the columns of left and then right: (n,) float64 each."""

    total: Floats
    number: Floats
    """How many values are finite."""


def sum_values(task: ValuesTask) -> LaneSums:
    """Return the sums of a lane's magnitudes. Memory: a batch."""
    total = np.zeros((2, sum(map(len, task.columns))))
    for batch in batches(task.files, task.columns):
        parts = []
        for side, names in enumerate(task.columns):
            payload = (batch.left_payload, batch.right_payload)[side]
            own = (batch.left, batch.right)[side]
            parts += [_magnitudes(name, own, payload) for name in names]
        with np.errstate(over="ignore"):  # a mean that is not finite tells nothing
            sums = [np.nansum(own) for own in parts]
            total += [sums, [np.isfinite(own).sum() for own in parts]]
    return LaneSums(*total)


def values_of(
    columns: tuple[tuple[str, ...], tuple[str, ...]], lanes: Sequence[LaneSums]
) -> tuple[Values, Values]:
    """Return the values of left and right, with the means of all lanes."""
    with np.errstate(over="ignore"):
        total, number = np.sum([[own.total, own.number] for own in lanes], axis=0)
    means = rounded(total / np.maximum(number, 1), MEAN_DIGITS).tolist()
    left = len(columns[0])
    return (Values(columns[0], tuple(means[:left])), Values(columns[1], tuple(means[left:])))


def _magnitudes(name: str, batch: StreamBatch, payload: pa.Table | None) -> Floats:
    """Return the magnitudes of a column: (n,) float64, NaN where there is no finite value."""
    if name == IMPORTANCE:
        return np.abs(batch.importance)
    if payload is None or not payload.num_rows:  # a side may have no rows, and no columns then
        return np.empty(0)
    cells = payload.column(name).combine_chunks()
    if families.family(cells.type) in ("string", "binary"):  # whoever adds them up says so
        return np.full(len(cells), np.nan)
    numbers = as_float64(cells)
    found = np.abs(numbers.to_numpy(zero_copy_only=False))
    return np.where(np.isfinite(found), found, np.nan)
