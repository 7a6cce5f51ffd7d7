"""CUSTOM: a scalar function of the user's, evaluated for every tuple at every instant (P1 3.2)."""

from __future__ import annotations

from engine.policies.base import TIES, Parameter, Policy, Structure

POLICY = Policy(
    name="custom",
    order=130,
    source="P1 3.2, cumulative",
    summary="a function (imp, m, age, lifetime, previous, produced) -> priority of your own",
    structure=Structure.RERANK,
    parameters=(
        Parameter(
            "function",
            "the function, or module:name; arithmetic on float64 scalars only",
            kind="function",
        ),
        TIES,
    ),
)
