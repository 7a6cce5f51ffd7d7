"""The oracles of multi-way joins and of harvesting: P3's tables, cases by hand, what must agree."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from naive_grubjoin import (
    Adaptation,
    Harvest,
    Histogram,
    Operator,
    Setting,
    State,
    histogram_add,
    mass,
    scores,
)
from naive_multijoin import (
    HASHED,
    LAZY,
    METHODS,
    Meets,
    Run,
    Tuple,
    Window,
    band,
    combine_importance,
    distance,
    equi,
    exact,
    inner,
    run,
)

Streams = list[list[Tuple]]

# P3 table 2
TABLE_2 = [(90, 100), (150, 180), (195, 205)]
P3: Streams = [[Tuple(ts, row, 1) for row, ts in enumerate(part)] for part in TABLE_2]
P3_WINDOWS: list[Window] = [("ticks", 100)] * 3
FROM_0 = (0, 1, 2)


def at(*instants: int, value: Any = 1) -> list[Tuple]:
    """Return a stream whose tuples all have the same value."""
    return [Tuple(ts, row, value) for row, ts in enumerate(instants)]


def always(_a: object, _b: object) -> bool:
    return True


def on_p3(method: str, **options: Any) -> Run:
    """Run a method on P3's table 2; lazily so that the only re-evaluation is at NOW = 210."""
    if method in LAZY:
        options["tau"] = 120
    if method in HASHED:
        options["buckets"] = [3, 3, 3]
    return run(method, P3, P3_WINDOWS, equi(), "clique", transitive=True, order=FROM_0, **options)


