"""CUSTOM: a scalar function of the user's, evaluated for every tuple at every instant (P1 3.2)."""

from __future__ import annotations

from engine.policies.base import Parameter, Policy, Structure

POLICY = Policy(
    name="custom",
    source="P1 3.2, cumulative",
    summary="a function (imp, m, age, lifetime, previous, produced) -> priority of your own",
    structure=Structure.RERANK,
    parameters=(
        Parameter(
            "function",
            "the function, or module:name; arithmetic on float64 scalars only",
            kind="function",
        ),
        Parameter(
            "ties",
            "break ties by arrival (ts) or by importance, then match count (importance)",
            default="ts",
            choices=("ts", "importance"),
            kind="word",
        ),
    ),
)
