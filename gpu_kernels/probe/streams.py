"""What the probe joins: two streams of many lanes, and their windows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.devices import Array

NAMES = ("left", "right")


class ProbeError(ValueError):
    """Invalid arguments of the probe."""


class TooWideError(RuntimeError):
    """Lanes, keys and times of a piece need more than 64 bits; a smaller piece needs fewer."""


class Stream(NamedTuple):
    """One stream of all lanes; host or device arrays.

    Of one lane, tuples of one ts arrive in the order of their positions; the stream need not be
    sorted otherwise, but is worked off faster if it is, by (lane, ts).
    """

    ts: Array
    """(n,) int64. Arrival times in ticks."""
    key: Array
    """(n,) integers. Join attribute; its meaning is its lane's own."""
    lane: Array | None = None
    """(n,) integers. 0 or more; lane 0 unless given."""
    importance: Array | None = None
    """(n,) float64. Needed for sums."""


class Windows(NamedTuple):
    """Windows of every lane: ticks for which tuples are matched after their arrival, closed."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    """`left`, `right`: (lanes,) int64. Host arrays."""

    def of(self, first: int, last: int) -> Windows:
        """Return the windows of lanes ``first .. last - 1``."""
        return Windows(self.left[first:last], self.right[first:last])


def checked_windows(left: object, right: object) -> Windows:
    """Return windows as arrays.

    Parameters
    ----------
    left, right : int or (lanes,) int64
        Ticks.

    Raises
    ------
    ProbeError
        If there are none, they are not as many, or one is negative.
    """
    windows = Windows(*(np.atleast_1d(np.asarray(w, np.int64)) for w in (left, right)))
    if len(windows.left) != len(windows.right) or len(windows.left) == 0:
        raise ProbeError(
            f"{len(windows.left)} windows of stream left and {len(windows.right)} of stream right; "
            "give one of each a lane"
        )
    for name, window in zip(NAMES, windows, strict=True):
        if (least := int(window.min())) < 0:
            raise ProbeError(f"window {least} of stream {name} must be 0 ticks or more")
    return windows


def on_host(array: Array) -> bool:
    """Return whether an array is in host memory."""
    return not hasattr(array, "__cuda_array_interface__")


def foreign_lane(name: str, lane: int) -> ProbeError:
    """Return the error of a lane without windows."""
    return ProbeError(
        f"lane {lane} of stream {name} must be 0 or more and less than the number of windows; "
        "give one of each stream a lane"
    )


def check_streams(left: Stream, right: Stream, *, weighed: bool) -> None:
    """Raise `ProbeError` unless the arrays of each stream are as long and those needed are there.

    Parameters
    ----------
    left, right : Stream
    weighed : bool
        Whether importance is needed.

    Raises
    ------
    ProbeError
        The columns are not of one length, or importance is missing.
    """
    for name, stream in zip(NAMES, (left, right), strict=True):
        if weighed and stream.importance is None:
            raise ProbeError(f"stream {name} has no importance; give one value a tuple")
        for column, array in stream._asdict().items():
            if array is not None and len(array) != len(stream.ts):
                raise ProbeError(
                    f"stream {name} has {len(stream.ts)} ts and {len(array)} values of {column}; "
                    "give one a tuple"
                )
