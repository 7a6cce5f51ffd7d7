"""The age curves as a join that runs could estimate them, beside the exact ones (P5 2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.models.profile.kernel import Found
from engine.runtime.streams import SIDES


def online_report(
    found: Found,
    turns: tuple[int, int],
    rows: tuple[int, int],
    buckets: tuple[int, int],
    monitor: int | None,
    retain: float | None,
) -> dict[str, Any]:
    """Return both estimates, None where they were not asked for.

    Parameters
    ----------
    found : Found
        Of all lanes.
    turns : (int, int)
        How often the monitoring memory was given to each side.
    rows, buckets : (int, int)
        Tuples and age buckets of each side.
    monitor, retain
        As asked.
    """
    exact = found.ages.sum(axis=1)
    kinds = []
    for kind in range(2):
        sides = {}
        for side, name in enumerate(SIDES):
            n = buckets[side]
            watched = int(found.watched[kind, side])
            sides[name] = _estimate(
                found.online[kind, side, :n].tolist(), watched, exact[side, :n].tolist(), rows[side]
            )
        kinds.append(sides)
    watching, retaining = kinds
    for side, name in enumerate(SIDES):
        watching[name] = {"turns": turns[side]} | watching[name]
    return {
        "monitor": None if monitor is None else {"memory": monitor} | watching,
        "retain": None if retain is None else {"fraction": retain} | retaining,
    }


def _estimate(seen: Sequence[int], watched: int, exact: Sequence[int], rows: int) -> dict[str, Any]:
    """Return p_i and n_i of the tuples watched, and how far they are from those of all."""
    total, whole = sum(seen), sum(exact)
    matches = total / watched if watched else None
    ratio = distance = None
    if matches is not None and whole:
        ratio = matches / (whole / rows)
    if total and whole:
        shares = np.array(seen) / total - np.array(exact) / whole
        distance = float(np.abs(shares).sum())
    return {
        "tuples": watched,
        "matches": matches,
        "matches_ratio": ratio,
        "curve_distance": distance,
        "buckets": [number / watched for number in seen] if watched else [],
    }
