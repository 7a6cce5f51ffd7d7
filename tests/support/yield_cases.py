"""Streams from which `yield` has something to learn."""

from __future__ import annotations

import numpy as np
from replay_cases import Rows

PROBES = ("before_admission", "after_admission")


def lagged(seed: int, rows: int = 250, lag: int = 20) -> tuple[Rows, Rows]:
    """Return streams in which most keys match once, after a lag, and a few match often."""
    rng = np.random.default_rng(seed)
    left: Rows = []
    right: Rows = []
    for number in range(rows):
        ts = int(rng.integers(0, 2 * rows))
        weight = float(rng.choice([0.0, 0.25, 1.0, 3.0, 70.0], p=[0.1, 0.3, 0.3, 0.2, 0.1]))
        often = rng.random() < 0.3
        key = int(rng.integers(0, 4)) if often else 10 + number
        left.append((ts, key, weight))
        later = ts + int(rng.normal(lag, 3)) if rng.random() < 0.8 else ts - lag
        other = weight if rng.random() < 0.5 else float(rng.integers(0, 9))
        right.append((max(0, later), key, other))
    return left, right


def regular(seed: int, rows: int = 300, every: int = 4) -> tuple[Rows, Rows]:
    """Return streams that arrive every so many ticks only, of keys from rare to very frequent.

    A frequent key brings no more matches than others: the right has it in every eighth of its rows
    alone.
    """
    rng = np.random.default_rng(seed)
    sides: tuple[Rows, Rows] = ([], [])
    for side, often in zip(sides, (0.2, 0.6), strict=True):
        for number in range(rows):
            ts = 3 + every * int(rng.integers(0, rows))
            if rng.random() < often:
                key = int(rng.zipf(1.5)) % 200
            elif ts % (8 * every) < every:
                key = 200
            else:
                key = 1000 + number
            side.append((ts, key, float(rng.choice([1.0, 2.0, 9.0]))))
    return sides
