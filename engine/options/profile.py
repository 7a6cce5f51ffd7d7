"""Everything a profile can be told, however it was told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.options.replay import MOST_BUCKETS, JobOptions
from engine.runtime.errors import SpecError

DEFAULT_BUCKETS = 100
MOST_KEYS = 1 << 26


@dataclass(frozen=True)
class ProfileOptions:
    """A profile of two archives.

    Parameters
    ----------
    base : JobOptions
        The archives, windows, lanes and seed; what is of a budget does not count.
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
        If a number means nothing.
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
        for name, most in (("buckets", MOST_BUCKETS), ("keys", MOST_KEYS), ("monitor", 2**62)):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= most:
                raise SpecError(f"--{name} is {value}; give a whole number from 1 to {most}")
        if self.retain is not None and not 0 < self.retain <= 1:
            raise SpecError(
                f"--retain is {self.retain}; give the part of the tuples to retain, more than 0 "
                "and at most 1"
            )
        if self.base.fact is not None:
            raise SpecError(
                "a profile is of streams that join each other: leave the fact relation out"
            )