def random_streams(rng: random.Random, value: Callable[[], Any], m: int) -> Streams:
    """Return m streams with many ties in ts."""
    last = rng.choice((4, 12, 30))
    return [
        [
            Tuple(ts, row, value(), rng.choice((0.0, 0.1, 0.7, 3.0)))
            for row, ts in enumerate(
                sorted(rng.choices(range(last), k=rng.randint(1, 20 // m + 3)))
            )
        ]
        for _ in range(m)
    ]


def random_windows(rng: random.Random, m: int) -> list[Window]:
    kinds = ("ticks", "rows", "ticks")
    return [(rng.choice(kinds), rng.choice((0, 1, 2, 3, 5, 8, 8, 20))) for _ in range(m)]


def random_orders(rng: random.Random, m: int) -> list[list[int]]:
    """Return R_i of every direction."""
    return [[other for other in rng.sample(range(m), m) if other != i] for i in range(m)]


def random_predicate(rng: random.Random) -> tuple[Meets, Callable[[], Any]]:
    """Return a predicate and what makes its values."""
    kind = rng.choice(("equi", "band", "distance", "inner"))
    if kind == "equi":
        return equi(), lambda: rng.randint(-2, 0)
    if kind == "band":
        return band(1.5), lambda: rng.randint(0, 6) / 2
    if kind == "distance":
        return distance(1.0), lambda: (rng.randint(0, 2) / 2, rng.randint(0, 2) / 2)
    return inner(0.5), lambda: {item: rng.random() for item in range(4) if rng.random() < 0.7}


def random_case(seed: int) -> tuple[random.Random, bool, tuple[Any, ...]]:
    """Return a random join: (streams, windows, meets, graph), and whether it is an equi-join."""
    rng = random.Random(seed)  # noqa: S311 - test data
    m = rng.randint(2, 4)
    meets, value = random_predicate(rng)
    transitive = isinstance(value(), int)
    join = (random_streams(rng, value, m), random_windows(rng, m), meets)
    return rng, transitive, (*join, rng.choice(("clique", "star")))


def test_exact_gives_table_3_of_p3() -> None:
    outputs = exact(P3, P3_WINDOWS, equi(), "clique")
    ts = [tuple(TABLE_2[i][row] for i, row in enumerate(rows)) for rows, _, _ in outputs]
    assert ts == [(100, 150, 195), (100, 180, 195)]


@pytest.mark.parametrize("method", METHODS)
def test_methods_give_table_3_of_p3(method: str) -> None:
    done = on_p3(method)
    assert done.outputs == [((1, 0, 0), 195, 1.0), ((1, 1, 0), 195, 1.0)]
    assert done.delays == ([15, 15] if method in LAZY else [0, 0])


def test_work_of_eager_methods_on_p3_is_as_by_hand() -> None:
    eager = on_p3("eager-nlj")
    assert (eager.comparisons, eager.visits, eager.peak) == (7, 7, 4)
    assert (eager.insertions, eager.expirations, eager.accesses) == (6, 2, 18)
    hashed = on_p3("eager-hash")
    assert (hashed.visits, hashed.accesses) == (7, 54)
    naive = on_p3("naive-nlj")
    assert (naive.comparisons, naive.visits) == (8, 15)


def test_work_of_lazy_methods_on_p3_is_as_by_hand() -> None:
    lazy = on_p3("lazy-nlj")
    assert (lazy.comparisons, lazy.visits, lazy.peak) == (7, 22, 6)
    assert (lazy.insertions, lazy.expirations, lazy.accesses) == (6, 0, 0)
    general = on_p3("general-lazy-nlj", orders=[(0, 1, 2), (1, 0, 2), (0, 1, 2)])
    assert (general.comparisons, general.visits) == (10, 34)


def test_lazy_expiration_is_at_multiples_and_counts_once() -> None:
    streams = [at(0, 4, 37), at(1)]
    windows: list[Window] = [("ticks", 5), ("rows", 1)]
    join = (streams, windows, equi(), "clique")
    eager = run("eager-nlj", *join, transitive=True, order=(0, 1), expire_every=10)
    assert (eager.expirations, eager.accesses, eager.peak) == (2, 2, 3)  # once, NOW = 30
    lazy = run("lazy-nlj", *join, transitive=True, order=(0, 1), tau=10, expire_every=25)
    assert (lazy.expirations, lazy.accesses) == (2, 2)  # due at 25, done at 30
    assert lazy.delays == [9, 6, 3]  # (0, 1) and (4, 1), found at 10; (37, 1), found at 40


def test_lazy_expiration_waits_for_what_is_not_yet_processed() -> None:
    join = ([at(0, 21, 27), at(26)], [("ticks", 5)] * 2, equi(), "clique")
    done = run("lazy-nlj", *join, transitive=True, order=(0, 1), tau=10, expire_every=25)
    assert [rows for rows, _, _ in done.outputs] == [(1, 0), (2, 0)]
    assert (done.expirations, done.accesses) == (0, 0)  # due at 25, but none arrives from 30 on


def test_count_windows_hold_the_last_before_each_tuple() -> None:
    streams = [at(0, 1, 1, 2), at(1, 2)]
    outputs = exact(streams, [("rows", 2), ("rows", 1)], equi(), "clique")
    assert [rows for rows, _, _ in outputs] == [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1)]


def test_a_star_needs_the_latest_alone_to_meet() -> None:
    streams = [at(0, value=0.0), at(1, value=2.0), at(2, value=1.0)]
    windows: list[Window] = [("ticks", 9)] * 3
    assert exact(streams, windows, band(1.0), "clique") == []
    assert exact(streams, windows, band(1.0), "star") == [((0, 0, 0), 2, 1.0)]


def test_theta_is_given_the_lesser_stream_first() -> None:
    join = ([at(1, value=2.0), at(0, value=3.0)], [("ticks", 9)] * 2, lambda a, b: a < b, "clique")
    assert len(exact(*join)) == 1
    assert len(run("eager-nlj", *join, transitive=False, order=(1, 0)).outputs) == 1


def test_importance_folds_in_the_order_of_the_streams() -> None:
    parts = [0.1, 0.2, 0.3]
    assert combine_importance("sum", parts) == 0.1 + 0.2 + 0.3
    assert combine_importance("mean", parts) == (0.1 + 0.2 + 0.3) / 3
    assert combine_importance("product", parts) == 0.1 * 0.2 * 0.3
    assert [combine_importance(name, parts) for name in ("min", "max")] == [0.1, 0.3]


@pytest.mark.parametrize("seed", range(60))
def test_methods_give_the_exact_outputs(seed: int) -> None:
    rng, transitive, join = random_case(seed)
    streams: Streams = join[0]
    m = len(streams)
    options: dict[str, Any] = {"combine": rng.choice(("min", "sum", "mean"))}
    options["start_ts"] = rng.choice((None, 3))
    expected = exact(*join, **options)
    for method in METHODS:
        if method in HASHED and not transitive:
            continue
        tau = rng.choice((1, 3, 10)) if method in LAZY else None
        extra = (0, 3, 7) if tau is None else (0, tau, tau + 2, 3 * tau)
        buckets = [rng.choice((1, 2, 3, None if method == "hybrid" else 5)) for _ in range(m)]
        done = run(
            method,
            *join,
            transitive=transitive,
            order=rng.sample(range(m), m),
            orders=[rng.sample(range(m), m) for _ in range(m)],
            tau=tau,
            expire_every=rng.choice(extra),
            buckets=buckets,
            **options,
        )
        assert done.outputs == expected, method
        assert done.insertions == sum(map(len, streams))
        assert done.comparisons <= done.visits * (m - 1)
        assert len(done.delays) == len(expected)
        assert all(0 < d <= tau if tau else d == 0 for d in done.delays)


@pytest.mark.parametrize("seed", range(40))
def test_the_operator_is_exact_where_nothing_takes_time(seed: int) -> None:
    rng, _, join = random_case(seed)
    m = len(join[0])
    done = Operator(
        *join,
        orders=random_orders(rng, m),
        basic=rng.randint(1, 4),
        buffer=rng.choice((None, sum(map(len, join[0])) + 1)),
        delta=rng.choice((math.inf, 3.0)),
        throttle=1.0,
        omega=rng.choice((0.0, 1.0)),
        conserve=rng.random() < 0.5,
    ).run()
    assert done.outputs == exact(*join)
    assert done.pushes == done.pops == [len(stream) for stream in join[0]]


@pytest.mark.parametrize("seed", range(40))
def test_an_overloaded_operator_gives_some_of_the_exact_outputs(seed: int) -> None:
    rng, _, join = random_case(seed)
    m = len(join[0])

    def configure(_: State) -> Setting:
        full = [[max(1, math.ceil(join[1][other][1] / 2)) for other in order] for order in orders]
        counts = [[rng.randint(0, n) for n in hops] for hops in full]
        return Setting(counts, [[rng.sample(range(n), n) for n in hops] for hops in full])

    orders = random_orders(rng, m)
    done = Operator(
        *join,
        orders=orders,
        basic=2,
        capacity=2.0,
        buffer=2,
        delta=2.0,
        omega=0.5,
        draws=lambda *_: rng.random(),
        keep=[0.9] * m,
        conserve=rng.random() < 0.5,
        configure=configure,
    ).run()
    assert set(done.outputs) <= set(exact(*join))
    ends = zip(done.pops, done.dropped, done.shed, strict=True)
    assert [sum(each) for each in ends] == [len(stream) for stream in join[0]]


def pair(left: Sequence[int], right: Sequence[int], w: int, **options: Any) -> Harvest:
    """Run two streams that all meet, in windows of w ticks, one comparison a tick."""
    windows: list[Window] = [("ticks", w)] * 2
    parts = [at(*left), at(*right)]
    return Operator(parts, windows, always, "clique", orders=[[1], [0]], **options).run()


def test_a_busy_operator_queues_drops_and_adapts() -> None:
    done = pair((0, 1, 2), (3, 4, 5), 10, basic=5, capacity=1.0, buffer=1, delta=5.0)
    assert [rows for rows, _, _ in done.outputs] == [(i, j) for j in (0, 1) for i in range(3)]
    assert (done.pushes, done.pops, done.dropped) == ([3, 3], [3, 2], [0, 1])
    full = ([[2], [2]], [[[0, 1]], [[0, 1]]])
    assert done.adaptations == [Adaptation(5.0, 0.8, 0.8, *full)]
    assert (done.comparisons, done.peak) == (6, 5)


def test_a_buffer_is_emptied_before_the_next_tuple_of_an_instant() -> None:
    done = pair((0, 0, 0), (0, 0), 1, basic=1, buffer=1)
    assert (done.dropped, len(done.outputs)) == ([0, 0], 6)


def test_a_throttle_fraction_is_boosted() -> None:
    done = pair((0, 1, 2), (3, 4, 5, 21), 10, basic=5, capacity=1.0, buffer=1, delta=5.0)
    zs = [adaptation.z for adaptation in done.adaptations]
    # the interval of (5, 10] sees one push and one pop, later ones see nothing
    assert zs == [0.8, min(1.0, 1.2 * 0.8), 1.0, 1.0]


def test_a_harvest_reads_the_selected_logical_basic_windows() -> None:
    def second_only(_state: State) -> Setting:
        return Setting([[1], [1]], [[[1, 0]], [[1, 0]]])

    options = {"basic": 2, "throttle": 0.5, "delta": 1.0, "configure": second_only}
    done = pair((0, 1, 2), (3, 4), 4, **options)
    # ages 2 to 4: the last logical basic window has the age W too
    assert [rows for rows, _, _ in done.outputs] == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 1)]
    assert done.comparisons == 5


