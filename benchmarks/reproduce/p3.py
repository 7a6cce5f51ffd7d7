"""P3, sliding window multi-joins: tables 2 to 8 and figures 2 to 4."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from engine.multiway.loops.method import Buckets, LoopsSettings
from engine.multiway.loops.run import LoopsRun
from engine.multiway.orders.choose import (
    all_orders,
    choose_order,
    ranked_local_orders,
    ranked_orders,
)
from engine.multiway.orders.cost import cost_of, local_orders, order_costs
from engine.multiway.orders.problem import JoinStatistics, OrderingProblem, StreamStatistics
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, no_attributes, windows_of
from reproduce.experiment import (
    Claim,
    Experiment,
    about,
    always,
    at_point,
    bounded,
    less,
    order,
    over,
    peak,
    printed,
    rises,
)
from winnow import multijoin

EQUAL = Predicate("equi", ("attr",))
PART = 4096
"""Outputs a part: they stay in the cache."""


class Setting(NamedTuple):
    """Streams of P3: tuples a time unit, time units of their windows, distinct values."""

    rate: tuple[int, ...]
    window: tuple[int, ...]
    distinct: tuple[int, ...]

    @property
    def unit(self) -> int:
        """Ticks of a time unit."""
        return sum(self.rate)

    def problem(self, method: str = "eager-nlj", tau: float | None = None) -> OrderingProblem:
        """Return the join whose order is sought."""
        rows = zip("123456789", self.rate, self.window, self.distinct)  # noqa: B905 - as many as are
        streams = tuple(StreamStatistics(*row) for row in rows)
        return OrderingProblem(JoinStatistics(streams), method, tau)


TABLES = {
    5: Setting((10, 1, 1, 3), (100, 100, 200, 100), (500, 50, 40, 5)),
    6: Setting((100, 1, 1, 3), (100,) * 4, (200, 200, 20, 2)),
    7: Setting((11, 10, 1, 1), (100,) * 4, (200, 100, 65, 20)),
}
EVEN, FAST = (Setting((1, 1, 1, rate), (100,) * 4, (50,) * 4) for rate in (1, 10))
FIGURE_4B = Setting((1, 1, 1, 50), (100,) * 4, (50,) * 4)


def costs(label: str, seed: int, table: int = 5) -> dict[str, float]:
    """Return the cost of an order of a table's streams, or of what has a name."""
    del seed
    problem = TABLES[table].problem()
    found = ranked_orders(problem)
    if label == "worst":
        return {"cost": float(found.costs[-1])}
    if label == "mean":
        return {"cost": float(found.costs.mean())}
    if label == "chosen":
        return {"cost": choose_order(problem).cost}
    streams = [int(stream) - 1 for stream in label]
    rank = found.ranks[found.place_of(streams)]
    return {"cost": cost_of(problem, streams), "rank": float(rank)}


def cost_table(table: int, claims: dict[str, float], nearly: dict[str, float], **ranks: int) -> Any:  # noqa: ANN401
    """Return the experiment of one of tables 5 to 7: costs as printed, to their last digit."""
    best = next(iter(claims))
    checks = [
        bounded(f"{at} costs {cost:,.0f}", "cost", (at,), cost - 0.5, cost + 0.5)
        for at, cost in claims.items()
    ]
    checks += [
        printed(f"{at} costs about {cost:,.0f}", "cost", at, cost, 0.05)
        for at, cost in nearly.items()
    ]
    checks += [
        printed(f"{at.lstrip('_')} ranks {rank}", "rank", at.lstrip("_"), rank)
        for at, rank in ranks.items()
    ]
    checks += [
        printed("the heuristic finds the optimal order", "cost", "chosen", claims[best], 1e-4),
    ]
    points = {at: at for at in (*claims, *nearly, "chosen")}
    streams = TABLES[table]
    return Experiment(
        f"P3:tab{table}", "Costs of join orders", "5.1",
        f"rates {streams.rate}, windows {streams.window}, distinct values {streams.distinct}",
        "nothing", "order", "comparisons per unit time", points, _CostsOf(table), tuple(checks),
        drawn=(), quick=tuple(points),
    )  # fmt: skip


class _CostsOf(NamedTuple):
    """The costs of one table; an object, so that processes can be given it."""

    table: int

    def __call__(self, label: str, seed: int) -> dict[str, float]:
        return costs(label, seed, self.table)


WINDOWS = {"S1": (90, 100), "S2": (150, 180), "S3": (195, 205)}


