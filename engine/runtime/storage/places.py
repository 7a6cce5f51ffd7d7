"""Files and folders written where they belong: on a disk, or whole into an object store."""

from __future__ import annotations

import stat
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from engine.runtime.errors import InputError, OutputError
from engine.runtime.storage.disk import remove_folder, scratch_home, whole_file
from engine.runtime.storage.reading import bytes_at, in_hdfs, refusal, state_of
from engine.runtime.storage.uploads import objects, put, remove
from engine.runtime.storage.uris import Place, Uri, place_of


@contextmanager
def written(place: str | Place, aside: Place | None = None) -> Iterator[Path]:
    """Yield the path of a file to write, whose content is at a place after the block.

    Parameters
    ----------
    place : str, Path or Uri
        Of an object, the path is of this machine's disk, and what is written there is put whole.
    aside : Path, optional
        A folder of the same disk where a file is written first, so that nobody sees half of it.
    """
    place = place_of(place) if isinstance(place, str) else place
    if isinstance(place, Uri):
        with tempfile.TemporaryDirectory(prefix="winnow-", dir=scratch_home()) as folder:
            own = Path(folder) / "content"
            yield own
            put(place, own)
    elif isinstance(aside, Path):
        with whole_file(place, aside) as own:
            yield own
    else:
        yield place


def save_text(path: Place, text: str, what: str = "report") -> None:
    """Write a text file or object as `save_bytes` does."""
    save_bytes(path, text.encode(errors="backslashreplace"), what)


def save_bytes(path: Place, content: bytes, what: str = "report") -> None:
    """Write a file or object, whole or not at all.

    A link stays one, and gets a new file where it points. A pipe or a device gets the content.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    if isinstance(path, Uri):
        put(path, content)
        return
    own = path.resolve() if path.is_file() else path
    draft = own.with_name(f".{own.name}.tmp")
    try:
        if is_stream(path):
            path.write_bytes(content)
            return
        own.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(content)
        draft.replace(own)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise OutputError(f"{what} {path} cannot be written: {error}") from error


def is_stream(path: Path) -> bool:
    """Return whether a path is of a pipe, a device or a socket, which nothing may replace.

    Raises
    ------
    OutputError
        If it cannot be looked at.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written ({error.strerror}): name another place"
        ) from None
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def text_at(place: Place) -> str:
    """Return the content of a text file or object.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    if not isinstance(place, Uri):
        return place.read_text()
    try:
        found = bytes_at(place)
    except (pa.ArrowException, OSError) as error:
        raise InputError(refusal(place, error)) from None
    if found is None:
        raise FileNotFoundError(f"{place} is not there")
    return found.decode()


def try_to_put(folder: Uri) -> None:
    """Find out whether objects can be put into a folder.

    Raises
    ------
    OutputError
        If not.
    """
    name = f".{uuid.uuid4().hex}.tmp"
    put(folder / name, b"")
    remove(folder, [name])


def is_there(place: Place) -> bool:
    """Return whether there is such a file."""
    if not isinstance(place, Uri):
        return place.exists()
    if place.scheme == "hdfs":
        return in_hdfs(place)
    try:
        state_of(place)
    except FileNotFoundError:
        return False
    return True


def make_folder(place: Place, *, parents: bool = True) -> None:
    """Make a folder where storage has folders; it may be there already."""
    if isinstance(place, Path):
        place.mkdir(parents=parents, exist_ok=True)


def drop_folder(place: Place) -> None:
    """Remove a folder and all that is in it, if it is there."""
    if isinstance(place, Uri):
        remove(place, [own.name for own in objects(place)])
    else:
        remove_folder(place)