def test_a_direction_with_a_window_left_out_compares_nothing() -> None:
    def only_from_right(_state: State) -> Setting:
        return Setting([[0], [2]], [[[0, 1]], [[0, 1]]])

    options = {"basic": 2, "throttle": 0.5, "delta": 1.0, "configure": only_from_right}
    done = pair((0, 3), (2, 4), 4, **options)
    assert [rows for rows, _, _ in done.outputs] == [(0, 0), (0, 1), (1, 1)]


def test_shredding_spreads_what_it_reads_and_learns_from_it() -> None:
    states = []

    def nothing(state: State) -> Setting:
        states.append(state)
        return Setting([[0], [0]], [[[0, 1]], [[0, 1]]])

    options = {"basic": 2, "throttle": 0.5, "delta": 4.0, "omega": 1.0, "configure": nothing}
    done = pair((0, 1, 2), (3, 7), 5, buckets=5, **options)
    # at 3 it is q = 1 of three, at 7 (windows go back to 2) none of one
    assert [rows for rows, _, _ in done.outputs] == [(1, 0)]
    assert states[0].comparisons == [[0], [1]]
    assert states[0].passes == [[0], [1]]
    assert states[0].pushes == [3, 1]
    # A = 3 - 1, buckets of 2 from -5: [1, 3)
    assert done.histograms[1] == Histogram(-5.0, 2.0, [0, 0, 0, 1, 0])


