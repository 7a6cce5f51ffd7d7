"""A sweep: its options, and the job that they describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypedDict

from engine.options import streams, where
from engine.options.budget import Amount
from engine.options.command import Command, Given, Group
from engine.options.facts import Fact
from engine.options.grid import (
    MEASURES,
    Target,
    parse_memory,
    parse_policies,
    parse_seeds,
    parse_targets,
    split_parameters,
)
from engine.options.kinds import ITEMS, PARAMETERS, PLACE, VALUES, Kind
from engine.options.option import Option
from engine.options.replay import BEST, FACT, STREAMS, WHERE, Best, JobOptions, job_of
from engine.policies import POLICIES, SAMPLING, Value
from engine.runtime.errors import SpecError

DEFAULT_POLICIES = "all"
DEFAULT_MEMORY = "10%:100%:10%"
MOST_CELLS = 100_000
Values = int | str | Sequence[int | str]


class Targets(Kind):
    """Measures and what they have to reach: ``measure=value``, or a mapping."""

    def read(self, flag: str, value: Any) -> tuple[Target, ...]:  # noqa: ANN401 - see Kind
        """Return the targets."""
        if isinstance(value, Mapping):
            return parse_targets([f"{name}={own}" for name, own in value.items()])
        return parse_targets(ITEMS.read(flag, value))


class GridLists(TypedDict, total=False):
    """The lists whose products are the cells."""

    policies: Annotated[
        str | Sequence[str],
        Option(
            f"{', '.join([*POLICIES, *SAMPLING])}, or all: all but custom and these "
            f"{len(SAMPLING)} samples",
            VALUES,
            DEFAULT_POLICIES,
        ),
    ]
    memory: Annotated[
        Values,
        Option(
            "tuples in memory, half a side, or percentages of what the exact join needs at its "
            "peak: 200,400 or 5%:100%:5% or 1%:100%:x2",
            VALUES,
            DEFAULT_MEMORY,
        ),
    ]
    windows: Annotated[
        Values,
        Option(
            "ticks that a tuple of either stream joins for after its arrival, the last included, "
            "or durations on timestamp columns: 400,800 or 10min,1h",
            VALUES,
        ),
    ]
    seeds: Annotated[Values, Option("of random draws: 0,1,2 or 0:9", VALUES, "0")]
    params: Annotated[
        Mapping[str, Value] | None,
        Option(
            "a parameter of one policy, dgl.alpha=2, or of all that have it, alpha=2",
            PARAMETERS,
            flag="param",
        ),
    ]


class SweepOutput(TypedDict, total=False):
    """The targets of a sweep, and its output."""

    targets: Annotated[
        Mapping[str, float | str] | None,
        Option(
            f"measure=value to be met with the least memory, of {', '.join(MEASURES)}: "
            "importance_recall=0.95",
            Targets("MEASURE=VALUE", repeated=True),
            (),
            flag="target",
        ),
    ]
    out: Annotated[
        where.PathLike | None,
        Option("folder of the table and the plots (default: print only)", PLACE),
    ]


class Sweep(
    Fact, GridLists, SweepOutput, streams.Columns, streams.Lanes, streams.BadRows,
    streams.Estimator, streams.Probe, streams.Outputs, streams.Profile, where.Device, Best,
    where.Cache, total=False,
):  # fmt: skip
    """The keywords of a sweep."""


SWEEP = Command(
    "sweep",
    "replay one archive under a grid of policies, budgets, windows and seeds",
    (
        STREAMS,
        WHERE,
        FACT,
        Group(
            "grid",
            (GridLists,),
            description="lists with commas; ranges first:last:step or first:last:xfactor, ends "
            "included",
        ),
        Group(
            "all cells",
            (streams.Estimator, streams.Probe, streams.Outputs, streams.Profile),
        ),
        Group("output", (SweepOutput, where.Report, where.Device)),
        BEST,
    ),
    {
        **dict.fromkeys(("window", "window_left", "window_right"), "give windows"),
        **dict.fromkeys(("memory_left", "memory_right"), "give memory"),
        "policy": "give policies",
        "seed": "give seeds",
    },
)


@dataclass(frozen=True)
class SweepOptions:
    """A sweep over one archive; lists and ranges are text, as the options of `GridLists`.

    Parameters
    ----------
    base : JobOptions
        The archives and all that the cells have in common; its policy, memory, windows, seed and
        output are ignored.
    windows : str
        Ticks or durations; read when the archives' unit of time is known.
    parameters : mapping
        ``policy.name`` or ``name``, as for `split_parameters`.
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
        If one is invalid, or there are more than `MOST_CELLS` cells.
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
    """Raise `SpecError` if a grid has too many cells."""
    if cells > MOST_CELLS:
        raise SpecError(
            f"the grid has {cells:,} cells; give fewer policies, budgets, windows or seeds, for at "
            f"most {MOST_CELLS:,}"
        )


def sweep_of(given: Given) -> SweepOptions:
    """Return the sweep that options describe.

    Raises
    ------
    SpecError
        If one is missing or invalid.
    """
    windows = given.needed("windows")
    own = ("policies", "memory", "seeds", "params", "targets", "out")
    shared = {name: value for name, value in given.items() if name not in own}
    return SweepOptions(
        job_of(Given(given.options, shared | {"window": windows})),
        windows,
        given["policies"],
        given["memory"],
        given["seeds"],
        given["params"],
        given["targets"],
        given["out"],
    )
