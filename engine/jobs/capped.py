"""Warns of importances that are capped by those of a stream that has none."""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.lanes.profile import LaneProfile
from engine.options.replay import JobOptions
from engine.runtime.streams import SIDES
from engine.runtime.warned import warn


def warn_of_capped(options: JobOptions, profiles: Sequence[LaneProfile]) -> None:
    """Warn where the least of both importances is that of a stream whose tuples all have 1.

    Parameters
    ----------
    profiles : sequence of LaneProfile
        Of all lanes.
    """
    weighted = [own.importance is not None for own in (options.left_roles, options.right_roles)]
    if options.combine != "min" or sum(weighted) != 1:
        return
    side = weighted.index(True)
    own, other = SIDES[side], SIDES[1 - side]
    rows = sum(one[side].rows for one in profiles)
    mean = math.fsum(one[side].mean_importance * one[side].rows for one in profiles) / max(1, rows)
    if mean > 1:
        warn(
            f"stream {other} has no importance, so each of its tuples has 1, and --combine min "
            f"makes 1 of all above it, though the mean of stream {own} is {mean:,.4g}: give "
            f"--combine product for the importance of stream {own} as it is, or max or sum"
        )
