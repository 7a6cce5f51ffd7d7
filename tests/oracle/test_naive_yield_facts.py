"""The oracle of `yield` through a fact relation: against the equi-join's, and worked by hand."""

import random
from typing import Any

import naive
import pytest
from naive import COMBINES, LEFT, PROBES, RIGHT, Item, Replay, Table, replay
from naive_yield import Estimate

Facts = list[tuple[Any, ...]]
PARAMS = {"counters": 65536, "buckets": 8, "sample": 16}


def drawn(seed: int, rows: int = 130, lag: int = 15, *, nulls: bool = True) -> tuple[Table, Table]:
    """Return streams in which most keys match once, late, a few match often, and some are null."""
    rng = random.Random(seed)  # noqa: S311
    left: Table = []
    right: Table = []
    for number in range(rows):
        ts = rng.randrange(2 * rows)
        key = rng.randrange(4) if rng.random() < 0.4 else 10 + number
        left.append((ts, key, rng.choice([0.0, 0.25, 1.0, 3.0, 70.0])))
        later = ts + rng.randrange(lag - 3, lag + 4) if rng.random() < 0.8 else max(0, ts - lag)
        shown = None if nulls and rng.random() < 0.05 else key
        right.append((later, shown, float(rng.randrange(9))))
    return left, right


def changing(seed: int, left: Table, right: Table, end: int) -> Facts:
    """Return facts about a third of the keys or more, several to a key, that come and go."""
    rng = random.Random(seed)  # noqa: S311
    keys = [sorted({key for _, key, _ in table if key is not None}) for table in (left, right)]
    found: Facts = []
    for key in keys[0]:
        partners = {key, rng.choice(keys[1])} if rng.random() < 0.6 else set()
        for partner in sorted(partners):
            begin = rng.choice([None, rng.randrange(end)])
            ends = rng.choice([None, (begin or 0) + 1 + rng.randrange(end)])
            found.append((key, partner, begin, ends))
    rng.shuffle(found)
    return found


def kept(left: Table, right: Table, fact: Facts | None, **options: Any) -> Replay:
    """Return the replay of `yield` with little memory, unless told otherwise."""
    given: dict[str, Any] = {"window_left": 30, "window_right": 25, "policy": "yield"}
    given |= {"budget_left": 7, "budget_right": 5, "params": PARAMS}
    return replay(left, right, fact=fact, **(given | options))


def without_facts(done: Replay) -> Replay:
    """Return a replay whose outputs do not tell by which fact."""
    return done._replace(outputs=[output[:4] for output in done.outputs])


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("combine_name", COMBINES)
def test_the_identity_is_the_equi_join(combine_name: str, probe: str) -> None:
    for seed in range(2):
        left, right = drawn(seed)
        keys = list({key for _, key, _ in left + right if key is not None})
        random.Random(seed).shuffle(keys)  # noqa: S311
        identity: Facts = [(key, key, None, None) for key in keys]
        options = {"combine_name": combine_name, "probe": probe}
        plain = kept(left, right, None, **options)
        assert without_facts(kept(left, right, identity, **options)) == plain
        free = kept(left, right, None, budget_left=None, budget_right=None, **options)
        assert len(plain.outputs) < len(free.outputs), "nothing was dropped: the case is too easy"


def test_what_is_learnt_through_the_identity_is_what_is_learnt_by_key() -> None:
    tables = drawn(5, 400)
    facts: Facts = [(key, key, None, None) for key in range(500)]
    links = [((a, b), *rest) for a, b, *rest in facts]
    by_key, by_fact = Estimate((30, 25), "min", PARAMS), Estimate((30, 25), "min", PARAMS, links)
    for now in range(900):
        rows = [[(ts, *rest) for ts, *rest in table if ts == now] for table in tables]
        found = []
        for estimate, given in ((by_key, None), (by_fact, links)):
            arrivals = [naive.items_of(side, rows[side], given) for side in (LEFT, RIGHT)]
            if any(arrivals):
                estimate.arrive(now, arrivals)
            found.append([item.value for side in arrivals for item in side])
        assert found[0] == found[1]
    assert by_key.step == by_fact.step
    for side in (LEFT, RIGHT):
        ours, theirs = (vars(estimate.sides[side]) for estimate in (by_fact, by_key))
        watched = (ours.pop("watched"), theirs.pop("watched"))
        assert [one.state for one in watched[0]] == [one.state for one in watched[1]]
        assert ours == theirs
    of_left = by_fact.sides[LEFT]
    assert len({rate for state in of_left.table for rate in state}) > 2
    assert of_left.factor != [1.0] * len(of_left.factor)
    assert of_left.of_key > 0


