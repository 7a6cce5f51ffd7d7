"""One lane as a task: a pure function of a small description, run here or by a Spark worker."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.device.exact import ExactRows
from engine.exact.counted import CountedStream, Matches
from engine.exact.stream import ExactStream
from engine.facts.key_links import KeyLinks
from engine.jobs.age_curves import Curves
from engine.jobs.compile_ahead import compile_ahead
from engine.jobs.exact.counting import CountedFile, Counting, Known, Tally, TimeSlice, Uncounted
from engine.jobs.exact.key_totals import FactKeys, KeyLoss, LaneKeys
from engine.jobs.output import id_columns
from engine.jobs.part import FactColumns, LanePart, MemberPayload
from engine.jobs.pieces import in_pieces
from engine.lanes.facts import FactFile
from engine.lanes.profile import LaneProfile
from engine.lanes.reader import LaneBatch, LaneFiles, apart, lane_batches
from engine.policies import age
from engine.replay.allocate import Ready
from engine.replay.lane import LaneReplay
from engine.replay.layout import Outputs
from engine.replay.ranks import RetentionPlan
from engine.replay.settings import ReplaySettings
from engine.runtime.columns import beside
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.storage.uris import Place
from gpu_kernels.devices import Choice


@dataclass(frozen=True)
class ReplayTask:
    """A lane's replay."""

    files: LaneFiles
    settings: ReplaySettings
    profile: LaneProfile
    budget: tuple[int, int]
    curves: Curves = (None, None)
    """AGE's curves."""
    bin_edges: tuple[int, ...] = (0,)
    """Left edges of the time bins."""
    approximate: bool = True
    """False: an exact join, which is its own result."""
    out: Place | None = None
    """Folder for the part of the dataset; None to count only."""
    payload: bool = False
    """Write the payload columns as well."""
    slice: TimeSlice | None = None
    """Do this part of an exact join alone (`engine.jobs.replay.slices`)."""
    compares: bool = True
    """Whether the exact join is counted beside an approximate one."""

    @property
    def rows(self) -> int:
        """Tuples of both sides of the lane, or about so many of its part."""
        return self.files.rows if self.slice is None else self.slice.rows

    @property
    def counts_exact(self) -> bool:
        """Whether the exact join is counted: beside a replay, or as the result itself."""
        return self.compares or not self.approximate

    @property
    def start_ts(self) -> int | None:
        """First tick whose outputs count."""
        asked = self.settings.start_ts
        if self.slice is None:
            return asked
        return self.slice.first if asked is None else max(asked, self.slice.first)


class LaneResult(NamedTuple):
    """What a lane's replay came to, and the exact join beside it where that was counted."""

    lane: int
    counted: Tally | None
    result: Tally
    peaks: tuple[int, int]
    peak: int
    """Most tuples of both sides at once; of two memories, the sum of their peaks."""
    exact_peaks: tuple[int, int]
    top: list[KeyLoss]
    keys_complete: bool
    part: str | None
    ages: tuple[NDArray[np.int64], NDArray[np.int64]]
    seconds: float
    schema: pa.Schema | None
    estimator_keys: int
    device: Choice | None = None

    @property
    def exact(self) -> Tally:
        """What the exact join comes to, of a task that counts it."""
        assert self.counted is not None  # noqa: S101 - the caller has asked for it
        return self.counted

    @property
    def outputs(self) -> int:
        """Rows that it has written, where it was to write."""
        return self.result.outputs


def replay_lane(
    task: ReplayTask,
    plan: RetentionPlan | None = None,
    matches: tuple[Matches, Matches] | None = None,
    rows: ExactRows | None = None,
) -> LaneResult:
    """Replay a lane within its budget, by its policy or by a plan, beside the exact count if asked.

    What the exact join comes to is looked up where an earlier replay within the same windows has
    counted it. Memory is bounded by the windows, the budget and a few batches, never by the lane:
    one thread reads, one joins, one writes.

    Parameters
    ----------
    task : ReplayTask
    plan : RetentionPlan, optional
        Followed in place of the policy.
    matches : (Matches, Matches), optional
        What the tuples match in the exact join, where a GPU has counted that.
    rows : ExactRows, optional
        Gives the rows of an exact join.
    """
    begun = time.perf_counter()
    settings = replace(task.settings, start_ts=task.start_ts)
    edges = np.array(task.bin_edges, np.int64)
    history = settings.estimator == "history"
    windows = settings.windows
    links = task.files.links(None if history else windows)
    key_links = None if links is None else links.key_links
    exact = _exact(task, settings, key_links, matches)
    emit = task.out is not None
    of_lane = partial(
        LaneReplay, settings, task.profile, curves=age.as_arrays(task.curves), emit=emit,
        bin_edges=edges, plan=plan, key_links=key_links,
        facts=None if task.files.facts is None else task.files.facts.index(),
    )  # fmt: skip
    replays = task.approximate or (emit and rows is None)
    replay = of_lane(task.budget) if replays else None
    keys = (
        LaneKeys(
            exact.live,
            replay,
            forgets=not history,
            known=exact.known,
            remembers=task.compares and replay is not None,  # without one nothing is lost
        )
        if links is None
        else FactKeys(links, replay)
    )
    number = None if task.slice is None else task.slice.number
    part = None if task.out is None else LanePart(task.out, task.files.lane, number)
    with COMPILED.expecting(task.rows * settings.steps):
        # a plan's kernel and those through facts are compiled when they are needed
        if COMPILED.is_all and replays and plan is None and links is None:
            terms = settings.terms
            compile_ahead(
                [of_lane((0, 0))], [] if terms is None else [terms],
                counts=isinstance(exact, Counting),
            )  # fmt: skip
        written = partial(_joined, task, keys, exact, replay, rows)
        with closing(apart(task.rows, written)) as tables:
            for table in tables:
                if part is not None:
                    part.write(table)
    if isinstance(keys, LaneKeys):
        exact.store(keys.complete, keys.counts)
    result = exact.tally
    if replay is not None and task.approximate:
        result = Tally(replay.outputs, replay.importance, replay.by_bin, replay.importance_by_bin)
    assert result is not None  # noqa: S101 - what is not approximate is counted
    exact_peaks = task.profile.left.peak, task.profile.right.peak
    return LaneResult(
        task.files.lane,
        exact.tally,
        result,
        exact_peaks if replay is None else replay.peaks,
        sum(exact_peaks) if replay is None else replay.peak,
        exact_peaks,
        keys.top() if task.approximate else [],
        keys.complete,
        None if part is None else part.close(),
        exact.ages,
        time.perf_counter() - begun,
        None if part is None else part.schema,
        keys.size if settings.estimator == "history" else 0,
    )


