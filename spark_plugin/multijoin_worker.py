"""What a Spark task does with the lanes of a multi-way join: it joins or measures them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.jobs.multijoin.join_task import MultiJoinTask, check_rows
from engine.jobs.multijoin.lanes import lane_profiles
from engine.jobs.multijoin.read import read_streams
from engine.jobs.multijoin.task import join_streams
from engine.jobs.streams import StreamSource, open_source
from engine.multiway.fractions.profile import JoinProfile
from engine.runtime.errors import InputError
from engine.runtime.storage.disk import scratch_folder
from spark_plugin.lanes import without_number

Name = tuple[Any, ...]
"""The values of the partition columns, or the number of a hash lane."""


@dataclass(frozen=True)
class Arranged:
    """A join as the workers receive it."""

    task: MultiJoinTask
    """Of streams without rows."""
    named_by: int
    """The first columns of a row, which say what lane it is in."""
    capacities: dict[Name, float]
    """Of lanes that share one."""


def join_lanes(plan: Arranged, source: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the outputs of every lane of a partition. Memory: the streams of a lane."""
    for name, task in _lanes(plan, source):
        own = task
        if task.harvest is not None and plan.capacities:
            own = replace(task, harvest=replace(task.harvest, capacity=plan.capacities[name]))
        with scratch_folder() as folder:
            found = join_streams(replace(own, draft=folder))
            check_rows(own, [found.faults], quarantines=False)
            if found.part is not None:
                with pq.ParquetFile(folder / found.part) as file:
                    yield from file.iter_batches()


def measure_lanes(plan: Arranged, source: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what every lane of a partition is measured to cost and to yield, pickled."""
    for name, task in _lanes(plan, source):
        measured: tuple[Name, JoinProfile] = name, lane_profiles(task)[0]
        yield pa.record_batch({"measured": pa.array([pickle.dumps(measured)], pa.binary())})


def _lanes(
    plan: Arranged, source: Iterator[pa.RecordBatch]
) -> Iterator[tuple[Name, MultiJoinTask]]:
    """Yield the lanes of a partition, each as a join of the tables of its rows."""
    for cells, parts in groupby(_pieces(plan.named_by, source), itemgetter(0)):
        rows = pa.Table.from_batches([part for _, part in parts])
        partitioned = plan.task.options.partition_by
        name = cells[:-1] if partitioned else cells[-1:]
        columns = replace(plan.task.columns, groups=())
        task = replace(plan.task, sources=tuple(_sources(plan.task, rows)), columns=columns)
        if None not in name:
            yield name, task
            continue
        read = read_streams(  # rows in no lane, of which some may be invalid
            task.sources, task.options.predicate, columns, task.windows, payload=False,
            rejected=False,
        )  # fmt: skip
        check_rows(task, [read.faults], quarantines=False)


def _pieces(
    named_by: int, source: Iterator[pa.RecordBatch]
) -> Iterator[tuple[Name, pa.RecordBatch]]:
    """Yield rows that are of one lane, with the values that name it."""
    for batch in source:
        if not batch.num_rows:
            continue
        begins = np.zeros(batch.num_rows, np.bool_)
        begins[0] = True
        for column in batch.columns[:named_by]:
            codes = pc.dictionary_encode(column, null_encoding="encode").indices.to_numpy()
            begins[1:] |= codes[1:] != codes[:-1]
        ends = [*np.flatnonzero(begins).tolist(), batch.num_rows]
        for begin, end in pairwise(ends):
            part = batch.slice(begin, end - begin)
            yield tuple(column[0].as_py() for column in part.columns[:named_by]), part


def _sources(task: MultiJoinTask, rows: pa.Table) -> Iterator[StreamSource]:
    """Yield the streams of a lane."""
    for at, source in enumerate(task.sources):
        own = rows.filter(pc.equal(rows.column("stream"), at))
        if own.column("row").null_count:
            raise without_number(source.archive.side)
        numbers = own.column("row").to_numpy()
        twice = np.flatnonzero(numbers[1:] == numbers[:-1])
        if twice.size:
            raise InputError(
                f"row {numbers[twice[0]]} of the {source.archive.side} DataFrame is there twice: "
                "row numbers must be unique within a stream"
            )
        columns = own.column(f"s{at}").combine_chunks()
        flat = columns.chunks[0] if isinstance(columns, pa.ChunkedArray) else columns
        schema = source.archive.schema
        table = pa.Table.from_arrays(flat.flatten(), names=schema.names).cast(schema)
        roles = replace(source.roles, partition_by=())
        yield StreamSource(*open_source(table, source.archive.side), roles, source.columns, numbers)
