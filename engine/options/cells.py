"""The cells of a sweep: its lists read and checked, and their products."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from engine.options.budget import EVEN, POOLED, Amount, Amounts, Split, check_split, divided
from engine.options.grid import (
    parse_estimators,
    parse_lanes,
    parse_memory,
    parse_policies,
    parse_seeds,
    parse_splits,
    split_parameters,
)
from engine.options.replay import JobOptions
from engine.options.sweep import SweepOptions
from engine.policies import SAMPLING, policy_or_sample
from engine.replay.layout import ESTIMATORS
from engine.replay.settings import check_pooled, compares_across
from engine.runtime.errors import SpecError

MOST_CELLS = 100_000


class Point(NamedTuple):
    """One cell of the grid, before there are lanes.

    Attributes
    ----------
    number : int
    policy : str
    memory : Amount
        Of both sides together.
    window : int
        W of both sides, in ticks.
    seed : int or None
        None where the policy draws nothing.
    split : Split
    estimator : str or None
        None where the policy counts no matches.
    lanes : int
        Hash lanes of each partition group.
    """

    number: int
    policy: str
    memory: Amount
    window: int
    seed: int | None
    split: Split = EVEN
    estimator: str | None = None
    lanes: int = 1

    @property
    def amounts(self) -> Amounts:
        """The budget of each side, as `parse_amounts` splits it."""
        return divided(self.memory, self.split)


def points_of(
    policies: Sequence[str],
    memory: Sequence[Amount],
    windows: Sequence[int],
    seeds: Sequence[int],
    splits: Sequence[Split] = (EVEN,),
    estimators: Sequence[str] = ESTIMATORS[:1],
    lanes: Sequence[int] = (1,),
    left_out: Container[tuple[str, Split]] = (),
) -> Iterator[Point]:
    """Yield the cells: window by window, policy by policy, then by lanes, split and estimator.

    A policy that draws nothing has one cell whatever the seeds, and one that counts no matches
    whatever the estimators. Pairs of a policy and a split that are `left_out` have none, nor has a
    policy whose priorities do not compare across sides with an estimator, of one memory for both.
    """
    kinds = [
        (policy, number, split, estimator)
        for policy in policies
        for number in lanes
        for split in splits
        if (policy, split) not in left_out
        for estimator in (estimators if policy_or_sample(policy).estimates else (None,))
        if split != POOLED or compares_across(policy_or_sample(policy), estimator or ESTIMATORS[0])
    ]
    cells = (
        (kind, window, amount, seed)
        for window in windows
        for kind in kinds
        for amount in memory
        for seed in (seeds if policy_or_sample(kind[0]).draws else (None,))
    )
    for cell, ((policy, number, split, estimator), window, amount, seed) in enumerate(cells):
        yield Point(cell, policy, amount, window, seed, split, estimator, number)


@dataclass(frozen=True)
class Grid:
    """The lists of a sweep, read and checked.

    Attributes
    ----------
    policies : dict
        Each policy's replay: `JobOptions` with its checked parameters.
    memory : tuple of Amount
    seeds : tuple of int
    splits : tuple of Split
    estimators : tuple of str
    lanes : tuple of int
    left_out : dict
        Pairs of a policy and a split that cannot be replayed, and why.
    """

    policies: dict[str, JobOptions]
    memory: tuple[Amount, ...]
    seeds: tuple[int, ...]
    splits: tuple[Split, ...]
    estimators: tuple[str, ...]
    lanes: tuple[int, ...]
    left_out: dict[tuple[str, Split], str]

    def points(self, windows: Sequence[int]) -> list[Point]:
        """Return the cells with windows in ticks, as `points_of` has them."""
        return [
            *points_of(
                list(self.policies), self.memory, windows, self.seeds, self.splits,
                self.estimators, self.lanes, self.left_out,
            )
        ]  # fmt: skip

    def job_of(self, point: Point) -> JobOptions:
        """Return the replay of a cell, but for its memory, window, lanes and seed."""
        return replace(
            self.policies[point.policy],
            split=point.split,
            estimator=point.estimator or ESTIMATORS[0],
            memory=divided(self.memory[0], point.split),
        )


def grid_of(options: SweepOptions) -> Grid:
    """Read and check the lists of a sweep, but for its windows.

    Raises
    ------
    SpecError
        If one is invalid, or there are more than `MOST_CELLS` cells.
    """
    policies = parse_policies(options.policies)
    samples = [name for name in policies if name in SAMPLING]
    if samples and options.base.fact is not None:
        raise SpecError(
            f"policy {samples[0]} takes the size of a tuple from those with its key, and --fact "
            "joins other keys: leave one of them out"
        )
    if options.targets and len(samples) == len(policies):
        raise SpecError(
            f"--policies is {','.join(samples)}, all samples, which advice never names: add a "
            "policy, or leave --target out"
        )
    parameters = split_parameters(options.parameters or {}, policies)
    jobs = {
        name: replace(options.base, policy=name, parameters=parameters[name]) for name in policies
    }
    memory, splits = parse_memory(options.memory), parse_splits(options.splits)
    estimators = parse_estimators(options.estimators)
    grid = Grid(
        jobs,
        memory,
        parse_seeds(options.seeds),
        splits,
        estimators,
        parse_lanes(options.lanes),
        _left_out(jobs, memory[0], splits, estimators),
    )
    check_size(len(policies) * len(splits) * len(grid.lanes) * len(grid.memory))
    return grid


def _left_out(
    jobs: Mapping[str, JobOptions],
    amount: Amount,
    splits: Sequence[Split],
    estimators: Sequence[str],
) -> dict[tuple[str, Split], str]:
    """Return the pairs of a policy and a split that a replay refuses, and why.

    Raises
    ------
    SpecError
        If a split remains without a policy, a policy without a split, or nothing remains.
    """
    found = {}
    for name, job in jobs.items():
        for split in splits:
            memory, through = divided(amount, split), job.fact is not None
            try:
                check_split(split, memory, job.the_policy, through=through)
            except SpecError as error:
                found[name, split] = str(error)
    for (name, split), reason in found.items():
        if all((name, one) in found for one in splits) or all((o, split) in found for o in jobs):
            raise SpecError(f"{reason} (policy {name})")
    for name, job in jobs.items() if POOLED in splits else ():
        if (name, POOLED) in found or any(compares_across(job.the_policy, e) for e in estimators):
            continue
        try:
            check_pooled(job.the_policy, estimators[0], (), {})
        except SpecError as error:
            if len(found) + 1 == len(jobs) * len(splits):
                raise
            found[name, POOLED] = str(error)
    return found


def check_size(cells: int) -> None:
    """Raise `SpecError` if a grid has too many cells."""
    if cells > MOST_CELLS:
        raise SpecError(
            f"the grid has {cells:,} cells; give fewer policies, budgets, windows, seeds, splits, "
            f"estimators or lanes, for at most {MOST_CELLS:,}"
        )
