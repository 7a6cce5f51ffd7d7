"""Where lanes are put: in a folder of a disk, or in an object store, whole or not at all.

On a disk they are written beside their folder, which a rename brings into being. In an object store
they lie in the folder of a run, and the manifest beside it, which is put last and only if there is
none, says in which.
"""

from __future__ import annotations

import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from engine.lanes.cached import is_lanes, note_use, tidy
from engine.lanes.manifest import MANIFEST, Prepared
from engine.runtime.cache_folders import LANES, cache_home
from engine.runtime.errors import InputError, OutputError, WinnowError
from engine.runtime.storage.disk import (
    claim,
    release,
    remove_folder,
    remove_leftovers,
    undone_at_end,
)
from engine.runtime.storage.listing import RUN
from engine.runtime.storage.reading import bytes_at
from engine.runtime.storage.run_folders import (
    OWNER,
    close_run,
    new_run,
    own_run,
    remove_ended_runs,
    runs_of,
)
from engine.runtime.storage.uploads import objects, put, remove
from engine.runtime.storage.uris import Place, Uri


class LaneHome(ABC):
    """The place of the lanes of one fingerprint.

    Parameters
    ----------
    mark : str
        The fingerprint.
    """

    def __init__(self, mark: str) -> None:
        self.mark = mark

    @abstractmethod
    def found(self) -> Prepared | None:
        """Return the lanes that are there whole."""

    @abstractmethod
    def clear(self) -> None:
        """Remove what is there and not whole, and what others have left."""

    @abstractmethod
    @contextmanager
    def draft(self) -> Iterator[Place]:
        """Yield the folder to write into; what is not published is removed.

        Raises
        ------
        OutputError
            If something else is there.
        """

    @abstractmethod
    def publish(self, prepared: Prepared) -> Prepared:
        """Put lanes in their place; if another process was first with the same, return those."""

    def _whole(self, folder: Place) -> Prepared | None:
        try:
            found = Prepared.load(folder)
        except InputError:
            return None
        return found if found.matches(self.mark) else None

    def _taken(self, folder: Place) -> OutputError:
        return OutputError(f"folder {folder} exists: name another or remove it")


class LaneFolder(LaneHome):
    """On a disk."""

    def __init__(self, folder: Path, mark: str) -> None:
        super().__init__(mark)
        self._folder = folder.absolute()  # a worker of Spark may run elsewhere
        self._draft = self._folder.parent / f".{folder.name}.{uuid.uuid4().hex}.tmp"

    def found(self) -> Prepared | None:
        """Return the lanes that are there whole."""
        if not os.path.lexists(self._folder):  # or it may not be looked at: `draft` tells
            return None
        found = self._whole(self._folder)
        if found is not None:
            note_use(self._folder)
        return found

    def clear(self) -> None:
        """Remove what is there and not whole, and what others have left.

        It is moved away first: another process may just have replaced it with what is whole.
        """
        cache, aside = self._folder.parent, self._draft.with_suffix(".old.tmp")
        with suppress(OSError):  # nothing is there, or `draft` tells why it stays
            self._folder.rename(aside)
            if self._whole(aside) is not None:
                with suppress(OSError):  # there are others by now
                    aside.rename(self._folder)
            remove_folder(aside)
        if cache == cache_home().absolute() / LANES:
            tidy(cache)
        else:
            remove_leftovers(cache)

    @contextmanager
    def draft(self) -> Iterator[Place]:
        """Yield the folder to write into; see `LaneHome.draft`."""
        folder, draft = self._folder, self._draft
        if is_lanes(folder.parent):
            raise OutputError(
                f"folder {folder.parent} holds prepared lanes itself: give the cache that it lies "
                f"in, --cache {folder.parent.parent}"
            )
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise self._taken(folder)
        with undone_at_end(partial(remove_folder, draft)):
            draft.mkdir(parents=True)
            claim(draft)
            remove_leftovers(folder.parent, folder.name)
            yield draft

    def publish(self, prepared: Prepared) -> Prepared:
        """Give the folder its name; see `LaneHome.publish`."""
        own = self._draft / f".{MANIFEST}"
        own.write_text(prepared.content())
        own.replace(self._draft / MANIFEST)
        release(self._draft)
        try:
            self._draft.rename(self._folder)
        except OSError as error:
            found = self._whole(self._folder)
            if found is None:
                raise self._taken(self._folder) from error
            return found
        return replace(prepared, folder=self._folder)


class LaneObjects(LaneHome):
    """In an object store."""

    def __init__(self, folder: Uri, mark: str) -> None:
        super().__init__(mark)
        self._folder, self._run = folder, new_run(folder)
        self._published = False

    def found(self) -> Prepared | None:
        """Return the lanes that are there whole."""
        return self._whole(self._folder)

    def clear(self) -> None:
        """Remove what is there and not whole, and what others have left."""
        remove(self._folder, [MANIFEST])
        remove_ended_runs(self._folder, runs_of(objects(self._folder)))

    @contextmanager
    def draft(self) -> Iterator[Place]:
        """Yield the folder to write into; see `LaneHome.draft`."""
        if not all(map(RUN.fullmatch, runs_of(objects(self._folder)))):
            raise self._taken(self._folder)
        with undone_at_end(self._discard):
            own_run(self._run)
            yield self._run

    def publish(self, prepared: Prepared) -> Prepared:
        """Put the manifest; see `LaneHome.publish`."""
        content = prepared.content().encode()
        try:
            put(self._folder / MANIFEST, content, new=True, draft=self._run)
        except FileExistsError as error:
            found = self._whole(self._folder)
            if found is None:
                raise self._taken(self._folder) from error
            if found.folder != self._run:
                return found
        self._published = True  # perhaps by a request whose answer was lost
        with suppress(WinnowError):
            remove(self._run, [OWNER])
        return prepared

    def _discard(self) -> None:
        with suppress(WinnowError, OSError):
            published = self._published or self._run.name.encode() in (
                bytes_at(self._folder / MANIFEST) or b""
            )
            if not published:
                close_run(self._run)


def lane_home(folder: Place, mark: str) -> LaneHome:
    """Return the place of lanes in a folder."""
    return LaneObjects(folder, mark) if isinstance(folder, Uri) else LaneFolder(folder, mark)
