"""What short replays advise, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.report.tables import number, percent

NAMES = {"importance_recall": "importance recall", "recall": "recall"}


def predicted(interval: Mapping[str, float]) -> str:
    """Return an estimate and its interval, or what was found where that is exact.

    Examples
    --------
    >>> predicted({"value": 0.5, "low": 0.4, "high": 0.625})
    '50.00 % predicted (40.00 to 62.50 %)'
    >>> predicted({"value": 0.5, "low": 0.5, "high": 0.5})
    '50.00 %'
    """
    if interval["low"] == interval["high"]:
        return percent(interval["value"])
    low, high = percent(interval["low"]), percent(interval["high"])
    return f"{percent(interval['value'])} predicted ({low.removesuffix(' %')} to {high})"


def short(candidate: Mapping[str, Any]) -> str:
    """Return a candidate's policy, split and, where it matters, estimator."""
    estimator = f", {candidate['estimator']}" if "--estimator" in candidate["options"] else ""
    return f"{candidate['policy']}, {candidate['split']}{estimator}"


def tried_on(advice: Mapping[str, Any]) -> str:
    """Return what candidates were replayed on."""
    candidates = f"{number(advice['candidates'])} candidates"
    if not advice["stretches"]:
        return f"{candidates}, all replayed on the whole archive"
    on = f"{number(advice['stretches'])} stretches of the archive"
    if advice["whole"]:
        return f"{candidates} on {on}, the best of them on all of it"
    return f"{candidates} on {on}, {percent(advice['share'])} of its tuples"


def advice_of(advice: Mapping[str, Any]) -> str:
    """Return the options that are advised, from what, and what is next."""
    measure = advice["measure"]
    source = "" if advice["by"] is None else f" (told by {advice['by']})"
    said = (
        f"auto: {advice['options']}, best of {tried_on(advice)}{source}: "
        f"{NAMES[measure]} {predicted(advice[measure])}"
    )
    second = advice["next"]
    if second is None:
        return said
    return f"{said}; next {second['options']}, {predicted(second[measure])}"