def lazily(_: str, seed: int) -> dict[str, float]:
    """Return the results of the new tuples of S3 at time 210, windows of 100 (tables 2 and 3)."""
    del seed
    tables = {name: pa.table({"ts": ts, "attr": [1] * len(ts)}) for name, ts in WINDOWS.items()}
    found = multijoin(tables, predicate="equi:attr", time="ts", window=100, columns="ids")
    rows = found.outputs.to_pylist()
    times = [tuple(WINDOWS[name][row[f"{name}_row"]] for name in WINDOWS) for row in rows]
    return {
        "without expiry": float(len(list(itertools.product(*WINDOWS.values())))),
        "winnow": float(len(times)),
        "of S1 90": float(sum(own[0] == 90 for own in times)),
        "(100, 150, 195)": float((100, 150, 195) in times),
        "(100, 180, 195)": float((100, 180, 195) in times),
    }


TABLE_3 = (
    printed("the naive algorithm returns 8 results", "without expiry", "210", 8),
    printed("two are correct", "winnow", "210", 2),
    printed("100, 150, 195 is one", "(100, 150, 195)", "210", 1),
    printed("100, 180, 195 is the other", "(100, 180, 195)", "210", 1),
)


def origins(stream: int, seed: int) -> dict[str, float]:
    """Return the join order of new tuples of a stream, the global one being S1, S2, S3."""
    del seed
    problem = Setting((1, 1, 1), (100,) * 3, (50,) * 3).problem()
    found = local_orders(problem, stream - 1, np.array([[0, 1, 2]]))[0]
    return {"order": float("".join(str(s + 1) for s in found))}


def scaling(number: int, seed: int) -> dict[str, float]:
    """Return figure 2's costs by the number of windows."""
    del seed
    streams = Setting((1,) * number, (100,) * number, (50,) * number)
    every = [list(range(number))]
    return {
        name: float(order_costs(streams.problem(method), every)[0])
        for name, method in (("NAIVE", "naive-nlj"), ("MULTI-WAY", "eager-nlj"))
    }


def lazy_costs(tau: float, seed: int, streams: Setting = EVEN) -> dict[str, float]:
    """Return figure 3's costs, each algorithm by its best order."""
    del seed
    general = streams.problem("general-lazy-nlj", tau)
    return {
        "NAIVE": float(order_costs(general, all_orders(4)).min()),
        "LAZY": float(ranked_orders(streams.problem("lazy-nlj", tau)).costs[0]),
        "GENERAL": float(sum(ranked_local_orders(general, i).costs[0] for i in range(4))),
    }


def fast_costs(tau: float, seed: int) -> dict[str, float]:
    """Return figure 3(b)'s costs: the fourth stream is ten times faster."""
    return lazy_costs(tau, seed, FAST)


def generated(setting: Setting, tuples: int, seed: int) -> MultiStreams:
    """Return streams that fill their windows, and then have so many tuples (6.1)."""
    rng = np.random.default_rng(seed)
    n = max(setting.window) * setting.unit + tuples
    rate = np.array(setting.rate)
    source = rng.choice(rate.size, n, p=rate / rate.sum())
    code = rng.integers(1, np.array(setting.distinct)[source] + 1)
    ts = np.argsort(source, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=rate.size))])
    attributes = no_attributes(n)._replace(code=code[ts])
    return MultiStreams(first.astype(np.int64), ts, ts, np.ones(n), attributes)


class Run(NamedTuple):
    """An algorithm, and how many tuples are timed."""

    method: str
    tuples: int
    tau: float | None = None
    """In time units."""
    buckets: Buckets = None


def rate(
    setting: Setting, run: Run, seed: int, order: Sequence[int] | None = None
) -> dict[str, float]:
    """Return tuples per CPU second once the windows are full, and tuples visited for each."""
    compiled(run.method)
    tau = None if run.tau is None else max(1, round(run.tau * setting.unit))
    settings = LoopsSettings(run.method, order=order, tau=tau, buckets=run.buckets)
    ticks = [size * setting.unit for size in setting.window]
    join = LoopsRun(generated(setting, run.tuples, seed), windows_of(ticks), EQUAL, settings)
    for _ in join.parts(PART, until=max(ticks)):
        pass
    before = join.counters.visits
    begun = time.thread_time()
    for _ in join.parts(PART):
        pass
    spent = time.thread_time() - begun
    return {"rate": run.tuples / spent, "visits": (join.counters.visits - before) / run.tuples}


@cache
def compiled(method: str) -> None:
    """Run an algorithm once, so that later runs do not compile."""
    small = Setting((1, 1), (10, 10), (5, 5))
    hashed = 2 if "hash" in method else None
    settings = LoopsSettings(method, tau=2 if "lazy" in method else None, buckets=hashed)
    for _ in LoopsRun(generated(small, 50, 1), windows_of([20, 20]), EQUAL, settings).parts(PART):
        pass


ALGORITHMS = {
    "Eager NLJ": Run("eager-nlj", 6_000),
    "Lazy NLJ, tau = 5": Run("lazy-nlj", 6_000, 5),
    "Lazy NLJ, tau = 10": Run("lazy-nlj", 6_000, 10),
    "Eager hash": Run("eager-hash", 60_000, None, 5),
    "Lazy hash, tau = 5": Run("lazy-hash", 60_000, 5, 5),
    "Lazy hash, tau = 10": Run("lazy-hash", 60_000, 10, 5),
}


