"""What earlier samples say of how far an interval reaches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from engine.sampling.stretches.answers import Answer


class Foreseen(NamedTuple):
    """What an earlier sample says of how far an interval reaches."""

    reach: float
    drawn: int
    """Slices that it drew by chance."""


def allowing(found: Answer, own: float, foreseen: Sequence[Foreseen]) -> Answer:
    """Return an answer whose interval allows for what earlier samples say of how slices differ.

    Who draws until intervals are short enough ends more often where they happen to be too short.
    So an interval is as wide as the mean square of its own reach and those that were foreseen,
    each as often as it has slices, if that is wider.

    Parameters
    ----------
    own : float
        How far its interval reaches.
    foreseen : sequence of Foreseen
        Of this sample, by earlier ones.

    Examples
    --------
    >>> one = Answer(100.0, 98.0, 103.0, 1.0, None, 1.0, 40)
    >>> found = allowing(one, 0.03, [Foreseen(0.06, 40)])
    >>> round(found.low, 2), round(found.high, 2)
    (96.84, 104.74)
    """
    known = [one for one in foreseen if math.isfinite(one.reach)]
    if found.reason is not None or not own or not known:
        return found
    squares = found.drawn * own**2 + sum(one.drawn * one.reach**2 for one in known)
    mean = math.sqrt(squares / (found.drawn + sum(one.drawn for one in known)))
    wider = max(1.0, mean / own)
    return found._replace(
        low=found.estimate - wider * (found.estimate - found.low),
        high=found.estimate + wider * (found.high - found.estimate),
        error=wider * found.error,
    )
