"""What short replays advise, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.report.tables import number, percent

FEW = 30
"""Outputs that the best finds on stretches below which chance decides who that is."""
_PARTS = {"time": "stretches of the archive", "keys": "parts of the archive's keys"}
NAMES = {"importance_recall": "importance recall", "recall": "recall"}


def predicted(interval: Mapping[str, Any]) -> str:
    """Return an estimate and its interval; or what was found where that is exact, or predicts none.

    Examples
    --------
    >>> predicted({"value": 0.5, "low": 0.4, "high": 0.625})
    '50.00 % predicted (40.00 to 62.50 %)'
    >>> predicted({"value": 0.5, "low": 0.5, "high": 0.5})
    '50.00 %'
    >>> predicted({"value": 0.5, "low": None, "high": None})
    '50.00 % on these only'
    """
    value, low, high = (interval[own] for own in ("value", "low", "high"))
    if low is None:
        return f"{percent(value)} on these only"
    if low == high:
        return percent(value)
    return f"{percent(value)} predicted ({percent(low).removesuffix(' %')} to {percent(high)})"


def short(candidate: Mapping[str, Any]) -> str:
    """Return a candidate's policy, split and, where it matters, estimator."""
    estimator = f", {candidate['estimator']}" if "--estimator" in candidate["options"] else ""
    return f"{candidate['policy']}, {candidate['split']}{estimator}"


def tried_on(advice: Mapping[str, Any]) -> str:
    """Return what candidates were replayed on."""
    tried, grid = advice["candidates"], advice["grid"]
    candidates = f"{number(tried)}{f' of {number(grid)}' if tried < grid else ''} candidates"
    if not advice["stretches"]:
        return f"{candidates}, all replayed on the whole archive"
    on = f"{number(advice['stretches'])} {_PARTS[advice.get('sampled') or 'time']}"
    if advice["whole"]:
        return f"{candidates} on {on}, the best of them on all of it"
    return f"{candidates} on {on}, {percent(advice['share'])} of its tuples"


def doubt(advice: Mapping[str, Any]) -> str | None:
    """Return what tells that chance has chosen, if it may have.

    Examples
    --------
    >>> doubt({"outputs": 1_200, "recall": {"value": 0.4}, "whole": False}) is None
    True
    >>> doubt({"outputs": 23, "recall": {"value": 0.4}, "whole": False})
    'the exact join has 23 outputs on what was drawn, too few to tell which candidate is best: \
winnow sweep replays the whole archive'
    """
    outputs = advice.get("outputs")
    if outputs is None or outputs * advice["recall"]["value"] >= FEW:
        return None
    told = "which others may be best" if advice["whole"] else "which candidate is best"
    return (
        f"the exact join has {number(outputs)} outputs on what was drawn, too few to tell {told}: "
        "winnow sweep replays the whole archive"
    )


def advice_of(advice: Mapping[str, Any]) -> str:
    """Return the options that are advised, from what, what is next, and what is doubtful.

    Examples
    --------
    >>> exact = {"low": None, "high": None}
    >>> second = {"options": "--policy age", "recall": exact | {"value": 0.46}}
    >>> advice = {"measure": "recall", "options": "--policy yield", "by": None, "next": second,
    ...           "candidates": 2, "grid": 2, "stretches": 0, "recall": exact | {"value": 0.45}}
    >>> print(advice_of(advice).partition("recall ")[2])
    45.00 % on these only; --policy age reached 46.00 % on these only, which may be chance
    """
    measure = advice["measure"]
    others = advice.get("other_archives", False)
    source = f" (told by {advice['by']}{', of other archives' if others else ''})"
    tried = f"{tried_on(advice)}{source if advice['by'] else ''}"
    second = advice["next"]
    ahead = second is not None and second[measure]["value"] > advice[measure]["value"]
    said = (
        f"auto: {advice['options']}, {'from' if ahead else 'best of'} {tried}: "
        f"{NAMES[measure]} {predicted(advice[measure])}{' there' if others else ''}"
    )
    if ahead:
        said += f"; {second['options']} reached {predicted(second[measure])}, which may be chance"
    elif second is not None:
        said += f"; next {second['options']}, {predicted(second[measure])}"
    doubtful = doubt(advice)
    return said if doubtful is None else f"{said}; {doubtful}"
