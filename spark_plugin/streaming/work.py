"""Spark tasks on packed rows: they join each lane, and unpack the results."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import cloudpickle

from engine.archives.canonical import direct_codes
from engine.lanes.profile import LaneProfile
from engine.lanes.reader import LaneBatch
from engine.runtime.columns import beside
from engine.runtime.streams import SIDES, StreamBatch
from spark_plugin.lanes import KEY, LaneName, key_name
from spark_plugin.streaming.lane import StreamLane, as_batch
from spark_plugin.streaming.reading import small
from spark_plugin.worker import Plan, guessed

PACK, STATE = "rows binary", "lane binary"


@dataclass(frozen=True)
class Task:
    """What the tasks of all lanes share."""

    plan: Plan
    profiles: dict[LaneName, LaneProfile]
    """Profiles of all lanes if they must be known beforehand; else
    empty."""
    packs: tuple[pa.Schema, pa.Schema]
    """(pyarrow.Schema, pyarrow.Schema). Columns of packed rows of left and right."""
    result: pa.Schema
    digest: str
    """Digest of all that the rows depend on."""

    @property
    def payload(self) -> tuple[pa.Schema, pa.Schema]:
        """Payload columns of left and right."""
        own = (
            pa.schema([field for field in schema if field.name.startswith(f"{side}_")])
            for schema, side in zip(self.packs, SIDES, strict=True)
        )
        left, right = own
        return left, right

    def lane(self, name: LaneName, batch: LaneBatch, blob: bytes | None) -> StreamLane:
        """Return a lane resumed from its state, or a new one from its first batch."""
        if blob is not None:
            return StreamLane.resumed(self.plan, self.payload, self.digest, blob)
        profile = self.profiles[name] if self.profiles else guessed(batch)
        budget = self.plan.budget(name, profile)
        return StreamLane(self.plan, self.payload, self.digest, profile, budget)

    def batch(self, packs: Sequence[tuple[int, bytes]]) -> LaneBatch:
        """Return a lane's rows of a micro-batch, in arrival order."""
        streams, payloads = [], []
        for side, schema in enumerate(self.packs):
            parts = [
                as_batch(np.frombuffer(rows, np.uint8), schema) for s, rows in packs if s == side
            ]
            table = pa.Table.from_batches(parts, schema).combine_chunks()
            order = pa.array(np.lexsort((_numbers(table, "row"), _numbers(table, "ts"))))
            stream, payload = self._apart(side, table.take(order).combine_chunks())
            streams.append(stream)
            payloads.append(payload)
        return LaneBatch(streams[0], streams[1], payloads[0], payloads[1])

    def _apart(self, side: int, table: pa.Table) -> tuple[StreamBatch, pa.Table]:
        """Return one side's tuples, and its payload with the join attributes that are no codes."""
        layout = self.plan.layout
        row = _numbers(table, "row")
        keys = [
            pa.concat_arrays([pa.array([], kind), *table.column(f"{KEY}{i}").chunks])
            for i, kind in enumerate(layout.keys)
        ]
        payload = table.select(self.payload[side].names)
        code = row
        if layout.direct:
            code = direct_codes(keys[0])
        else:
            named = {key_name(SIDES[side], i): values for i, values in enumerate(keys)}
            payload = beside(payload, pa.table(named))
        stream = StreamBatch(_numbers(table, "ts"), row, code, _numbers(table, "importance"))
        return stream, payload


def _numbers(table: pa.Table, name: str) -> NDArray[Any]:
    found: NDArray[Any] = table.column(name).to_numpy()
    return found


def stateful(task: Task) -> Callable[..., Iterator[Any]]:
    """Return the function that `applyInPandasWithState` runs on a lane's rows of a micro-batch.

    Rows travel as Arrow bytes: pandas sees byte strings, never the values of a column.
    """
    work = cloudpickle.dumps(task)

    def run(key: tuple[Any, ...], frames: Iterator[Any], state: Any) -> Iterator[Any]:  # noqa: ANN401 - Spark's
        import pandas as pd  # noqa: PLC0415 - in the workers alone

        own = _task_of(work)
        packs: list[tuple[int, bytes]] = []
        group = b""
        for frame in frames:
            packs += zip(frame["side"].tolist(), frame["rows"].tolist(), strict=True)
            group = frame["name"].iloc[0]
        name = LaneName(pickle.loads(group), int(key[1]))  # noqa: S301 - written by our own task
        batch = own.batch(packs)
        lane = own.lane(name, batch, bytes(state.get[0]) if state.exists else None)
        for part in lane.push(batch):
            table = pa.Table.from_batches([part]).select(own.result.names).cast(own.result)
            for each in chain.from_iterable(map(small, table.to_batches())):
                yield pd.DataFrame({"rows": [each.serialize().to_pybytes()]})
        state.update((lane.state(),))

    return run


def unpacked(result: pa.Schema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that unpacks rows of the result."""

    def run(source: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in source:
            for rows in batch.column(0):
                yield pa.ipc.read_record_batch(rows.as_buffer(), result)

    return run


@lru_cache(maxsize=8)
def _task_of(work: bytes) -> Task:
    task: Task = pickle.loads(work)  # noqa: S301 - written by the driver
    return task