def test_conserving_removes_what_is_behind_the_horizon() -> None:
    def youngest(_state: State) -> Setting:
        return Setting([[1], [1]], [[[0, 1, 2]], [[0, 1, 2]]])

    options = {"basic": 2, "throttle": 0.5, "delta": 4.0, "configure": youngest}
    free = pair((0, 1, 2, 3), (4, 5), 6, **options)
    conserving = pair((0, 1, 2, 3), (4, 5), 6, conserve=True, **options)
    assert conserving.outputs == free.outputs
    assert (free.peak, conserving.peak) == (6, 4)


def test_the_horizon_of_count_windows_is_in_tuples() -> None:
    def youngest(_state: State) -> Setting:
        return Setting([[1], [1]], [[[0, 1, 2]], [[0, 1, 2]]])

    windows: list[Window] = [("rows", 6)] * 2
    options: dict[str, Any] = {"orders": [[1], [0]], "basic": 2, "throttle": 0.5, "delta": 4.0}
    done = Operator(
        [at(0, 1, 2, 3), at(4, 5)],
        windows,
        always,
        "clique",
        conserve=True,
        configure=youngest,
        **options,
    ).run()
    # at 4 the last two tuples stay, and they are what is read
    assert [rows for rows, _, _ in done.outputs] == [(2, 0), (3, 0), (2, 1), (3, 1)]
    assert done.peak == 4


def test_random_drop_sheds_before_the_buffer() -> None:
    done = pair(
        (0, 1, 2), (3,), 9, basic=3, keep=[0.5, 0.5], draws=lambda _p, i, row: (i + row) / 3
    )
    assert (done.shed, done.pushes) == ([1, 0], [2, 1])
    assert [rows for rows, _, _ in done.outputs] == [(0, 0), (1, 0)]


def test_a_histogram_spreads_its_buckets_evenly() -> None:
    histogram = Histogram(-4.0, 2.0, [0, 0, 0, 0])
    for difference in (-4, -3, -2, 0, 4):
        histogram_add(histogram, difference)
    assert histogram.counts == [2, 1, 1, 1]
    assert mass(histogram, -3, -1) == 1.5
    assert mass(histogram, -9, 9) == 5.0
    point = Histogram(0.0, 0.0, [0, 0])
    histogram_add(point, 0)
    assert (mass(point, 0, 1), mass(point, 0.5, 1)) == (1.0, 0.0)


def test_scores_are_equations_1_and_2() -> None:
    windows: list[Window] = [("ticks", 4)] * 3
    first = Histogram(-4.0, 2.0, [3, 0, 0, 0])  # about -3
    second = Histogram(-4.0, 2.0, [0, 2, 0, 1])
    histograms = [Histogram(-4.0, 2.0, [0, 0, 0, 0]), first, second]
    found = scores(histograms, windows, 2, [(1, 2), (0, 2), (0, 1)])
    assert found[0] == [[0.0, 3.0], [2.0, 0.0]]
    # stream 0's tuple is never 0 to 4 ticks older than stream 1's: flat
    assert found[1][0] == [1.0, 1.0]
    assert found[2][0] == [0.0, 1.0]
    # twice L_1 from -1 to 1, once from 3 to 5, and nothing farther back: flat
    assert found[1][1] == [1.0, 1.0]
    # thrice L_2 from -3 to -1, thrice from -1 to 1
    assert found[2][1] == [3.0, 3.0]


def test_nothing_is_learnt_of_count_windows() -> None:
    windows: list[Window] = [("ticks", 4), ("rows", 3), ("ticks", 4)]
    streams = [at(0), at(1), at(2, 3)]
    orders = [(1, 2), (0, 2), (0, 1)]
    done = Operator(streams, windows, always, "clique", orders=orders, basic=2, omega=1.0).run()
    assert [sum(histogram.counts) for histogram in done.histograms] == [0, 0, 2]
    p = scores(done.histograms, windows, 2, orders)
    assert p[0][0] == p[1][0] == p[1][1] == p[2][1] == [1.0, 1.0]
    assert p[2][0] != [1.0, 1.0]
