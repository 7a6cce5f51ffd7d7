"""A profile: its options, and the job that they describe."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypedDict

from engine.options import streams, where
from engine.options.command import Command, Given, Group
from engine.options.kinds import NUMBER, PLACE, Whole
from engine.options.option import Option, check_fields
from engine.options.replay import STREAMS, WHERE, JobOptions, Joined, job_of
from engine.options.streams import MOST_BUCKETS
from engine.runtime.errors import SpecError

DEFAULT_BUCKETS = 100
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


class ProfileOutput(TypedDict, total=False):
    """Where a profile goes."""

    out: Annotated[
        where.PathLike | None, Option("JSON file of the profile (default: print only)", PLACE)
    ]
    plots: Annotated[where.PathLike | None, Option("folder of the plots", PLACE)]


class Profile(Joined, Measured, total=False):
    """The keywords of a profile."""


PROFILE = Command(
    "profile",
    "measure what two archives are like, and say which policy suits them",
    (
        STREAMS,
        WHERE,
        Group("join", (streams.Windows,)),
        Group("what is measured", (Measured, streams.Seed)),
        Group("output", (ProfileOutput,)),
    ),
)


@dataclass(frozen=True)
class ProfileOptions:
    """A profile of two archives.

    Parameters
    ----------
    base : JobOptions
        The archives, windows, lanes and seed; options of a budget are ignored.
    buckets : int
        Age buckets of each window; fewer where a window has fewer ticks.
    keys : int or None
        Keys that are counted, in bounded memory; None: all, exactly.
    monitor : int or None
        Tuples of monitoring memory, for the online estimate; None: none is made.
    retain : float or None
        Part of the tuples that another online estimate retains; None: none is made.
    out : Path or None
        File of the profile.
    plots : Path or None
        Folder of the plots.
    unit : str or None
        What a tick is, where the files do not say it.

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
    out: Path | None = None
    plots: Path | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        check_fields(self, Measured)
        if self.retain is not None and not 0 < self.retain <= 1:
            raise SpecError(
                f"--retain is {self.retain}; give the part of the tuples to retain, more than 0 "
                "and at most 1"
            )
        if self.base.fact is not None:
            raise SpecError(
                "a profile is of streams that join each other: leave the fact relation out"
            )


def profile_of(given: Given) -> ProfileOptions:
    """Return the profile that options describe.

    Raises
    ------
    SpecError
        If one is missing or invalid.
    """
    return given.fill(ProfileOptions, base=replace(job_of(given), out=None))
