"""Exact multi-way joins find what the definition says, whatever the plan, slices and threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from multiway_cases import MEETS, PREDICATES, random_streams, values
from naive_multijoin import Tuple, band, distance, exact

import engine.multiway.exact.plan as planning
from engine.multiway.exact import ExactJoin
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, Windows, no_attributes, windows_of
from engine.runtime.errors import InputError
from gpu_kernels.combine import COMBINES

SIZES = ((40, 35), (22, 0, 13), (16, 17, 15), (9, 8, 10, 9), (6, 7, 6, 5, 6))


@pytest.fixture
def many_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of a few tuples."""
    monkeypatch.setattr(planning, "_FEW", 4)
    monkeypatch.setattr(planning, "_KEYS", 1 << 10)


def definition(
    streams: MultiStreams, windows: Windows, meets: Callable[[Any, Any], bool], kind: str,
    graph: str, combine: str, start_ts: int | None = None,
) -> list[tuple[tuple[int, ...], int, float]]:  # fmt: skip
    """Return the outputs by the definition, members as places."""
    given = []
    for stream, own in enumerate(values(streams, kind)):
        span = streams.part(stream)
        columns = (streams.ts[span].tolist(), range(len(own)), own,
                   streams.importance[span].tolist())  # fmt: skip
        given.append([Tuple(*row) for row in zip(*columns, strict=True)])
    sizes = [
        ("rows" if by_rows else "ticks", int(size))
        for size, by_rows in zip(windows.size, windows.by_rows, strict=True)
    ]
    found = exact(given, sizes, meets, graph, combine, start_ts)
    first = streams.first.tolist()
    return [
        (tuple(row + first[s] for s, row in enumerate(rows)), ts, importance)
        for rows, ts, importance in found
    ]


def written(join: ExactJoin, chunk_rows: int) -> list[tuple[tuple[int, ...], int, float]]:
    """Return the outputs as `definition` does; no chunk is empty or too long, time never falls."""
    found = []
    for chunk in join.outputs(chunk_rows):
        assert 0 < len(chunk.ts) <= chunk_rows
        rows = map(tuple, chunk.members.tolist())
        found += list(zip(rows, chunk.ts.tolist(), chunk.importance.tolist(), strict=True))
    times = [ts for _, ts, _ in found]
    assert times == sorted(times)
    return sorted(found, key=lambda row: (row[1], row[0]))


def check(join: ExactJoin, expected: Sequence[tuple[Any, int, float]], chunk_rows: int) -> None:
    """Hold counts, sums, bins and rows to what is expected."""
    edges = np.array([5, 11, 30, 31, 60])
    totals = join.count(edges)
    assert totals.outputs == len(expected)
    assert math.isclose(totals.importance, math.fsum(i for *_, i in expected), rel_tol=1e-12)
    for b in range(len(edges) - 1):
        inside = [i for _, ts, i in expected if edges[b] <= ts < edges[b + 1]]
        assert totals.outputs_by_bin[b] == len(inside)
        assert math.isclose(totals.importance_by_bin[b], math.fsum(inside), rel_tol=1e-12)
    assert written(join, chunk_rows) == expected


@pytest.mark.usefixtures("many_slices")
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("graph", ["clique", "star"])
@pytest.mark.parametrize("kind", PREDICATES)
def test_outputs_are_those_of_the_definition(kind: str, graph: str, sizes: tuple[int, ...]) -> None:
    for seed, combine in enumerate(COMBINES):
        streams = random_streams(seed, sizes, kind, distinct=3)
        rng = np.random.default_rng(seed)
        windows = windows_of(rng.integers(0, 45, len(sizes)).tolist())
        start = int(rng.integers(0, 30)) if seed % 2 else None
        expected = definition(streams, windows, MEETS[kind], kind, graph, combine, start)
        join = ExactJoin(streams, windows, PREDICATES[kind], graph=graph, combine=combine,
                         start_ts=start, threads=1 + seed % 3)  # fmt: skip
        check(join, expected, int(rng.integers(1, 40)))


