"""The join memory state graph (P1 4.2, P2 3.1) against the oracle that tries every memory."""

from __future__ import annotations

import numpy as np
import optimum_cases as cases
import pytest
from naive import SIDES
from naive_optimum import OBJECTIVES
from optimum_cases import Case

from engine.optimum import states
from engine.optimum.intervals import Matches
from engine.optimum.retained import NOT_STORED, Retained
from engine.optimum.states import Graph, Optimal, optimal_states
from engine.runtime.errors import SpecError


def solved(case: Case) -> list[Optimal]:
    """Solve both sides, and see that the plan is legal and worth what is said."""
    found = cases.arranged(case)
    best = [
        optimal_states(
            cases.matches(case, found, side),
            case.budgets[side],
            after_admission=case.after_admission,
        )
        for side in SIDES
    ]
    tables = (case.options["left"], case.options["right"])
    plan = cases.plan_of(found, Retained(best[0].until, best[1].until), tables)
    assert cases.checked(case, plan) == total(case, best)
    return best


def total(case: Case, best: list[Optimal]) -> float:
    """Return the objective with the matches of one instant, as the oracle has it."""
    return cases.together(case) + case.objective.sign * (best[0].value + best[1].value)


def matches_of(*tuples: tuple[int, list[tuple[int, float]]]) -> Matches:
    """Return matches given as (ts, [(tick, gain), ...]) of each tuple."""
    starts = np.cumsum([0, *(len(each) for _, each in tuples)])
    pairs = [pair for _, each in tuples for pair in each]
    at, gain = np.array([at for at, _ in pairs], np.int64), np.array([gain for _, gain in pairs])
    return Matches(np.array([t for t, _ in tuples], np.int64), starts, at, gain)


def until_of(found: Optimal) -> list[int | None]:
    return [None if tick == NOT_STORED else tick for tick in found.until.tolist()]


# --- random and adversarial joins --------------------------------------------------------------


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize(
    ("objective", "signed"),
    [(each, False) for each in OBJECTIVES] + [("importance", True), ("minimum", True)],
)
def test_it_is_the_optimum(
    objective: str, signed: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = cases.random_case(seed, span=3 + seed % 5, objective=objective, signed=signed)
    best = cases.best(case).value
    assert total(case, solved(case)) == best
    monkeypatch.setattr(states, "ROOM", 3)  # links are tidied
    assert total(case, solved(case)) == best


def long_stream() -> Matches:
    draw = np.random.default_rng(3)
    ts = np.sort(draw.integers(0, 300, 600))
    at = np.repeat(ts, 4) + np.cumsum(draw.integers(1, 5, (600, 4)), axis=1).ravel()
    return Matches(ts, np.arange(601) * 4, at, draw.integers(-6, 9, 2400) / 2)


@pytest.mark.parametrize("after", [False, True])
def test_the_path_that_is_reconstructed_is_legal_and_worth_its_value(
    after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    matches = long_stream()
    found = optimal_states(matches, 3, after_admission=after)
    monkeypatch.setattr(states, "ROOM", 1000)
    tidied = optimal_states(matches, 3, after_admission=after)
    assert found.value == tidied.value
    assert found.until.tolist() == tidied.until.tolist()
    assert found.value == matches.gain[matches.at <= np.repeat(found.until, 4)].sum()
    for t in range(320):
        held = (matches.ts <= t) & ((found.until >= t) if after else (found.until > t))
        assert held.sum() <= 3


def test_links_that_no_path_uses_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "ROOM", 1000)
    graph = Graph(long_stream(), 2, 10**6)
    most = 0
    for event in graph.events():
        graph.meet(event)
        graph.admit(event, event.ts)
        most = max(most, graph.paths.stored)
    assert graph.all_states > 70_000
    assert most < 12_000


# --- single rules ------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True])
def test_a_tuple_leaves_before_a_bad_match_though_a_good_one_would_follow(after: bool) -> None:
    # The second tuple arrives between the bad match and the good one, and is worth more.
    matches = matches_of((0, [(1, 2.0), (3, -4.0), (6, 5.0)]), (5, [(7, 6.0)]))
    found = optimal_states(matches, 1, after_admission=after)
    assert (found.value, until_of(found)) == (8.0, [1, 7])


def test_only_what_can_still_earn_is_held() -> None:
    # One state each: nothing ever competes, so memory is what is of use and nothing else.
    ended = [(t, [(t + 1, 1.0), (t + 2, -1.0), (t + 3, 0.5)]) for t in range(0, 40, 2)]
    found = optimal_states(matches_of(*ended), 1, after_admission=False)
    assert found.most_states == 1
    assert found.value == 20.0


def test_memory_for_all_has_one_state_an_instant_and_earns_everything() -> None:
    matches = matches_of(*((t, [(t + 3, 1.0), (t + 5, 2.0)]) for t in range(30)))
    found = optimal_states(matches, 10**12, after_admission=True)
    assert (found.value, found.most_states) == (90.0, 1)


@pytest.mark.parametrize("budget", [0, 1])
def test_nothing_that_matches_and_no_memory(budget: int) -> None:
    none = matches_of((0, []), (3, []))
    found = optimal_states(none, budget, after_admission=True)
    assert (found.value, until_of(found)) == (0.0, [None, None])
    empty = optimal_states(matches_of(), budget, after_admission=False)
    assert (empty.value, empty.until.size) == (0.0, 0)
    some = optimal_states(matches_of((0, [(1, 5.0)])), budget, after_admission=False)
    assert some.value == 5.0 * budget


def test_states_are_counted_and_too_many_refused() -> None:
    # 14 tuples with a common end: the states of 3 of them are C(14, 3).
    matches = matches_of(*((t, [(20, 1.0 + t)]) for t in range(14)))
    found = optimal_states(matches, 3, after_admission=False, most_states=364)
    assert (found.value, found.most_states) == (39.0, 364)
    with pytest.raises(SpecError) as caught:
        optimal_states(matches, 3, after_admission=False, most_states=363)
    assert str(caught.value) == (
        "more than 363 memory states at ts 13 with room for 3 tuples; use --method flow"
    )


def test_extreme_ticks_do_not_overflow() -> None:
    least, most = np.iinfo(np.int64).min + 1, np.iinfo(np.int64).max - 1
    matches = matches_of((0, [(1, 1.0)]))
    wide = matches._replace(ts=np.array([least], np.int64), at=np.array([most], np.int64))
    assert until_of(optimal_states(wide, 1, after_admission=True)) == [most]
