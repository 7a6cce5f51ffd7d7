"""``winnow prepare``: both archives co-partitioned once into lane files, sorted by time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace

from engine.archives.roles import JoinColumns, Roles, check_roles, check_streams, time_kind
from engine.archives.source import Archive, check_unchanged
from engine.facts.read import read_facts
from engine.lanes.build import Build
from engine.lanes.facts import FactInput
from engine.lanes.home import lane_home
from engine.lanes.manifest import VERSION, Prepared
from engine.lanes.placing import sorting_device
from engine.lanes.runs import lanes_written
from engine.lanes.split import MAX_LANES, rows_a_split, too_many_lanes
from engine.runtime.device_choice import ASKED_FOR_CPU, Wanted
from engine.runtime.errors import OutputError, SpecError
from engine.runtime.executors import Executor, Progress, silent
from engine.runtime.storage.uris import Place

_OUTPUT_COLUMNS = ("row",)


def fingerprint(
    archives: tuple[Archive, Archive],
    roles: tuple[Roles, Roles],
    *,
    lanes: int,
    bad_rows: str,
    payload: bool,
    fact: FactInput | None = None,
) -> str:
    """Return a digest of everything that prepared lanes depend on."""
    content = {
        "version": VERSION,
        "archives": [archive.fingerprint for archive in archives],
        "roles": [asdict(role) for role in roles],
        "times": [
            str(time_kind(archive, role.time))
            for archive, role in zip(archives, roles, strict=True)
            if role.time in archive.schema.names
        ],
        "lanes": lanes,
        "bad_rows": bad_rows,
        "payload": payload,
    }
    if fact is not None:
        content["fact"] = [fact.archive.fingerprint, asdict(fact.roles)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def prepare(
    left: Archive,
    right: Archive,
    left_roles: Roles,
    right_roles: Roles,
    *,
    lanes: int,
    folder: Place,
    bad_rows: str,
    payload: bool,
    executor: Executor,
    progress: Progress | None = None,
    split_rows: int | None = None,
    fact: FactInput | None = None,
    sorts: Wanted = ASKED_FOR_CPU,
) -> Prepared:
    """Write the lane files of two archives.

    The same lanes come out for every executor and split size. The folder appears whole, under its
    name, or not at all.

    Parameters
    ----------
    lanes : int
        Lanes into which the join key is hashed, in each group of the partition columns.
    folder : Path or Uri
        Must not exist, or be empty.
    bad_rows : {"error", "quarantine"}
        Whether a row with a wrong time or importance is an error or set aside with its reason.
    payload : bool
        Whether the lane files carry every source column.
    executor : Executor
        Runs the tasks.
    progress : callable, optional
        Called as ``progress(stage, done, total)`` after every task.
    split_rows : int, optional
        Rows that a task holds at once, at most; by default as many as `rows_a_split` says.
    fact : FactInput, optional
        What joins the streams, where their join attributes do not; read whole, here. Lanes are then
        unions of its parts that have nothing to do with each other.
    sorts : Wanted
        The device that sorts, for tasks that run here: a GPU only if cuDF is installed. The files
        are the same.

    Raises
    ------
    InputError
        If the archives cannot be read as streams.
    SpecError
        If an option or a role is invalid.
    OutputError
        If `folder` holds something else.
    """
    archives, roles = (left, right), (left_roles, right_roles)
    columns = _columns(archives, roles, fact)
    sources = archives if fact is None else (*archives, fact.archive)
    _check_options(sources, lanes=lanes, payload=payload)
    mark = fingerprint(archives, roles, lanes=lanes, bad_rows=bad_rows, payload=payload, fact=fact)
    home = lane_home(folder, mark)
    try:
        with lanes_written(folder), home.draft() as draft:
            facts = None
            if fact is not None:
                facts = read_facts(*fact, bad_rows=bad_rows, payload=payload)
            if split_rows is None:
                split_rows = rows_a_split(sum(f.rows or 0 for a in archives for f in a.files))
            build = Build(
                archives, roles, columns, draft, lanes, bad_rows == "quarantine", payload,
                split_rows, facts, ASKED_FOR_CPU if executor.slots else sorting_device(sorts),
            )  # fmt: skip
            prepared = build.run(executor, progress or silent, mark)
            check_unchanged(sources)
            return home.publish(prepared)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(
            f"lanes cannot be written to {folder}: {error}: name another folder by --cache or "
            "WINNOW_CACHE"
        ) from error


def prepare_cached(
    left: Archive,
    right: Archive,
    left_roles: Roles,
    right_roles: Roles,
    *,
    cache: Place,
    lanes: int,
    bad_rows: str,
    payload: bool,
    executor: Executor,
    progress: Progress | None = None,
    fact: FactInput | None = None,
    sorts: Wanted = ASKED_FOR_CPU,
) -> Prepared:
    """Return the lanes under ``cache/<fingerprint>``, prepared now unless they are there whole.

    Processes that prepare the same at once do not disturb each other: the first to finish wins.
    Parameters as for `prepare`.
    """
    mark = fingerprint(
        (left, right), (left_roles, right_roles), lanes=lanes, bad_rows=bad_rows, payload=payload,
        fact=fact,
    )  # fmt: skip
    home = lane_home(cache / mark, mark)
    found = home.found()
    if found is not None:
        return found
    home.clear()
    try:
        return prepare(
            left, right, left_roles, right_roles, lanes=lanes, folder=cache / mark,
            bad_rows=bad_rows, payload=payload, executor=executor, progress=progress, fact=fact,
            sorts=sorts,
        )  # fmt: skip
    except OutputError:
        found = home.found()
        if found is None:
            raise
        return found


def _columns(
    archives: tuple[Archive, Archive], roles: tuple[Roles, Roles], fact: FactInput | None
) -> tuple[JoinColumns, JoinColumns]:
    """Return what each side's columns are turned into."""
    (left, right), (left_roles, right_roles) = archives, roles
    if fact is None:
        both = check_roles(left, left_roles, right, right_roles)
        return both, both
    common = check_streams(left, left_roles, right, right_roles)
    return replace(common, keys=fact.columns.left), replace(common, keys=fact.columns.right)


def _check_options(archives: Sequence[Archive], *, lanes: int, payload: bool) -> None:
    if lanes > MAX_LANES:
        raise SpecError(too_many_lanes("1", lanes))
    for archive in archives if payload else ():
        for name in _OUTPUT_COLUMNS:
            if name in archive.schema.names:
                raise SpecError(
                    f"column {name} of the {archive.side} archive would be written as "
                    f"{archive.side}_{name}, which holds the position of the row: rename it or "
                    "leave the payload out with --columns ids"
                )
