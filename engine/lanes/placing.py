"""Groups and lanes of tuples, and the order by lane: counted, not compared."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from engine.lanes.column_encoding import OFFSETS, SINGLES, WHOLE, Encoding
from engine.runtime.device_choice import ASKED_FOR_CPU, ON_CPU, ON_GPU, Wanted, attempt
from engine.runtime.jit import Floats, Ints, nth
from engine.runtime.jit import kernel as compiled
from engine.runtime.key_table import first_places
from gpu_kernels.devices import Choice

Lanes = NDArray[np.uint16]
Order = Ints


@compiled
def _place(hashes: NDArray[np.uint64], groups: Ints, lanes: np.uint64, out: Lanes) -> None:
    rest = lanes - np.uint64(1)
    if lanes & rest == 0:
        for i in range(hashes.size):
            out[i] = np.uint64(groups[i]) * lanes + (hashes[i] & rest)
    else:
        for i in range(hashes.size):
            out[i] = np.uint64(groups[i]) * lanes + hashes[i] % lanes


@compiled
def _count(lane: Lanes, counts: Ints) -> None:
    for i in range(lane.size):
        counts[lane[i]] += 1


@compiled
def _order(lane: Lanes, at: Ints, order: Order) -> None:
    for i in range(lane.size):
        place = at[lane[i]]
        order[place] = i
        at[lane[i]] = place + 1


@compiled
def _scatter(lane: Lanes, at: Ints, values: Ints | Floats, out: NDArray[Any]) -> None:
    for i in range(lane.size):
        place = at[lane[i]]
        out[nth(place)] = values[i]
        at[lane[i]] = place + 1


@compiled
def _scatter_offsets(lane: Lanes, at: Ints, values: Ints, base: int, out: NDArray[Any]) -> None:
    for i in range(lane.size):
        place = at[lane[i]]
        out[nth(place)] = values[i] - base
        at[lane[i]] = place + 1


def hash_lanes(hashes: NDArray[np.uint64], groups: Ints, lanes: int) -> Lanes:
    """Return each tuple's lane: ``group * lanes + hash % lanes``.

    Parameters
    ----------
    hashes : (n,) uint64
    groups : (n,) int64
    lanes : int
        A group; at most 65,536 in all groups.

    Returns
    -------
    (n,) uint16
    """
    out = np.empty(hashes.size, np.uint16)
    _place(hashes, groups, np.uint64(lanes), out)
    return out


def lane_counts(lane: Lanes, lanes: int) -> Ints:
    """Return how many tuples each of so many lanes has: (lanes,) int64."""
    counts = np.zeros(lanes, np.int64)
    _count(lane, counts)
    return counts


def by_lane(lane: Lanes, counts: Ints) -> Order:
    """Return the stable order by lane, given each lane's tuples: (n,) int64. O(n + lanes)."""
    order = np.empty(lane.size, np.int64)
    _order(lane, np.cumsum(counts) - counts, order)
    return order


def in_lanes(values: NDArray[Any], encoding: Encoding, lane: Lanes, counts: Ints) -> NDArray[Any]:
    """Return values, encoded one by one, in the stable order by lane, which is not made for it.

    Parameters
    ----------
    values : (n,) int64 or float64
    encoding : Encoding
        Of these values.
    lane : (n,) uint16
    counts : (lanes,) int64
    """
    out = np.empty(values.size, encoding.stored(values.dtype))
    at = np.cumsum(counts) - counts
    if encoding.kind == OFFSETS:
        _scatter_offsets(lane, at, values, encoding.base, out)
    elif encoding.kind in (SINGLES, WHOLE):
        _scatter(lane, at, values, out)
    else:
        _scatter(lane, at, values.view(np.int64), out.view(np.int64))
    return out


def first_rows(lane: Lanes, code: Ints) -> Ints:
    """Return for each row the first one of the same lane and code: (n,) int64.

    Parameters
    ----------
    lane : (n,) uint16
    code : (n,) int64

    Examples
    --------
    >>> first_rows(np.array([0, 1, 0, 0, 1], np.uint16), np.array([7, 7, 7, 8, 7])).tolist()
    [0, 1, 0, 3, 1]
    """
    first = first_places(code)
    if (lane[first] == lane).all():
        return first
    return first_places(first * (int(lane.max()) + 1) + lane)


Group = tuple[Any, ...]


