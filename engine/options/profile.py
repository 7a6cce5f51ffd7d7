"""A profile: its options, and the job that they describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from engine.options import streams, where
from engine.options.budget import Amounts, divided
from engine.options.command import Command, Given, Group
from engine.options.deciding import MOST_BUCKETS
from engine.options.grid import MEASURES, parse_memory
from engine.options.kinds import NUMBER, VALUES, Whole
from engine.options.meanings import MEANINGS
from engine.options.option import Option, check_fields
from engine.options.replay import REPLAY, STREAMS, WHERE, JobOptions, Joined, job_of
from engine.options.written import FILE, FOLDER
from engine.runtime.errors import SpecError
from engine.runtime.storage.uris import Place

DEFAULT_BUCKETS = 100
DEFAULT_MEMORY = "1%,5%,10%,25%"
UNASKED = ("engine", "rapids", "cache", "job", "seed", *where.REPORTED)
"""Options of a profile that a replay need not repeat."""
MOST_KEYS = 1 << 26


def _counted(most: int) -> Whole:
    return Whole(least=1, most=most, range=f"give a whole number from 1 to {most}")


class Measured(TypedDict, total=False):
    """What is measured of streams."""

    buckets: Annotated[
        int, Option("age buckets of each window", _counted(MOST_BUCKETS), DEFAULT_BUCKETS)
    ]
    keys: Annotated[
        int | None,
        Option("keys to count, in bounded memory (default: all, exactly)", _counted(MOST_KEYS)),
    ]
    monitor: Annotated[
        int | None,
        Option(
            "tuples of monitoring memory that goes from one window to the other, to estimate the "
            "age curves online as well",
            _counted(2**62),
        ),
    ]
    retain: Annotated[
        float | None, Option("part of the tuples to retain, for another online estimate", NUMBER)
    ]


class Advised(TypedDict, total=False):
    """For what a policy is advised."""

    memory: Annotated[
        int | str | Sequence[int | str],
        Option(
            "memories to advise a policy for, each as replay has it: tuples, or percentages of "
            "what the exact join needs at its peak, such as 200,400 or 5%:20%:5%",
            VALUES,
            DEFAULT_MEMORY,
        ),
    ]
    measure: Annotated[
        str,
        Option("by which policies are compared", default=MEASURES[1], choices=MEASURES[::-1]),
    ]


class ProfileOutput(TypedDict, total=False):
    """Where a profile goes."""

    out: Annotated[
        where.PathLike | None,
        Option("JSON file of the profile (default: print only)", FILE),
    ]
    plots: Annotated[where.PathLike | None, Option("folder of the plots", FOLDER)]


class Profile(Joined, streams.Combine, Measured, Advised, total=False):
    """The keywords of a profile."""


PROFILE = Command(
    "profile",
    MEANINGS["profile"],
    (
        STREAMS,
        WHERE,
        Group("join", (streams.Windows, streams.TimeUnit, streams.Combine)),
        Group("what is measured", (Measured, streams.Seed)),
        Group("advice", (Advised,)),
        Group("output", (ProfileOutput, where.Report)),
    ),
    example=(
        "winnow profile --left left.parquet --right right.parquet \\\n"
        "    --on key --time ts --window 10min --out profile.json"
    ),
    common="left right on time window memory out plots report engine",
)


@dataclass(frozen=True)
class ProfileOptions:
    """A profile of two archives.

    Parameters
    ----------
    base : JobOptions
        The archives, windows, lanes, combine and seed; options of a budget are ignored.
    buckets : int
        Age buckets of each window; fewer where a window has fewer ticks.
    keys : int or None
        Keys that are counted, in bounded memory; None: all, exactly.
    monitor : int or None
        Tuples of monitoring memory, for the online estimate; None: none is made.
    retain : float or None
        Part of the tuples that another online estimate retains; None: none is made.
    out : Path, Uri or None
        File of the profile.
    plots : Path, Uri or None
        Folder of the plots.
    memory : str
        List of memories to advise a policy for.
    measure : {"importance_recall", "recall"}
        By which candidates are compared.
    asked : mapping or None
        The options given that a replay has too, by keyword; None where no command line can name the
        streams.

    Raises
    ------
    SpecError
        If a number is invalid.
    """

    base: JobOptions
    buckets: int = DEFAULT_BUCKETS
    keys: int | None = None
    monitor: int | None = None
    retain: float | None = None
    out: Place | None = None
    plots: Place | None = None
    memory: str = DEFAULT_MEMORY
    measure: str = MEASURES[1]
    asked: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_fields(self, Measured)
        check_fields(self, Advised)
        _ = self.memories
        if self.retain is not None and not 0 < self.retain <= 1:
            raise SpecError(
                f"--retain is {self.retain}; give the part of the tuples to retain, more than 0 "
                "and at most 1"
            )
        if self.base.fact is not None:
            raise SpecError(
                "a profile is of streams that join each other: leave the fact relation out"
            )

    @property
    def memories(self) -> list[Amounts]:
        """The memories that candidates are tried with, each for both sides."""
        return [divided(memory) for memory in parse_memory(self.memory)]


def profile_of(given: Given) -> ProfileOptions:
    """Return the profile that options describe.

    Raises
    ------
    SpecError
        If one is missing or invalid.
    """
    own = {*Measured.__annotations__, *Advised.__annotations__, *ProfileOutput.__annotations__}
    shared = {name: value for name, value in given.items() if name not in own}
    asked = {
        name: value
        for name, value in shared.items()
        if name in REPLAY.options and name not in UNASKED
    }
    return given.fill(ProfileOptions, base=job_of(Given(given.options, shared)), asked=asked)
