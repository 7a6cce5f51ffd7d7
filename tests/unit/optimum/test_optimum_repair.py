"""Plans from prices: legal always, those of the rule, good where prices are, better with sweeps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from optimum_cases import contested

from engine.optimum.flow import solve_flow
from engine.optimum.intervals import Intervals, held
from engine.optimum.repair import repair
from engine.runtime.jit import NONE

NODES = 40


def choices(seed: int) -> Intervals:
    return contested(seed, tuples=200, nodes=NODES, reach=15, whole=True)


def prices(seed: int) -> NDArray[np.float64]:
    each = np.random.default_rng(seed).integers(0, 3, NODES)
    return np.concatenate([[0.0], np.cumsum(each)]).astype(np.float64)


class Naive:
    """The rule of one sweep as it is written, with lists."""

    def __init__(self, intervals: Intervals, budget: int, at: NDArray[np.float64]) -> None:
        self.choices: list[list[tuple[int, float]]] = [
            list(zip(intervals.end[a:b].tolist(), intervals.value[a:b].tolist(), strict=True))
            for a, b in zip(intervals.start[:-1], intervals.start[1:], strict=True)
        ]
        self.begin, self.at, self.budget = intervals.begin.tolist(), at, budget
        self.passed = [0] * len(self.begin)  # choices of which the plan has the last

    def since(self, i: int) -> int:
        """Return the node to which the plan holds tuple i."""
        return self.choices[i][self.passed[i] - 1][0] if self.passed[i] else self.begin[i]

    def room(self) -> list[int]:
        """Return what the plan leaves."""
        free = [self.budget] * NODES
        for i, b in enumerate(self.begin):
            for t in range(b, self.since(i)):
                free[t] -= 1
        return free

    def sweep(self) -> float:
        """Prolong the plan; return what it earns."""
        free = self.room()
        walls = [next((s for s in range(t, NODES) if free[s] <= 0), NODES) for t in range(NODES)]
        ahead: list[list[tuple[int, float]]] = []
        for i, choices in enumerate(self.choices):
            node = self.since(i)
            wall = walls[node] if node < NODES else NODES
            ahead.append([c for c in choices[self.passed[i] :] if c[0] <= wall])
        arrive = [self.since(i) for i in range(len(self.begin))]
        held: list[int] = []
        for t in range(NODES):
            for i in held:
                if ahead[i][0][0] == t:
                    self.passed[i] += 1
                    ahead[i].pop(0)
            held = [i for i in held if ahead[i]]
            held += [i for i in range(len(arrive)) if arrive[i] == t and ahead[i]]
            held = sorted(held, key=lambda i: (-self.rank(i, ahead[i]), i))[: free[t]]
        for i in held:
            self.passed[i] += 1
        return math.fsum(self.earned(i) for i in range(len(self.begin)))

    def earned(self, i: int) -> float:
        """Return what the plan has of tuple i."""
        return self.choices[i][self.passed[i] - 1][1] if self.passed[i] else 0.0

    def rank(self, i: int, ahead: list[tuple[int, float]]) -> float:
        """Return the most that tuple i can still earn at the prices."""
        return max(worth - self.at[end] for end, worth in ahead) - self.earned(i)


@pytest.mark.parametrize("budget", [0, 1, 4, 15, 200])
@pytest.mark.parametrize("seed", range(5))
def test_sweeps_follow_the_rule(budget: int, seed: int) -> None:
    intervals, at = choices(seed), prices(seed)
    naive, before = Naive(intervals, budget, at), -1.0
    for sweeps in range(1, 5):
        found = repair(intervals, budget, at, sweeps)
        assert held(intervals, found.chosen).max() <= budget
        assert found.value == intervals.value[found.chosen[found.chosen != NONE]].sum()
        earned = naive.sweep()
        assert found.value == earned >= before
        chosen = [
            a + k - 1 if k else NONE for a, k in zip(intervals.start, naive.passed, strict=False)
        ]
        assert found.chosen.tolist() == chosen
        before = earned


def test_more_sweeps_are_worth_more_somewhere() -> None:
    gains = [
        repair(choices(seed), 4, prices(seed)).value
        - repair(choices(seed), 4, prices(seed), 1).value
        for seed in range(5)
    ]
    assert min(gains) >= 0.0
    assert max(gains) > 0.0


@pytest.mark.parametrize("budget", [1, 4, 15])
def test_good_prices_make_good_plans(budget: int) -> None:
    intervals = choices(7)
    best = solve_flow(intervals, budget, np.zeros(NODES + 1))
    found = repair(intervals, budget, best.price)
    assert 0.9 * best.lower <= found.value <= best.lower
    free = repair(intervals, budget, np.zeros(NODES + 1))
    assert free.value <= best.lower


def test_room_for_all_is_all() -> None:
    intervals = choices(3)
    found = repair(intervals, 200, prices(3))
    last = intervals.start[1:] - 1
    assert found.chosen.tolist() == np.where(intervals.start[:-1] <= last, last, NONE).tolist()


def test_nothing_to_plan() -> None:
    empty: Any = np.empty(0, np.int32)
    nothing = Intervals(0, empty, np.zeros(1, np.int64), empty, np.empty(0), np.empty(0, np.int64))
    assert repair(nothing, 3, np.zeros(1)).value == 0.0
