"""Folders of runs in an object store, which renames nothing.

A run writes into ``run-<32 digits>/`` of the folder that it is to fill, with its process's mark in
``_owner``. One object, put only if there is none, makes the folder's content. What runs leave
that were killed is known by their marks.

A run is open while it has a mark. Whoever closes it removes the mark, then lists what is there, and
removes what does not belong; whoever puts a part looks for the mark afterwards, and takes the part
back if it is gone. So one of both removes a part that comes late, whichever goes on first.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from engine.runtime.errors import OutputError
from engine.runtime.storage.disk import has_ended, lease_mark
from engine.runtime.storage.listing import RUN
from engine.runtime.storage.reading import bytes_at
from engine.runtime.storage.uploads import Object, objects, put, remove
from engine.runtime.storage.uris import Place, Uri

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
            close_run(folder / run)


def check_open(run: Uri) -> None:
    """Raise `OutputError` if a run has been closed."""
    if bytes_at(run / OWNER) is None:
        raise OutputError(
            f"{run} is closed: another attempt was taken, or it was removed, as left over by a run "
            "that has ended; if nothing is there, run it again"
        )


@contextmanager
def late_withdrawn(place: Place) -> Iterator[None]:
    """Let a part be put into an open run, and take it back if the run has been closed meanwhile.

    An attempt at a task that Spark has given up may go on for seconds, or, on a machine that hangs,
    for longer: its part would come after the manifest.

    Raises
    ------
    OutputError
        If the run is closed.
    """
    if not isinstance(place, Uri) or not RUN.fullmatch(place.parent.name):
        yield
        return
    check_open(place.parent)
    yield
    try:
        check_open(place.parent)
    except OutputError:
        remove(place.parent, [place.name])
        raise


def close_run(run: Uri, kept: Sequence[str] = ()) -> None:
    """Close a run and remove all that it holds but the objects `kept`.

    Raises
    ------
    OutputError
        If the store refuses.
    """
    remove(run, [OWNER])
    remove(run, {own.name for own in objects(run)} - set(kept))
