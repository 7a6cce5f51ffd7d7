"""All experiments, by name in the order of the papers."""

from __future__ import annotations

from reproduce import p1, p2, p3, p4_fractions, p4_join, p5_age, p5_sampling
from reproduce.experiment import Experiment


def _place(one: Experiment) -> tuple[str, bool, int, str]:
    paper, figure = one.name.split(":")
    digits = "".join(c for c in figure if c.isdigit())
    return paper, figure.startswith("tab") != (paper == "P3"), int(digits), figure


EXPERIMENTS = {
    one.name: one
    for one in sorted(
        (
            one
            for module in (p1, p2, p3, p4_fractions, p4_join, p5_age, p5_sampling)
            for one in module.EXPERIMENTS
        ),
        key=_place,
    )
}


def chosen(only: list[str]) -> list[Experiment]:
    """Return the experiments of papers ("P4") or names ("P4:fig11"); of none, all."""
    unknown = [
        name for name in only if not any(name in (one, one.split(":")[0]) for one in EXPERIMENTS)
    ]
    if unknown:
        raise SystemExit(f"{unknown[0]} is no experiment; give one of {', '.join(EXPERIMENTS)}")
    return [
        one
        for name, one in EXPERIMENTS.items()
        if not only or name in only or name.split(":")[0] in only
    ]
