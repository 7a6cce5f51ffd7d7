"""The checked settings of a harvested join."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.runtime.errors import SpecError

SHEDDINGS = ("harvest", "random-drop")
ADMISSIONS = ("all", "conserve")
SCORES = ("ages", "streams")
CLOCKS = ("virtual", "wall")
PROBES = ("scan", "index")
LEAST_THROTTLE = 0.001
"""z is never less, so that a join that took nothing in an interval can recover."""
MOST_TICKS = 1e100
"""Of a comparison, so that those of a tuple are finite."""


@dataclass(frozen=True)
class HarvestSettings:
    """How a join sheds load (P4 3 to 5, 7).

    Raises
    ------
    SpecError
        If one of them is invalid.
    """

    basic_window: int
    """b: ticks (or tuples, of a count-based window), 1 or more."""
    capacity: float | None = None
    """Comparisons a second that the operator makes; None: any number."""
    clock: str = "virtual"
    """{"virtual", "wall"}. Whether a comparison takes the time given by the capacity, or the
    measured time."""
    throttle: float | None = None
    """A fixed throttle fraction z in (0, 1]; None: adapted."""
    per_second: float = 1.0
    """Ticks of a second."""
    buffer: int = 10
    """Tuples that an input buffer holds."""
    adapt_every: int = 5
    """Delta, in ticks."""
    boost: float = 1.2
    """gamma, 1 or more."""
    shred: float = 0.1
    """omega: the part of the tuples by which time correlations are learnt, in [0, 1]."""
    forget: float = 0.8
    """The part of what was learnt that an adaptation keeps, in [0, 1]."""
    buckets: int = 4
    """Buckets of a per-stream histogram for each basic window."""
    scores: str = "ages"
    """{"ages", "streams"}. How segments are scored: by the ages of each direction's matches, or by
    P4's histograms of each stream and equations 1 and 2."""
    shedding: str = "harvest"
    """{"harvest", "random-drop"}. By window harvesting, or by dropping tuples at random before the
    buffers."""
    admission: str = "all"
    """{"all", "conserve"}. Whether tuples that no direction reads any more leave the windows (P4
    7)."""
    probe: str = "scan"
    """{"scan", "index"}. Whether the selected basic windows are scanned, or probed by their indexes
    (P4 7)."""
    optimiser: str = "exact"
    metric: str = "best-delta-output-per-delta-cost"
    """`optimiser`, `metric`: See `engine.multiway.fractions.optimise`."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("basic_window", 1), ("buffer", 1), ("adapt_every", 1), ("buckets", 1)):
            if getattr(self, name) < least:
                raise SpecError(f"{_option(name)} {getattr(self, name)} must be {least} or more")
        for name in ("shred", "forget"):
            if not 0 <= getattr(self, name) <= 1:
                raise SpecError(f"{_option(name)} {getattr(self, name)} must be from 0 to 1")
        if not (self.boost >= 1 and math.isfinite(self.boost)):
            raise SpecError(f"--boost {self.boost} must be 1 or more and finite")
        for name in ("capacity", "per_second"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise SpecError(f"{_option(name)} {value} must be more than 0 and finite")
        if self.timed and self.cost(0.0, 0) > MOST_TICKS:
            raise SpecError(
                f"--capacity {self.capacity} is so little that a comparison takes more than "
                f"{MOST_TICKS:g} ticks: give more"
            )
        if self.throttle is not None and not 0 < self.throttle <= 1:
            raise SpecError(f"--throttle {self.throttle} must be more than 0 and at most 1")
        if self.shedding == "random-drop" and self.capacity is None:
            raise SpecError("--shedding random-drop keeps to a capacity: give --capacity")
        if self.clock == "wall" and (self.capacity is not None or self.throttle is not None):
            raise SpecError(
                "--clock wall measures the capacity, and one, or a throttle fraction, is given: "
                "leave it out"
            )

    @property
    def timed(self) -> bool:
        """Whether comparisons take time."""
        return self.capacity is not None or self.clock == "wall"

    def cost(self, seconds: float, comparisons: int) -> float:
        """Return the ticks that a comparison takes: by the capacity, or as measured so far."""
        if self.clock == "virtual":
            return 0.0 if self.capacity is None else self.per_second / self.capacity
        return self.per_second * seconds / max(1, comparisons)


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
