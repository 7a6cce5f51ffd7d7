"""DGL: dynamic gain and loss (P1 4.3.4; P2 3.2).

A priority falls by `beta` a tick and rises, at every instant at which the tuple produces output,
by its importance times its match count times its remaining lifetime over `alpha`. It is kept as
``V``, the priority plus all that has been lost by anyone since the lane began, so that only tuples
that match are ever touched: ``P = max(0, V - beta*tau)``.
"""

from __future__ import annotations

from engine.policies.base import Across, Parameter, Policy, Structure
from gpu_kernels.portable import portable


@portable
def initial(imp: float, m: float, by_importance: bool) -> float:
    """Return the priority at arrival: importance times matches (P2), or importance (P1)."""
    return imp if by_importance else imp * m


@portable
def priority(value: float, lost: float) -> float:
    """Return P from V, where `lost` is beta * tau."""
    left = value - lost
    return left if left > 0.0 else 0.0  # noqa: FURB136 - one branch, the same on every device


@portable
def gained(
    value: float,
    lost: float,
    lost_before: float,
    imp: float,
    m: float,
    remaining: float,
    alpha: float,
) -> float:
    """Return V after a match, where `lost_before` is beta * (tau - 1)."""
    return lost + (priority(value, lost_before) + imp * m * remaining / alpha)


POLICY = Policy(
    name="dgl",
    order=80,
    source="P1 4.3.4, P2 3.2",
    summary="gains with every match, loses with time",
    structure=Structure.DECAY,
    across=Across.BY_VALUE,
    ties="importance",
    parameters=(
        Parameter("alpha", "divisor of a gain; default the lifetime w", above=0.0),
        Parameter("beta", "loss a tick; default mean importance of the side / w", least=0.0),
        Parameter(
            "initial",
            "priority at arrival: importance times matches (P2) or importance (P1)",
            default="simpprob",
            choices=("simpprob", "importance"),
            kind="word",
            aliases=("dgl_initial",),
        ),
    ),
)
