"""Walks of batches of tuples through the windows on a device: count the outputs, or write them.

Loads numba.cuda: to be imported only where a device is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.devices import Array, Device, TooLargeError
from gpu_kernels.multiway.kernels import FIND, WalkVariant, count_kernel, never, write_kernel
from gpu_kernels.multiway.predicates import Columns, Condition, Directions, Floats, Ints, Tuples
from gpu_kernels.multiway.together import SAVED

CHUNK = 1 << 18
"""Outputs that are written at once, at most."""
_SPARE = 0.8
"""Of the free memory, what a plan may take."""
_BLOCKS = 1 << 16
"""Most blocks of a launch: more than run at once."""
_THREADS = 128
"""In a block of `find`."""
_SIMULATED = {"per_block": 1, "width": 4}
"""The simulator takes a millisecond for what 32 threads do together."""


class DeviceWalks:
    """Walks through windows whose tuples lie on a device, those of one join or of several.

    Parameters
    ----------
    device : Device
    columns : Columns
    first : (joins * m + 1,) int64
        Where the admitted tuples of each stream begin, join by join; there is room for all that it
        has.
    windows : (m,) int64
        Ticks; the same for all joins.
    condition : Condition

    Raises
    ------
    TooLargeError
        If the streams do not fit in the device's memory. Nothing is taken then.
    """

    def __init__(
        self, device: Device, columns: Columns, first: Ints, windows: Ints, condition: Condition
    ) -> None:
        self._device = device
        self._streams = windows.size
        admitted = max(1, columns.ts.size)
        held = 2 * 8 * admitted + sum(column.nbytes for column in columns)
        free = device.free_bytes()
        self._room = int(free * _SPARE) - held
        if self._room <= 0:
            raise TooLargeError(
                f"{columns.ts.size:,} tuples of {first.size - 1} streams need {held:,} bytes and "
                f"{device.name} has {free:,} free; use --device cpu, or join shorter streams"
            )
        joins = (first.size - 1) // windows.size
        places = {"first": first, "windows": np.tile(windows, joins)}
        self._places = {name: device.upload(values) for name, values in places.items()}
        self._place, self._times = (device.zeros(admitted, np.int64) for _ in range(2))
        filled = Columns._make(map(_not_empty, columns))
        self._columns = Columns._make(map(device.upload, filled))
        own = _SIMULATED if device.simulated else {}
        self._variant = WalkVariant(condition.kind, condition.theta or never, **own)
        self._condition = (
            np.int64(condition.clique), np.int64(condition.combine), np.float64(condition.bound),
        )  # fmt: skip
        self._counted: list[Array] = []
        self._directions: list[Array] = []
        self._runs = 0

    def admit(self, at: Ints, place: Ints, times: Ints) -> None:
        """Set admitted tuples.

        Parameters
        ----------
        at : (k,) int64
            Where they are, of the admitted tuples of all streams side by side.
        place, times : (k,) int64
            Place among all tuples, and arrival time in ticks.
        """
        where = self._device.upload(at)
        self._place[where] = self._device.upload(place)
        self._times[where] = self._device.upload(times)

    def limit(self, gone: Ints, number: Ints) -> None:
        """Set how many tuples of each stream are admitted, and how many of them removed for good.

        Parameters
        ----------
        gone, number : (joins * m,) int64
        """
        self._counted = [self._device.upload(gone), self._device.upload(number)]

    def direct(self, directions: Directions) -> None:
        """Set the runs that each direction reads.

        Parameters
        ----------
        directions : Directions
            In host memory; of each join those of its streams, then those of whole windows.
        """
        self._directions = [self._device.upload(_not_empty(values)) for values in directions]
        self._runs = max(1, int(directions.runs[:, -1].max()))

    def _part(self, others: int) -> int:
        """Return how many tuples fit at once, in half the room; `others` bytes each beside runs."""
        each = 16 * self._runs + 3 * 8 + others
        if self._room // 2 < each:
            raise TooLargeError(
                f"the walk of a tuple needs {each:,} bytes and {self._device.name} has "
                f"{self._room // 2:,} for it; use --device cpu, or join shorter streams"
            )
        return self._room // 2 // each

    def _prepared(self, tuples: Tuples) -> list[Array]:
        """Find the runs of tuples; return the arguments that both kernels begin with."""
        device = self._device
        place, direction, shred = (device.upload(values) for values in tuples)
        size, hops = tuples.place.size, self._streams - 1
        bounds = device.empty((size, self._runs, 2), np.int64)
        columns, (order, runs) = self._columns, self._directions[:2]
        threads = _SIMULATED["width"] if device.simulated else _THREADS
        arguments = [place, direction, columns.ts, *self._directions, self._places["windows"]]
        arguments += [self._places["first"], *self._counted, self._times, bounds]
        device.launch(FIND, min(_BLOCKS, -(-size * hops // threads)), threads, arguments)
        return [
            place, direction, shred, bounds, order, runs, *self._condition, self._place,
            *columns[2:], columns.importance,
        ]  # fmt: skip

    def _launch(self, kernel: Any, tuples: int, arguments: list[Any]) -> None:  # noqa: ANN401
        """Run a kernel with a team of threads a tuple."""
        blocks = min(_BLOCKS, -(-tuples // self._variant.per_block))
        threads = self._variant.per_block * self._variant.width
        self._device.launch(kernel, blocks, threads, arguments)

    def count(self, tuples: Tuples) -> tuple[Ints, Floats]:
        """Return the results of the walks of tuples.

        Returns
        -------
        (n, 2 * m - 1) int64
            Comparisons by hop, passes by hop, outputs.
        (n,) float64
            Importance of the outputs. O(comparisons).

        Raises
        ------
        TooLargeError
            If the device has no room for a single walk.
        """
        size, kinds = tuples.place.size, 2 * self._streams - 1
        counts, total = np.empty((size, kinds), np.int64), np.empty(size)
        part = self._part(8 * (kinds + 1))
        for at in range(0, size, part):
            here = slice(at, min(at + part, size))
            own = Tuples._make(values[here] for values in tuples)
            found = self._device.empty((own.place.size, kinds), np.int64)
            gained = self._device.empty(own.place.size, np.float64)
            kernel = count_kernel(self._variant)
            self._launch(kernel, own.place.size, [*self._prepared(own), found, gained])
            counts[here], total[here] = self._device.download(found), self._device.download(gained)
        return counts, total

    def outputs(self, tuples: Tuples, numbers: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Yield the outputs of tuples, in their order.

        Parameters
        ----------
        tuples : Tuples
        numbers : (n,) int64
            Outputs of each, as counted.

        Yields
        ------
        (k, m) int64
            Members, by stream; `CHUNK` of them, or as many as the device has room for.
        (k,) float64
            Importance.

        Raises
        ------
        TooLargeError
            If the device has no room for a single walk.
        """
        size, streams = tuples.place.size, self._streams
        part = self._part(8)
        room = self._room // 2 // (8 * (streams + 1))
        chunk = max(1, min(CHUNK, int(numbers.sum()), room))
        written = self._device.empty((chunk, streams), np.int64)
        importances = self._device.empty(chunk, np.float64)
        for at in range(0, size, part):
            here = slice(at, min(at + part, size))
            own = Tuples._make(values[here] for values in tuples)
            yield from self._chunks(own, numbers[here], written, importances)

    def _chunks(
        self, tuples: Tuples, numbers: Ints, written: Array, importances: Array
    ) -> Iterator[tuple[Ints, Floats]]:
        """Yield the outputs of tuples that fit the device at once, a chunk a launch."""
        device, kernel = self._device, write_kernel(self._variant)
        offsets = np.concatenate([[0], np.cumsum(numbers)]).astype(np.int64)
        prepared = [*self._prepared(tuples), device.upload(offsets)]
        before, after = (device.zeros(SAVED, np.int64) for _ in range(2))
        chunk, outputs = int(importances.size), int(offsets[-1])
        for begin in range(0, outputs, chunk):
            end = min(begin + chunk, outputs)
            low = int(np.searchsorted(offsets, begin, "right")) - 1
            high = int(np.searchsorted(offsets, end, "left"))
            ranges = [np.int64(number) for number in (low, high, begin, end)]
            self._launch(
                kernel, high - low, [*prepared, *ranges, before, after, written, importances]
            )
            before, after = after, before
            yield (
                device.download(written[: end - begin]),
                device.download(importances[: end - begin]),
            )


def _not_empty(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array, or zeros in place of an empty one, for which a device has no address."""
    return values if values.size else np.zeros([max(1, n) for n in values.shape], values.dtype)
