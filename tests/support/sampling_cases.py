"""Streams and settings for the tests of samples, and one way to run them through the engine."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any, NamedTuple

import naive_sampling as naive
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from numpy.typing import NDArray
from replay_cases import cut

from engine.replay.settings import UNLIMITED
from engine.runtime.key_table import KeyTable
from engine.runtime.streams import StreamBatch
from engine.sampling.aggregates import LaneAggregates, parse_aggregate
from engine.sampling.lane import METHODS, LaneSampler

COMBINES = ("min", "sum", "product", "max", "mean")
MEASURES = {
    "eq-cluster": (0.0, 0.3, 1.0),
    "pps-cluster": (0.0, 0.01, 0.2, 0.7, 1.0),
    "bottom-k": (0.0, 0.25, 1.0, 1.0, 7.0, 1e9),
    "uniform": (0.0, 1.0, 2.0, 4.5, 30.0, 1e300),
}


NO_COLUMNS = pa.schema([])
LEVEL_OF_1 = 7.0
"""That whose unit is 1 (`engine.sampling.aggregates.units`)."""
TOTALS = tuple(
    parse_aggregate(text).resolve("tick", NO_COLUMNS, NO_COLUMNS)
    for text in ("count(*)", "sum(importance)")
)


class Total(NamedTuple):
    """An estimated total of the exact join's outputs."""

    estimate: float
    variance: float
    squares: float
    """The sum over the clusters of the variance's square."""


class Totals(NamedTuple):
    """What the outputs of a sample tell."""

    outputs: Total
    importance: Total
    rows: int
    clusters: int
    """As many as rows where outputs are sampled one by one."""


class Case(NamedTuple):
    """One sample, in the oracle's terms; every row takes part."""

    method: str
    left: list[naive.Tuple]
    right: list[naive.Tuple]
    windows: tuple[int, int]
    measures: tuple[list[float], list[float]]
    p: float = 1.0
    budget: tuple[int | None, int | None] = (None, None)
    combine: str = "min"
    start_ts: int | None = None
    seed: int = 0


class Run(NamedTuple):
    """What the engine did with a case."""

    rows: list[naive.Row]
    seqs: list[tuple[int, int]]
    totals: Totals
    peaks: tuple[int, int]
    held: tuple[float, float]
    memory: list[tuple[int, int, int]]
    """(last ts, left, right) after each batch in which something arrived, as the oracle's."""
    retained: list[tuple[list[int], list[int]]]
    """The rows held then."""
    lost: NDArray[np.int64]


def expected(case: Case) -> naive.Sample:
    """Return what the oracle makes of a case."""
    return naive.naive_sample(
        case.method, case.left, case.right, case.windows, case.measures, p=case.p,
        budget=case.budget, combine_name=case.combine, start_ts=case.start_ts, seed=case.seed,
    )  # fmt: skip


def batch_of(rows: list[naive.Tuple]) -> StreamBatch:
    """Return rows in arrival order as a batch."""
    return StreamBatch(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[3] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        np.array([row[2] for row in rows], np.float64),
    )


def sampler_of(case: Case, *, chunk: int = 100_000) -> LaneSampler:
    """Return the engine's sampler of a case, nothing pushed."""
    left, right = (UNLIMITED if most is None else most for most in case.budget)
    return LaneSampler(
        case.method, case.windows, combine=case.combine, start_ts=case.start_ts, seed=case.seed,
        budget=(left, right), p=case.p, chunk=chunk,
    )  # fmt: skip


def aggregates_of(method: str) -> LaneAggregates:
    """Return what sums up the outputs of a sampler by a method, as jobs do."""
    return LaneAggregates(TOTALS, (NO_COLUMNS, NO_COLUMNS), independent=method == "uniform")


def totals_of(aggregates: LaneAggregates) -> Totals:
    """Return what the outputs come to that were added."""
    counted, summed = (table.to_pylist() for table in aggregates.close())
    if not counted:
        return Totals(Total(0.0, 0.0, 0.0), Total(0.0, 0.0, 0.0), 0, 0)
    [one], [own] = counted, summed
    assert own["shift"] == 0.0  # values as they are, in units of 1
    assert own["level"] == LEVEL_OF_1 or own["seen_size"] == 0.0
    return Totals(
        Total(one["s_1"], one["v_11"], one["11_11"]),
        Total(own["s_y"], own["v_yy"], own["yy_yy"]),
        int(one["rows"]),
        int(one["clusters"]),
    )