def distinct_groups(columns: Sequence[pa.Array], rows: int) -> tuple[Ints, tuple[Group, ...]]:
    """Return the group of every row and the groups, ascending.

    Parameters
    ----------
    columns : sequence of pyarrow.Array
        Canonical partition columns; with none, all rows are of the one group ``()``.

    Returns
    -------
    ids : (n,) int64
        Place of each row's group among the groups.
    groups : tuple of tuple
        Python values; timestamps as ticks.
    """
    if not columns:
        return np.zeros(rows, np.int64), ((),)
    ids, number = np.zeros(rows, np.int64), 1
    for values in columns:
        encoded = pc.dictionary_encode(values)
        number *= len(encoded.dictionary)
        ids = ids * len(encoded.dictionary) + encoded.indices.to_numpy().astype(np.int64)
        if number > rows:  # so it stays below: no overflow
            kept, ids = np.unique(ids, return_inverse=True)
            number = kept.size
    found_at = np.full(number, -1)
    found_at[ids[::-1]] = np.arange(rows - 1, -1, -1)
    firsts = found_at[found_at >= 0]
    ids = (np.cumsum(found_at >= 0) - 1)[ids]
    taken = [_plain(values.take(pa.array(firsts))).to_pylist() for values in columns]
    found = list(zip(*taken, strict=True))
    order = sorted(range(len(found)), key=found.__getitem__)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[ids], tuple(found[i] for i in order)


def _plain(values: pa.Array) -> pa.Array:
    return values.view(pa.int64()) if pt.is_timestamp(values.type) else values


def json_group(group: Group, kinds: Sequence[pa.DataType]) -> list[Any]:
    """Return a group as JSON holds it: dates and times in ISO 8601, decimals as text, bytes in hex.

    Examples
    --------
    >>> json_group((7, 0), [pa.int64(), pa.timestamp("s")])
    [7, '1970-01-01T00:00:00']
    """
    shown: list[Any] = []
    for value, kind in zip(group, kinds, strict=True):
        if pt.is_timestamp(kind):
            shown.append(str(np.datetime64(value, kind.unit)))
        elif isinstance(value, dt.date):
            shown.append(value.isoformat())
        elif isinstance(value, Decimal):
            shown.append(str(value))
        elif isinstance(value, bytes):
            shown.append(value.hex())
        else:
            shown.append(value)
    return shown


_AT = "at"


def sorting_device(wanted: Wanted) -> Wanted:
    """Return where to sort: on the GPU wanted if cuDF is installed, which not every GPU user has.

    Without it a GPU that was demanded is used for what comes after.
    """
    if wanted.choice.device != ON_GPU:
        return wanted
    if find_spec("cudf") is None:
        return Wanted(Choice(ON_CPU, "cuDF is not installed"))
    return wanted


def lane_order(
    lane: Lanes, values: Ints, wanted: Wanted = ASKED_FOR_CPU, *, stable: bool = True
) -> Order:
    """Return the order by lane and, within a lane, by values.

    Parameters
    ----------
    lane : (n,) uint16
    values : (n,) int64
    stable : bool
        Whether rows equal in both keep their order; it is faster on the CPU if they need not.

    Returns
    -------
    (n,) int64
        A stable one is the same on every device. O(n log n).

    Raises
    ------
    DeviceError
        If a GPU was demanded and could not.
    """
    order, _ = attempt(wanted, lambda _: sorted_by_cudf(lane, values))
    return _by_numpy(lane, values, stable=stable) if order is None else order


def _by_numpy(lane: Lanes, values: Ints, *, stable: bool) -> Order:
    by_value = np.argsort(values, kind="stable" if stable else None)
    small = lane[by_value]
    return np.asarray(by_value[by_lane(small, lane_counts(small, int(small.max(initial=0)) + 1))])


def sorted_by_cudf(lane: Lanes, values: Ints) -> Order:
    """Return the stable order by lane and values, sorted on the current GPU.

    By the place as well: cuDF promises no stable sort, and a total order needs none. What comes
    back is looked through, O(n): an order that is none must never reach a file.

    Raises
    ------
    RuntimeError
        If the rows are not in order.
    """
    import cudf  # noqa: PLC0415 - optional, and slow to import

    frame = cudf.DataFrame({"lane": lane, "value": values, _AT: np.arange(len(lane))})
    order = np.asarray(frame.sort_values(["lane", "value", _AT])[_AT].to_numpy(), np.int64)
    if not _sorted(lane[order], values[order], order) or len(order) != len(lane):
        raise RuntimeError("cuDF returned rows out of order")
    return order


def _sorted(lane: Lanes, values: Ints, at: Order) -> bool:
    """Tell whether rows rise by (lane, value, place): then no place is there twice."""
    rises = at[1:] > at[:-1]
    for column in (values, lane):
        rises = (column[1:] > column[:-1]) | ((column[1:] == column[:-1]) & rises)
    return bool(rises.all())