def _joined(
    task: ReplayTask, keys: LaneKeys | FactKeys, exact: Counting | Uncounted,
    replay: LaneReplay | None, rows: ExactRows | None,
) -> Generator[pa.Table]:  # fmt: skip
    """Yield output tuples as they are written, while both joins go through the lane."""
    payload = task.out is not None and task.payload
    members = MemberPayload(task.settings.windows) if payload else None
    facts = None
    if task.out is not None and isinstance(task.files.facts, FactFile):
        facts = FactColumns(task.files.facts, payload)
    with closing(apart(task.rows, partial(_arriving, task, replay))) as arriving:
        for batch, ready in arriving:
            ids = keys.intern(batch.left, batch.right)
            exact.push(batch, ids, keys)
            if members is not None:
                members.arrive(batch)
            written: Iterator[Outputs] = iter(())
            if replay is not None:
                written = replay.push(batch.left, ids[0], batch.right, ids[1], keys.size, ready)
            elif rows is not None:
                written = rows.push(batch.left, batch.right)
            for out in written:
                yield from _rows_of(out, members, facts)


def _arriving(
    task: ReplayTask, replay: LaneReplay | None
) -> Generator[tuple[LaneBatch, Ready | None]]:
    """Yield a lane's batches, with what a replay computes of them before their turn."""
    between = None if task.slice is None else task.slice.read(task.settings.windows)
    files = task.files.left, task.files.right
    for batch in lane_batches(*files, payload=task.payload, between=between):
        yield batch, None if replay is None else replay.ready(batch.left, batch.right)


def counted_file(task: ReplayTask) -> CountedFile | None:
    """Return where the exact join beside a lane's replay is cached, None where it is not."""
    counts_alone = task.settings.policy == "age" or task.files.facts is not None
    if not task.approximate or not task.compares or counts_alone:
        return None
    return CountedFile(task.files.folder, task.settings, task.bin_edges)


def _exact(
    task: ReplayTask,
    settings: ReplaySettings,
    key_links: tuple[KeyLinks, KeyLinks] | None,
    matches: tuple[Matches, Matches] | None,
) -> Counting | Uncounted:
    """Return the exact join beside a replay, which is looked up where it may be and is there."""
    windows = settings.windows
    if not task.counts_exact:
        return Uncounted(windows)
    ages = 1 if task.approximate and settings.policy == "age" else None
    file = counted_file(task)
    found = None if file is None else file.read()
    if found is not None:
        return Known(found, windows)
    edges = np.array(task.bin_edges, np.int64)
    if matches is not None:
        return Counting(CountedStream(matches, *windows, settings.start_ts, edges), file)
    join = ExactStream(*windows, settings.combine, settings.start_ts, edges, ages, key_links)
    return Counting(join, file)


def _rows_of(
    out: Outputs, members: MemberPayload | None, facts: FactColumns | None
) -> Iterator[pa.Table]:
    """Yield output tuples as they are written, few at a time where they are wide."""
    width = sum(own.width for own in (members, facts) if own is not None)
    return in_pieces(
        out.ts.size,
        width,
        lambda rows: _table_of(Outputs._make(own[rows] for own in out), members, facts),
    )


def _table_of(out: Outputs, members: MemberPayload | None, facts: FactColumns | None) -> pa.Table:
    """Return output tuples as they are written, with the payload of their members."""
    table = id_columns(out)
    if facts is not None:
        table = table.add_column(2, "fact_row", pa.array(facts.rows[out.fact]))
    if members is not None:
        for taken in members.take(out.left_seq, out.right_seq):
            table = beside(table, taken)
        if facts is not None:
            table = beside(table, facts.payload.take(pa.array(out.fact)))
    return table
