"""Priorities of tuples that a sampling policy draws from their sizes (P5 4.3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.models.counts import KeyCounts
from engine.policies import Policy
from engine.replay.callbacks import sampled_callback
from engine.replay.layout import Records
from engine.runtime.jit import jit
from engine.sampling.sizes import SizeRule, opposite_counts


class Sizing(NamedTuple):
    """How the tuples of a lane get their sizes.

    Attributes
    ----------
    kind : {"matches", "weighted", "equal"}
        See `engine.sampling.sizes.SizeRule`; matches are counted in the lane.
    floors : (float, float)
        Added to the importance of left and right tuples, by `weighted`.
    """

    kind: str = "equal"
    floors: tuple[float, float] = (0.0, 0.0)

    def rule(self, counts: KeyCounts | None) -> SizeRule:
        """Return the rule by which sizes are taken from the lane's own counts."""
        matches = None if counts is None or self.kind == "equal" else opposite_counts(counts)
        return SizeRule(self.kind, matches, self.floors)


class Sampling(NamedTuple):
    """What a sampling policy goes by on one lane.

    Attributes
    ----------
    sizing : Sizing
    scales : (float, float)
        Of left and right: the probability of EQ-CLUSTER, the factor c of PPS-CLUSTER.
    """

    sizing: Sizing = Sizing()
    scales: tuple[float, float] = (1.0, 1.0)


def priorities(
    policy: Policy, sizes: NDArray[np.float64], scale: float, draws: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the priorities of tuples of one side, less than 0 for those never admitted.

    Parameters
    ----------
    policy : Policy
    sizes : (n,) float64
    scale : float
        Of their side.
    draws : (n,) float64
        Uniforms in [0, 1) of `PURPOSE_CLUSTER`.

    Examples
    --------
    >>> from engine.policies import SAMPLING
    >>> priorities(SAMPLING["bottom_k"], np.array([3.0, 0.0]), 1.0, np.array([0.5, 0.5])).tolist()
    [6.0, -1.0]
    """
    out = np.empty(sizes.size)
    _fill(sampled_callback(policy), sizes, scale, draws, out)
    return out


@jit
def _fill(
    priority: Records,
    sizes: NDArray[np.float64],
    scale: float,
    draws: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    for i in range(out.size):
        out[i] = priority(sizes[i], scale, draws[i])
