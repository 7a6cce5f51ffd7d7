"""A star join as one task: a pure function of a small description, run here or by Spark."""

from __future__ import annotations

import time
import uuid
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from engine.archives.families import value_type
from engine.archives.source import Archive
from engine.facts.read import FactTable, read_facts
from engine.facts.roles import FactColumns
from engine.jobs.age_curves import completed
from engine.jobs.bound.several import ExactOutputs, star_bounds
from engine.jobs.exact.counting import Tally
from engine.jobs.exact.key_totals import COUNTS, KeyLoss, greatest
from engine.jobs.output import PartWriter
from engine.jobs.pieces import bytes_a_row, in_pieces
from engine.jobs.star.read import StreamRead, read_stream, set_aside, star_facts
from engine.jobs.star.results import FactResult, StarResult, StreamResult
from engine.jobs.streams import StreamSource, check_products, output_schema
from engine.lanes.profile import SideProfile, profile_side
from engine.lanes.reader import apart
from engine.options.several import budgets_of
from engine.options.star import StarOptions
from engine.replay.settings import UNLIMITED
from engine.report.envelope import plain, time_bins
from engine.runtime.jit import FOREVER
from engine.runtime.storage.uris import Place
from engine.runtime.work import rows_done
from engine.star.index import StarFacts, StarIndex, star_index
from engine.star.lane import StarReplay
from engine.star.layout import StarOutputs
from engine.star.settings import Curves, StarSettings

READ_ROWS = 65_536
"""Outputs that are written at once."""


@dataclass(frozen=True)
class StarTask:
    """A replay of several streams."""

    options: StarOptions
    sources: tuple[StreamSource, ...]
    fact: Archive
    columns: FactColumns
    unit: str
    """What a tick is."""
    settings: StarSettings
    draft: Place | None = None
    """Folder for the part of the dataset; None to count only."""


def replay_star(task: StarTask) -> StarResult:
    """Read the streams and F, count the exact join if asked, and replay it within its budgets.

    Memory: the streams, F and what joins them; O(rows).
    """
    return _Run(task).result()


