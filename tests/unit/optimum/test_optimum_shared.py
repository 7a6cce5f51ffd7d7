"""One memory for both sides: the optimum over any division of it, against the oracle."""

from __future__ import annotations

from typing import Any

import naive_optimum as oracle
import numpy as np
import optimum_cases as cases
import pytest
from naive import PROBES, Table
from optimum_cases import Case, random_case

from engine.optimum.bound import BoundSettings, LaneBound, bound_lane
from engine.optimum.certificate import certify
from engine.optimum.flow import solve_flow
from engine.optimum.intervals import BOTH, held, places_of
from engine.optimum.retained import Retained, until_of
from engine.optimum.settings import METHODS, Effort
from engine.optimum.states import optimal_states
from engine.runtime.jit import Ints
from engine.runtime.streams import StreamBatch

KINDS = [(objective, signed) for objective in oracle.OBJECTIVES for signed in (False, True)]
KINDS.remove(("outputs", True))


def worth(case: Case, until: Ints) -> float:
    """Return what a plan of both sides is worth by the oracle, which refuses illegal ones."""
    found = cases.arranged(case)
    places = places_of(*(stream.ts for stream in found.streams))
    tables = (case.options["left"], case.options["right"])
    plan = cases.plan_of(found, Retained(*(until[place] for place in places)), tables)
    return cases.checked(case, plan)


@pytest.mark.parametrize(("objective", "signed"), KINDS)
@pytest.mark.parametrize("seed", range(16))
def test_states_flow_and_certificate_are_the_oracles(
    objective: str, signed: bool, seed: int
) -> None:
    case = random_case(seed, rows=7, span=6, objective=objective, signed=signed).shared
    memory, sign = sum(case.budgets), case.objective.sign
    found, optimum = cases.arranged(case), cases.best(case).value
    at_once, after = cases.together(case), case.after_admission
    states = optimal_states(cases.matches(case, found, *BOTH), memory, after_admission=after)
    assert at_once + sign * states.value == worth(case, states.until) == optimum
    intervals = cases.intervals(case, found, *BOTH)
    flow = solve_flow(intervals, memory, np.zeros(intervals.nodes + 1))
    assert flow.lower == flow.upper
    assert at_once + sign * flow.lower == worth(case, until_of(intervals, flow.chosen)) == optimum
    for rounds in (0, 12, 300):
        dual = certify(intervals, memory, gap=0.0, rounds=rounds)
        assert dual.lower <= sign * (optimum - at_once) <= dual.upper
        assert held(intervals, dual.chosen).max(initial=0) <= memory
        assert at_once + sign * dual.lower == worth(case, until_of(intervals, dual.chosen))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(12))
def test_a_lane_is_bounded_over_any_division(method: str, seed: int) -> None:
    case = random_case(seed, rows=7, span=6).shared
    options, streams = case.options, cases.arranged(case).streams
    settings = BoundSettings(
        *case.windows,
        case.objective,
        options["probe"],
        options["start_ts"],
        Effort(method, seconds=0.2 if method == "dual" else 60.0),
    )
    found = bound_lane(*streams, settings, (sum(case.budgets),))
    best = cases.best(case)
    assert found.lower <= best.value <= found.upper
    assert method == "dual" or found.lower == found.upper == best.value
    tables = (options["left"], options["right"])
    assert cases.checked(case, cases.plan_of(cases.arranged(case), found.retained, tables)) == (
        found.plan.importance
    )


def drawn(seed: int, rows: int, keys: int) -> tuple[StreamBatch, StreamBatch]:
    """Return two streams of uneven rate, skewed keys and importances."""
    draw = np.random.default_rng(seed)
    streams = []
    for size in (rows, 2 * rows):
        ts = np.sort(draw.integers(0, rows, size))
        key = np.minimum(draw.geometric(3.0 / keys, size), keys)
        streams.append(StreamBatch(ts, np.arange(size), key, draw.integers(1, 30, size) / 4.0))
    return streams[0], streams[1]


def bounded(streams: tuple[StreamBatch, StreamBatch], budget: Any, **how: Any) -> LaneBound:
    settings = BoundSettings(40, 25, **{"effort": Effort("flow")} | how)
    return bound_lane(*streams, settings, budget)


@pytest.mark.parametrize("probe", PROBES)
def test_no_fixed_split_of_many_tuples_is_better(probe: str) -> None:
    streams, memory = drawn(3, 400, 12), 20
    best = bounded(streams, (memory,), probe=probe)
    assert best.lower == best.upper
    fixed = [bounded(streams, (k, memory - k), probe=probe).upper for k in range(0, memory + 1, 2)]
    assert max(fixed) < best.lower < best.exact.importance
    assert min(fixed) < 0.9 * max(fixed)


def test_the_certificate_closes_as_for_one_side() -> None:
    streams = drawn(5, 3000, 40)
    dual, flow = (bounded(streams, (60,), effort=Effort(name, 0.01)) for name in ("dual", "flow"))
    assert dual.lower <= flow.lower <= dual.upper <= dual.lower / 0.99
    assert dual.methods == ("dual",)


def test_memory_for_one_side_alone_is_that_sides_optimum() -> None:
    """Where all that is of use arrives on left, one memory of M is left's own of M."""
    left: Table = [(t, "a", 1.0 + t % 3) for t in range(0, 12, 2)]
    right: Table = [(20, "a", 9.0)]
    options = {"left": left, "right": right, "window_left": 30, "window_right": 30}
    options |= {"probe": PROBES[0], "objective": "importance", "combine": "min", "start_ts": None}
    split = Case(options | {"budget_left": 3, "budget_right": 0}, None)
    streams = cases.arranged(split).streams
    assert bounded(streams, (3,)).lower == bounded(streams, (3, 0)).lower == 8.0
    assert cases.best(split).value == 8.0
