"""A multi-way join: the job that its options describe."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from engine.multiway.predicate import Predicate
from engine.multiway.streams import MOST_STREAMS
from engine.options.by_stream import check_name
from engine.options.several import MemoryRules
from engine.options.shedding import MEASURED
from engine.options.streams import JoinJob, check_reference
from engine.options.where import DEVICES
from engine.runtime.errors import SpecError, did_you_mean

GRAPHS = ("clique", "star")
"""Whether the predicate holds between all members of an output, or the latest and the others."""
AUTO = "auto"
METHODS = (
    AUTO, "naive-nlj", "eager-nlj", "lazy-nlj", "general-lazy-nlj", "eager-hash", "lazy-hash",
    "hybrid",
)  # fmt: skip
ROWS = "rows:"
RESERVED = ("ts", "importance", "weight", "tick", "zone", "asked", "split", "total")
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
    partition_by : tuple of str
        Columns of which every value is a join of its own.
    """

    name: str
    source: str | pa.Table
    time: str
    window: str
    columns: tuple[str, ...]
    importance: str | None = None
    partition_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name, RESERVED)


@dataclass(frozen=True)
class Loops:
    """Which of P3's algorithms joins, and how it is set, as the options of `Loop` say.

    Parameters
    ----------
    method : str
        One of `METHODS`; auto is the fastest exact plan, which is none of P3's.
    order : tuple of str
        Streams in the global join order; empty: the heuristic's.
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
class MultiJoinOptions(JoinJob):
    """A multi-way join; fields named as an option of `MultiJoin` hold its value, read.

    Parameters
    ----------
    streams : tuple of JoinStream
        2 to 8, in their order: of equal times, those of the first arrive first.
    graph : {"clique", "star"}
        Whether it holds between all members of an output, or the latest and each other.
    top : int, optional
        Of each other stream, only so many of a tuple's matches, those of the best scores.
    harvest : dict, optional
        Of `HarvestSettings`, times as text; None: nothing is shed.
    lanes : int, optional
        Parts of a harvested join that equi's attributes are hashed into, each a join of its own.
    slices : int, optional
        Parts that a join is cut into, each a task: slices of time, or lanes of equal attributes
        where the predicate is equi, the join exact, and windows are long (`shares_of`). Count-based
        windows are one part.
    retention : MemoryRules or None
        What the streams may hold; None: their windows.
    profiles : tuple of (str, str, Path)
        Files of profiles of two of the streams, by their names as left and right.

    Raises
    ------
    SpecError
        If one of them is invalid.
    """

    streams: tuple[JoinStream, ...]
    predicate: Predicate
    graph: str = GRAPHS[0]
    top: int | None = None
    loops: Loops = field(default_factory=Loops)
    harvest: dict[str, str | int | float] | None = None
    lanes: int | None = None
    slices: int | None = None
    retention: MemoryRules | None = None
    device: str = DEVICES[0]
    profiles: tuple[tuple[str, str, Path], ...] = ()

    def __post_init__(self) -> None:
        if not 2 <= len(self.streams) <= MOST_STREAMS:
            given = "1 stream is" if len(self.streams) == 1 else f"{len(self.streams)} streams are"
            raise SpecError(f"{given} given: a multi-way join takes 2 to {MOST_STREAMS}")
        names = [stream.name for stream in self.streams]
        for name in names:
            if names.count(name) > 1:
                raise SpecError(f"stream {name} is given more than once: give each its own name")
        check_reference(self.reference, exact=not self.approximate)
        if self.device == "gpu" and self.harvest is None and not self.of_vectors:
            raise SpecError(
                "--device is 'gpu': exact multi-way joins run on the CPU, but for those of dense "
                "vectors without equi, and so do joins within a memory; give auto or cpu"
            )
        if self.device == "gpu" and (self.harvest or {}).get("probe") == "index":
            raise SpecError(
                "--device is 'gpu': indexes are probed on the CPU; give auto, or --probe scan"
            )
        self._check_together()
        self._check_parts()
        self._check_retention()
        profiled = [name for one in self.profiles for name in one[:2]]
        for name in (*self.loops.order, *filter(None, self.loops.buckets), *profiled):
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
        if self.loops.order and self.harvest is None and self.loops.method == AUTO:
            raise SpecError(
                "--order is of P3's algorithms and of joins that shed load, and this one is by "
                "--method auto: name another method, or leave it out"
            )

    def _check_together(self) -> None:
        if self.harvest is not None and self.loops.method != AUTO:
            raise SpecError(
                f"--method {self.loops.method} is exact, and a capacity or a throttle fraction is "
                "given: leave one out"
            )
        if self.top is not None and (self.harvest is not None or self.loops.method != AUTO):
            raise SpecError(
                f"--top {self.top} is of exact joins by --method auto: leave it out, or the "
                "method, capacity or throttle fraction"
            )
        if self.profiles and self.harvest is None:
            raise SpecError(
                "--profile is of joins that shed load, and this one sheds none: give --capacity "
                "or --throttle"
            )

    def _check_parts(self) -> None:
        """Check what the join is divided by."""
        if self.slices is not None and self.loops.method != AUTO:
            raise SpecError(
                f"--slices cut joins by --method auto, and this one is by {self.loops.method}: "
                "leave one of them out"
            )
        columns = {s.name: ",".join(s.partition_by) or "none" for s in self.streams}
        if len({len(stream.partition_by) for stream in self.streams}) > 1:
            raise SpecError(
                f"--partition-by names {', '.join(f'{own} of {n}' for n, own in columns.items())}: "
                "name equally many columns of each stream"
            )
        parts = {
            "--partition-by": bool(self.partition_by),
            "--lanes": self.lanes is not None,
            "--slices": self.slices is not None,
        }
        if sum(parts.values()) > 1:
            raise SpecError(
                f"{' and '.join(flag for flag in parts if parts[flag])} divide the join: give one "
                "of them"
            )
        if self.partition_by and self.profiles:
            raise SpecError(
                "--profile tells of one join, and --partition-by makes many: leave one of them out"
            )
        if self.lanes is not None:
            if self.harvest is None:
                raise SpecError(
                    "--lanes are of joins that shed load, and this one sheds none: an exact join "
                    "has --slices, and one within a memory --partition-by"
                )
            if not (self.predicate.transitive or self.predicate.equal):
                raise SpecError(
                    f"--lanes are of equal attributes, and predicate {self.predicate.text} has "
                    "none: give equi:COL, or --partition-by"
                )

    def _check_retention(self) -> None:
        """Check that the join is one of those that have memories with a limit."""
        retention = self.retention
        if retention is None:
            return
        method = self.loops.method
        if method != AUTO or self.top is not None:
            other = f"--method {method}" if method != AUTO else f"--top {self.top}"
            raise SpecError(
                f"{other} is of joins without a limit of memory: leave it or --memory out"
            )
        if self.slices is not None:
            raise SpecError(
                "--slices cut an exact join, and what a memory holds depends on all that came "
                "before: leave one of --slices and --memory out"
            )
        for stream in self.streams:
            if stream.window.strip().startswith(ROWS):
                raise SpecError(
                    f"window {stream.window} of stream {stream.name} counts tuples, and --memory "
                    "limits windows of time: give ticks or a duration"
                )
        if len(self.streams) > 2 and not self.predicate.transitive:
            raise SpecError(
                f"--memory with predicate {self.predicate.text} takes two streams, and "
                f"{len(self.streams)} are given: more are joined within a memory on equi alone"
            )
        if len(self.streams) == 2 and retention.estimator == "history":
            raise SpecError(
                "--estimator history counts the matches of all tuples so far, which a join by a "
                "predicate does not know: choose memory or window"
            )

    @property
    def archives(self) -> tuple[str, ...]:
        """Where the streams are that are no tables."""
        return tuple(own.source for own in self.streams if isinstance(own.source, str))

    @property
    def approximate(self) -> bool:
        """Whether the join has a budget, of CPU or of memory."""
        return self.harvest is not None or self.retention is not None

    @property
    def of_vectors(self) -> bool:
        """Whether it may be an exact join of dense vectors, which types of columns decide."""
        if self.approximate or self.loops.method != AUTO or self.predicate.equal:
            return False
        return self.predicate.kind in ("cosine", "inner", "distance")

    @property
    def measures(self) -> bool:
        """Whether the capacity is to be measured."""
        return (self.harvest or {}).get("capacity") == MEASURED

    @property
    def partition_by(self) -> tuple[str, ...]:
        """The first stream's columns of which every value is a join of its own."""
        return self.streams[0].partition_by

    @property
    def names(self) -> list[str]:
        """The streams' names."""
        return [stream.name for stream in self.streams]
