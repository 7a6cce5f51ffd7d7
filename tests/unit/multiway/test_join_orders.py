"""Costs of join orders, the orders chosen, and `winnow explain`: P3 4 and 5, P4 5.3."""

from __future__ import annotations

import json
import random
from itertools import permutations
from math import factorial
from pathlib import Path
from typing import Any

import naive_ordering as naive
import numpy as np
import pytest
from documented import documented_options, fields, flags_of, named_in, taken
from places import ROOT

from engine import commands as cli
from engine.jobs.explain import Measured, explain
from engine.multiway.loops.method import METHODS as ALGORITHMS
from engine.multiway.orders.choose import (
    all_orders,
    choose_local_orders,
    choose_order,
    fast_streams,
    low_selectivity_orders,
    ranked_local_orders,
    ranked_orders,
)
from engine.multiway.orders.cost import cost_of, local_comparisons, local_costs, order_costs
from engine.multiway.orders.problem import (
    METHODS,
    JoinStatistics,
    OrderingProblem,
    StreamStatistics,
)
from engine.report.order_tables import print_explanation
from engine.report.tables import terminal
from engine.runtime.errors import SpecError

TABLE5 = {"rates": [10, 1, 1, 3], "windows": [100, 100, 200, 100], "distinct": [500, 50, 40, 5]}
TABLE6 = {"rates": [100, 1, 1, 3], "windows": [100] * 4, "distinct": [200, 200, 20, 2]}
TABLE7 = {"rates": [11, 10, 1, 1], "windows": [100] * 4, "distinct": [200, 100, 65, 20]}
GOLDEN: list[tuple[naive.Join, dict[str, float], float | None, float | None]] = [
    (TABLE5, {"1234": 16000, "2134": 19600}, 86850, None),
    (TABLE6, {"2134": 80400, "1234": 120000, "2314": 123150, "2341": 248450}, 646050, None),
    (
        TABLE7,
        {"3142": 47976.9, "3412": 49542.3, "3124": 51953.8, "1234": 68200, "2134": 79000},
        None,
        63361.5,
    ),
]
"""Contract 9: costs of orders, the best first; the worst; the mean."""


def joined(join: naive.Join) -> JoinStatistics:
    """Return the oracle's join as ours."""
    buckets = join.get("buckets") or [None] * len(join["rates"])
    rows = zip(join["rates"], join["windows"], join["distinct"], buckets, strict=True)
    return JoinStatistics(tuple(StreamStatistics(str(i), *row) for i, row in enumerate(rows, 1)))


def problem(join: naive.Join, method: str = "eager-nlj", tau: float | None = None) -> Any:
    return OrderingProblem(joined(join), method, tau)


def drawn(seed: int, m: int, hashed: str = "none") -> naive.Join:
    """Return a random join; small sets of numbers, so that ties are frequent."""
    draw = random.Random(f"{seed}/{m}/{hashed}")  # noqa: S311 - test data
    buckets: list[int | None] = [None] * m
    if hashed != "none":
        buckets = [draw.choice([1, 2, 5] + [None] * (hashed == "some")) for _ in range(m)]
        buckets[0] = 3
    return {
        "rates": [draw.choice([0, 1, 1, 2, 10, draw.uniform(0, 50)]) for _ in range(m)],
        "windows": [draw.choice([0, 50, 100, 100, draw.uniform(1, 300)]) for _ in range(m)],
        "distinct": [draw.choice([1, 5, 50, 50, draw.randint(1, 900)]) for _ in range(m)],
        "buckets": buckets,
    }


def order(text: str) -> list[int]:
    return [int(stream) - 1 for stream in text]


@pytest.mark.parametrize(("join", "costs", "worst", "mean"), GOLDEN)
def test_costs_of_the_papers_tables(
    join: naive.Join, costs: dict[str, float], worst: float | None, mean: float | None
) -> None:
    found = ranked_orders(problem(join))
    for text, cost in costs.items():
        assert round(cost_of(problem(join), order(text)), 1) == cost
    assert found.orders[0].tolist() == order(next(iter(costs)))
    assert round(float(found.costs[0]), 1) == next(iter(costs.values()))
    assert worst is None or float(found.costs[-1]) == worst
    assert mean is None or round(float(found.costs.mean()), 1) == mean