def orders(run: Run, seed: int) -> dict[str, float]:
    """Return table 8's rates: of the best and the worst order by P3's cost."""
    ranked = ranked_orders(TABLES[5].problem()).orders
    best, worst = (rate(TABLES[5], run, seed, ranked[at].tolist()) for at in (0, -1))
    return {
        "best": best["rate"], "worst": worst["rate"], "visits, best": best["visits"],
        "visits, worst": worst["visits"],
    }  # fmt: skip


def faster(one: str, other: str) -> Claim:
    """Claim that the best order of an algorithm is faster than that of another."""
    return order(
        f"{one} is faster than {other}", at_point("best", one), at_point("best", other), logs=True
    )


def by_tau(tau: float, seed: int) -> dict[str, float]:
    """Return figure 4(a)'s rates."""
    runs = {"NLJ": Run("lazy-nlj", 8_000, tau)} | {
        f"HASH{b}": Run("lazy-hash", n, tau, b)
        for b, n in ((2, 12_000), (10, 40_000), (30, 60_000))
    }
    return {name: rate(EVEN, run, seed)["rate"] for name, run in runs.items()}


def by_buckets(average: int, seed: int) -> dict[str, float]:
    """Return figure 4(b)'s rates: the fourth stream is 50 times faster."""
    found = {}
    for slow in (average, 1, 5, 10):
        fast = 4 * average - 3 * slow
        if fast > 0 and (slow == average or fast > slow):
            name = "Equal" if slow == average else f"{slow} to slow"
            run = Run("lazy-hash", 15_000, 5, [slow] * 3 + [fast])
            found[name] = rate(FIGURE_4B, run, seed)["rate"]
    return found


TAUS = {f"{tau:g}": tau for tau in (1, 5, 10, 20, 30, 40, 50)}
NOT_JAVA = (
    "P3's prototype is in Java, on linked lists, where reading an empty list costs much; here a "
    "bucket "
    "is an array and reading an empty one costs little, so lazy expiry gains less and the best "
    "tau of "
    "hash joins is shorter."
)
BEST = {
    "Eager NLJ": (1614, 333), "Lazy NLJ, tau = 5": (1446, 296), "Lazy NLJ, tau = 10": (1332, 274),
        "Eager hash": (11540, 2524), "Lazy hash, tau = 5": (8420, 2041),
        "Lazy hash, tau = 10": (7947, 1848)}  # fmt: skip
