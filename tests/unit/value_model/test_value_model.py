"""`yield`: its estimate to the last bit, its retained sets, and that it learns what it should."""

from __future__ import annotations

from itertools import pairwise

import naive
import naive_yield
import numpy as np
import pytest
from job_cases import streams, winnow
from replay_cases import Case, Rows, batch_of, cut, expected, run
from yield_cases import PROBES, lagged, regular

from engine.replay.settings import ReplaySettings
from engine.runtime.errors import SpecError
from engine.runtime.streams import StreamBatch
from engine.value_model.estimate import Estimate, Terms
from engine.value_model.expected import class_of
from engine.value_model.layout import COUNTED, nothing_seen
from gpu_kernels.combine import COMBINES

POLICIES_BESIDE = ("prob", "dgl", "dimpprob", "recent", "until_expiry")


def estimated(left: Rows, right: Rows, terms: Terms, step: int) -> dict[str, list[float]]:
    """Return every value, and the table of every instant, from batches of `step` ticks."""
    batches = batch_of(left), batch_of(right)
    instants = np.unique(np.r_[batches[0].ts, batches[1].ts])
    edges = [*range(int(instants[0]), int(instants[-1]) + 1, step), int(instants[-1]) + 1]
    estimate = Estimate(terms)
    found: dict[str, list[float]] = {"left": [], "right": [], "tables": []}
    for begin, end in pairwise(edges):
        sides = [cut(batch, begin, end) for batch in batches]
        valued = estimate.push(*sides)
        found["left"] += valued.values[0].tolist()
        found["right"] += valued.values[1].tolist()
        times = np.unique(np.r_[sides[0].ts, sides[1].ts])
        for now in times:
            i, j = (int(np.searchsorted(side.ts, now)) for side in sides)
            part = next(p for p in valued.parts if p.left > i or p.right > j)
            found["tables"] += part.table.reshape(-1).tolist()
    return found


def by_the_oracle(left: Rows, right: Rows, terms: Terms) -> dict[str, list[float]]:
    """Return the same by the definition."""
    estimate = naive_yield.Estimate(
        (terms.window_left, terms.window_right),
        terms.combine,
        {"counters": terms.counters, "sample": terms.sample, "buckets": terms.buckets},
    )
    items = [
        sorted(
            (
                naive.Item(side, row, ts, key, imp)
                for row, (ts, key, imp) in enumerate(rows)
                if key is not None
            ),
            key=lambda item: (item.ts, item.row),
        )
        for side, rows in enumerate((left, right))
    ]
    found: dict[str, list[float]] = {"left": [], "right": [], "tables": []}
    for now in sorted({item.ts for side in items for item in side}):
        arrivals = [[item for item in side if item.ts == now] for side in items]
        estimate.arrive(now, arrivals)
        found["left"] += [item.value for item in arrivals[0]]
        found["right"] += [item.value for item in arrivals[1]]
        found["tables"] += [
            rate for side in estimate.sides for state in side.table for rate in state
        ]
    return found


@pytest.mark.parametrize("combine", COMBINES)
def test_the_estimate_is_the_definition_to_the_last_bit(combine: str) -> None:
    sizes = (65_536, 1024, 32), (8, 16, 7), (32, 4, 1)
    for seed, (counters, sample, buckets) in enumerate(sizes):
        left, right = lagged(seed)
        terms = Terms(40, 35, combine, counters, sample, buckets)
        ref = by_the_oracle(left, right, terms)
        assert len(set(ref["tables"])) > 1, "nothing was learnt: the case is too easy"
        for step in (1, 13, 10_000):
            assert estimated(left, right, terms, step) == ref


def test_arrivals_at_regular_times_and_keys_of_all_classes_to_the_last_bit() -> None:
    for seed, window in enumerate((90, 41)):
        left, right = regular(seed)
        terms = Terms(window, window - 2, buckets=16)
        ref = by_the_oracle(left, right, terms)
        for step in (50, 10_000):
            assert estimated(left, right, terms, step) == ref