def test_ranks_and_ties_of_the_papers_tables() -> None:
    found = ranked_orders(problem(TABLE5))
    assert found.ranks[found.place_of(order("2134"))] == 5  # "fifth-best"
    found = ranked_orders(problem(TABLE7))
    assert found.costs[1] < found.costs[0]  # equal, but for rounding
    assert found.ranks[:4].tolist() == [1, 1, 3, 3]
    assert found.orders[1].tolist() == order("4132")


@pytest.mark.parametrize(
    ("join", "initial", "fast", "chosen"),
    [
        (TABLE5, "1234", (0,), "1234"),
        (TABLE6, "2341", (0,), "2134"),
        (TABLE7, "3412", (0, 1), "3142"),
    ],
)
def test_the_heuristic_chooses_as_the_paper_does(
    join: naive.Join, initial: str, fast: tuple[int, ...], chosen: str
) -> None:
    choice = choose_order(problem(join))
    assert list(choice.initial) == order(initial)
    assert choice.moved == fast_streams(problem(join)) == fast
    assert list(choice.order) == order(chosen)
    assert choice.cost == ranked_orders(problem(join)).costs[0]


def test_the_heuristic_considers_what_the_paper_tries() -> None:
    considered = [row.tolist() for row in choose_order(problem(TABLE6)).considered.orders]
    assert all(order(text) in considered for text in ("2341", "2314", "2134", "1234"))
    assert order("4321") not in considered
    considered = [row.tolist() for row in choose_order(problem(TABLE7)).considered.orders]
    assert all(order(text) in considered for text in ("3412", "3142", "3124", "1234", "2134"))
    still = choose_order(problem({**TABLE6, "rates": [1] * 4}))
    assert (still.moved, len(still.considered.orders)) == ((), 2)


@pytest.mark.parametrize("m", range(2, 7))
def test_all_orders_cost_what_the_oracle_says(m: int) -> None:
    for seed in range(12 if m < 5 else 2):
        join = drawn(seed, m)
        wanted = naive.ranking(join)
        found = ranked_orders(problem(join))
        assert np.allclose(found.costs, [float(cost) for cost, _ in wanted], rtol=1e-12, atol=0)
        assert [tuple(row) for row in found.orders.tolist()] == [own for _, own in wanted]
        cheaper = [sum(other < cost for other, _ in wanted) for cost, _ in wanted[:30]]
        assert (found.ranks[:30] - 1).tolist() == cheaper


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("m", [2, 3, 5])
def test_every_method_costs_what_the_oracle_says(method: str, m: int) -> None:
    rules = ALGORITHMS[method]
    for seed in range(6):
        tau = 7.5 if rules.lazy else None
        join = drawn(seed, m, rules.hashed)
        ours, orders = problem(join, method, tau), all_orders(m)[:: max(1, m)]
        tuples = [tuple(row) for row in orders.tolist()]
        wanted = [naive.all_loops_cost(join, o, tau, outermost=rules.outermost) for o in tuples]
        assert np.allclose(order_costs(ours, orders), [float(c) for c in wanted], rtol=1e-12)
        own = [float(naive.loops_cost(join, m - 1, o, tau)) for o in tuples]
        assert np.allclose(local_costs(ours, m - 1, orders), own, rtol=1e-12)
        if method in {"eager-nlj", "eager-hash", "hybrid"}:
            contract = [float(naive.global_cost(join, o)) for o in tuples]
            assert np.allclose(order_costs(ours, orders), contract, rtol=1e-12)


def figure2(m: int) -> naive.Join:
    return {"rates": [1] * m, "windows": [100] * m, "distinct": [50] * m}


def test_figure_2_the_naive_algorithm_scales_worse() -> None:
    ratios = []
    for m in range(2, 8):
        costs = [cost_of(problem(figure2(m), f"{how}-nlj"), range(m)) for how in ("eager", "naive")]
        ratios.append(costs[1] / costs[0])
    assert ratios[0] == 1
    assert min(ratios[1:]) > 10