EXPERIMENTS = (
    Experiment(
        "P3:tab2",
        "Partial contents of windows, an example",
        "3.1",
        "S1 has tuples of 90 and 100, S2 of 150 and 180, S3 of 195 and 205; windows of 100",
        "nothing",
        "time",
        "results",
        {"210": ""},
        lazily,
        (printed("S1's tuple of 90 has expired for every new tuple of S3", "of S1 90", "210", 0),),
        drawn=(),
    ),
    Experiment(
        "P3:tab3",
        "Results of the naive algorithm and correct ones",
        "3.1",
        "as in table 2",
        "nothing",
        "time",
        "results",
        {"210": ""},
        lazily,
        TABLE_3,
        drawn=(),
    ),
    Experiment(
        "P3:tab4",
        "Join orders by the origin of a new tuple",
        "3.2",
        "global order S1, S2, S3",
        "nothing",
        "origin",
        "order",
        {"S1": 1, "S2": 2, "S3": 3},
        origins,
        tuple(
            printed(f"a new tuple of {s}: {own}", "order", s, own)
            for s, own in (("S1", 123), ("S2", 213), ("S3", 312))
        ),
        drawn=(),
        quick=("S1", "S2", "S3"),
    ),
    cost_table(5, {"1234": 16000, "2134": 19600}, {"worst": 90000}, _1234=1, _2134=5),
    cost_table(
        6,
        {"2134": 80400, "1234": 120000},
        {"2314": 123000, "2341": 248000, "worst": 650000},
        _2134=1,
    ),
    cost_table(
        7,
        {"3142": 47977, "3412": 49542, "3124": 51954, "mean": 63362, "1234": 68200, "2134": 79000},
        {},
        _3142=1,
    ),
    Experiment(
        "P3:tab8",
        "Maximum input rates of the best and the worst order",
        "6.1, 6.2",
        "table 5's streams; hash tables of five buckets; tau of 5 and 10",
        "the machine",
        "algorithm",
        "tuples per CPU second",
        ALGORITHMS,
        orders,
        (
            order(
                "the plan predicted to be best is better than the worst", "best", "worst", logs=True
            ),
            faster("Eager hash", "Eager NLJ"),
            *(
                faster(f"{one} {kind}{a}", f"{two} {kind}{b}")
                for kind in ("NLJ", "hash")
                for one, a, two, b in (
                    ("Eager", "", "Lazy", ", tau = 5"),
                    ("Lazy", ", tau = 5", "Lazy", ", tau = 10"),
                )
            ),
            *(
                about(
                    f"{name}: the best is {a / b:.1f} times as fast as the worst",
                    over("best", "worst"),
                    name,
                    a / b,
                )
                for name, (a, b) in BEST.items()
            ),
        ),
        seeds=10,
        timed=True,
        drawn=("best", "worst"),
        logarithmic=True,
        reason=NOT_JAVA,
        quick=("Eager NLJ", "Eager hash"),
    ),
    Experiment(
        "P3:fig2",
        "Costs of the naive and the multi-way join by the number of windows",
        "4.2",
        "windows of 100, rates of 1, 50 distinct values",
        "nothing",
        "windows",
        "comparisons per unit time",
        {str(n): n for n in range(2, 9)},
        scaling,
        (
            order(
                "the multi-way join costs less",
                "NAIVE",
                "MULTI-WAY",
                at=tuple(map(str, range(3, 9))),
            ),
            rises("and scales better: the gap grows", less("NAIVE", "MULTI-WAY")),
        ),
        logarithmic=True,
    ),
    Experiment(
        "P3:fig3a",
        "Costs of lazy algorithms by tau, equal rates",
        "4.2",
        "four windows of 100, rates of 1, 50 distinct values",
        "nothing",
        "tau",
        "comparisons per unit time",
        TAUS,
        lazy_costs,
        (
            always("LAZY and GENERAL cost the same", "LAZY", "=", "GENERAL"),
            order("NAIVE is more expensive", "NAIVE", "LAZY"),
            rises("costs rise with tau", "LAZY", "GENERAL"),
        ),
    ),
    Experiment(
        "P3:fig3b",
        "Costs of lazy algorithms by tau, one fast stream",
        "4.2",
        "as in figure 3(a), the fourth stream at rate 10",
        "nothing",
        "tau",
        "comparisons per unit time",
        TAUS,
        fast_costs,
        (
            always("GENERAL costs no more than LAZY", "GENERAL", "<=", "LAZY"),
            always("and no more than NAIVE", "GENERAL", "<=", "NAIVE"),
            always("LAZY works as well for small tau", "LAZY", "=", "GENERAL", at=("1",)),
            order("NAIVE is the most expensive for small tau", "NAIVE", "LAZY", at=("1", "5")),
            order("and better than LAZY for large tau", "LAZY", "NAIVE", at=("50",)),
            bounded(
                "and nearly as good as GENERAL (within 10 %)",
                over("NAIVE", "GENERAL"),
                ("50",),
                1,
                1.1,
            ),
        ),
    ),
    Experiment(
        "P3:fig4a",
        "Maximum input rates by tau",
        "6.1, 6.3, 6.4",
        "four windows of 100, rates of 1, 50 distinct values; 1, 2, 10 and 30 buckets",
        "the machine",
        "tau",
        "tuples per CPU second",
        {f"{tau:g}": tau for tau in (0.25, 0.5, 1, 2, 4, 8, 15, 30, 50, 100)},
        by_tau,
        (
            order("the more buckets, the faster", "HASH30", "HASH10", "HASH2", "NLJ", logs=True),
            peak("the scan is best with short intervals", "NLJ", 0, 4),
            peak("HASH2 is best at about 4", "HASH2", 2, 8),
            peak("HASH10 is best at about 15", "HASH10", 8, 30),
            peak("HASH30 is best at about 30", "HASH30", 15, 50),
        ),
        seeds=5,
        timed=True,
        logarithmic=True,
        reason=NOT_JAVA,
        quick=("1", "15"),
    ),
    Experiment(
        "P3:fig4b",
        "Maximum input rates by the average number of buckets",
        "6.5",
        "four windows of 100, 50 distinct values, three rates of 1 and one of 50, tau = 5",
        "the machine",
        "buckets, average",
        "tuples per CPU second",
        {str(n): n for n in range(2, 14)},
        by_buckets,
        (
            rises(
                "Equal rises with buckets", "Equal", at=("2", "4", "6", "8", "10", "13"), logs=True
            ),
            peak("1 to slow is best at 8", "1 to slow", 6, 10),
            order("5 to slow is faster than Equal", "5 to slow", "Equal", logs=True),
            order("10 to slow is not as fast as 5 to slow", "5 to slow", "10 to slow", logs=True),
            peak("5 to slow is best at 12", "5 to slow", 11, 13),
        ),
        seeds=5,
        timed=True,
        reason=NOT_JAVA,
        quick=("6", "12"),
    ),
)
