"""Joins of many lanes, and what the probe must make of them, by brute force."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, NamedTuple

import naive
import numpy as np

from gpu_kernels import probe
from gpu_kernels.devices import SimulatedDevice
from gpu_kernels.probe import composite
from gpu_kernels.probe.streams import Stream

DEVICE = SimulatedDevice()


class Narrow(SimulatedDevice):
    """A device with little memory, that counts what was asked of it."""

    def __init__(self, free: int) -> None:
        self.free, self.largest, self.pieces = free, 0, 0

    def free_bytes(self) -> int:
        """Return the little there is."""
        return self.free

    def upload(self, array: Any) -> Any:
        """Note the largest array."""
        self.largest = max(self.largest, array.nbytes)
        return super().upload(array)

    def launch(self, kernel: Any, *arguments: Any, **options: Any) -> None:
        """Count the streams that were measured, two a piece."""
        self.pieces += kernel is composite.measure
        super().launch(kernel, *arguments, **options)


class OnDevice(np.ndarray):
    """An array that, as CuPy's do, refuses to meet arrays of the host."""

    __cuda_array_interface__ = None

    @staticmethod
    def refuse(values: Any) -> None:
        """Raise if a host array is among the values."""
        for value in values:
            if isinstance(value, (list, tuple)):
                OnDevice.refuse(value)
            elif isinstance(value, np.ndarray) and not isinstance(value, OnDevice):
                raise TypeError(f"a host array of shape {value.shape} meets a device array")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        self.refuse([*inputs, *options.get("out", ())])
        plain = [x.view(np.ndarray) if isinstance(x, OnDevice) else x for x in inputs]
        if out := options.get("out"):
            options["out"] = tuple(x.view(np.ndarray) for x in out)
        found = getattr(ufunc, method)(*plain, **options)
        return out[0] if out else np.asarray(found).view(OnDevice)

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        self.refuse([*inputs, *options.values()])
        found = super().__array_function__(function, types, inputs, options)
        return found.view(OnDevice) if isinstance(found, np.ndarray) else found

    def __getitem__(self, index: Any) -> Any:
        self.refuse([index])
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.refuse([index, value])
        super().__setitem__(index, value)


class Apart(Narrow):
    """A device whose memory is not the host's."""

    xp = SimpleNamespace(
        **{
            name: getattr(np, name)
            for name in ("concatenate", "unique", "searchsorted", "cumsum", "minimum", "where")
        },
        empty_like=lambda like: np.empty_like(like).view(OnDevice),
        arange=lambda *given: np.arange(*given).view(OnDevice),
    )

    def upload(self, array: Any) -> Any:
        """Return a device array; what is one already has no business here."""
        assert not isinstance(array, OnDevice)
        return super().upload(array).view(OnDevice)

    def empty(self, shape: Any, dtype: Any) -> Any:
        """Return a device array."""
        return super().empty(shape, dtype).view(OnDevice)

    def zeros(self, shape: Any, dtype: Any) -> Any:
        """Return a device array."""
        return super().zeros(shape, dtype).view(OnDevice)

    def download(self, array: Any) -> Any:
        """Return a host array; only what is on the device can be downloaded."""
        assert isinstance(array, OnDevice)
        return np.array(array.view(np.ndarray))

    def launch(self, kernel: Any, blocks: int, threads: int, arguments: Any, **more: Any) -> None:
        """Launch on plain arrays; none of the host's is among the arguments."""
        OnDevice.refuse(arguments)
        plain = [x.view(np.ndarray) if isinstance(x, OnDevice) else x for x in arguments]
        super().launch(kernel, blocks, threads, plain, **more)


class Join(NamedTuple):
    """Two streams of some lanes, (ts, key, lane, importance) a tuple, and windows."""

    left: list[tuple[int, int, int, float]]
    right: list[tuple[int, int, int, float]]
    windows: tuple[list[int], list[int]]

    def streams(self) -> tuple[Stream, Stream]:
        """Return both as the probe takes them."""
        return tuple(
            Stream(
                np.array([x[0] for x in rows], np.int64),
                np.array([x[1] for x in rows], np.int64),
                np.array([x[2] for x in rows], np.int64),
                np.array([x[3] for x in rows], np.float64),
            )
            for rows in (self.left, self.right)
        )  # type: ignore[return-value]