@pytest.mark.parametrize("probe", PROBES)
def test_rows_of_no_fact_change_nothing(probe: str) -> None:
    left, right = drawn(3)
    fact = changing(3, left, right, 260)
    rng = random.Random(4)  # noqa: S311
    strange: Table = [(rng.randrange(270), rng.choice([-1, 3000]), 50.0) for _ in range(80)]
    alone = kept(left, right, fact, probe=probe)
    beside = kept(left + strange[:40], right + strange[40:], fact, probe=probe)
    assert beside.outputs == alone.outputs
    instants = {t for t, *_ in alone.retained}
    assert [one for one in beside.retained if one[0] in instants] == alone.retained


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("seed", range(3))
def test_the_outputs_are_some_of_all_and_are_the_same_again(seed: int, probe: str) -> None:
    left, right = drawn(10 + seed)
    fact = changing(seed, left, right, 260)
    params = PARAMS | {"counters": 65536 if seed else 8}
    done = kept(left, right, fact, probe=probe, params=params)
    assert kept(left, right, fact, probe=probe, params=params) == done
    free = kept(left, right, fact, probe=probe, budget_left=None, budget_right=None)
    assert done.peak_left <= 7
    assert done.peak_right <= 5
    assert set(done.outputs) < set(free.outputs)
    assert (
        free.outputs
        == kept(
            left, right, fact, policy="recent", probe=probe, budget_left=None, budget_right=None
        ).outputs
    )


def test_neither_the_order_of_facts_nor_duplicates_nor_nulls_matter() -> None:
    left, right = drawn(20)
    fact = changing(20, left, right, 260)
    ref = kept(left, right, fact)
    beside = [*fact, *fact[::3], (None, 1, None, None), (1, None, None, 50)]
    assert kept(left, right, beside) == ref
    assert without_facts(kept(left, right, fact[::-1])) == without_facts(ref)


# --- worked by hand ----------------------------------------------------------------------------


def estimate_of(facts: Facts, **params: Any) -> Estimate:
    """Return an estimate of windows of 20 ticks with these facts."""
    links = [((a, b), *rest) for a, b, *rest in facts]
    return Estimate((20, 20), "min", params, links)


def arriving(estimate: Estimate, facts: Facts, side: int, rows: Table) -> list[Item]:
    """Let rows of one side arrive, each at an instant of its own."""
    links = [((a, b), *rest) for a, b, *rest in facts]
    items = naive.items_of(side, rows, links)
    for item in items:
        estimate.arrive(item.ts, [[item], []] if side == LEFT else [[], [item]])
    return items


def counts(estimate: Estimate, code: int) -> tuple[list[int], list[float], int]:
    """Return what is counted of a code."""
    cell = estimate.cell(code)
    assert cell is not None
    return cell.c, cell.u, cell.last


def test_an_arrival_is_counted_through_each_of_its_facts() -> None:
    # left 10, 20 have the codes 0, 2; right 5, 7 have 1, 3
    facts: Facts = [(20, 7, None, None), (10, 7, None, None), (10, 5, None, None)]
    estimate = estimate_of(facts)
    arriving(estimate, facts, LEFT, [(0, 10, 4.0), (1, 20, 1.0), (2, 10, 2.0)])
    assert counts(estimate, 0) == ([0, 0], [0.0, 0.0], 2)
    assert counts(estimate, 2) == ([0, 0], [0.0, 0.0], 1)
    assert counts(estimate, 1) == ([2, 0], [3.0, 0.0], 2)
    assert counts(estimate, 3) == ([3, 0], [2.5 + 1 / 3 * -0.5, 0.0], 2)
    of_left = estimate.sides[LEFT]
    assert (of_left.number, of_left.importance, sum(of_left.bin_number)) == (3, 7.0, 3)
    # (1): 7 has u = 4, the mean is 4; (2): 5 has 4 and 7 has 2.5, the mean is 2.5, before and after
    assert (of_left.xx, of_left.xy) == (1.5**2, 1.5 * -0.5)


def test_a_count_is_drawn_to_the_mean_of_its_own_side() -> None:
    facts: Facts = [(10, 5, None, None), (10, 7, None, None), (20, 7, None, None)]
    estimate = estimate_of(facts)
    arriving(estimate, facts, LEFT, [(0, 10, 4.0), *((ts, 20, 4.0) for ts in range(1, 9))])
    seven, five = arriving(estimate, facts, RIGHT, [(9, 7, 3.0), (10, 5, 3.0)])
    # of right attributes D = 2 are counted 1 and 9 times: spread = 82 * 2 - 100, n * D = 20
    weight = (64 - 20) / 64
    assert seven.value == weight * (9 * 2 / 10) + (1 - weight)
    assert five.value == weight * (1 * 2 / 10) + (1 - weight)
    assert estimate.sides[RIGHT].watched[0].base == seven.value
    assert counts(estimate, 0)[0] == [0, 2]  # through 7 and 5
    assert counts(estimate, 2)[0] == [0, 1]
    assert len(estimate.cells) == 4


def test_facts_are_in_the_order_of_codes_begin_and_position() -> None:
    facts: Facts = [
        *((2, 1, None, None), (1, 9, 0, None, "b"), (1, 9, 0, None, "a"), (1, 9, None, None)),
        *((1, 9, -3, None), (1, 3, 4, None), (1, None, None, None)),
    ]
    relation = estimate_of(facts).relation
    assert relation is not None
    assert sorted((5, 4, 3, 2, 1, 0), key=relation.place) == [5, 3, 4, 1, 2, 0]
    assert relation.codes == [{1: 0, 2: 2}, {1: 1, 3: 3, 9: 5}]


