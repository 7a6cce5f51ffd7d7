"""What multi-way joins are made of: predicates, reach, measures, join orders from them."""

from __future__ import annotations

from itertools import permutations

import naive_multijoin as oracle
import numpy as np
import pytest
from multiway_cases import MEETS, PREDICATES, random_streams, values

from engine.jobs.multijoin.orders import harvest_orders, loops_orders, statistics_of
from engine.multiway.measure import measure
from engine.multiway.predicate import Condition, condition, meets, parse_predicate, register_theta
from engine.multiway.streams import (
    Attributes,
    MultiStreams,
    Windows,
    arrival_order,
    reach,
    windows_of,
)
from engine.options.multijoin import Loops
from engine.runtime.errors import SpecError
from engine.runtime.jit import kernel


@kernel
def _met(rules: Condition, attributes: Attributes, a: int, b: int) -> bool:
    return meets(rules, attributes, a, b)


@pytest.mark.parametrize("kind", list(PREDICATES))
def test_predicates_hold_as_the_oracle_says(kind: str) -> None:
    streams = random_streams(3, (25, 30), kind, distinct=3)
    left, right = values(streams, kind)
    rules = condition(PREDICATES[kind])
    found = 0
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            wanted = bool(MEETS[kind](a, b))
            # whoever of them comes first, the lesser stream's tuple is the first argument
            assert _met(rules, streams.attributes, i, 25 + j) == wanted
            assert _met(rules, streams.attributes, 25 + j, i) == wanted
            found += wanted
    assert 0 < found < 25 * 30


def members(streams: MultiStreams) -> list[oracle.Member]:
    tuples = [
        [
            oracle.Tuple(int(ts), int(row), 0)
            for ts, row in zip(streams.ts[part], streams.row[part], strict=True)
        ]
        for part in map(streams.part, range(streams.number))
    ]
    return oracle.arrivals_of(tuples)


@pytest.mark.parametrize("seed", range(8))
def test_reach_and_arrival_order_by_the_definition(seed: int) -> None:
    streams = random_streams(
        seed, (12, 0, 17, 9)[: 2 + seed % 3], "equi", span=[0, 8, 40][seed % 3]
    )
    rng = np.random.default_rng(seed)
    m = streams.number
    windows = windows_of(rng.integers(0, 12, m).tolist(), rng.random(m) < 0.5)
    arrivals = members(streams)
    places = [int(streams.first[own.stream] + own.row) for own in arrivals]
    assert arrival_order(streams).tolist() == places
    for i, j in permutations(range(m), 2):
        found = reach(streams, windows, i, j)
        window = ("rows" if windows.by_rows[j] else "ticks", int(windows.size[j]))
        theirs = [own for own in arrivals if own.stream == j]
        for k in (own for own in arrivals if own.stream == i):
            rows = sorted(oracle._reach_by_definition(theirs, window, k))  # noqa: SLF001
            at = k.row
            low, high = (
                int(found.low[at] - streams.first[j]),
                int(found.high[at] - streams.first[j]),
            )
            assert list(range(low, high)) == rows


def brute_selectivity(streams: MultiStreams, windows: Windows, kind: str, i: int, j: int) -> float:
    own, theirs = values(streams, kind)[i], values(streams, kind)[j]
    found = reach(streams, windows, i, j)
    tried = held = 0
    for k in range(len(own)):
        for at in range(found.low[k], found.high[k]):
            a, b = own[k], theirs[at - streams.first[j]]
            held += bool(MEETS[kind](a, b) if i < j else MEETS[kind](b, a))
            tried += 1
    return held / tried if tried else 1.0


@pytest.mark.parametrize("kind", list(PREDICATES))
def test_measures_of_small_streams_are_exact(kind: str) -> None:
    streams = random_streams(1, (30, 20, 25), kind)
    windows = windows_of([9, 30, 200])
    found = measure(streams, windows, PREDICATES[kind])
    assert found.span == streams.ts.max() - streams.ts.min()
    assert found.rates.tolist() == [30 / found.span, 20 / found.span, 25 / found.span]
    for i, j in permutations(range(3), 2):
        wanted = brute_selectivity(streams, windows, kind, i, j)
        assert found.selectivities[i, j] == pytest.approx(wanted, abs=1e-15)


def test_measures_of_long_streams_are_near() -> None:
    rng = np.random.default_rng(0)
    n = 20_000
    streams = random_streams(2, (10, 10), "equi")
    codes = rng.integers(0, 50, 2 * n)
    ts = np.tile(np.arange(n), 2)
    long = MultiStreams(
        np.array([0, n, 2 * n]), ts, ts, np.ones(2 * n), streams.attributes._replace(code=codes)
    )
    found = measure(long, windows_of([3000, 3000]), PREDICATES["equi"])
    assert found.selectivities[0, 1] == pytest.approx(0.02, rel=0.05)
    assert found.distinct.tolist() == [50.0, 50.0]


def test_orders_by_what_was_measured_and_as_they_are_told() -> None:
    streams = random_streams(4, (60, 20, 30), "equi", distinct=6)
    windows, names = windows_of([30, 30, 30]), ["a", "b", "c"]
    predicate = PREDICATES["equi"]
    orders, found = harvest_orders(streams, windows, predicate, names, ())
    for i, order in enumerate(orders):
        sigmas = [found.selectivities[i, j] for j in order]
        assert sigmas == sorted(sigmas)
    assert harvest_orders(streams, windows, predicate, names, ("c", "a", "b"))[0] == [
        [2, 1], [2, 0], [0, 1],
    ]  # fmt: skip
    told = Loops("eager-nlj", ("c", "a", "b"))
    assert loops_orders(streams, windows, predicate, names, told, None) == ([2, 0, 1], None, None)
    told = Loops("general-lazy-nlj", ("c", "a", "b"), tau="3")
    _, local, _ = loops_orders(streams, windows, predicate, names, told, 3)
    assert local == [[0, 2, 1], [1, 2, 0], [2, 0, 1]]
    order, _, buckets = loops_orders(
        streams, windows, predicate, names, Loops("eager-hash", buckets={"": 7, "b": 3}), None
    )
    assert sorted(order or []) == [0, 1, 2]
    assert buckets == [7, 3, 7]


def test_statistics_of_predicates_without_codes() -> None:
    streams = random_streams(5, (60, 60), "band")
    windows = windows_of([20, 10], [False, True])
    found = measure(streams, windows, PREDICATES["band"])
    one, other = statistics_of(["a", "b"], windows, found, [None, None]).streams
    assert one.distinct == pytest.approx(1 / found.selectivities[0, 1])
    assert other.size == pytest.approx(10)


def test_functions_are_registered_by_name() -> None:
    register_theta("ahead_of", lambda a, b: a[0] > b[0])
    assert parse_predicate("theta:ahead_of:x,y").columns == ("x", "y")
    assert parse_predicate("theta:math:hypot:x").text == "theta:math:hypot:x"
    with pytest.raises(SpecError, match="must have letters"):
        register_theta("a:b", lambda a, b: bool(a[0] > b[0]))
    with pytest.raises(SpecError, match="function three is 3, which cannot be called: give a"):
        register_theta("three", 3)  # type: ignore[arg-type]