def run(
    case: Case, *, cuts: list[int] | None = None, chunk: int = 100_000, forget: bool = False
) -> Run:
    """Sample a case in batches that begin at `cuts`, ids of dead keys forgotten or not."""
    sampler, aggregates = sampler_of(case, chunk=chunk), aggregates_of(case.method)
    streams = batch_of(case.left), batch_of(case.right)
    measures = [np.array(measure, np.float64) for measure in case.measures]
    table = KeyTable()
    rows: list[naive.Row] = []
    seqs: list[tuple[int, int]] = []
    memory, retained = [], []
    times = np.concatenate([streams[0].ts, streams[1].ts])
    edges = [int(times.min()), *(cuts or []), int(times.max()) + 1] if times.size else []
    for begin, end in pairwise(sorted(set(edges))):
        spans = [slice(*np.searchsorted(stream.ts, [begin, end])) for stream in streams]
        a, b = (cut(stream, begin, end) for stream in streams)
        ids = table.intern(a.key), table.intern(b.key)
        given = measures[0][spans[0]], measures[1][spans[1]]
        for out in sampler.push(a, ids[0], b, ids[1], table.size, given):
            assert 0 < out.ts.size <= chunk
            aggregates.add(out, *2 * [pa.table({})])
            rows += rows_of(out)
            seqs += list(zip(out.left_seq.tolist(), out.right_seq.tolist(), strict=True))
        left, right = sampler.retained()
        assert (left.size, right.size) == sampler.residents
        if a.ts.size + b.ts.size:
            retained.append((left.tolist(), right.tolist()))
            now = max(int(side.ts[-1]) for side in (a, b) if side.ts.size)
            memory.append((now, left.size, right.size))
            if forget:
                sampler.remap(table.keep(alive(table.keys, streams, now, case.windows)))
    return Run(
        rows, seqs, totals_of(aggregates), sampler.peaks, sampler.held, memory, retained,
        sampler.lost,
    )  # fmt: skip


def alive(
    keys: NDArray[np.int64],
    streams: tuple[StreamBatch, StreamBatch],
    now: int,
    windows: tuple[int, int],
) -> NDArray[np.bool_]:
    """Tell of each key whether it has an unexpired tuple at `now`."""
    live = [
        stream.key[(stream.ts <= now) & (now - stream.ts <= window)]
        for stream, window in zip(streams, windows, strict=True)
    ]
    return np.isin(keys, np.concatenate(live))


def rows_of(out: Any) -> list[naive.Row]:
    """Return outputs as the oracle's rows."""
    columns = (out.left_row, out.right_row, out.ts, out.importance, out.weight, out.stored)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def drawn_stream(
    draw: random.Random, size: int, span: int, keys: int, *, row: int = 0
) -> list[naive.Tuple]:
    """Return a stream of drawn times, keys and importance, some of it tied, rows from `row` on."""
    times = sorted(draw.randrange(-span // 2, span - span // 2) for _ in range(size))
    return [
        (ts, draw.randrange(keys), draw.choice([0.0, 1.0, 2.5, draw.random()]), row + i)
        for i, ts in enumerate(times)
    ]


def drawn_case(seed: int, method: str) -> Case:
    """Return a case in which anything may happen: ties, empty sides, windows of 0, no room."""
    draw = random.Random(f"sample/{seed}/{method}")  # noqa: S311 - test data
    span, keys = draw.choice([1, 6, 30, 120]), draw.choice([1, 3, 9])
    row = draw.choice([0, 0, 2**32 - 20, 2**40])
    left, right = (
        drawn_stream(draw, draw.choice([0, 1, 20, 50]), span, keys, row=row) for _ in range(2)
    )
    some = MEASURES[method]
    return Case(
        method=method,
        left=left,
        right=right,
        windows=(draw.choice([0, 1, 5, 40]), draw.choice([0, 1, 5, 2**63 - 1])),
        measures=([draw.choice(some) for _ in left], [draw.choice(some) for _ in right]),
        p=draw.choice([1.0, 0.9, 0.5, 0.1]) if method == "uniform" else 1.0,
        budget=(draw.choice([None, 0, 1, 4]), draw.choice([None, 1, 2, 10])),
        combine=draw.choice(COMBINES),
        start_ts=draw.choice([None, None, 0, span // 4]),
        seed=draw.choice([0, seed, -1, 2**63 + seed]),
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[Case, list[int], int]:
    """Draw a small case, cuts and a chunk."""
    method = draw(st.sampled_from(METHODS))
    some = st.sampled_from(MEASURES[method])
    streams, measures = [], []
    for _ in range(2):
        tuples = st.tuples(st.integers(0, 12), st.integers(0, 2), st.sampled_from([0.0, 1.0, 3.5]))
        times = sorted(draw(st.lists(tuples, max_size=14)), key=lambda row: row[0])
        streams.append([(*row, i) for i, row in enumerate(times)])
        measures.append([draw(some) for _ in times])
    most = st.sampled_from([None, 0, 1, 3])
    case = Case(
        method, streams[0], streams[1], draw(st.tuples(st.integers(0, 6), st.integers(0, 6))),
        (measures[0], measures[1]), p=draw(st.sampled_from([1.0, 0.6, 0.2])),
        budget=draw(st.tuples(most, most)), combine=draw(st.sampled_from(COMBINES)),
        start_ts=draw(st.sampled_from([None, 4])), seed=draw(st.integers(0, 99)),
    )  # fmt: skip
    return case, draw(st.lists(st.integers(1, 12), max_size=4)), draw(st.integers(1, 5))
