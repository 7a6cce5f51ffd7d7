"""The steps of preparing lanes: spool text, split, prove codes, merge, set bad rows aside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.types as pt

from engine.archives.canonical import LANE_SEED
from engine.archives.retyped import of_all
from engine.archives.roles import JoinColumns, Roles
from engine.archives.source import Archive, group_sizes
from engine.archives.spooling import SpoolTask, spool
from engine.facts.read import FactTable
from engine.lanes.facts import FactCodes, FactSummary, write_facts
from engine.lanes.manifest import Lane, LaneSide, Prepared
from engine.lanes.placing import json_group
from engine.lanes.runs import Pieces
from engine.lanes.split import Plan, SplitResult, fitting_rows
from engine.lanes.split_tasks import FileRows, SplitTask, split
from engine.lanes.splits import (
    FirstPass,
    Source,
    Splits,
    Steps,
    check_faults,
    first_pass_of,
    lane_ranges,
    row_group_runs,
    small_together,
)
from engine.lanes.write import (
    WORK,
    CheckTask,
    LaneTask,
    RejectTask,
    can_reuse,
    codes_clear,
    join_rejected,
    reuse_runs,
    write_lanes,
)
from engine.runtime.device_choice import ASKED_FOR_CPU, Wanted
from engine.runtime.executors import Executor, Progress
from engine.runtime.storage import reading
from engine.runtime.storage.places import drop_folder, make_folder
from engine.runtime.storage.uris import Place, Uri, text_of
from engine.runtime.streams import SIDES


@dataclass
class Build:
    """One preparation; see `engine.lanes.prepare.prepare` for the parameters."""

    archives: tuple[Archive, Archive]
    roles: tuple[Roles, Roles]
    columns: tuple[JoinColumns, JoinColumns]
    folder: Place
    lanes: int
    quarantine: bool
    payload: bool
    split_rows: int
    facts: FactTable | None = None
    sorts: Wanted = ASKED_FOR_CPU
    read: FactSummary | None = field(default=None, init=False)

    @property
    def work(self) -> Place:
        """The folder of what is not kept."""
        return self.folder / WORK

    def run(self, executor: Executor, progress: Progress, mark: str) -> Prepared:
        """Do every step and return the lanes, with `mark` as their fingerprint."""
        make_folder(self.work)
        if self.facts is not None:
            self.read = write_facts(self.facts, self.folder, self.work, self.lanes)
        stages = Steps(executor, progress)
        sources, changed = self._spool(stages)
        first_pass = first_pass_of(executor)
        for seed in count(LANE_SEED if self.facts is None else self.facts.seed):
            plans = [self._plan(side, changed[side], seed) for side in (0, 1)]
            results = self._split(stages, first_pass, plans, sources)
            check_faults(self.archives, self.roles, results, quarantine=self.quarantine)
            splits = Splits(results, self.lanes, bool(self.columns[0].groups))
            if not splits.collision and self._codes_clear(stages, splits):
                break
            drop_folder(self.work / f"seed-{seed}")
        sides, kept = self._stored(stages, splits)
        self._reject(stages, splits)
        drop_folder(self.work)
        return self._prepared(splits, sides, kept, seed, mark)

    def _spool(self, stages: Steps) -> tuple[list[list[Source]], list[dict[str, pa.DataType]]]:
        """Write text files as Parquet; return the files to split, and columns of other types."""
        tasks = [
            SpoolTask(
                file.path, archive.side, archive.stored, lenient, text_of(self.work / name), free
            )
            for side, archive in enumerate(self.archives)
            if archive.copied
            for lenient in [
                tuple(filter(None, (self.roles[side].time, self.roles[side].importance)))
            ]
            for free in [
                tuple(own for own in archive.schema.names if own not in self.roles[side].columns)
            ]
            for i, file in enumerate(archive.files)
            for name in [f"{archive.side}-{i:06d}.parquet"]
        ]
        found = list(stages.run("spool", spool, tasks))
        sources, changed = [], []
        for archive in self.archives:
            mine = [i for i, task in enumerate(tasks) if task.side == archive.side]
            changed.append(of_all(found[i] for i in mine))
            if archive.copied:
                sources.append([Source(tasks[i].out, tasks[i].path) for i in mine])
            else:
                sources.append([Source(file.path, file.path) for file in archive.files])
        return sources, changed

    def _plan(self, side: int, changed: dict[str, pa.DataType], seed: int) -> Plan:
        names, roles = tuple(self.archives[side].schema.names), self.roles[side]
        columns = self.columns[side]
        direct = columns.direct and pt.is_integer(columns.keys[0])
        keys = () if direct else tuple(dict.fromkeys(roles.on))
        return Plan(
            side,
            roles,
            columns,
            self.lanes,
            read=names if self.payload or self.quarantine else roles.columns,
            keep=names if self.payload else keys,
            changed=changed,
            quarantine=self.quarantine,
            seed=seed,
            split_rows=self.split_rows,
            facts=None if self.facts is None else FactCodes(self.work, side),
            sorts=self.sorts,
            folders=self.archives[side].folders,
        )

    def _split(
        self,
        stages: Steps,
        first_pass: FirstPass | None,
        plans: Sequence[Plan],
        sources: Sequence[Sequence[Source]],
    ) -> tuple[SplitResult, ...]:
        """Split both sides, by tasks where the executor has no other way."""
        found: dict[int, list[SplitResult]] = {}
        for plan in plans:
            folder = self._folder(plan)
            make_folder(folder)
            if first_pass is None:
                continue
            work = partial(first_pass.split, plan, sources[plan.side], folder)
            own = stages.single(f"query {SIDES[plan.side]}", work)
            if own is not None:
                found[plan.side] = own
        tasks = [
            task
            for plan in plans
            if plan.side not in found
            for task in self._split_tasks(plan, sources[plan.side])
        ]
        for results in stages.run("split", split, tasks, [task.rows for task in tasks]):
            for result in results:
                found.setdefault(result.side, []).append(result)
        return tuple(result for plan in plans for result in found.get(plan.side, ()))

    def _folder(self, plan: Plan) -> Place:
        return self.work / f"seed-{plan.seed}"

    def _split_tasks(self, plan: Plan, sources: Sequence[Source]) -> Iterator[SplitTask]:
        """Cut the files of one side at row groups, into tasks of about `split_rows` rows."""
        parts: list[FileRows] = []
        first_row, least = 0, plan.split_rows
        for source, file in zip(sources, self.archives[plan.side].files, strict=True):
            file_first = first_row
            sizes = file.groups
            if source.path != source.origin:
                with reading.parquet_file(source.path) as spooled:
                    sizes = group_sizes(spooled.metadata)
            rows, size = sizes.sum(axis=0).tolist()
            fitting = fitting_rows(plan.split_rows, rows, size)
            least = min(least, fitting)
            for chosen in row_group_runs(sizes[:, 0].tolist(), fitting):
                rows = int(sizes[list(chosen), 0].sum())
                parts.append(FileRows(*source, chosen, rows, first_row, file_first))
                first_row += rows
        own = replace(plan, split_rows=least)
        alike = [(part,) for part in parts] if plan.changed else small_together(parts, least)
        for number, together in enumerate(alike):
            out = text_of(self._folder(plan) / f"{SIDES[plan.side]}-{number:06d}")
            yield SplitTask(own, together, out)

    def _codes_clear(self, stages: Steps, splits: Splits) -> bool:
        if self.facts is not None or self.columns[0].direct:
            return True
        runs = (*splits.placed[0], *splits.placed[1])
        tasks = [
            CheckTask(lanes, self.lanes, runs) for lanes in lane_ranges(splits.rows.sum(axis=0))
        ]
        return all(list(stages.run("check", codes_clear, tasks)))

    def _stored(self, stages: Steps, splits: Splits) -> tuple[list[list[LaneSide]], dict[str, int]]:
        """Keep the runs or merge them; return what lanes have, by side, and the kept runs' bytes.

        With payload they are merged, and so compressed: what it takes is not known.
        """
        sides: list[list[LaneSide]] = []
        kept: dict[str, int] = {}
        merging = []
        for side, (placed, rows) in enumerate(zip(splits.placed, splits.rows, strict=True)):
            pieces = Pieces(placed, self.lanes)
            far = isinstance(self.folder, Uri)  # where reading many small pieces takes long
            if not (far or self.payload) and can_reuse(splits.runs_of(side), pieces, rows):
                found, sizes = reuse_runs(placed, pieces, rows, Path(self.folder))
                kept |= sizes
            else:
                found = [LaneSide()] * rows.size
                merging.append(side)
            sides.append(found)
        tasks = [
            LaneTask(side, lanes, self.lanes, splits.placed[side], self.folder)
            for side in merging
            for lanes in lane_ranges(splits.rows[side])
        ]
        counts = [int(splits.rows[task.side][[*task.lanes]].sum()) for task in tasks]
        merged = stages.run("merge", write_lanes, tasks, counts)
        for task, written in zip(tasks, merged, strict=True):
            for lane, content in zip(task.lanes, written, strict=True):
                sides[task.side][lane] = content
        return sides, kept

    def _reject(self, stages: Steps, splits: Splits) -> None:
        tasks = [
            RejectTask(files, self.folder, name)
            for side, name in enumerate(SIDES)
            for files in [splits.rejected_files(side)]
            if files
        ]
        if tasks:
            make_folder(self.folder / "_rejected")
        list(stages.run("rejected", join_rejected, tasks))

    def _prepared(
        self, splits: Splits, sides: Sequence[Sequence[LaneSide]], kept: dict[str, int], seed: int,
        mark: str,
    ) -> Prepared:  # fmt: skip
        left, right = (splits.summary(side, self.roles[side].on) for side in (0, 1))
        shown = [tuple(json_group(group, self.columns[0].groups)) for group in splits.groups]
        lanes = tuple(
            Lane(number, shown[number // self.lanes], pair)
            for number, pair in enumerate(zip(*sides, strict=True))
        )
        keys = tuple(str(kind) for kind in self.columns[0].keys)
        return Prepared(
            self.folder, mark, self.columns[0].unit, self.lanes, len(splits.groups), self.payload,
            seed, keys, (left, right), lanes, self.read, kept,
        )  # fmt: skip
