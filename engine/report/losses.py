"""What a result lost of the exact join, as a report has it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.report.envelope import last_ticks
from engine.report.tables import number


class Tally(Protocol):
    """Counted outputs and their importance, also by time bin."""

    @property
    def outputs(self) -> int:
        """How many there are."""
        ...

    @property
    def importance(self) -> float:
        """The sum of their importance."""
        ...

    @property
    def by_bin(self) -> NDArray[np.int64]:
        """Outputs of each bin."""
        ...

    @property
    def importance_by_bin(self) -> NDArray[np.float64]:
        """Importance of each bin's."""
        ...


def share(part: float, whole: float) -> float:
    """Return part / whole; of nothing, nothing was lost."""
    return part / whole if whole else 1.0


def importance_share(
    outputs: int, importance: float, exact_outputs: int, exact_importance: float
) -> float:
    """Return the importance recall: exactly 1 where nothing was lost."""
    return 1.0 if outputs == exact_outputs else share(importance, exact_importance)


def lost_importance(exact: int, kept: int, importance: float, kept_importance: float) -> float:
    """Return lost importance; exactly 0 where nothing was lost, whatever the order of the sums."""
    return float(importance - kept_importance) if exact != kept else 0.0


def losses(pairs: Sequence[tuple[Tally, Tally]], edges: Sequence[int], last: int) -> dict[str, Any]:
    """Return the exact join, the share of it that was kept, and what was lost, in all and by time.

    Parameters
    ----------
    pairs : sequence of (Tally, Tally)
        Of each lane, the exact join's and the result's; none where there was nothing to join.
    edges : sequence of int
        Left edges of the time bins.
    last : int
        Last tick of the last bin.

    Returns
    -------
    dict
        Fields ``exact``, ``recall``, ``importance_recall`` and ``lost`` of docs/report.md.

    Examples
    --------
    >>> from engine.jobs.exact.counting import Tally
    >>> exact = Tally(4, 8.0, np.array([3, 1]), np.array([6.0, 2.0]))
    >>> kept = Tally(3, 6.0, np.array([2, 1]), np.array([4.0, 2.0]))
    >>> found = losses([(exact, kept)], [0, 10], 19)
    >>> found["recall"], found["lost"]["importance"], found["lost"]["by_time"][0]["lost_outputs"]
    (0.75, 2.0, 1)
    """
    outputs, kept = (sum(pair[i].outputs for pair in pairs) for i in (0, 1))
    importance, kept_importance = (math.fsum(pair[i].importance for pair in pairs) for i in (0, 1))
    return {
        "exact": {"outputs": outputs, "importance": importance},
        "recall": share(kept, outputs),
        "importance_recall": importance_share(kept, kept_importance, outputs, importance),
        "lost": {
            "outputs": outputs - kept,
            "importance": lost_importance(outputs, kept, importance, kept_importance),
            "by_time": _by_time(pairs, edges, last) if pairs else [],
        },
    }


def in_a_line(content: Mapping[str, Any]) -> str:
    """Return what a join's report says of its outputs, in a line.

    Examples
    --------
    >>> in_a_line({"result": {"outputs": 3, "importance": 6.0}})
    'winnow: 3 outputs, of importance 6.00'
    """
    result, exact = content["result"], content.get("exact")
    outputs, importance = number(result["outputs"]), number(result["importance"])
    if exact is None:
        return f"winnow: {outputs} outputs, of importance {importance}"
    return (
        f"winnow: {outputs} of {exact['outputs']:,} outputs, lost {1 - content['recall']:.2%}; "
        f"importance {importance} of {number(exact['importance'])}, lost "
        f"{1 - content['importance_recall']:.2%}"
    )


def in_figures(content: Mapping[str, Any]) -> dict[str, float]:
    """Return what a join's report says of its outputs, by name; counts are integers.

    Examples
    --------
    >>> in_figures({"result": {"outputs": 3, "importance": 6.0}})
    {'winnow outputs': 3, 'winnow importance': 6.0}
    """
    parts = {"": "result", " of the exact join": "exact", " lost": "lost"}
    return {
        f"winnow {name}{of}": content[part][name]
        for name in ("outputs", "importance")
        for of, part in parts.items()
        if part in content
    }


def two_digits(count: float) -> str:
    """Return an estimate of a count.

    Examples
    --------
    >>> two_digits(39_940_584.3), two_digits(7.0)
    ('40,000,000', '7')
    """
    return f"{float(f'{count:.2g}'):,.0f}"


def _by_time(
    pairs: Sequence[tuple[Tally, Tally]], edges: Sequence[int], last: int
) -> list[dict[str, float | int]]:
    exact, kept = (np.sum([pair[i].by_bin for pair in pairs], axis=0) for i in (0, 1))
    exact_importance, kept_importance = (
        np.sum([pair[i].importance_by_bin for pair in pairs], axis=0) for i in (0, 1)
    )
    ends = last_ticks(edges, last)
    return [
        {
            "from": edges[i],
            "to": ends[i],
            "exact_outputs": int(exact[i]),
            "lost_outputs": int(exact[i] - kept[i]),
            "exact_importance": float(exact_importance[i]),
            "lost_importance": lost_importance(
                exact[i], kept[i], exact_importance[i], kept_importance[i]
            ),
        }
        for i in range(len(edges))
    ]
