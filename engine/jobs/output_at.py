"""The output dataset by its place: in a folder of a disk, or in an object store.

In an object store nothing is renamed. Tasks put parts into a folder of the run, and the manifest
beside it, which is put last and only if there is none, makes them the dataset.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from engine.jobs.output import Output
from engine.runtime.errors import OutputError, WinnowError
from engine.runtime.storage.disk import (
    STANDING,
    claim,
    remove_folder,
    remove_leftovers,
    undone_at_end,
)
from engine.runtime.storage.listing import MANIFEST, RUN
from engine.runtime.storage.reading import bytes_at, each, parquet_file, state_of
from engine.runtime.storage.run_folders import (
    check_open,
    close_run,
    new_run,
    own_run,
    remove_ended_runs,
    runs_of,
)
from engine.runtime.storage.uploads import objects, put, remove
from engine.runtime.storage.uris import Place, Uri

VERSION = 1


class OutputFolder(Output):
    """A dataset under construction beside the place where it will stand.

    What killed jobs have left there of the same dataset is removed.

    Parameters
    ----------
    place : Path
        Must not exist.

    Raises
    ------
    OutputError
        If it does, or cannot be made.
    """

    def __init__(self, place: Path, option: str = "--out") -> None:
        self._place = place
        self._aside = place.absolute().parent / f".{place.name}.{uuid.uuid4().hex}.tmp"
        self._parts = self._aside / "parts"
        super().__init__(place, self._parts, self._aside / "whole", option)
        if os.path.lexists(place):
            raise self.exists()
        self._made = [folder for folder in place.parents if not os.path.lexists(folder)]
        try:
            self._parts.mkdir(parents=True)
            self.whole.mkdir()
            claim(self._aside)
        except OSError as error:
            self.discard()
            raise OutputError(
                f"output folder {place} cannot be made: {error.strerror or error}; give another "
                f"{option}"
            ) from error
        remove_leftovers(place.parent, place.name)

    def take(self, name: str, wanted: str, rows: int) -> None:
        """Move a file to where the dataset is put together; see `Output.take`."""
        part = self.whole / wanted
        if part.exists():
            raise self.twice(wanted)
        part.parent.mkdir(exist_ok=True)
        try:
            (self._parts / name).rename(part)
        except FileNotFoundError as error:
            raise OutputError(
                f"part {wanted} of output {self.place}, which a task has written, is not there: "
                "give a folder that the driver and all executors see under the same path"
            ) from error
        try:
            found = pq.read_metadata(part).num_rows
        except pa.ArrowException as error:
            raise self.damaged(wanted, error) from error
        if found != rows:
            raise self.miscounted(wanted, found, rows)

    def publish(self) -> None:
        """Rename the folder; see `Output.publish`."""
        try:
            self.whole.rename(self._place)
        except OSError as error:
            raise FileExistsError(self.place) from error

    def withdraw(self) -> None:
        """Remove the folder."""
        STANDING.discard(str(self.place))
        shutil.rmtree(self._place)

    def discard(self) -> None:
        """Remove what was not committed, and the folders above that were made for it."""
        remove_folder(self._aside)
        for folder in self._made:
            try:
                folder.rmdir()
            except OSError:  # not made after all, or something stands in it
                return


class OutputObjects(Output):
    """A dataset under construction in an object store.

    What killed runs have left in its folder is removed.

    Parameters
    ----------
    place : Uri
        Must hold nothing else.

    Raises
    ------
    OutputError
        If it does, or the store refuses.
    """

    def __init__(self, place: Uri, option: str = "--out") -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="winnow-", ignore_cleanup_errors=True)
        self._folder, self._run = place, new_run(place)
        super().__init__(place, self._run, Path(self._scratch.name), option)
        self._taken: dict[str, tuple[str, int]] = {}
        try:
            self._remove_leftovers()
            own_run(self._run)
        except BaseException:
            self._scratch.cleanup()
            raise

    def take(self, name: str, wanted: str, rows: int) -> None:
        """Take note of a part; see `Output.take`."""
        if wanted in self._taken:
            raise self.twice(wanted)
        self._taken[wanted] = name, rows

    def publish(self) -> None:
        """Put what is in `whole`, and then the manifest.

        Raises
        ------
        FileExistsError
            If there is another's.
        """
        rows: dict[str, tuple[str, int | None]] = dict(self._taken)
        for file in sorted(own for own in self.whole.rglob("*") if own.is_file()):
            name = file.relative_to(self.whole).as_posix()
            if name in rows:
                raise self.twice(name)
            put(self._run / name, file)
            count = pq.read_metadata(file).num_rows if file.suffix == ".parquet" else None
            rows[name] = name, count
        known = {self._run / name: (path, count) for path, (name, count) in rows.items()}
        places = sorted(known, key=lambda place: known[place][0])
        files = each(lambda place: self._entry(place, *known[place]), places)
        manifest = {"version": VERSION, "folder": self._run.name, "files": files}
        content = json.dumps(manifest, indent=1).encode()
        check_open(self._run)
        try:
            put(self._folder / MANIFEST, content, new=True, draft=self._run)
        except FileExistsError:  # by another run, or by this one, whose store did not answer
            if self._manifest() != content:
                raise
        self.committed = True
        with suppress(OutputError):
            close_run(self._run, [name for name, _ in rows.values()])

    def _entry(self, place: Uri, path: str, rows: int | None) -> dict[str, str | int | None]:
        """Return a line of the manifest; of a part that is what its task has reported."""
        try:
            state = state_of(place)
        except FileNotFoundError as error:
            raise OutputError(
                f"part {path} of output {self.place}, which a task has written, is not there: run "
                "it again"
            ) from error
        if rows is not None:
            try:
                with parquet_file(place) as file:
                    found = file.metadata.num_rows
            except pa.ArrowException as error:
                raise self.damaged(path, error) from error
            if found != rows:
                raise self.miscounted(path, found, rows)
        return {
            "path": path, "object": place[len(self._folder.rstrip("/")) + 1 :], "rows": rows,
            "bytes": state.size, "etag": str(state.changed),
        }  # fmt: skip

    def withdraw(self) -> None:
        """Remove the dataset again: the manifest first."""
        STANDING.discard(str(self.place))
        remove(self._folder, [MANIFEST])
        self.committed = False  # and so it will be discarded

    def discard(self) -> None:
        """Remove what was not committed."""
        self._scratch.cleanup()
        with suppress(WinnowError, OSError):
            # The store may have put a manifest without an answer, or just before an interrupt.
            if not self.committed and self._run.name.encode() not in self._manifest():
                close_run(self._run)

    def _manifest(self) -> bytes:
        return bytes_at(self._folder / MANIFEST) or b""

    def _remove_leftovers(self) -> None:
        """Remove what runs have left that have certainly ended; refuse anything else."""
        found = [own for own in objects(self._folder) if own.name]
        runs = runs_of(found)
        # The manifest last: of a run that was committed meanwhile, the owner is gone.
        if not all(map(RUN.fullmatch, runs)) or self._manifest():
            raise self.exists()
        remove_ended_runs(self._folder, runs)


def _begun(place: Place, option: str) -> Output:
    if isinstance(place, Uri):
        return OutputObjects(place, option)
    return OutputFolder(place, option)


@contextmanager
def output_at(place: Place | None, option: str = "--out") -> Iterator[Output | None]:
    """Yield the dataset to construct for a place, None for none; discard it if it is not committed.

    Raises
    ------
    OutputError
        If something is there already, or the place cannot be written.
    """
    if place is None:
        yield None
        return
    output = _begun(place, option)
    with undone_at_end(output.discard), output.writing():
        yield output
