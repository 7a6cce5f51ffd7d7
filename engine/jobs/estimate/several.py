"""Estimates of exact joins of several streams: what they draw from, and a stretch as a task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from engine.archives.roles import JoinColumns, Roles
from engine.archives.stretches import FileGroups, read_groups
from engine.jobs.estimate.outputs import Chunk, NoOutputs, StretchOutputs
from engine.jobs.estimate.plan import Plan, kinds_of, ranges_of
from engine.jobs.estimate.sliced import groups_of, sliced
from engine.jobs.estimate.task import Recipe, StretchTask
from engine.jobs.multijoin.attributes import raw_attributes
from engine.jobs.multijoin.join_task import MultiJoinTask
from engine.jobs.multijoin.tuples import Tuples, ordered, together
from engine.multiway.exact import ExactJoin
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, windows_of
from engine.options.estimate_streams import EstimateStreamsOptions
from engine.runtime.errors import SpecError
from engine.runtime.jit import Floats

_CHUNK = 1 << 18


class Combinations(StretchOutputs):
    """The outputs of several streams in memory.

    Parameters
    ----------
    span : (int, int)
        First and last tick whose outputs are of the stretch.
    """

    def __init__(
        self,
        recipe: StreamsRecipe,
        streams: MultiStreams,
        payloads: Sequence[pa.Table | None],
        span: tuple[int, int],
    ) -> None:
        super().__init__(payloads, np.diff(streams.first).tolist())
        self._recipe, self._streams, self._span = recipe, streams, span

    def totals(self) -> tuple[float, float]:
        """Return the number of outputs, and their importance. Without finding each."""
        found = self._join(self._streams.importance, self._recipe.combine).count()
        return found.outputs, found.importance

    def finite_total_of(self, stream: int, values: Floats) -> float:
        """Return the sum of a number of one stream's tuples. Without finding each output.

        As importance it is 0 or more, so what is below 0 is added up apart.
        """
        total = 0.0
        for sign in (1.0, -1.0):
            own = np.maximum(sign * values, 0.0)
            if own.any():
                weights = np.ones(self._streams.importance.size)
                weights[self._streams.part(stream)] = own
                total += sign * self._join(weights, "product").count().importance
        return total

    def chunks(self) -> Iterator[Chunk]:
        """Yield the outputs in the order of the arrival of their latest members."""
        first = self._streams.first
        for found in self._join(self._streams.importance, self._recipe.combine).outputs(_CHUNK):
            places = [found.members[:, i] - first[i] for i in range(self._streams.number)]
            yield Chunk(places, found.importance)

    def _join(self, importance: Floats, combine: str) -> ExactJoin:
        recipe = self._recipe
        return ExactJoin(
            self._streams._replace(importance=importance), windows_of(recipe.windows),
            recipe.predicate, graph=recipe.graph, combine=combine, threads=1, top=recipe.top,
            slices=(self._span[0], self._span[1] + 1),
        )  # fmt: skip


@dataclass(frozen=True)
class StreamsRecipe(Recipe):
    """Several streams that a predicate joins."""

    names: tuple[str, ...]
    roles: tuple[Roles, ...]
    attributes: tuple[tuple[str, ...], ...]
    """By stream, its columns of what the predicate compares."""
    joined: JoinColumns
    predicate: Predicate
    graph: str
    top: int | None

    def read(self, task: StretchTask) -> tuple[Sequence[Tuples | None], int]:
        """Read a stretch; return the tuples by stream, and how many rows were set aside."""
        found = [
            self._read(i, files, (task.first - self.windows[i], task.last))
            for i, files in enumerate(task.files)
        ]
        return [part for part, _ in found], sum(own for _, own in found)

    def outputs(self, tuples: Sequence[Any], first: int, last: int) -> StretchOutputs:
        """Return the outputs from one tick to another, of tuples that were read."""
        parts = [
            part.take(slice(*np.searchsorted(part.ts, [first - window, last + 1]).tolist()))
            for part, window in zip(tuples, self.windows, strict=True)
            if part is not None
        ]
        if len(parts) < len(tuples) or not all(part.ts.size for part in parts):
            return NoOutputs(len(tuples))
        payloads = [part.payload if self.columns(i) else None for i, part in enumerate(parts)]
        streams = together(parts, self.predicate, self.names)
        return Combinations(self, streams, payloads, (first, last))

    def _read(
        self, stream: int, files: Sequence[FileGroups], span: tuple[int, int]
    ) -> tuple[Tuples | None, int]:
        """Return the tuples of one stream in a span of time, and the rows that were set aside."""
        plain = replace(self.joined, keys=())
        attributes, columns = self.attributes[stream], self.columns(stream)
        parts, rejected = list[Tuples](), 0
        for file in files:
            own = read_groups(
                file, self.names[stream], self.roles[stream], plain, (*attributes, *columns),
                quarantine=self.quarantine,
            )  # fmt: skip
            rejected += own.rejected.num_rows
            raw, good = raw_attributes(
                self.predicate, own.payload, attributes, self.joined.keys, self.names[stream]
            )
            keep = good & (own.ts >= span[0]) & (own.ts <= span[1])
            payload = own.payload.select(list(columns))
            payload = payload.filter(pa.array(keep)) if columns else payload
            lane = np.zeros(np.count_nonzero(keep), np.int64)
            parts.append(
                Tuples(
                    own.ts[keep], own.row[keep], own.importance[keep], raw.take(keep), payload, lane
                )
            )
        return (ordered(parts) if parts else None), rejected


def streams_plan(options: EstimateStreamsOptions, task: MultiJoinTask) -> Plan:
    """Return the plan of an estimate of several streams. Reads footers only.

    Parameters
    ----------
    task : MultiJoinTask
        The join, opened and checked.

    Raises
    ------
    WinnowError
        If stretches cannot be read, or an aggregate is invalid.
    """
    sources, joined, base = task.sources, task.columns, task.options
    for source, by_rows in zip(sources, task.windows.by_rows.tolist(), strict=True):
        if by_rows:
            raise SpecError(
                f"--window of stream {source.archive.side} counts tuples, and a stretch of time "
                "does not tell how far back they lie: give ticks or a duration, or use winnow "
                "multijoin"
            )
    archives = tuple(source.archive for source in sources)
    schemas = [archive.schema for archive in archives]
    specs = tuple(spec.resolve(task.unit, *schemas) for spec in options.specs)
    windows = tuple(task.windows.size.tolist())
    equal = len(base.predicate.columns if base.predicate.transitive else base.predicate.equal)
    recipe = StreamsRecipe(
        windows, base.combine, specs, tuple(kinds_of(spec, schemas) for spec in specs),
        base.bad_rows == "quarantine", tuple(base.names), tuple(own.roles for own in sources),
        tuple(own.columns for own in sources), joined, base.predicate, base.graph, base.top,
    )  # fmt: skip
    keyed = [replace(own.roles, on=own.columns[:equal]) for own in sources]
    columns = [(*own.columns, *recipe.columns(i)) for i, own in enumerate(sources)]
    groups = groups_of(archives, keyed, joined, columns)
    panes = [own.windows.every for own in specs if own.windows.every]
    known = ranges_of(archives, keyed, groups, specs)
    least = base.combine == "min"
    edges, measures = sliced(groups, windows, task.start_ts, panes, ranges=known, least=least)
    return Plan(edges, measures, archives, recipe, groups)