def figure3(tau: float, fourth: float) -> tuple[float, float, float]:
    """Return what the best orders of NAIVE, LAZY and GENERAL cost."""
    join = {**figure2(4), "rates": [1, 1, 1, fourth]}
    general = problem(join, "general-lazy-nlj", tau)
    return (
        float(ranked_orders(general).costs[0]),
        float(ranked_orders(problem(join, "lazy-nlj", tau)).costs[0]),
        sum(float(ranked_local_orders(general, i).costs[0]) for i in range(4)),
    )


def test_figure_3a_equal_rates() -> None:
    found = [figure3(tau, 1) for tau in (1, 5, 10, 20, 30, 40, 50)]
    assert all(lazy == pytest.approx(general, rel=1e-12) for _, lazy, general in found)
    assert all(naive > lazy for naive, lazy, _ in found)
    assert [lazy for _, lazy, _ in found] == sorted(lazy for _, lazy, _ in found)
    assert found[0][0] / found[0][1] > 10  # most so where tau is small


def test_figure_3b_a_fast_stream() -> None:
    for tau in (1, 5, 10):
        naive_cost, lazy, general = figure3(tau, 10)
        assert lazy == pytest.approx(general, rel=1e-12)
        assert naive_cost > lazy
    for tau in (20, 30, 40, 50):
        naive_cost, lazy, general = figure3(tau, 10)
        assert general < naive_cost < lazy
        assert naive_cost < 1.05 * general
    last = problem({**figure2(4), "rates": [1, 1, 1, 10]}, "general-lazy-nlj", 50)
    assert ranked_local_orders(last, 3).orders[0].tolist()[-1] == 3
    assert ranked_orders(last).orders[0].tolist()[-1] == 3


@pytest.mark.parametrize("m", [2, 3, 4])
def test_general_lazy_is_never_worse(m: int) -> None:
    for seed in range(10):
        join = drawn(seed, m)
        general, lazy = problem(join, "general-lazy-nlj", 9), problem(join, "lazy-nlj", 9)
        best = sum(float(ranked_local_orders(general, i).costs[0]) for i in range(m))
        choices = choose_local_orders(general)
        chosen = sum(choice.cost for choice in choices)
        assert best <= chosen * (1 + 1e-12)
        assert chosen <= choose_order(lazy).cost * (1 + 1e-12)
        assert cost_of(general, [c.order for c in choices]) == pytest.approx(chosen, rel=1e-12)


SMALL = {"rates": [1, 2, 1], "windows": [20, 20, 30], "distinct": [10, 5, 8]}
OUTERMOST = [(0, 1, 2), (1, 0, 2), (2, 0, 1)]


@pytest.mark.parametrize(
    ("method", "tau", "buckets", "loops", "span"),
    [
        ("eager-nlj", None, None, OUTERMOST, 500),
        ("naive-nlj", None, None, [(0, 1, 2)] * 3, 300),
        ("eager-hash", None, [5, 5, 4], OUTERMOST, 700),
        ("hybrid", None, [2, None, 20], OUTERMOST, 700),
        ("lazy-nlj", 20, None, OUTERMOST, 500),
        ("lazy-hash", 20, [5, 5, 4], OUTERMOST, 700),
        ("general-lazy-nlj", 20, None, [(1, 0, 2), (0, 2, 1), (1, 2, 0)], 500),
    ],
)
def test_expected_comparisons_are_those_made(
    method: str, tau: float | None, buckets: Any, loops: list[naive.Order], span: float
) -> None:
    join = {**SMALL, "buckets": buckets or [None] * 3}
    ours = problem(join, method, tau)
    for i, made in naive.counted(join, loops, tau, span, seed=3).items():
        assert made == pytest.approx(float(local_comparisons(ours, i, [loops[i]])[0]), rel=0.08)


def test_expected_comparisons_are_the_cost_where_nothing_is_hashed_or_late() -> None:
    for method in ("eager-nlj", "naive-nlj"):
        ours = problem(drawn(5, 4), method)
        orders = all_orders(4)
        expected = order_costs(ours, orders, local_comparisons)
        assert (expected == order_costs(ours, orders)).all()