def brute(join: Join, start: int | None = None) -> list[tuple[int, int]]:
    """Every pair, by the definition (semantics 1)."""
    found = []
    for i, x in enumerate(join.left):
        for j, y in enumerate(join.right):
            if x[1:3] != y[1:3] or (start is not None and max(x[0], y[0]) < start):
                continue
            side, early, late = (0, x, y) if x[0] <= y[0] else (1, y, x)
            if late[0] - early[0] <= join.windows[side][x[2]]:
                found.append((i, j))
    return found


def in_order(join: Join, found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sort pairs by the arrival of the later member, then of the other."""

    def arrivals(pair: tuple[int, int]) -> Any:
        x, y = join.left[pair[0]], join.right[pair[1]]
        return sorted([(x[2], x[0], 0, pair[0]), (y[2], y[0], 1, pair[1])], reverse=True)

    return sorted(found, key=arrivals)


def drawn(seed: int, size: int, keys: int, times: int, lanes: int, widest: int) -> Join:
    rng = np.random.default_rng(seed)
    sides = []
    for _ in range(2):
        n = int(rng.integers(0, size))
        ts = rng.integers(-times // 2, times - times // 2, n)
        order = np.argsort(ts, kind="stable") if seed % 2 else np.arange(n)
        rows = zip(
            ts[order].tolist(),
            (rng.integers(0, keys, n) - keys // 2).tolist(),
            rng.integers(0, lanes, n).tolist(),
            rng.random(n).tolist(),
            strict=True,
        )
        sides.append(list(rows))
    windows = [rng.integers(0, widest + 1, lanes).tolist() for _ in range(2)]
    return Join(sides[0], sides[1], (windows[0], windows[1]))


def emitted(device: Any, join: Join, **options: Any) -> list[tuple[int, int]]:
    chunks = list(probe.emit_pairs(device, *join.streams(), *join.windows, **options))
    assert all(0 < len(left) <= options.get("chunk", 1 << 24) for left, _ in chunks)
    return [pair for chunk in chunks for pair in zip(*(x.tolist() for x in chunk), strict=True)]


def sums(join: Join, pairs: list[tuple[int, int]], combine: str) -> list[dict[int, list[float]]]:
    """Return, of both sides, matches and gain of the tuples that match, the latest partner first.

    `pairs` stand in their order.
    """
    found: list[dict[int, list[float]]] = [{}, {}]
    for i, j in reversed(pairs):
        x, y = join.left[i], join.right[j]
        side, place = (1, j) if x[0] <= y[0] else (0, i)
        own = found[side].setdefault(place, [0, 0.0])
        own[0] += 1
        own[1] += naive.combine(combine, x[3], y[3])
    return found


def check(join: Join, device: Any = DEVICE, start: int | None = None, chunk: int = 50) -> None:
    """Hold counts, sums by arrival and pairs to brute force; sums to the last digit."""
    expected = in_order(join, brute(join, start))
    by_lane = Counter(join.left[i][2] for i, _ in expected)
    counted = probe.count_pairs(device, *join.streams(), *join.windows, start_ts=start)
    assert counted.tolist() == [by_lane[lane] for lane in range(len(join.windows[0]))]
    combine = naive.COMBINES[len(expected) % 5]
    found = probe.match_arrivals(device, *join.streams(), *join.windows, combine, start_ts=start)
    for side, wanted in zip(found, sums(join, expected, combine), strict=True):
        here = np.flatnonzero(side.matches).tolist()
        assert {i: [side.matches[i], side.gain[i]] for i in here} == wanted
        assert side.gain[side.matches == 0].tolist() == [0.0] * (len(side.gain) - len(here))
    assert emitted(device, join, chunk=chunk, start_ts=start) == expected


SHAPES = {
    "few keys": (60, 3, 40, 1, 9),
    "one key": (40, 1, 30, 1, 12),
    "all at once": (30, 2, 1, 1, 3),
    "windows of 0": (60, 2, 12, 1, 0),
    "lanes": (60, 3, 16, 5, 8),
    "wide windows": (40, 4, 10, 2, 2**62),
    "sparse": (60, 40, 2000, 3, 300),
}
