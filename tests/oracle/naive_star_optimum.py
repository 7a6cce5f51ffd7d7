"""The oracle of the best possible star-streaming join: every memory that could be kept is tried.

It imports nothing of ours but `naive_star`'s exact join. Sums are exact fractions. Sources: the
contract (semantics.md, sections 1, 4 and 5); P1 4.1; P2 3.1.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

from naive import Links, Table
from naive_star import exact_star

Row = tuple[int, int]
"""Its stream and its position there."""
Kept = frozenset[Row]


def star_optimum(
    streams: Sequence[Table],
    windows: Sequence[int],
    facts: Links,
    budgets: Sequence[int],
    *,
    shared: bool = False,
    probe: str = "before_admission",
    combine_name: str = "min",
    start_ts: int | None = None,
) -> Fraction:
    """Return the greatest importance of outputs that any plan gives (semantics 4).

    Parameters
    ----------
    streams, windows, facts, combine_name, start_ts
        As `naive_star.exact_star` takes them.
    budgets : sequence of int
        Rows of each stream that are kept after step 5 of any instant, at most.
    shared : bool
        One memory for all streams, of as many rows as `budgets` have together.
    probe : {"before_admission", "after_admission"}
        Whether outputs are of what was kept before the instant, or after it.
    """
    due: dict[int, list[tuple[Kept, Fraction]]] = {}
    for rows, t, importance, _ in exact_star(streams, windows, facts, combine_name, start_ts):
        older = frozenset(row for row in enumerate(rows) if streams[row[0]][row[1]][0] < t)
        due.setdefault(t, []).append((older, Fraction(importance)))
    useful = {row for outputs in due.values() for older, _ in outputs for row in older}
    states: dict[Kept, Fraction] = {frozenset(): Fraction(0)}
    for t in sorted({row[0] for table in streams for row in table}):
        here = {(s, r) for s, r in useful if streams[s][r][0] == t}
        after: dict[Kept, Fraction] = {}
        for kept, value in states.items():
            for chosen in _subsets(sorted(kept | here), budgets, shared=shared):
                met = kept if probe == "before_admission" else chosen
                earned = sum((gain for older, gain in due.get(t, []) if older <= met), value)
                after[chosen] = max(after.get(chosen, earned), earned)
        states = after
    return max(states.values())


def _subsets(rows: Sequence[Row], budgets: Sequence[int], *, shared: bool) -> Iterator[Kept]:
    """Every choice of rows that the memories have room for."""
    for size in range(len(rows) + 1):
        for chosen in combinations(rows, size):
            sizes = [sum(stream == side for stream, _ in chosen) for side in range(len(budgets))]
            if size <= sum(budgets) if shared else all(map(int.__le__, sizes, budgets)):
                yield frozenset(chosen)