def test_as_many_buckets_everywhere_leave_the_ranks_of_comparisons() -> None:
    plain, hashed = problem(TABLE5), problem({**TABLE5, "buckets": [5] * 4}, "eager-hash")
    orders = all_orders(4)
    five = 5 * order_costs(hashed, orders, local_comparisons)
    assert np.allclose(five, order_costs(plain, orders, local_comparisons), rtol=1e-12)


def test_hashed_windows_of_a_hybrid_join_are_inner_at_first() -> None:
    for seed in range(20):
        ours = problem(drawn(seed, 5, "some"), "hybrid")
        choice = choose_order(ours)
        hashed = [ours.statistics.streams[s].buckets is not None for s in choice.initial]
        assert hashed == sorted(hashed)


def test_a_choice_is_the_cheapest_considered() -> None:
    for seed in range(20):
        ours = problem(drawn(seed, 4))
        choice = choose_order(ours)
        all_costs = ranked_orders(ours)
        assert choice.cost == pytest.approx(choice.considered.costs.min(), rel=1e-12)
        assert choice.cost == all_costs.costs[all_costs.place_of(choice.order)]
        rows = {tuple(row) for row in choice.considered.orders.tolist()}
        assert rows <= set(permutations(range(4)))
        assert choice.initial in rows


@pytest.mark.parametrize(
    ("m", "found", "worse"), [(3, 0.99, 1.0), (4, 0.81, 1.3), (5, 0.52, 1.5), (6, 0.28, 2.6)]
)
def test_how_often_the_heuristic_finds_the_best(m: int, found: float, worse: float) -> None:
    draw = random.Random(m)  # noqa: S311 - test data
    ratios = []
    for _ in range(200):
        join = {
            "rates": draw.choices([1, 1, 2, 5, 10, 50], k=m),
            "windows": draw.choices([20, 50, 100, 200], k=m),
            "distinct": draw.choices([2, 5, 20, 50, 100, 500], k=m),
        }
        ratios.append(choose_order(problem(join)).cost / ranked_orders(problem(join)).costs[0])
    assert np.mean(np.isclose(ratios, 1)) == pytest.approx(found, abs=0.01)
    assert np.mean(ratios) == pytest.approx(worse, abs=0.05)


def test_eight_streams_have_all_their_orders() -> None:
    found = ranked_orders(problem({**figure2(8), "distinct": list(range(20, 28))}))
    assert len(found.orders) == factorial(8)
    assert (np.diff(found.costs) >= -1e-12 * found.costs[1:]).all()


def test_low_selectivity_first() -> None:
    sigma = [[9, 0.2, 0.1, 0.2], [0.2, 9, 0.2, 0.2], [0.1, 0.2, 9, 0], [0.2, 0.2, 0, 9]]
    assert low_selectivity_orders(sigma) == ((2, 1, 3), (0, 2, 3), (3, 0, 1), (2, 0, 1))


def test_what_was_measured_stands_beside_what_was_expected() -> None:
    own = ((1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2))
    runs = [Measured((0, 1, 2, 3), 170_000, 10), Measured(own, 80_000, 5)]
    found = explain(problem(TABLE5), runs)["expected"]
    assert found["comparisons"] == 16000
    assert found["measured"][0] == {
        "order": [1, 2, 3, 4], "span": 10.0, "expected": 160000.0, "actual": 170000,
        "ratio": 1.0625,
    }  # fmt: skip
    assert found["measured"][1]["order"] == [[2, 3, 4], [1, 3, 4], [1, 2, 4], [1, 2, 3]]
    assert found["measured"][1]["ratio"] == 1
    nothing = explain(problem({**TABLE5, "rates": [0] * 4}), [Measured((0, 1, 2, 3), 0, 1)])
    assert nothing["expected"]["measured"][0]["ratio"] is None


TOLD = "--rates 10,1,1,3 --windows 100,100,200,100 --distinct 500,50,40,5"


