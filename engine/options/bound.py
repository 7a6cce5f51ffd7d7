"""A bound of the best possible: its options, and the job that they describe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, TypedDict

from engine.optimum.bound import BoundSettings
from engine.optimum.settings import METHODS, OBJECTIVES, Effort, Objective
from engine.options import streams, where
from engine.options.best import Limits
from engine.options.budget import ANY, BOUNDED, EVEN, EXPECTED, BoundedKind, Split, parse_split
from engine.options.command import Command, Given, Group
from engine.options.facts import Fact
from engine.options.kinds import FLAG, NUMBER
from engine.options.meanings import MEANINGS
from engine.options.option import Interface, Option
from engine.options.replay import FACT, JOIN, STREAMS, WHERE_REPLAYED, JobOptions, job_of
from engine.options.written import NEW_FOLDER
from engine.runtime.errors import SpecError
from engine.runtime.warned import warn


class Bounded(Limits, total=False):
    """What is bounded, and how."""

    objective: Annotated[
        str,
        Option(
            "greatest importance, most outputs, or least importance",
            default=OBJECTIVES[0],
            choices=OBJECTIVES,
        ),
    ]
    threshold: Annotated[
        float,
        Option(
            "an output is worth its importance less this, so that those below it count against a "
            "plan",
            NUMBER,
            0.0,
        ),
    ]
    method: Annotated[
        str,
        Option(
            "states (exact, small cases), flow (exact), dual (bounds, any size), or dual and then "
            "flow as time allows",
            default=METHODS[0],
            choices=METHODS,
        ),
    ]


class Divided(TypedDict, total=False):
    """How the memory is split over both sides."""

    split: Annotated[
        float | str,
        Option(
            "any: the best possible however the memory is split, the split changing from instant "
            "to instant; even, expected or a share from 0 to 1: as a replay splits it",
            BoundedKind(f"{{{','.join(BOUNDED)},SHARE}}"),
            str(ANY),
        ),
    ]


class BoundOutput(TypedDict, total=False):
    """What is written."""

    out: Annotated[
        where.PathLike | None,
        Option(
            "folder of the plan, side, row, until_ts in Parquet (default: bounds only)", NEW_FOLDER
        ),
    ]
    print: Annotated[
        bool,
        Option(
            "print what the plan holds in memory at every instant, for a small case",
            FLAG,
            default=False,
            interface=Interface.COMMAND_LINE,
        ),
    ]


class Bound(
    Fact, streams.Columns, streams.Lanes, streams.Reading, streams.Windows, streams.TimeUnit,
    streams.Memory, streams.Outputs, streams.Probe, where.Device, Divided, Bounded, total=False,
):  # fmt: skip
    """The keywords of a bound, which is of any policy."""


BOUND = Command(
    "bound",
    MEANINGS["bound"],
    (
        STREAMS,
        WHERE_REPLAYED,
        FACT,
        JOIN,
        Group("budget", (streams.Memory, Divided, streams.Probe)),
        Group("best possible", (Bounded,)),
        Group("output", (BoundOutput, where.Report)),
    ),
    example=(
        "winnow bound --left left.parquet --right right.parquet \\\n"
        "    --on key --time ts --window 10min --memory 10%"
    ),
    common="left right on time window memory method seconds out report",
    instead=dict.fromkeys(
        ("policy", "param", "params", "estimator"),
        "the best possible is of any policy: leave it out",
    ),
)


@dataclass(frozen=True)
class BoundOptions:
    """The best possible of a join within its budget.

    Parameters
    ----------
    base : JobOptions
        Archives, windows, memory, probe, combine, start; its policy is ignored. `out` is the
        plan's folder.
    objective : {"importance", "outputs", "minimum"}
    threshold : float
        See `engine.optimum.settings.Objective`.
    effort : Effort
        Its seconds are for all lanes together.
    over_any : bool
        Whether the memory of both sides is one that may be divided in any way at any instant, and
        not split as `base` says.
    trace : bool
        Also return the plan's path through the memory states.
    """

    base: JobOptions
    objective: str = OBJECTIVES[0]
    threshold: float = 0.0
    effort: Effort = field(default_factory=Effort)
    over_any: bool = False
    trace: bool = False

    @property
    def split(self) -> Split:
        """How the memory is split."""
        return ANY if self.over_any else self.base.split

    def __post_init__(self) -> None:
        self.settings((0, 0), None)

    def settings(self, windows: tuple[int, int], start_ts: int | None) -> BoundSettings:
        """Return the settings of every lane."""
        return BoundSettings(
            *windows,
            Objective(self.objective, self.threshold, self.base.combine),
            self.base.probe,
            start_ts,
            self.effort,
        )


def bound_of(given: Given) -> BoundOptions:
    """Return the bound that options describe.

    Raises
    ------
    SpecError
        If one is missing or invalid.
    """
    split = parse_split(given["split"], "--split", BOUNDED)
    if split == EXPECTED and "fact" in given:
        raise SpecError(
            "--split expected goes by how often join attributes arrive, and these are joined "
            "through facts: give --split even, or the left stream's share, such as 0.8"
        )
    base = job_of(given, EVEN if split == ANY else split)
    if base.memory == (None, None):
        warn("without --memory all tuples fit, and the best possible is the exact join")
    one_sided = base.memory.count(None) == 1
    if "split" in given and split == ANY and one_sided:
        raise SpecError(
            "--split any divides one memory over both streams, and one of them has no limit: give "
            "--memory, or leave --split out"
        )
    return BoundOptions(
        base,
        given["objective"],
        given["threshold"],
        Effort(given["method"], given["gap"], given["seconds"]),
        over_any=split == ANY and not one_sided,
        trace=given["print"],
    )
