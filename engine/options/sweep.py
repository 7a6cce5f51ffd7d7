"""A sweep: its options, and the job that they describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, TypedDict

from engine.options import streams, where
from engine.options.best import BEST, Best
from engine.options.budget import EVEN, SPLITS
from engine.options.command import Command, Given, Group
from engine.options.estimate import share_of
from engine.options.facts import Fact
from engine.options.grid import MEASURES, Target, parse_targets
from engine.options.kinds import ITEMS, VALUES, Kind
from engine.options.meanings import MEANINGS
from engine.options.named import PARAMETERS
from engine.options.option import AlsoCalled, Option, options_of
from engine.options.replay import FACT, REPLAY, WHERE_REPLAYED, JobOptions, job_of
from engine.options.sample import CONFIDENCE, Confidence
from engine.options.written import NEW_FOLDER
from engine.policies import POLICIES, SAMPLING, Value
from engine.replay.layout import ESTIMATORS
from engine.runtime.errors import SpecError
from engine.runtime.storage.uris import Place

DEFAULT_POLICIES = "all"
DEFAULT_MEMORY = "10%:100%:10%"
DEFAULT_ESTIMATORS = ESTIMATORS[0]
DEFAULT_LANES = "1"
Values = int | str | timedelta | Sequence[int | str | timedelta]


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
    policy: Annotated[str | Sequence[str], AlsoCalled("policies")]
    memory: Annotated[
        Values,
        Option(
            "tuples in memory of both sides, or percentages of what the exact join needs at its "
            "peak: 200,400 or 5%:100%:5% or 1%:100%:x2",
            VALUES,
            DEFAULT_MEMORY,
        ),
    ]
    splits: Annotated[
        float | str | Sequence[float | str],
        Option(
            f"of the memory over both sides: {', '.join(SPLITS)}, shares of the left side such as "
            "0.8, or all: all with names",
            VALUES,
            str(EVEN),
        ),
    ]
    split: Annotated[float | str | Sequence[float | str], AlsoCalled("splits")]
    estimators: Annotated[
        str | Sequence[str],
        Option(
            f"where matches are counted: {', '.join(ESTIMATORS)}, or all; policies that count none "
            "are replayed once",
            VALUES,
            DEFAULT_ESTIMATORS,
        ),
    ]
    estimator: Annotated[str | Sequence[str], AlsoCalled("estimators")]
    lanes: Annotated[
        Values,
        Option(
            "parts that the join attribute is hashed into, sharing the budget: 1,4 or 1:16:x2",
            VALUES,
            DEFAULT_LANES,
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
    window: Annotated[Values, AlsoCalled("windows")]
    seeds: Annotated[Values, Option("seeds of random draws: 0,1,2 or 0:9", VALUES, "0")]
    seed: Annotated[Values, AlsoCalled("seeds")]
    params: Annotated[
        Mapping[str, Value] | None,
        Option(
            "a parameter of one policy, dgl.alpha=2, or of all that have it, alpha=2",
            PARAMETERS,
            flag="param",
        ),
    ]


class Within(TypedDict, total=False):
    """Estimates in place of whole replays."""

    within: Annotated[
        str | float | None,
        Option(
            "estimate every cell from the same stretches of the archives: half of the interval of "
            "recall and importance recall that is enough, in points such as 1%"
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
        Option("folder of the table and the plots (default: print only)", NEW_FOLDER),
    ]


class Sweep(
    Fact, GridLists, Within, Confidence, SweepOutput, streams.Columns, streams.TimeUnit,
    streams.Reading, streams.Probe, streams.Outputs,
    streams.Profile, where.Device, Best, where.Cache, total=False,
):  # fmt: skip
    """The keywords of a sweep."""


SWEEP = Command(
    "sweep",
    MEANINGS["sweep"],
    (
        Group("streams", (streams.Archives, streams.Columns, streams.Reading)),
        WHERE_REPLAYED,
        FACT,
        Group(
            "grid",
            (GridLists,),
            description="lists with commas; ranges first:last:step or first:last:xfactor, ends "
            "included",
        ),
        Group("estimates", (Within, Confidence)),
        Group(
            "all cells",
            (streams.TimeUnit, streams.Probe, streams.Outputs, streams.Profile),
        ),
        Group("output", (SweepOutput, where.Report)),
        BEST,
    ),
    {
        **dict.fromkeys(
            ("window_left", "window_right"),
            "give windows, which are those of both sides; a pair that differs by side is for "
            "winnow replay, with each memory",
        ),
        **dict.fromkeys(("memory_left", "memory_right"), "give memory"),
    },
    example=(
        "winnow sweep --left left.parquet --right right.parquet \\\n"
        "    --on key --time ts --window 1min,10min --memory 10%:50%:10% --target recall=0.9"
    ),
    common="left right on time windows memory policies out report engine",
)


@dataclass(frozen=True)
class SweepOptions:
    """A sweep over one archive; lists and ranges are text, as the options of `GridLists`.

    Parameters
    ----------
    base : JobOptions
        The archives and all that the cells have in common; what the grid has is ignored.
    windows : str
        Ticks or durations; read when the archives' unit of time is known.
    parameters : mapping
        ``policy.name`` or ``name``, as for `split_parameters`.
    within : float or None
        How far intervals of recall are to reach; None: everything is replayed.
    confidence : float
        Of the intervals.
    out : Path or None
        Folder of table, plots and report; None: no files.
    shared : mapping
        The options given, by keyword, that a replay has as well: those of a cell's own replay
        besides the grid's.
    """

    base: JobOptions
    windows: str
    policies: str = DEFAULT_POLICIES
    memory: str = DEFAULT_MEMORY
    seeds: str = "0"
    splits: str = str(EVEN)
    estimators: str = DEFAULT_ESTIMATORS
    lanes: str = DEFAULT_LANES
    within: float | None = None
    confidence: float = CONFIDENCE
    parameters: Mapping[str, Value] | None = None
    targets: tuple[Target, ...] = ()
    out: Place | None = None
    shared: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise SpecError(f"--confidence is {self.confidence:g}; give one between 0 and 1")
        if self.within is None:
            return
        if not 0 < self.within < 1:
            raise SpecError(
                f"--within is {self.within:g}; give more than 0% and less than 100%, such as 1%"
            )
        if self.base.bound is not None:
            raise SpecError(
                "--bound is of everything, and --within replays stretches: leave one of them out"
            )
        if self.base.device == "gpu":
            raise SpecError(
                "--within replays stretches on the CPU: leave out --device gpu, or --within"
            )


def sweep_of(given: Given) -> SweepOptions:
    """Return the sweep that options describe.

    Raises
    ------
    SpecError
        If one is missing or invalid.
    """
    windows = given.needed("windows")
    if "confidence" in given and "within" not in given:
        raise SpecError("--confidence is of the intervals of estimates: give --within as well")
    shared = {name: value for name, value in given.items() if name not in _OWN}
    return given.fill(
        SweepOptions,
        base=job_of(Given(given.options, shared | {"window": windows})),
        parameters=given["params"],
        within=share_of("--within", given["within"]),
        shared={n: own for n, own in shared.items() if n in REPLAY.options and n not in _ASIDE},
    )


_OWN = {
    name for group in (GridLists, SweepOutput, Within, Confidence) for name in options_of(group)
}
_ASIDE = {*where.REPORTED, "job", *options_of(Best)}
"""Options of a sweep and of a replay that change no figure of it."""
