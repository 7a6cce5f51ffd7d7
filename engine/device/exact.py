"""Exact two-way window equi-joins on a GPU: the arguments and results of the CPU's.

Streams of any size: what does not fit the device is worked off in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from engine.exact.checks import check_order, check_windows
from engine.exact.combine import combine_code
from engine.exact.count import ExactCount
from engine.exact.pairs import Pairs
from engine.runtime.errors import DeviceError, SpecError
from engine.runtime.streams import StreamBatch
from gpu_kernels.devices import Device

if TYPE_CHECKING:
    from gpu_kernels.probe import Stream

T = TypeVar("T")
_CHUNK = 1 << 22


def _ready(
    left: StreamBatch, right: StreamBatch, windows: tuple[int, int], device: Device | None
) -> tuple[Device, Stream, Stream]:
    """Check the arguments as the CPU does and return what the probe takes."""
    from gpu_kernels.devices import open_device  # noqa: PLC0415 - slow to import, optional
    from gpu_kernels.probe import Stream  # noqa: PLC0415 - the same

    check_windows(*windows)
    for side, batch in enumerate((left, right)):
        check_order(batch, side)
    streams = [
        Stream(
            np.ascontiguousarray(batch.ts, np.int64),
            np.ascontiguousarray(batch.key, np.int64),
            importance=np.ascontiguousarray(batch.importance, np.float64),
        )
        for batch in (left, right)
    ]
    return device or open_device(), streams[0], streams[1]


def _fitting(work: Callable[[], T]) -> T:
    """Return what `work` returns; a device without room for it is the user's to replace."""
    from gpu_kernels.probe import DoesNotFitError  # noqa: PLC0415 - slow to import, optional

    try:
        return work()
    except DoesNotFitError as error:
        raise DeviceError(str(error)) from error


def count_pairs_on_gpu(
    left: StreamBatch,
    right: StreamBatch,
    window_left: int,
    window_right: int,
    combine: str = "min",
    start_ts: int | None = None,
    device: Device | None = None,
) -> ExactCount:
    """Count the exact two-way window equi-join and add up its importance, on a GPU.

    Parameters are those of `engine.exact.count_pairs`; so is the result, but for the last digits
    of the sum.

    Parameters
    ----------
    device : Device, optional
        The current GPU unless given; the CUDA simulator where that is switched on.

    Returns
    -------
    ExactCount
        O(tuples + outputs).

    Raises
    ------
    SpecError
        A window is negative, a stream is out of order, or `combine` is unknown.
    DeviceError
        An instant's window is larger than the device memory.
    """
    from gpu_kernels.probe import sum_pairs  # noqa: PLC0415 - slow to import, optional

    combine_code(combine)
    windows = (window_left, window_right)
    joined = partial(sum_pairs, *_ready(left, right, windows, device), *windows)
    totals = _fitting(lambda: joined(combine, start_ts=start_ts))
    return ExactCount(int(totals.outputs[0]), float(totals.importance[0]))


def emit_pairs_on_gpu(
    left: StreamBatch,
    right: StreamBatch,
    window_left: int,
    window_right: int,
    *,
    start_ts: int | None = None,
    chunk: int = _CHUNK,
    dtype: type[np.signedinteger[Any]] = np.int64,
    device: Device | None = None,
) -> Iterator[Pairs]:
    """Yield the pairs of the exact two-way window equi-join from a GPU, a chunk at a time.

    Parameters are those of `engine.exact.emit_pairs`, and so is the order.

    Parameters
    ----------
    chunk : int
        Most pairs a chunk.
    device : Device, optional
        As for `count_pairs_on_gpu`.

    Yields
    ------
    (left, right) : (n,) `dtype` each
        Positions in the arrays of each stream. O(tuples + pairs) in all.

    Raises
    ------
    SpecError
        A window is negative, a stream is out of order, or positions do not fit `dtype`.
    DeviceError
        An instant's window is larger than the device memory.
    """
    from gpu_kernels.probe import emit_pairs  # noqa: PLC0415 - slow to import, optional

    if chunk < 1:
        raise SpecError(f"chunk {chunk} must be 1 pair or more")
    for batch in (left, right):
        if len(batch.ts) > np.iinfo(dtype).max:
            raise SpecError(f"{len(batch.ts)} rows do not fit {dtype.__name__}; use int64")
    windows = (window_left, window_right)
    joined = partial(emit_pairs, *_ready(left, right, windows, device), *windows)
    chunks = joined(start_ts=start_ts, chunk=chunk)
    return _narrowed(chunks, dtype)


def _narrowed(
    chunks: Iterator[tuple[Any, Any]], dtype: type[np.signedinteger[Any]]
) -> Iterator[Pairs]:
    while (pairs := _fitting(lambda: next(chunks, None))) is not None:
        left, right = pairs
        yield left.astype(dtype, copy=False), right.astype(dtype, copy=False)


def all_pairs_on_gpu(
    left: StreamBatch,
    right: StreamBatch,
    window_left: int,
    window_right: int,
    *,
    start_ts: int | None = None,
    dtype: type[np.signedinteger[Any]] = np.int64,
    device: Device | None = None,
) -> list[Pairs]:
    """Return all pairs of the exact two-way window equi-join at once, in chunks, from a GPU.

    Parameters are those of `emit_pairs_on_gpu`, and so is the order.

    Returns
    -------
    list of ((n,) `dtype`, (n,) `dtype`)
        O(tuples + pairs) host memory.
    """
    chunks = emit_pairs_on_gpu(
        left, right, window_left, window_right, start_ts=start_ts, dtype=dtype, device=device
    )
    return list(chunks)
