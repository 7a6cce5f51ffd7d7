"""Everything a sweep can be told, however it was told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from engine.options.budget import Amount
from engine.options.grid import (
    Target,
    parse_memory,
    parse_policies,
    parse_seeds,
    split_parameters,
)
from engine.options.replay import JobOptions
from engine.policies import SAMPLING, Value
from engine.runtime.errors import SpecError

DEFAULT_POLICIES = "all"
DEFAULT_MEMORY = "10%:100%:10%"
MOST_CELLS = 100_000


@dataclass(frozen=True)
class SweepOptions:
    """A sweep over one archive.

    Parameters
    ----------
    base : JobOptions
        The archives and all that the cells have in common; its policy, memory, windows, seed and
        output do not count.
    windows : str
        Ticks or durations, lists or ranges; read when the archives' unit of time is known.
    policies : str
    memory : str
    seeds : str
    parameters : mapping
        ``policy.name`` or ``name``, as for `split_parameters`.
    targets : tuple of Target
        What the advice is to be about.
    out : Path or None
        Folder of table, plots and report; None: no files.
    """

    base: JobOptions
    windows: str
    policies: str = DEFAULT_POLICIES
    memory: str = DEFAULT_MEMORY
    seeds: str = "0"
    parameters: Mapping[str, Value] | None = None
    targets: tuple[Target, ...] = ()
    out: Path | None = None


@dataclass(frozen=True)
class Grid:
    """The lists of a sweep, read and checked.

    Attributes
    ----------
    policies : dict
        Each policy's replay: `JobOptions` with its checked parameters.
    memory : tuple of Amount
    seeds : tuple of int
    """

    policies: dict[str, JobOptions]
    memory: tuple[Amount, ...]
    seeds: tuple[int, ...]


def grid_of(options: SweepOptions) -> Grid:
    """Read and check the lists of a sweep, but for its windows.

    Raises
    ------
    SpecError
        If one means nothing, or there are more than `MOST_CELLS` cells.
    """
    policies = parse_policies(options.policies)
    samples = [name for name in policies if name in SAMPLING]
    if samples and options.base.fact is not None:
        raise SpecError(
            f"policy {samples[0]} takes the size of a tuple from those with its key, and --fact "
            "joins other keys: leave one of them out"
        )
    parameters = split_parameters(options.parameters or {}, policies)
    grid = Grid(
        {
            name: replace(options.base, policy=name, parameters=parameters[name])
            for name in policies
        },
        parse_memory(options.memory),
        parse_seeds(options.seeds),
    )
    check_size(len(policies) * len(grid.memory))
    return grid


def check_size(cells: int) -> None:
    """Raise `SpecError` if a grid is too large to be meant."""
    if cells > MOST_CELLS:
        raise SpecError(
            f"the grid has {cells:,} cells; give fewer policies, budgets, windows or seeds, for at "
            f"most {MOST_CELLS:,}"
        )
