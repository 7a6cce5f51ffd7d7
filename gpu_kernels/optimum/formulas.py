"""The value of a choice at given prices, written once for the GPU and the simulator.

A choice is to hold a tuple from its arrival's node b to node e; with cumulative prices P that costs
``P[e] - P[b]``. Every float64 operation rounds by itself, so the CPU's profits are the same bits.
"""

from __future__ import annotations

from gpu_kernels.portable import portable

NOTHING = -1
"""Choice of a tuple for which no choice has a value above its price."""
FAR = 32.0
"""Temperatures below the best at which a choice has no share: exp(-32) < 1e-13."""


@portable
def profit_of(value: float, until: float, since: float) -> float:
    """Return a choice's value less its price, from the cumulative prices at its two ends.

    Parameters
    ----------
    value : float64
        In units of importance, as prices are.
    until, since : float64
        Cumulative prices at node e, up to which the tuple is held, and at its arrival's node b.
    """
    return value - (until - since)


@portable
def goes_before(profit: float, choice: int, other_profit: float, other_choice: int) -> bool:
    """Return whether a choice goes before another: of equal profits the shorter one.

    Parameters
    ----------
    profit, other_profit : float64
    choice, other_choice : int64
        Positions of the choices; within a tuple, the lesser is the shorter.
    """
    return profit > other_profit or (profit == other_profit and choice < other_choice)


@portable
def exponential(x: float) -> float:
    """Return exp(x) for -32 <= x <= 0 within 1e-12 of itself, alike on every device.

    Taylor's polynomial of degree 9 at x / 256, squared eight times.

    Parameters
    ----------
    x : float64
    """
    y = x * (1.0 / 256.0)
    total = 1.0 / 5040.0 + y * (1.0 / 40320.0 + y * (1.0 / 362880.0))
    total = 1.0 / 24.0 + y * (1.0 / 120.0 + y * (1.0 / 720.0 + y * total))
    total = 1.0 + y * (1.0 + y * (0.5 + y * (1.0 / 6.0 + y * total)))
    for _ in range(8):
        total = total * total
    return total


@portable
def bend_of(hold: float, length: float) -> float:
    """Return the curvature that a tuple held to the part `hold` adds on a stretch.

    Times the temperature: the variance of being held, for each of the `length` stretches that it
    may move together with.

    Parameters
    ----------
    hold : float64
        0 to 1.
    length : float64
        In stretches.
    """
    return hold * (1.0 - hold) * length


@portable
def bend_and_price(
    load: float, curve: float, length: float, budget: float, temperature: float, trust: float,
    extrapolated: float,
) -> tuple[float, float]:  # fmt: skip
    """Return a stretch's curvature as the ascent takes it, and the price that it steps to.

    The step is down the smoothed dual's slope, ``budget - load``, over its curvature; it moves the
    price of an interval of the usual `length` by no more than `trust` temperatures.

    Parameters
    ----------
    load : float64
        Tuples that hold the stretch, parts of tuples included.
    curve : float64
        The slope's change with the price, times the temperature.
    length : float64
        Usual stretches of an interval here.
    budget : float64
        K, in tuples.
    temperature, trust : float64
    extrapolated : float64
        The price that the momentum carried the last one to.

    Returns
    -------
    (float64, float64)
        The curvature, and the price, 0 or more.
    """
    slope = budget - load
    bend = max(curve, abs(slope) * length / trust, 1e-300)
    return bend, max(0.0, extrapolated - slope * temperature / bend)
