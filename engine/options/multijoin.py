"""A multi-way join: the job that its options describe."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MOST_STREAMS
from engine.options.by_stream import check_name
from engine.options.checks import check_reference
from engine.options.streams import BAD_ROWS, REFERENCES
from engine.options.where import COLUMNS, DEVICES
from engine.runtime.errors import SpecError, did_you_mean

GRAPHS = ("clique", "star")
AUTO = "auto"
METHODS = (
    AUTO, "naive-nlj", "eager-nlj", "lazy-nlj", "general-lazy-nlj", "eager-hash", "lazy-hash",
    "hybrid",
)  # fmt: skip
ROWS = "rows:"
RESERVED = ("ts", "importance", "weight", "tick")
"""What outputs and reports call something else."""


@dataclass(frozen=True)
class JoinStream:
    """One of the streams.

    Parameters
    ----------
    name : str
        Letters, digits and _, for outputs and messages.
    source : str or pyarrow.Table
        File, folder or glob of its archive, or its rows.
    time : str
        Column of the arrival time.
    window : str
        Ticks, a duration on timestamp columns, or ``rows:C``.
    columns : tuple of str
        Its columns of the predicate's attributes, in the predicate's order.
    importance : str, optional
        Column; without one every tuple has importance 1.
    """

    name: str
    source: str | pa.Table
    time: str
    window: str
    columns: tuple[str, ...]
    importance: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name, RESERVED)


@dataclass(frozen=True)
class Loops:
    """Which of P3's algorithms joins, and how it is set.

    Parameters
    ----------
    method : str
        One of `METHODS`; auto is the fastest exact plan, which is none of P3's.
    order : tuple of str
        Streams in the global join order; empty: the heuristic's.
    tau : str, optional
        Re-evaluation interval of lazy methods: ticks or a duration.
    expire_every : str, optional
        Expiration interval; none is eager.
    buckets : dict of str to int
        Hash buckets by stream; "" stands for all that are not named.
    """

    method: str = AUTO
    order: tuple[str, ...] = ()
    tau: str | None = None
    expire_every: str | None = None
    buckets: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.method == AUTO:
            for name in ("tau", "expire_every", "buckets"):
                if getattr(self, name):
                    option = name.replace("_", "-")
                    raise SpecError(
                        f"--{option} is of P3's algorithms, and --method is auto: name one of "
                        f"{', '.join(METHODS[1:])}"
                    )


@dataclass(frozen=True)
class MultiJoinOptions:
    """A multi-way join.

    Parameters
    ----------
    streams : tuple of JoinStream
        2 to 8, in their order: of equal times, those of the first arrive first.
    predicate : Predicate
    graph : {"clique", "star"}
        Whether it holds between all members of an output, or the latest and each other.
    loops : Loops
    harvest : dict, optional
        Of `HarvestSettings`, times as text; None: nothing is shed.
    reference : {"exact", "none"}
        Whether the exact join is counted beside a harvested one.
    combine : str
    start_ts : str, optional
    slices : int, optional
        Parts that an exact join is cut into, each a task: slices of time, or lanes of equal
        attributes where the predicate is equi. Count-based windows are one part.
    device : {"auto", "cpu", "gpu"}
    seed : int
    bad_rows : {"error", "quarantine"}
    columns : {"all", "ids"}
    out, plot : Path, optional
        Folder of the output dataset (None: count only); file of the plot.
    profiles : tuple of (str, str, Path)
        Files of profiles of two of the streams, by their names as left and right.

    Raises
    ------
    SpecError
        If one of them means nothing.
    """

    streams: tuple[JoinStream, ...]
    predicate: Predicate
    graph: str = GRAPHS[0]
    loops: Loops = field(default_factory=Loops)
    harvest: dict[str, str | int | float] | None = None
    reference: str = REFERENCES[0]
    combine: str = "min"
    start_ts: str | None = None
    slices: int | None = None
    device: str = DEVICES[0]
    seed: int = 0
    bad_rows: str = BAD_ROWS[0]
    columns: str = COLUMNS[0]
    out: Path | None = None
    plot: Path | None = None
    profiles: tuple[tuple[str, str, Path], ...] = ()

    def __post_init__(self) -> None:
        if not 2 <= len(self.streams) <= MOST_STREAMS:
            raise SpecError(
                f"{len(self.streams)} streams are given: a multi-way join takes 2 to {MOST_STREAMS}"
            )
        names = [stream.name for stream in self.streams]
        for name in names:
            if names.count(name) > 1:
                raise SpecError(f"stream {name} is given more than once: give each its own name")
        check_reference(self.reference, exact=self.harvest is None)
        if self.device == "gpu" and self.harvest is None:
            raise SpecError(
                "--device is 'gpu': exact multi-way joins run on the CPU; give auto or cpu"
            )
        if self.device == "gpu" and (self.harvest or {}).get("probe") == "index":
            raise SpecError(
                "--device is 'gpu': indexes are probed on the CPU; give auto, or --probe scan"
            )
        self._check_together()
        told = [name for one in self.profiles for name in one[:2]]
        for name in (*self.loops.order, *filter(None, self.loops.buckets), *told):
            if name not in names:
                raise SpecError(
                    f"there is no stream {name!r}; the streams are {', '.join(names)}."
                    + did_you_mean(name, names)
                )
        if self.loops.order and sorted(self.loops.order) != sorted(names):
            raise SpecError(
                f"--order {','.join(self.loops.order)} must name each of the streams "
                f"{', '.join(names)} once"
            )

    def _check_together(self) -> None:
        if self.harvest is not None and self.loops.method != AUTO:
            raise SpecError(
                f"--method {self.loops.method} is exact, and a capacity or a throttle fraction is "
                "given: leave one out"
            )
        if self.plot is not None and self.harvest is None:
            raise SpecError(
                "--plot shows how load was shed, and none is: give --capacity or --throttle"
            )
        if self.profiles and self.harvest is None:
            raise SpecError(
                "--profile is of joins that shed load, and this one sheds none: give --capacity "
                "or --throttle"
            )
        if self.slices is not None and (self.harvest is not None or self.loops.method != AUTO):
            raise SpecError(
                "--slices cut an exact join by --method auto: a harvested join and P3's algorithms "
                "are one operator each"
            )

    @property
    def names(self) -> list[str]:
        """The streams' names."""
        return [stream.name for stream in self.streams]


HARVEST_TIMES = ("basic_window", "adapt_every")
"""Of the harvest's settings, those that are ticks or durations."""
HARVEST_FIELDS = tuple(HarvestSettings.__dataclass_fields__)