def test_its_own_attribute_takes_a_cell_first_then_others_in_the_order_of_facts() -> None:
    facts: Facts = [(1, key, None, None) for key in (9, 8, 7, 6, 5)]
    estimate = estimate_of(facts, counters=4)
    arriving(estimate, facts, LEFT, [(0, 1, 1.0)])
    assert sorted(cell.key for cell in estimate.cells.values()) == [0, 1, 3, 5]  # its own; 5, 6, 7


def matches(estimate: Estimate, side: int) -> float:
    """Return how many matches of watched tuples are counted."""
    cells = estimate.sides[side].matches
    return sum(one for of_class in cells for of_state in of_class for one in of_state)


def test_watched_tuples_are_met_once_for_each_fact() -> None:
    facts: Facts = [(10, 5, None, None, "x"), (10, 5, None, 9, "y"), (30, 5, None, None, "x")]
    estimate = estimate_of(facts)
    arriving(estimate, facts, LEFT, [(0, 10, 1.0), (1, 10, 2.0), (2, 30, 4.0)])
    arriving(estimate, facts, RIGHT, [(5, 5, 3.0)])
    assert matches(estimate, LEFT) == 5
    assert estimate.sides[LEFT].os == 2 * (1.0 + 4.0) + 4.0 * 3.0
    arriving(estimate, facts, RIGHT, [(9, 5, 3.0)])
    assert matches(estimate, LEFT) == 8
    assert matches(estimate, RIGHT) == 0


@pytest.mark.parametrize("probe", PROBES)
def test_a_fact_joins_nothing_that_came_before_it_began(probe: str) -> None:
    facts: Facts = [(1, 2, None, 5), (1, 2, 5, None)]
    left: Table = [(3, 1, 1.0), (5, 1, 1.0)]
    estimate = estimate_of(facts)
    arriving(estimate, facts, LEFT, left[:1])
    arriving(estimate, facts, RIGHT, [(4, 2, 1.0)])
    assert matches(estimate, LEFT) == 1
    arriving(estimate, facts, LEFT, left[1:])
    assert matches(estimate, RIGHT) == 0
    arriving(estimate, facts, RIGHT, [(6, 2, 1.0)])
    assert matches(estimate, LEFT) == 2
    assert [one.state for one in estimate.sides[LEFT].watched] == [1, 1]
    done = kept(left, [(4, 2, 1.0), (6, 2, 1.0)], facts, probe=probe)
    assert done.outputs == [(0, 0, 4, 1.0, 0), (1, 1, 6, 1.0, 1)]


def test_instants_of_no_fact_are_none() -> None:
    facts: Facts = [(1, 2, 4, 20)]
    estimate = estimate_of(facts)
    arriving(estimate, facts, LEFT, [(1, 1, 1.0), (4, 1, 1.0), (5, 8, 1.0), (10, 1, 1.0)])
    items = arriving(estimate, facts, RIGHT, [(16, 2, 1.0), (21, 2, 1.0)])
    assert (estimate.first, estimate.step, estimate.rows) == (4, 6, 3)
    assert [len(mine.watched) for mine in estimate.sides] == [2, 1]
    assert [item.value > 0 for item in items] == [True, False]


def test_an_attribute_that_finds_no_cell_is_counted_for_the_others() -> None:
    facts: Facts = [(key, 9, None, None) for key in range(5)]
    estimate = estimate_of(facts, counters=4)
    arriving(estimate, facts, LEFT, [(key, key, 1.0) for key in range(5)])
    assert sorted(cell.key for cell in estimate.cells.values()) == [0, 1, 2, 4]  # 9 has code 1
    assert counts(estimate, 1) == ([5, 0], [1.0, 0.0], 4)
    arriving(estimate, facts, LEFT, [(21, 3, 1.0)])  # 0 came last at 0, before 21 - 20
    assert sorted(cell.key for cell in estimate.cells.values()) == [1, 2, 4, 6]
    assert counts(estimate, 1)[0] == [6, 0]


def test_the_first_arrival_may_be_counted_twice_in_one_cell() -> None:
    facts: Facts = [(10, 5, None, None, "x"), (10, 5, None, None, "y")]
    estimate = estimate_of(facts)
    arriving(estimate, facts, LEFT, [(0, 10, 4.0)])
    assert counts(estimate, 1)[0] == [2, 0]
    assert (estimate.sides[LEFT].xx, estimate.sides[LEFT].xy) == (0.0, 0.0)
    arriving(estimate, facts, LEFT, [(1, 10, 2.0)])
    assert counts(estimate, 1)[:2] == ([4, 0], [4 + (2 - 4) / 3 + (2 - (4 + (2 - 4) / 3)) / 4, 0.0])
    assert estimate.sides[LEFT].xx > 0  # the second time its u is no longer the mean, 4