def test_more_age_buckets_than_ticks_to_the_last_bit() -> None:
    left, right = lagged(3)
    terms = Terms(9, 4, buckets=32)
    assert estimated(left, right, terms, 10_000) == by_the_oracle(left, right, terms)


def test_every_relative_rate_has_its_class() -> None:
    worth = nothing_seen(4, 4, 1, (10, 10))
    worth.cells[COUNTED] = 1
    for power in range(-9, 17):
        for part in (1.0, 1.25, 2.0 - 2.0**-52):
            relative = part * 2.0**power
            assert class_of(worth, 0, 0, relative) == naive_yield.class_of(relative)
    assert class_of(worth, 1, 0, 1.0) == class_of(worth, 0, -1, 1.0) == (0, 0.0)


def test_importances_beyond_all_bounds_leave_values_that_rank() -> None:
    left, right = lagged(5, 120)
    left = [(ts, key, weight * 1e200) for ts, key, weight in left]
    terms = Terms(40, 35, "product")
    found = estimated(left, right, terms, 50)
    assert found == by_the_oracle(left, right, terms)
    assert all(0.0 <= value <= 1e300 for side in ("left", "right") for value in found[side])
    assert np.isfinite(found["tables"]).all()


def test_parameters_out_of_bounds_are_refused() -> None:
    with pytest.raises(SpecError, match="buckets of policy yield is 1000; it must be 256 or less"):
        ReplaySettings(9, 9, policy="yield", parameters={"buckets": 1000.0})


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("combine", ["min", "max"])
def test_retains_what_the_oracle_does(probe: str, combine: str) -> None:
    for seed, params in enumerate(({}, {"buckets": 3, "sample": 16}, {"counters": 8})):
        left, right = lagged(10 + seed, 200)
        case = Case(left, right, (40, 35), (7, 5), "yield", params, "window", probe, combine)
        ref = expected(case)
        comp = run(case, step=1)
        assert comp.retained == ref.retained
        assert comp.outputs == ref.outputs
        assert run(case, step=17).outputs == ref.outputs
        assert run(case).outputs == ref.outputs


def kept(policy: str, left: Rows, right: Rows, **options: object) -> float:
    """Return the importance that a policy keeps of a stream of 400 rows a side."""
    case = Case(left, right, (60, 0), (10, 0), policy, {}, **options)  # type: ignore[arg-type]
    return run(case, emit=False).importance


def test_lets_go_of_what_has_matched() -> None:
    left, right = ([(ts, key, 1.0) for ts, key, _ in rows] for rows in lagged(3, 400))
    for probe in PROBES:
        found = {name: kept(name, left, right, probe=probe) for name in POLICIES_BESIDE}
        assert kept("yield", left, right, probe=probe) > 1.1 * max(found.values()), found


def test_estimates_are_not_counted_as_memory_but_told(tmp_path: object) -> None:
    folder = streams(tmp_path).folder  # type: ignore[arg-type]
    told = winnow(folder, policy="yield", param=["counters=100", "sample=30"], lanes=2).report
    lanes = told["lanes"]["replayed"]
    assert told["estimator_memory"] == {"tuples": 64 * lanes, "keys": 128 * lanes}
    assert winnow(folder, policy="prob", out=folder / "b").report["estimator_memory"]["keys"] == 0


def test_what_a_tuple_matches_first_is_before_its_first_match_however_many_there_are() -> None:
    def batch(*times: int) -> StreamBatch:
        rows = np.arange(len(times))
        return StreamBatch(np.array(times), rows, np.full(rows.size, 7), np.ones(rows.size))

    estimate = Estimate(Terms(9, 9))
    estimate.push(batch(0), batch(1, 1, 1, 2))
    by_state = estimate.memory.matches[0].sum(axis=(0, 2))
    assert by_state.tolist() == [3.0, 1.0]
