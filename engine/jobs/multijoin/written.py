"""The file that a task of a multi-way join writes its outputs to, and that of rows set aside."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from engine.jobs.multijoin.join_task import MultiJoinTask
from engine.jobs.multijoin.read import Lane
from engine.jobs.output import PartWriter, write_file
from engine.jobs.pieces import bytes_a_row, in_pieces
from engine.multiway.exact.scores import Scores
from engine.runtime.jit import Floats, Ints
from engine.runtime.storage.uris import Place

Part = tuple[Ints, Ints, Floats]
"""Members (n, m), ts and importance of some outputs."""
REJECTED = "_rejected"
"""Folder of the rows that are no tuples, in the output's."""


class OutputWriter:
    """Writes outputs as they come, from several threads too; without a folder lets them pass."""

    def __init__(self, task: MultiJoinTask, schema: pa.Schema) -> None:
        self._name = f"part-{task.share.number:05d}.{uuid.uuid4().hex[:8]}.parquet"
        self._schema, self._predicate = schema, task.options.predicate
        self._lock = Lock()
        self._writer = None if task.draft is None else PartWriter(task.draft / self._name)

    def all(self, lane: Lane, parts: Iterator[Part]) -> Iterator[Part]:
        """Write parts on their way."""
        score = Scores.of(self._predicate, lane.streams)
        width = bytes_a_row(lane.payload)
        for part in parts:
            if self._writer is not None:
                members, ts, importance = part
                make = partial(self._table, lane, score, members, ts, importance)
                for table in in_pieces(ts.size, width, make):
                    with self._lock:
                        self._writer.write(table)
            yield part

    def _table(
        self, lane: Lane, score: Scores | None, members: Ints, ts: Ints, importance: Floats,
        rows: slice,
    ) -> pa.Table:  # fmt: skip
        streams = lane.streams
        members, ts, importance = members[rows], ts[rows], importance[rows]
        columns: list[Any] = [streams.row[places] for places in members.T]
        columns += [ts.copy(), importance.copy(), np.ones(ts.size)]  # their arrays are used again
        if score is not None:
            columns.append(score.pairs(members))
        for stream, table in enumerate(lane.payload):
            places = pa.array(members[:, stream] - streams.first[stream])
            columns += table.take(places).columns if table.num_columns else []
        return pa.table(columns, schema=self._schema)

    def close(self) -> str | None:
        """Finish; return the name of the file if there is one."""
        return self._name if self._writer is not None and self._writer.close() else None


def set_aside(draft: Place, rejected: pa.Table | None) -> str | None:
    """Write rows that are no tuples to a file of this attempt; return its name, None of none."""
    if rejected is None:
        return None
    place = draft / REJECTED / f"{uuid.uuid4().hex}.parquet"
    write_file(place, rejected)
    return place.name