@pytest.mark.usefixtures("many_slices")
@pytest.mark.parametrize("kind", PREDICATES)
def test_count_windows_and_equal_importance(kind: str) -> None:
    for seed, combine in enumerate(COMBINES):
        streams = random_streams(seed, (14, 12, 15), kind)
        worth = np.repeat([0.5, 2.0, 1.25], [14, 12, 15])
        streams = streams._replace(importance=worth)
        windows = windows_of([3, 20, 0 if seed == 3 else 5], [True, False, True])
        for graph in ("clique", "star"):
            expected = definition(streams, windows, MEETS[kind], kind, graph, combine)
            join = ExactJoin(streams, windows, PREDICATES[kind], graph=graph, combine=combine)
            check(join, expected, 7)


@pytest.mark.usefixtures("many_slices")
@pytest.mark.parametrize("kind", PREDICATES)
def test_slices_of_time_add_up(kind: str) -> None:
    streams = random_streams(5, (30, 25, 28), kind)
    windows = windows_of([9, 14, 6], [False, False, True])
    whole = [c.members for c in ExactJoin(streams, windows, PREDICATES[kind]).outputs(50)]
    bounds = [-5, 0, 13, 13, 14, 40, 61]
    parts = [
        ExactJoin(streams, windows, PREDICATES[kind], slices=span, threads=2)
        for span in pairwise(bounds)
    ]
    found = [chunk.members for join in parts for chunk in join.outputs(50)]
    np.testing.assert_array_equal(np.concatenate(found), np.concatenate(whole))
    assert sum(join.count().outputs for join in parts) == len(np.concatenate(whole))


@pytest.mark.usefixtures("many_slices")
@pytest.mark.parametrize("kind", PREDICATES)
def test_threads_and_chunks_change_nothing(kind: str) -> None:
    streams = random_streams(6, (60, 70, 65), kind, distinct=5)
    streams = streams._replace(importance=np.random.default_rng(1).random(195))
    joins = [
        ExactJoin(streams, windows_of([20, 10, 30]), PREDICATES[kind], threads=threads)
        for threads in (1, 2, 5)
    ]
    first, *others = [join.count(np.array([0, 20, 60])) for join in joins]
    one, *more = [
        np.concatenate(list(join.members(rows)))
        for join, rows in zip(joins, (1000, 13, 1), strict=True)
    ]
    for totals, members in zip(others, more, strict=True):
        assert totals[:2] == first[:2]
        np.testing.assert_array_equal(totals.importance_by_bin, first.importance_by_bin)
        np.testing.assert_array_equal(members, one)


@pytest.mark.parametrize("kind", ["distance", "inner", "theta"])
def test_join_orders_change_the_order_of_outputs_alone(kind: str) -> None:
    streams = random_streams(7, (15, 14, 16, 13), kind)
    windows = windows_of([30] * 4)
    orders = [[3, 2, 1], [3, 2, 0], [3, 1, 0], [2, 1, 0]]
    expected = definition(streams, windows, MEETS[kind], kind, "clique", "min")
    check(ExactJoin(streams, windows, PREDICATES[kind], orders=orders), expected, 9)


def test_dense_lists_are_weighed_without_trying_all_combinations() -> None:
    for kind in ("equi", "band"):
        for combine in COMBINES:
            streams = random_streams(8, (12, 14, 13), kind, span=9, distinct=1)
            windows = windows_of([30] * 3)
            expected = definition(streams, windows, MEETS[kind], kind, "clique", combine)
            assert len(expected) > 500
            join = ExactJoin(streams, windows, PREDICATES[kind], combine=combine)
            check(join, expected, 64)


def with_values(ts: Sequence[int], sizes: Sequence[int], value: np.ndarray) -> MultiStreams:
    """Return streams with the given attributes, importance 1."""
    n = len(ts)
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    own = no_attributes(n)._replace(value=np.ascontiguousarray(value.reshape(n, -1)))
    return MultiStreams(first, np.array(ts, np.int64), np.arange(n), np.ones(n), own)


AWKWARD = np.array([
    0.0, -0.0, 5e-324, -5e-324, 1e-200, 1e-162, 0.1, 0.3, 0.1 + 0.2, 1.0, 1.0 + 2**-52, 2.0, 3.0,
    -1.0, -0.9999999999999999, 1e15, 1e15 + 1, 1e16 + 2, -1e16, 1e155, 1e300, -1e300,
    1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf,
])  # fmt: skip
BOUNDS = (0.0, 5e-324, 1e-170, 1e-162, 0.1, 0.2, 1.0, 1.0000000000000002, 2.0, 1e15, 1e154, 1e300)


