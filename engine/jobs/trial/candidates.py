"""The candidates of a trial: policies, splits of the memory and estimators of match counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from engine.options.budget import SPLITS, parse_split
from engine.options.replay import JobOptions
from engine.replay.layout import ESTIMATORS
from engine.runtime.errors import SpecError

POLICIES = (
    "yield", "age", "simp", "prob", "dimpprob", "simpprob", "dgl", "recent", "until_expiry",
)  # fmt: skip
"""All but `rand`, which ignores what it sees, and those that need a choice of parameters; those
that are best most often first."""
COUNTING = ("prob", "simpprob", "dimpprob", "dgl")
"""Policies whose priorities hold match counts, so that the estimator matters."""
WEIGHING = ("simp", "simpprob")
"""Policies that equal `recent` and `prob` where every tuple has the same importance."""
SLOW = ("dimpprob", "history")
"""Ranks every resident again at every instant."""


class Candidate(NamedTuple):
    """What a trial replays, and a replay may be told to do."""

    policy: str
    split: str
    estimator: str

    @property
    def options(self) -> dict[str, str]:
        """The command line's options, without the estimator where it does not matter."""
        found = {"policy": self.policy, "split": self.split}
        return found | ({"estimator": self.estimator} if self.policy in COUNTING else {})

    def of(self, options: JobOptions) -> JobOptions:
        """Return a replay of the same streams by this candidate.

        Raises
        ------
        SpecError
            If the memory or the facts rule its split out.
        """
        return replace(
            options,
            policy=self.policy,
            parameters={},
            split=parse_split(self.split, "--split"),
            estimator=self.estimator,
        )

    def __str__(self) -> str:
        return " ".join(f"--{name} {value}" for name, value in self.options.items())


def candidates_of(options: JobOptions) -> list[tuple[Candidate, JobOptions]]:
    """Return the candidates for a replay, with the job of each.

    Parameters
    ----------
    options : JobOptions
        With the memory, and the split and the estimator that are not left open.

    Notes
    -----
    Where no importance is given, `WEIGHING` are left out. A split that the memory or the facts
    rule out is left out.

    Raises
    ------
    SpecError
        If nothing is left.
    """
    left_open = options.left_open
    splits = list(SPLITS) if "split" in left_open else [str(options.split)]
    estimators = list(ESTIMATORS) if "estimator" in left_open else [options.estimator]
    found, refused = [], None
    for candidate in _named(splits, estimators, weighted=is_weighted(options)):
        try:
            found.append((candidate, candidate.of(options)))
        except SpecError as error:
            refused = refused or error
    if not found and refused is not None:
        raise refused
    return found


def is_weighted(options: JobOptions) -> bool:
    """Return whether tuples have an importance of their own."""
    roles = options.left_roles, options.right_roles
    return any(own.importance is not None for own in roles)


def _named(
    splits: Sequence[str], estimators: Sequence[str], *, weighted: bool
) -> Iterator[Candidate]:
    """Yield the whole grid."""
    for policy in POLICIES:
        counted = estimators if policy in COUNTING else estimators[:1]
        for split, estimator in product(splits, counted):
            if (policy, estimator) != SLOW and (weighted or policy not in WEIGHING):
                yield Candidate(policy, split, estimator)
