"""Folders of runs in an object store, which renames nothing.

A run writes into ``run-<32 digits>/`` of the folder that it is to fill, with its process's mark in
``_owner``. One object, put only if there is none, makes the folder's content. What runs leave
that were killed is known by their marks.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from engine.runtime.disk import has_ended, lease_mark
from engine.runtime.listing import RUN
from engine.runtime.storage import bytes_at
from engine.runtime.uploads import Object, objects, put, remove
from engine.runtime.uris import Uri

OWNER = "_owner"
"""In the folder of a run, until it is committed: the mark of its process."""
ABANDONED = timedelta(days=7)
"""How old the run of a process is that cannot be seen from here, and surely goes on no more."""


def new_run(folder: Uri) -> Uri:
    """Return where a run may write."""
    return folder / f"run-{uuid.uuid4().hex}"


def own_run(run: Uri) -> None:
    """Put the mark of this process."""
    put(run / OWNER, lease_mark().encode())


def runs_of(found: Sequence[Object]) -> dict[str, Object | None]:
    """Return what stands first in the names of a folder's objects, and the mark of each run."""
    own: dict[str, Object | None] = dict.fromkeys(one.name.partition("/")[0] for one in found)
    marks = (one for one in found if one.name.endswith(f"/{OWNER}"))
    return own | {one.name.partition("/")[0]: one for one in marks}


def remove_ended_runs(folder: Uri, runs: dict[str, Object | None]) -> None:
    """Remove runs without a mark, of processes that have ended, and those begun a week ago."""
    for run, owner in sorted(runs.items()):
        if not RUN.fullmatch(run):
            continue
        mark = (bytes_at(folder / run / OWNER) or b"").decode()
        old = owner is not None and datetime.now(UTC) - owner.changed > ABANDONED
        if owner is None or has_ended(mark) or old:
            remove_run(folder / run)


def remove_run(folder: Uri) -> None:
    """Remove the folder of a run, its owner's mark last."""
    remove(folder, (own.name for own in objects(folder) if own.name != OWNER))
    remove(folder, [OWNER])
