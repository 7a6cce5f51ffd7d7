"""The independent oracle of the offline optimum: every memory that could be kept is tried.

It imports nothing of ours but `naive`'s names, and nothing beyond the standard library. Sums are
exact fractions, so ties are ties. Sources: the contract (semantics.md, sections 1, 2, 4, 5 and 9);
P1 4.1 and 4.2 (ODJA); P2 2.2 and 3.1 (OSSJ).

A *plan* says of every row until when it is retained: `until_ts` is the last ts whose arrivals it
meets, None where it is never stored. It holds a slot after step 5 of the instants `[ts, until_ts)`
with `probe = "before_admission"` and `[ts, until_ts]` with `"after_admission"` (semantics 4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

from naive import COMBINES, LEFT, PROBES, RIGHT, SIDES, Table
from naive import combine as combined

OBJECTIVES = ("importance", "outputs", "minimum")

Fact = list[tuple[Any, Any, int, int | None]]
Plan = tuple[list[int | None], list[int | None]]
Budgets = tuple[int | None, int | None]
Weight = Callable[[int, int], float]
Score = tuple[Fraction, ...]
Output = tuple[int, int, int, float]

NOTHING: Score = (Fraction(0), Fraction(0), Fraction(0))


class Optimum(NamedTuple):
    """What `optimum` returns.

    Attributes
    ----------
    value : float
        Of the objective: total importance or weight (greatest or least), or number of outputs.
    outputs : int
        Outputs of the plan, simultaneous matches included.
    importance : float
        Total combined importance of these, whatever the objective.
    plan : (left, right)
        Lists of until_ts by row.
    """

    value: float
    outputs: int
    importance: float
    plan: Plan


class Replayed(NamedTuple):
    """What `check_plan` returns: outputs sorted by (ts, left_row, right_row), and their sums."""

    outputs: list[Output]
    importance: float
    weight: float


class Join(NamedTuple):
    """One join: (left, right) throughout; a fact of None is the equi-join."""

    tables: tuple[Table, Table]
    windows: tuple[int, int]
    combine: str
    start_ts: int | None
    fact: Fact | None
    weight: Weight | None


def _outputs_of(join: Join, i: int, j: int) -> int:
    """Count the outputs of left i and right j, the windows left aside (semantics 1 and 5)."""
    left_ts, left_key, _ = join.tables[LEFT][i]
    right_ts, right_key, _ = join.tables[RIGHT][j]
    if left_key is None or right_key is None:
        return 0
    if join.fact is None:
        return int(left_key == right_key)
    return sum(
        1
        for a, b, begin, end in join.fact
        if a == left_key
        and b == right_key
        and all(begin <= ts and (end is None or ts < end) for ts in (left_ts, right_ts))
    )


def _matches(join: Join) -> Iterator[Output]:
    """Every output of the exact result, in order of rows; several of a pair where F has several."""
    for i, (left_ts, _, left_imp) in enumerate(join.tables[LEFT]):
        for j, (right_ts, _, right_imp) in enumerate(join.tables[RIGHT]):
            earlier = LEFT if left_ts < right_ts else RIGHT
            if left_ts != right_ts and abs(left_ts - right_ts) > join.windows[earlier]:
                continue
            t = max(left_ts, right_ts)
            importance = combined(join.combine, float(left_imp), float(right_imp))
            for _ in range(_outputs_of(join, i, j)):
                yield i, j, t, importance


def _counted(join: Join, t: int) -> bool:
    """Tell whether outputs of t count (semantics 1)."""
    return join.start_ts is None or t >= join.start_ts


def exact(
    left: Table,
    right: Table,
    *,
    window_left: int,
    window_right: int,
    combine: str = "min",
    start_ts: int | None = None,
    fact: Fact | None = None,
) -> list[Output]:
    """Return the outputs of the exact join, as `check_plan` does (semantics 1 and 5)."""
    join = Join((left, right), (window_left, window_right), combine, start_ts, fact, None)
    found = [output for output in _matches(join) if _counted(join, output[2])]
    return sorted(found, key=lambda output: (output[2], output[0], output[1]))


def star_pairs(
    left: Table, right: Table, window_left: int, window_right: int, fact: Fact
) -> list[tuple[int, int]]:
    """All pairs of the exact star-streaming join, sorted, each once for each of its f (P2 2.2)."""
    found = exact(left, right, window_left=window_left, window_right=window_right, fact=fact)
    return sorted((i, j) for i, j, _, _ in found)


def _instants(join: Join) -> list[int]:
    """Every ts at which something arrives that takes part."""
    return sorted({ts for table in join.tables for ts, key, _ in table if key is not None})


def _score(join: Join, objective: str, output: Output) -> Score:
    """Return what an output adds to (value, outputs, importance), the value to be maximised."""
    i, j, _, importance = output
    if objective == "outputs":
        value = Fraction(1)
    else:
        value = Fraction(importance if join.weight is None else join.weight(i, j))
    if objective == "minimum":
        value = -value
    return value, Fraction(1), Fraction(importance)


def _plus(*scores: Score) -> Score:
    return tuple(map(sum, zip(*scores, strict=True)))


def _gains(join: Join, objective: str, side: int) -> list[dict[int, Score]]:
    """Of each row of a side, by instant: what meeting the later arrivals of that instant adds."""
    gains: list[dict[int, Score]] = [{} for _ in join.tables[side]]
    for output in _matches(join):
        row, t = output[side], output[2]
        if join.tables[side][row][0] < t and _counted(join, t):
            score = _score(join, objective, output)
            gains[row][t] = _plus(gains[row].get(t, NOTHING), score)
    return gains


def _best_line(
    join: Join, objective: str, sides: Sequence[int], budget: int | None, probe: str
) -> tuple[Score, Plan]:
    """Walk the join memory state graph of the sides that share one memory (P1 4.2.1, P2 3.1).

    A state is the set of rows held after an instant; of all paths to a state the best is kept, with
    its predecessors. The states of the next instant are all sets of at most K of the unexpired
    rows of the state and the arrivals. A row is named by its side and its place in the table.
    """
    gains = [_gains(join, objective, side) for side in SIDES]
    instants = _instants(join)

    def gained(rows: tuple[tuple[int, int], ...], t: int) -> Score:
        return _plus(NOTHING, *(gains[side][row][t] for side, row in rows if t in gains[side][row]))

    best: dict[tuple[tuple[int, int], ...], tuple[Score, Any]] = {
        (): ((*NOTHING, Fraction(0)), None)
    }
    for t in instants:
        arrivals = [
            (side, row)
            for side in sides
            for row, (ts, key, _) in enumerate(join.tables[side])
            if ts == t and key is not None
        ]
        reached: dict[tuple[tuple[int, int], ...], tuple[Score, Any]] = {}
        for state, (score, path) in best.items():
            residents = tuple(
                (side, row)
                for side, row in state
                if t - join.tables[side][row][0] <= join.windows[side]
            )
            met = gained(residents, t)
            candidates = sorted((*residents, *arrivals))
            most = len(candidates) if budget is None else min(budget, len(candidates))
            for size in range(most + 1):
                for kept in combinations(candidates, size):
                    add = met if probe == "before_admission" else gained(kept, t)
                    total = _plus(score, (*add, Fraction(-size)))
                    if kept not in reached or total > reached[kept][0]:
                        reached[kept] = (total, (path, kept))
        best = reached
    score, path = max(best.values(), key=lambda entry: entry[0])  # the first of equal ones
    until: Plan = ([None] * len(join.tables[LEFT]), [None] * len(join.tables[RIGHT]))
    for at in range(len(instants) - 1, -1, -1):
        path, kept = path
        # Held after `at`, a row meets arrivals up to the next instant, or only up to this one.
        to = min(at + (probe == "before_admission"), len(instants) - 1)
        for side, row in kept:
            if until[side][row] is None:
                met_at = (t for t in gains[side][row] if t <= instants[to])
                until[side][row] = max(met_at, default=None)
    return score[:3], until


def optimum(
    left: Table,
    right: Table,
    *,
    window_left: int,
    window_right: int,
    budget_left: int | None,
    budget_right: int | None,
    probe: str = "before_admission",
    objective: str = "importance",
    combine: str = "min",
    start_ts: int | None = None,
    fact: Fact | None = None,
    weight: Weight | None = None,
    shared: bool = False,
) -> Optimum:
    """Best offline plan of a two-way join (semantics 4 and 5).

    Each side has a memory of its own, or both share one of as many rows as the two have together,
    divided anew at every instant.

    Of plans of equal value the one with more outputs is returned, then the one of greater
    importance, then the one that holds fewer rows, summed over the instants. What is still equal
    is settled by the order of the walk: instants upwards, predecessors in the order in which they
    were reached, sets by size and then by rows, the first found staying.

    Parameters
    ----------
    left, right : list of (ts, key, importance)
        In any order; key None is null. A row is the position in its list.
    window_left, window_right : int
        The closed windows W, in ticks; the lifetime is W + 1.
    budget_left, budget_right : int or None
        Rows that each memory may hold; None is unlimited.
    probe : {"before_admission", "after_admission"}
        When arrivals probe the opposite memory.
    objective : {"importance", "outputs", "minimum"}
        Greatest total importance, most outputs, least total importance.
    combine : {"min", "sum", "product", "max", "mean"}
        Importance of an output.
    start_ts : int, optional
        Outputs of earlier instants count for nothing.
    fact : list of (a, b, begin, end), optional
        The fact relation of P2's join, end None where open. Each counts, also one that
        equals another: what else tells them apart is not shown here.
    weight : callable (left_row, right_row) -> float, optional
        Of any sign, an output; stands for the importance in "importance" and "minimum".
    shared : bool
        One memory for both sides; it is unlimited where one of the budgets is None.

    Returns
    -------
    Optimum

    Raises
    ------
    ValueError
        Where a name is not one of those above.
    """
    for name, known in ((probe, PROBES), (objective, OBJECTIVES), (combine, COMBINES)):
        if name not in known:
            raise ValueError(f"{name!r} must be one of {', '.join(known)}")
    join = Join((left, right), (window_left, window_right), combine, start_ts, fact, weight)
    budgets = (budget_left, budget_right)
    if shared:
        total, plan = _best_line(join, objective, SIDES, _together(budgets), probe)
    else:
        lines = [_best_line(join, objective, [side], budgets[side], probe) for side in SIDES]
        total = _plus(lines[LEFT][0], lines[RIGHT][0])
        plan = (lines[LEFT][1][LEFT], lines[RIGHT][1][RIGHT])
    for output in _matches(join):  # the SA graph
        i, j, t, _ = output
        if left[i][0] == right[j][0] and _counted(join, t):
            total = _plus(total, _score(join, objective, output))
    value = -total[0] if objective == "minimum" else total[0]
    return Optimum(float(value), int(total[1]), float(total[2]), plan)


def _together(budgets: Budgets) -> int | None:
    """Return the rows that one memory in place of two may hold."""
    left, right = budgets
    return None if left is None or right is None else left + right


def _check_rows(join: Join, plan: Plan, budgets: Budgets, probe: str, *, shared: bool) -> None:
    """Raise ValueError unless every row and every instant of the plan is legal."""
    both: dict[int, int] = dict.fromkeys(_instants(join), 0)
    for side in SIDES:
        table, until, budget = join.tables[side], plan[side], budgets[side]
        if len(until) != len(table):
            raise ValueError(f"side {side}: {len(until)} intervals for {len(table)} rows")
        for row, ((ts, key, _), end) in enumerate(zip(table, until, strict=True)):
            if end is not None and (key is None or not 0 <= end - ts <= join.windows[side]):
                raise ValueError(f"side {side}: row {row} of ts {ts} cannot be kept until {end}")
        for t in _instants(join):
            held = 0
            for (ts, _, _), end in zip(table, until, strict=True):
                last = end is not None and (t < end or (t == end and probe == "after_admission"))
                held += int(ts <= t and last)
            both[t] += held
            if not shared and budget is not None and held > budget:
                raise ValueError(f"side {side}: {held} rows held at {t}, more than {budget}")
    most = _together(budgets)
    for t, held in both.items():
        if shared and most is not None and held > most:
            raise ValueError(f"both sides: {held} rows held at {t}, more than {most}")


def check_plan(
    left: Table,
    right: Table,
    plan: Plan,
    *,
    window_left: int,
    window_right: int,
    budget_left: int | None,
    budget_right: int | None,
    probe: str = "before_admission",
    combine: str = "min",
    start_ts: int | None = None,
    fact: Fact | None = None,
    weight: Weight | None = None,
    shared: bool = False,
) -> Replayed:
    """Replay a plan; parameters as in `optimum`; ValueError where it is not legal."""
    join = Join((left, right), (window_left, window_right), combine, start_ts, fact, weight)
    _check_rows(join, plan, (budget_left, budget_right), probe, shared=shared)
    outputs, importance, weights = [], Fraction(0), Fraction(0)
    for i, j, t, each in _matches(join):
        stamps = (left[i][0], right[j][0])
        end = (plan[LEFT][i], plan[RIGHT][j])[stamps.index(min(stamps))]  # of the earlier
        met = len(set(stamps)) == 1 or (end is not None and t <= end)
        if met and _counted(join, t):
            outputs.append((i, j, t, each))
            importance += Fraction(each)
            weights += Fraction(each if weight is None else weight(i, j))
    outputs.sort(key=lambda output: (output[2], output[0], output[1]))
    return Replayed(outputs, float(importance), float(weights))