class _Run:
    def __init__(self, task: StarTask) -> None:
        self._task, self._settings = task, task.settings
        self._seconds: dict[str, float] = {}
        self._begun = time.perf_counter()
        self._bounded: ExactOutputs | None = None
        self._table, self._facts, self._reads = _read(task)
        batches = [read.batch for read in self._reads]
        held = [batch.importance for batch in batches]
        check_products(self._settings.combine, self._names, held)
        self._spent("prepare")
        groups = [read.group for read in self._reads]
        self._index: StarIndex = star_index(batches, groups, self._facts)
        self._profiles: list[SideProfile] = [
            profile_side([batch], window, lambda _, until=until: until)  # type: ignore[misc]
            for batch, window, until in zip(
                batches, self._settings.windows, self._index.until, strict=True
            )
        ]
        self._budgets = budgets_of(
            [stream.memory for stream in task.options.streams],
            [profile.peak for profile in self._profiles],
            pooled=task.options.pooled,
        )
        there = [profile for profile in self._profiles if profile.rows]
        self._last = max((profile.last_ts for profile in there), default=0)
        first = min((profile.first_ts for profile in there), default=0)
        self._edges = time_bins(first, self._last) if there else (0,)
        self._spent("profile")

    def _spent(self, stage: str) -> None:
        now = time.perf_counter()
        self._seconds[stage] = now - self._begun
        self._begun = now

    def _lane(
        self, settings: StarSettings, budgets: Sequence[int], *, emit: bool = False,
        curves: Curves = (), ages: int = 0,
    ) -> StarReplay:  # fmt: skip
        return StarReplay(
            settings, self._index, [read.batch.row for read in self._reads], self._profiles,
            budgets, curves=curves, emit=emit, edges=np.array(self._edges, np.int64),
            age_buckets=ages, chunk=READ_ROWS,
        )  # fmt: skip

    def result(self) -> StarResult:
        """Count the exact join, replay, write and put together what came of it."""
        exact, emit = self._task.options.exact, self._task.draft is not None
        whole, part = self._whole(write=emit and exact)
        self._spent("replay" if exact else "count")
        lane = whole
        if lane is None or not exact:
            curves = self._curves(whole)
            lane = self._lane(self._settings, self._budgets, emit=emit, curves=curves)
            part = self._replayed(lane, write=emit)
            self._spent("replay")
        bounds = None
        if self._bounded is not None and self._task.options.bound is not None:
            joined = self._bounded.joined([read.batch.ts for read in self._reads])
            bounds = star_bounds(
                joined, self._budgets, self._task.options.bound, pooled=self._settings.pooled,
                after_admission=self._settings.probe == "after_admission",
            )  # fmt: skip
            self._spent("bound")
        compared = None if self._task.options.reference == "none" else whole
        draft, reads, aside = self._task.draft, self._reads, {}
        if draft is not None:
            aside = set_aside(draft, self._names, [*reads], self._table)
        streams = tuple(
            StreamResult(
                read.rows,
                read.batch.ts.size,
                read.null_keys,
                0 if read.rejected is None else read.rejected.num_rows,
                read.in_order,
                budget,
                peak,
                profile.peak,
            )
            for read, budget, peak, profile in zip(
                reads, self._budgets, lane.peaks, self._profiles, strict=True
            )
        )
        table = self._table
        fact = FactResult(
            table.rows, table.facts.a.size, table.duplicates, table.deletes, table.null_keys,
            table.between_ticks, table.rejected.num_rows,
        )  # fmt: skip
        return StarResult(
            streams, lane.peak if self._settings.pooled else sum(lane.peaks), fact,
            None if compared is None else _tally(compared), _tally(lane),
            [] if exact or compared is None else self._top(compared, lane),
            self._edges, self._last, part, self._schema, self._seconds, aside, bounds,
        )  # fmt: skip

    def _whole(self, *, write: bool) -> tuple[StarReplay | None, str | None]:
        """Run the exact join, where it is counted or measures AGE's curves; return its part."""
        options, settings = self._task.options, self._settings
        measured = not options.exact and settings.policy == "age" and None in options.curves
        if options.reference == "none" and not measured and options.bound is None:
            return None, None
        buckets = int(settings.parameters["buckets"]) if measured else 0  # type: ignore[arg-type]
        whole = self._lane(
            replace(settings, policy=None, parameters={}, estimator="memory", pooled=False),
            [UNLIMITED] * len(self._profiles),
            emit=write or options.bound is not None,
            ages=buckets,
        )
        if options.bound is not None:
            self._bounded = ExactOutputs(len(self._profiles))
        return whole, self._replayed(whole, write=write, kept=self._bounded)

    def _curves(self, whole: StarReplay | None) -> Curves:
        """Return AGE's curves: as given, else measured by the exact join (P5 6.1), cut finer."""
        settings, given = self._settings, self._task.options.curves
        if settings.policy != "age":
            return ()
        ages, rows = None if whole is None else whole.ages, [own.rows for own in self._profiles]
        cut = completed(given, ages, rows, settings.windows, settings.parameters["grain"])
        return [None if curve is None else np.array(curve) for curve in cut]

    def _replayed(
        self, lane: StarReplay, *, write: bool, kept: ExactOutputs | None = None
    ) -> str | None:
        """Run a replay to its end, time bin by time bin; write its outputs to a file."""
        name = f"part-00000.{uuid.uuid4().hex[:8]}.parquet"
        draft = self._task.draft
        writer = PartWriter(draft / name) if draft is not None and write else None
        joined = partial(self._joined, lane, write=writer is not None, kept=kept)
        with closing(apart(self._index.streams.ts.size, joined)) as tables:
            for table in tables:
                if writer is not None:
                    writer.write(table)
        return name if writer is not None and writer.close() else None

    def _joined(
        self, lane: StarReplay, *, write: bool, kept: ExactOutputs | None
    ) -> Generator[pa.Table]:
        """Yield outputs as they are written, if they are, until a replay has ended."""
        times = self._index.streams.ts
        width = bytes_a_row(self._payloads)
        done = 0
        for stop in [*self._edges[1:], FOREVER]:
            for out in lane.run(stop):
                if kept is not None:
                    kept.add(out.members, out.ts, out.importance)
                if write:
                    yield from in_pieces(out.ts.size, width, partial(self._outputs, out))
            gone = int(np.count_nonzero(times < stop))
            rows_done(gone - done)
            done = gone

    @property
    def _names(self) -> list[str]:
        return [stream.name for stream in self._task.options.streams]

    @property
    def _payloads(self) -> list[pa.Table]:
        """The columns to be written of every stream, by row, and of F; none for ids alone."""
        if self._table.payload is None:
            return []
        return [*(read.payload for read in self._reads), self._table.payload]

    @property
    def _schema(self) -> pa.Schema:
        schemas = [table.schema for table in self._payloads]
        return output_schema([*self._names, "fact"], schemas, value_type)

    def _outputs(self, out: StarOutputs, some: slice) -> pa.Table:
        """Return some outputs as they are written."""
        out = StarOutputs._make(own[some] for own in out)
        fact_row = self._facts.row[out.fact]
        rows = [read.batch.row[at] for read, at in zip(self._reads, out.members.T, strict=True)]
        own = out.ts.copy(), out.importance.copy()  # their arrays are used again
        columns = [*rows, fact_row, *own, np.ones(out.ts.size)]
        if self._payloads:
            places = [r.order[at] for r, at in zip(self._reads, out.members.T, strict=True)]
            for table, place in zip(self._payloads, [*places, fact_row], strict=True):
                columns += table.take(pa.array(place)).columns
        return pa.table(columns, schema=self._schema)

    def _top(self, whole: StarReplay, lane: StarReplay) -> list[tuple[object, KeyLoss]]:
        """Return the attributes of the first stream that lost most, each with its counts."""
        codes = self._facts.attributes[0]
        distinct, group = np.unique(codes, return_inverse=True)
        group = group[self._index.facts]
        counts = np.zeros(distinct.size, COUNTS)
        counts["code"] = distinct
        for names, own in (
            (("exact", "exact_importance"), whole),
            (("outputs", "importance"), lane),
        ):
            counts[names[0]] = np.bincount(group, own.by_fact, distinct.size)
            counts[names[1]] = np.bincount(group, own.importance_by_fact, distinct.size)
        read = self._reads[0]
        found = []
        for loss in greatest(counts[counts["exact"] > counts["outputs"]]):
            at = int(read.order[np.argmax(read.group == np.searchsorted(distinct, loss.code))])
            key = [plain(column[at].as_py()) for column in read.keys]
            found.append((key[0] if len(key) == 1 else key, loss))
        return found


def _tally(lane: StarReplay) -> Tally:
    return Tally(lane.outputs, lane.importance, lane.by_bin, lane.importance_by_bin)


def _read(task: StarTask) -> tuple[FactTable, StarFacts, list[StreamRead]]:
    """Read F, then every stream."""
    options = task.options
    payload = options.columns == "all" and task.draft is not None
    given = task.fact if isinstance(options.fact, str) else options.fact
    table = read_facts(
        given, options.fact_roles, task.columns, bad_rows=options.bad_rows, payload=payload
    )
    facts = star_facts(table)
    reads = [
        read_stream(
            source, task.columns, side, table, facts, access=options.access,
            bad_rows=options.bad_rows, payload=payload,
        )
        for side, source in enumerate(task.sources)
    ]  # fmt: skip
    return table, facts, reads