def told(options: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    status = cli.main(["explain", *options.split()])
    return status, *capsys.readouterr()


def test_json_alone_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = told(f"{TOLD} --json", capsys)
    content = json.loads(out)
    assert (status, err) == (0, "")
    assert content["method"] == "eager-nlj"
    assert content["orders"][0] == {"order": [1, 2, 3, 4], "cost": 16000, "comparisons": 16000}
    assert [own["cost"] for own in content["orders"]] == ranked_orders(
        problem(TABLE5)
    ).costs.tolist()
    assert (content["chosen"], content["chosen_cost"], content["rank"]) == ([1, 2, 3, 4], 16000, 1)
    assert [stream["size"] for stream in content["streams"]] == [1000, 100, 200, 300]


def test_json_in_a_file_beside_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = told(f"{TOLD} --top 3 --json {tmp_path}/e.json", capsys)
    assert status == 0
    assert "P3's heuristic: 1 2 3 4 at 16,000.00, rank 1" in out
    assert "1 3 2 4" in out
    assert "2 1 3 4" not in out
    assert len(json.loads((tmp_path / "e.json").read_text())["orders"]) == 3


def test_orders_of_every_direction(capsys: pytest.CaptureFixture[str]) -> None:
    options = f"{TOLD} --method general-lazy-nlj --tau 50"
    content = json.loads(told(f"{options} --json", capsys)[1])
    assert [own["direction"] for own in content["directions"]] == [1, 2, 3, 4]
    assert [own["chosen"] for own in content["directions"]] == content["chosen"]
    assert content["chosen_cost"] == sum(own["chosen_cost"] for own in content["directions"])
    out = told(options, capsys)[1]
    assert out.count("new tuples of stream") == 4
    assert "expected" in out


def test_selectivities_buckets_and_measurements_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pairs = "1-2=0.1,1-3=0.01,4-1=.2,2-3=0.1,2-4=0.1,3-4=0.5"
    options = f"{TOLD} --selectivities {pairs} --method hybrid --buckets 1,5,-,5"
    content = json.loads(told(f"{options} --json", capsys)[1])
    assert content["low_selectivity"]["orders"] == [[3, 2, 4], [1, 3, 4], [1, 2, 4], [2, 1, 3]]
    assert [stream["buckets"] for stream in content["streams"]] == [1, 5, None, 5]
    assert [stream["probed"] for stream in content["streams"]] == [1000, 20, 200, 60]
    out = told(options, capsys)[1]
    assert "  1: 3 2 4\n  2: 1 3 4\n" in out
    assert "P4: Gedik, Wu, Yu, Liu: GrubJoin" in out
    streams = tuple(StreamStatistics(name, 1, 10, 5) for name in ("calls", "texts"))
    runs = [Measured((0, 1), 30, 1), Measured(((1,), (0,)), 20, 1)]
    print_explanation(explain(OrderingProblem(JoinStatistics(streams)), runs), None, terminal())
    out = capsys.readouterr().out
    assert all(text in out for text in ("calls", "texts; calls", "1.500"))


def test_costs_of_slow_streams_differ(capsys: pytest.CaptureFixture[str]) -> None:
    slow = "--rates 0.0005,0.0006,0.0017 --windows 7200,7200,7200 --distinct 24,15,17"
    out = told(slow, capsys)[1]
    assert all(text in out for text in ("0.0137", "0.0154", "0.0177", "mean 0.0194")), out
    faster = "--rates 0.0015,0.0018,0.0051 --windows 7200,7200,7200 --distinct 24,15,17"
    assert all(text in told(faster, capsys)[1] for text in ("0.183", "0.206", "0.219"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--windows 1,1 --distinct 1,1", "--rates is missing"),
        ("--rates 1,x --windows 1,1 --distinct 1,1", "--rates has 'x'; give numbers, as in"),
        (
            "--rates 1,1 --windows 1 --distinct 1,1",
            "--windows has 1 values, and --rates 2",
        ),
        ("--rates 1 --windows 1 --distinct 1", "a join of 1 streams: give 2 to 8"),
        (f"{TOLD} --top 0", "top 0 must be 1 order or more"),
        (f"{TOLD} --top x", "--top is 'x'; give a whole number"),
        ("--rates=-1,1 --windows 1,1 --distinct 1,1", "rate -1.0 of stream 1 must be 0 or more"),
        ("--rates 1,1 --windows 1,nan --distinct 1,1", "window nan of stream 2 must be 0 or more"),
        ("--rates 1,1 --windows 1,1 --distinct 1,0", "distinct values 0.0 of stream 2 must be 1"),
        ("--rates 1e200,1 --windows 1e200,1 --distinct 1,1", "of stream 1 is more than float64"),
        ("--rates 1e200,1e200 --windows 1,1 --distinct 1,1", "more comparisons than float64"),
        (f"{TOLD} --buckets 1,5,x,5", "--buckets has 'x'; give a whole number, or -"),
        (f"{TOLD} --buckets 1,5", "--buckets has 2 values, and --rates 4"),
        (f"{TOLD} --buckets 1,5,0,5", "0 buckets of stream 3: give a whole number of 1 or more"),
        (f"{TOLD} --buckets 1,5,-,5", "eager-nlj scans every window, but stream 1 has buckets"),
        (f"{TOLD} --buckets 1,5,-,5 --method eager-hash", "3 has no buckets: give --buckets"),
        (f"{TOLD} --method hybrid", "--method hybrid needs --buckets of at least one stream"),
        (f"{TOLD} --method eager-njl", "method is 'eager-njl'; choose one of eager-nlj, naive"),
        (f"{TOLD} --method eager-njl", "Did you mean 'eager-nlj'?"),
        (f"{TOLD} --method lazy-nlj", "--tau is missing: --method lazy-nlj joins new"),
        (f"{TOLD} --method lazy-nlj --tau 0", "--tau 0 must be more than 0 and finite"),
        (f"{TOLD} --method lazy-nlj --tau x", "--tau has 'x'; give numbers"),
        (f"{TOLD} --tau 5", "--tau is 5, but eager-nlj joins every tuple at once"),
        (f"{TOLD} --selectivities 1-2", "--selectivities has '1-2'; write STREAM-STREAM=SHARE"),
        (f"{TOLD} --selectivities 1-5=0.1", "has 1-5; name two of the streams 1 to 4"),
        (f"{TOLD} --selectivities 1-1=0.1", "has 1-1; name two of the streams 1 to 4"),
        (f"{TOLD} --selectivities 1-2=0.1,2-1=0.1", "has the streams 2-1 twice"),
        (f"{TOLD} --selectivities 1-2=0.1", "--selectivities lacks 1-3"),
        (f"{TOLD} --selectivities 1-2=x", "--selectivities has 'x'; give numbers"),
        ("--rates 1,1 --windows 1,1 --distinct 1,1 --selectivities 1-2=2", "selectivity 2.0 betw"),
        (f"{TOLD} --json .", "report . is a folder: name a file"),
    ],
)
def test_what_means_nothing_is_told(
    options: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = told(options, capsys)
    assert (status, out) == (2, "")
    assert err.startswith("winnow explain: error: ")
    assert said in err


def test_a_run_of_no_time_is_refused() -> None:
    with pytest.raises(SpecError, match="span 0 must be more than 0"):
        explain(problem(TABLE5), [Measured((0, 1, 2, 3), 1, 0)])


def test_every_option_and_field_is_documented_and_none_besides(
    capsys: pytest.CaptureFixture[str],
) -> None:
    documented = documented_options("explain")
    assert set(documented) == flags_of("explain")
    for example in documented.values():
        taken("explain", example.split())
    pairs = "1-2=0.1,1-3=0.01,1-4=.2,2-3=0.1,2-4=0.1,3-4=0.5"
    found = set()
    for options in ("", "--method general-lazy-nlj --tau 5"):
        out = told(f"{TOLD} --selectivities {pairs} --json {options}", capsys)[1]
        found |= {name.replace("directions[].", "") for name in fields(json.loads(out))}
    run = explain(problem(TABLE5), [Measured((0, 1, 2, 3), 1, 1)])
    found |= set(fields(run))
    text = (ROOT / "docs" / "explain.md").read_text()
    assert named_in(text.split("## The JSON\n")[-1]) == found
