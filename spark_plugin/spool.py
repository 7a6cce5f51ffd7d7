"""A spooled lane, to be read more than once: in memory while it is small, else on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.lanes.profile import LaneProfile, profile_side
from engine.lanes.reader import LaneBatch
from engine.runtime.storage.disk import scratch_folder
from engine.runtime.streams import SIDES, StreamBatch

HELD_BYTES = 64 << 20
Until = Callable[[StreamBatch], NDArray[np.int64]]
_OWN = StreamBatch._fields


class Spool:
    """Aligned batches of a lane, kept in order.

    The first `HELD_BYTES` stay in memory; a larger lane goes to one compressed file per side in
    Spark's local folder, which `close` removes.
    """

    def __init__(self, held_bytes: int = HELD_BYTES) -> None:
        self._room = held_bytes
        self._held: list[tuple[pa.RecordBatch, pa.RecordBatch]] = []
        self._stack = ExitStack()
        self._files: list[Path] = []
        self._writers: list[Any] = []

    @property
    def held(self) -> int:
        """Bytes in memory."""
        return sum(side.nbytes for pair in self._held for side in pair)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.clear()
        self._stack.close()

    def add(self, batch: LaneBatch) -> None:
        """Append a batch."""
        pair = (
            _as_arrow(batch.left, batch.left_payload),
            _as_arrow(batch.right, batch.right_payload),
        )
        self._room -= sum(side.nbytes for side in pair)
        self._held.append(pair)
        if self._room < 0:
            self._write()

    def _write(self) -> None:
        if not self._files:
            made = self._stack.enter_context(scratch_folder())
            self._files = [made / f"{side}.arrow" for side in SIDES]
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writers = [
                self._stack.enter_context(pa.ipc.new_file(path, part.schema, options=options))
                for path, part in zip(self._files, self._held[0], strict=True)
            ]
        for pair in self._held:
            for writer, part in zip(self._writers, pair, strict=True):
                writer.write_batch(part)
        self._held.clear()

    def profile(
        self, windows: tuple[int, int], untils: tuple[Until, Until] | None = None
    ) -> LaneProfile:
        """Return the lane's rows, peaks and mean importances; no batch may be added any more.

        `untils` gives, for each side, until when its tuples match anything (`profile_side`).
        """
        self._finish()
        only = [0, 3] if untils is None else [0, 2, 3]
        left, right = (
            profile_side((_stream(part) for part in self._parts(side, only)), window, until)
            for side, (window, until) in enumerate(
                zip(windows, untils or (None, None), strict=True)
            )
        )
        return LaneProfile(left, right)

    def arrivals(self, side: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield times and keys of a side; no batch may be added any more."""
        self._finish()
        for part in self._parts(side, [0, 2]):
            stream = _stream(part)
            yield stream.ts, stream.key

    def __iter__(self) -> Iterator[LaneBatch]:
        self._finish()
        for left, right in zip(self._parts(0), self._parts(1), strict=True):
            yield LaneBatch(_stream(left), _stream(right), _payload(left), _payload(right))

    def _finish(self) -> None:
        if self._files and self._held:
            self._write()
        for writer in self._writers:
            writer.close()
        self._writers = []

    def _parts(self, side: int, only: list[int] | None = None) -> Iterator[pa.RecordBatch]:
        if not self._files:
            yield from (pair[side] for pair in self._held)
            return
        options = pa.ipc.IpcReadOptions(included_fields=only)
        with pa.OSFile(str(self._files[side])) as source:
            file = pa.ipc.open_file(source, options=options)
            for i in range(file.num_record_batches):
                yield file.get_batch(i)


def _as_arrow(stream: StreamBatch, payload: pa.Table | None) -> pa.RecordBatch:
    columns = {name: pa.array(values) for name, values in zip(_OWN, stream, strict=True)}
    if payload is not None:
        for name, column in zip(payload.column_names, payload.columns, strict=True):
            parts = [pa.array([], column.type), *column.chunks]
            columns[name] = pa.concat_arrays(parts) if len(parts) != 2 else parts[1]
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _stream(part: pa.RecordBatch) -> StreamBatch:
    """Return the four arrays of a stream; columns that were not read are empty."""
    names = part.schema.names
    none = pa.array([], pa.int64())
    return StreamBatch(
        *((part.column(name) if name in names else none).to_numpy() for name in _OWN)
    )


def _payload(part: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([part]).drop_columns(list(_OWN))
