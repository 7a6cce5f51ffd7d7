"""How old the matches of each direction are: scores without the detour over one stream.

P4 5.2.2 keeps a histogram a stream, of its lag behind the first, and derives all scores from them
as if lags were independent and every output counted for every direction. But direction i makes only
the outputs whose latest member is of stream i; with three streams and no time correlation at all,
the lags of all outputs are still more often short than long. Here the ages are counted for each
direction and hop by themselves, which costs m - 1 additions an output.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import jit
from gpu_kernels.harvest.layout import Floats, Ints


def empty_ages(basic: Sequence[int]) -> Floats:
    """Return counts of nothing: (m, m - 1, greatest n) float64.

    Parameters
    ----------
    basic : m ints
        n_i: logical basic windows of each window.
    """
    m = len(basic)
    return np.zeros((m, m - 1, max(basic)))


@jit
def _learn(
    ages: Floats, ts: NDArray[np.int64], orders: Ints, basic_window: int, basic: Ints
) -> None:
    for row in range(ts.shape[0]):
        latest = 0
        for stream in range(1, ts.shape[1]):
            if ts[row, stream] >= ts[row, latest]:
                latest = stream
        for hop in range(orders.shape[1]):
            other = orders[latest, hop]
            k = (ts[row, latest] - ts[row, other]) // basic_window
            ages[latest, hop, min(k, basic[other] - 1)] += 1.0


def learn_ages(
    ages: Floats, ts: Ints, orders: Sequence[Sequence[int]] | Ints, basic_window: int,
    basic: Sequence[int],
) -> None:  # fmt: skip
    """Count outputs by the logical basic windows that their latest member found the others in.

    Parameters
    ----------
    ages : (m, m - 1, n) float64
        By direction and hop; changed in place.
    ts : (outputs, m) int64
        T(t^(i)); of equal times the stream of greater number came later.
    orders : m sequences of m - 1 ints
    basic_window : int
        b, in ticks.
    basic : m ints

    Examples
    --------
    >>> seen = empty_ages([3, 3])
    >>> learn_ages(seen, np.array([[9, 4], [9, 3], [5, 5]]), [[1], [0]], 2, [3, 3])
    >>> seen.tolist()
    [[[0.0, 0.0, 2.0]], [[1.0, 0.0, 0.0]]]
    """
    _learn(ages, ts, np.array(orders, np.int64), basic_window, np.array(basic, np.int64))


def age_scores(
    ages: Floats, orders: Sequence[Sequence[int]], basic: Sequence[int]
) -> list[list[Floats]]:
    """Return the scores of every hop's logical basic windows; flat where nothing was counted.

    Parameters
    ----------
    ages : (m, m - 1, n) float64
    orders, basic
        See `learn_ages`.

    Returns
    -------
    m lists of m - 1 arrays (n,) float64
        As `engine.multiway.fractions.profile.JoinProfile` takes them.
    """
    found = []
    for i, order in enumerate(orders):
        hops = [ages[i, hop, : basic[other]] for hop, other in enumerate(order)]
        found.append([own.copy() if own.any() else np.ones(own.size) for own in hops])
    return found