@pytest.mark.parametrize("kind", ["band", "distance"])
@pytest.mark.parametrize("bound", BOUNDS, ids=str)
def test_no_partner_is_missed_by_rounding(kind: str, bound: float) -> None:
    value = np.concatenate([AWKWARD, AWKWARD[::-1] + 0.0, np.nextafter(AWKWARD, 0.0)])
    n = len(value)
    third = n // 3
    streams = with_values(np.arange(n).tolist()[:third] * 3, [third] * 3, value)
    windows = windows_of([n] * 3)
    meets = band(bound) if kind == "band" else distance(bound)
    expected = definition(streams, windows, meets, kind, "clique", "min")
    assert bound < 1e300 or expected
    join = ExactJoin(streams, windows, Predicate(kind, ("v",), bound))
    assert written(join, 500) == expected
    assert join.count().outputs == len(expected)


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 5])
def test_distances_in_many_dimensions(dimensions: int) -> None:
    rng = np.random.default_rng(dimensions)
    n = 60
    value = np.round(rng.normal(0, 2, (n, dimensions)), 1) * [1, 1e6, 1, 1, 1][:dimensions]
    ts = [*range(n // 2), *range(n // 2)]
    streams = with_values(ts, [n // 2] * 2, value)
    for bound in (0.5, 3.0, 1e6):
        predicate = Predicate("distance", tuple("abcde"[:dimensions]), bound)
        expected = definition(streams, windows_of([15, 20]), distance(bound), "distance",
                              "clique", "min")  # fmt: skip
        check(ExactJoin(streams, windows_of([15, 20]), predicate), expected, 30)


def test_codes_need_not_be_close_together() -> None:
    streams = random_streams(9, (40, 45, 30), "equi", distinct=5)
    far = np.array([-(2**63), 2**63 - 1, 0, 17, -4], np.int64)[streams.attributes.code]
    spread = streams._replace(attributes=streams.attributes._replace(code=far))
    windows = windows_of([25] * 3)
    near, wide = (ExactJoin(s, windows, PREDICATES["equi"]) for s in (streams, spread))
    assert near.count()[:2] == wide.count()[:2]
    assert written(near, 99) == written(wide, 99)


def test_what_is_lost_to_rounding_in_sums_of_live_tuples_is_kept() -> None:
    """A huge importance that expires leaves the small ones that came with it whole."""
    n = 40
    first = np.array([0, n, 2 * n], np.int64)
    codes = no_attributes(2 * n)._replace(code=np.zeros(2 * n, np.int64))
    worth = np.where(np.arange(2 * n) % 7 == 0, 1e17, 0.1)
    ts = np.tile(np.arange(n, dtype=np.int64), 2)
    streams = MultiStreams(first, ts, ts, worth, codes)
    windows = windows_of([3, 3])
    for kind, attributes in (("equi", codes), ("band", codes._replace(value=np.zeros((2 * n, 1))))):
        given = streams._replace(attributes=attributes)
        expected = definition(given, windows, MEETS[kind], kind, "clique", "sum")
        join = ExactJoin(given, windows, PREDICATES[kind], combine="sum")
        bins = join.count(np.arange(n + 1)).importance_by_bin
        for t in range(n):
            own = math.fsum(i for _, ts, i in expected if ts == t)
            assert math.isclose(bins[t], own, rel_tol=1e-12)


def test_more_outputs_than_can_be_counted_are_an_error() -> None:
    each, sides = 300, 8
    ts = np.tile(np.arange(each, dtype=np.int64), sides)
    first = np.arange(0, each * sides + 1, each, dtype=np.int64)
    codes = no_attributes(each * sides)._replace(code=np.zeros(each * sides, np.int64))
    streams = MultiStreams(first, ts, ts, np.ones(each * sides), codes)
    with pytest.raises(InputError, match="more than int64 can count"):
        ExactJoin(streams, windows_of([each] * sides), PREDICATES["equi"]).count()
    join = ExactJoin(streams, windows_of([9] * sides), PREDICATES["equi"])
    assert join.count().outputs == sum(min(t + 1, 10) ** 8 - min(t, 9) ** 8 for t in range(each))
    assert len(next(ExactJoin(streams, windows_of([each] * sides),
                              PREDICATES["equi"]).members(1000))) <= 1000  # fmt: skip
