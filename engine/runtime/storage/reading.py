"""Files that lie on a disk, in an object store or in HDFS: found, looked at and opened.

A path is text: of a disk, or a `Uri`. Nothing else opens archives.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from engine.runtime.errors import InputError, OutputError
from engine.runtime.storage.footers import keep, kept
from engine.runtime.storage.uris import Place, PlainOptions, Uri
from engine.runtime.work import mapped

P = TypeVar("P", bound=str)
T = TypeVar("T")
_AT_ONCE = 16
"""Requests for small answers, which take their time to come."""
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_ODD = re.compile(r" \(Request ID: [^)]*\)|; Details: .*|:? <\?xml.*|\s+$")
_REMEDIES = (
    ("NO_SUCH_BUCKET|NoSuchBucket|ContainerNotFound|code: 404", "check the name of the bucket"),
    (
        "(?i)ACCESS_DENIED|ACCESS_KEY|SIGNATURE|TOKEN|status 40[13]|Unauth|Forbidden|credential",
        "check the credentials, in the environment or by --storage-option, and what they allow",
    ),
    (
        "status 301|PermanentRedirect|configured region|HeaderMalformed|resolve region",
        "give the bucket's region by --storage-option region=NAME",
    ),
    (
        "HDFS|libhdfs|libjvm",
        "check JAVA_HOME, CLASSPATH and ARROW_LIBHDFS_DIR: Java, Hadoop's client, and libhdfs",
    ),
    (
        "NETWORK_CONNECTION|resolve host|[Tt]imed? ?out",
        "check the network, and --storage-option endpoint_override if the store is not the cloud's",
    ),
)


class State(NamedTuple):
    """What a file is now."""

    size: int
    """In bytes."""
    changed: int | str
    """By which a change is noticed: nanoseconds, or the ETag of an object."""


@lru_cache(maxsize=64)
def _system(uri: str, scheme: str, authority: str, options: PlainOptions) -> pafs.FileSystem:
    """Return the file system of a scheme and an authority; `uri` is one without a path."""
    own = Uri(uri, options).keywords
    if scheme == "s3" and (own or any(name in os.environ for name in _REGIONS)):
        return pafs.S3FileSystem(**own)
    if scheme == "gs" and own:
        return pafs.GcsFileSystem(**own)
    if scheme == "abfs" and own:
        return pafs.AzureFileSystem(authority.rpartition("@")[2].partition(".")[0], **own)
    if own:
        host, _, port = authority.partition(":")
        return pafs.HadoopFileSystem(host or "default", int(port or 0), **own)
    return pafs.FileSystem.from_uri(uri)[0]


def located(uri: Uri, what: str = "read") -> tuple[pafs.FileSystem, str]:
    """Return the file system of a URI that is to be read or written, and its path there.

    Raises
    ------
    InputError or OutputError
        If its options are no options of such a file system, or it does not answer.
    """
    root = f"{uri.partition(':')[0].replace('s3a', 's3')}://{uri.authority}/"
    try:
        system = _system(root, uri.scheme, uri.authority, uri.options)
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        kind = InputError if what == "read" else OutputError
        raise kind(refusal(uri, error, what)) from None
    if uri.scheme == "hdfs":
        return system, f"/{uri.below}"
    bucket = uri.authority.partition("@")[0] if uri.scheme == "abfs" else uri.authority
    return system, f"{bucket}/{uri.below}".rstrip("/")


def refusal(uri: Uri, error: BaseException, what: str = "read") -> str:
    """Return, in a sentence without secrets, why a URI cannot be read and what helps."""
    if isinstance(error, FileNotFoundError):
        where = "name node, its port" if uri.scheme == "hdfs" else "bucket"
        return f"{uri} is not there: check the {where} and the path"
    whole = str(error).strip()
    found = (remedy for pattern, remedy in _REMEDIES if re.search(pattern, whole))
    remedy = next(found, "check the URI, and --storage-option for region, endpoint and credentials")
    said = _ODD.sub("", whole.partition("\n")[0])
    return uri.public(f"{uri} cannot be {what} ({said}): {remedy}")


def forbidden(path: str) -> str:
    """Return, in a sentence, that a file may not be read, and what helps."""
    return f"file {path} may not be read: allow it with chmod u+r"


def lacking(path: str, error: BaseException) -> str:
    """Return, in a sentence, what is missing to read a file, and what helps; "" if nothing is.

    Then the file is at fault.

    Raises
    ------
    MemoryError
        In place of a sentence.
    """
    if isinstance(error, MemoryError):
        raise error
    if isinstance(error, PermissionError) and not isinstance(path, Uri):
        return forbidden(path)
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return f"file {path} cannot be opened, too many are open: allow more (ulimit -n)"
    return ""


def each(work: Callable[[P], T], paths: Sequence[P]) -> list[T]:
    """Return what `work` returns of each path, asking an object store for several at once."""
    stored = any(isinstance(path, Uri) for path in paths)
    return mapped(work, paths, _AT_ONCE if stored else 1)


def state_of(path: str) -> State:
    """Return what a file is now.

    Raises
    ------
    OSError
        If it is not there.
    """
    if isinstance(path, Uri):
        with opened(path) as file:
            return State(file.size(), _tag(path, file))
    found = Path(path).stat()
    return State(found.st_size, found.st_mtime_ns)


def state_or_none(path: str) -> State | None:
    """Return what a file is now, None if it is not there."""
    try:
        return state_of(path)
    except FileNotFoundError:
        return None


def sizes_of(paths: Sequence[str]) -> list[int]:
    """Return the bytes of files, which are of one storage."""
    stored = [located(own) for own in paths if isinstance(own, Uri)]
    if not stored:
        return [Path(path).stat().st_size for path in paths]
    return [info.size or 0 for info in stored[0][0].get_file_info([path for _, path in stored])]


def opened(uri: Uri) -> pa.NativeFile:
    """Open an object, to be read anywhere."""
    system, path = located(uri)
    return system.open_input_file(path)


def _tag(uri: Uri, file: pa.NativeFile) -> str:
    """Return the ETag of an open object, or else when it was changed last."""
    for name, own in (file.metadata() or {}).items():
        if name.lower() == "etag":
            return str(own.decode())
    system, path = located(uri)
    return str(system.get_file_info(path).mtime_ns)


def parquet_file(path: str | Path, **on_disk: Any) -> pq.ParquetFile:  # noqa: ANN401 - as pyarrow has them
    """Open a Parquet file; `on_disk` says how if it lies on one.

    Of an object the parts that a read needs are fetched together, those of a footer once a process.
    """
    if not isinstance(path, Uri):
        return pq.ParquetFile(path, **on_disk)
    return parquet_now(path)[1]


def parquet_now(path: str) -> tuple[State, pq.ParquetFile]:
    """Return what a Parquet file is now, and open it, with one request where it is an object.

    Its footer is kept.
    """
    if isinstance(path, Uri):
        file = opened(path)
        state = State(file.size(), _tag(path, file))
        found = pq.ParquetFile(file, metadata=kept(path, state.changed), pre_buffer=True)
    else:
        state, found = state_of(path), pq.ParquetFile(path)
    keep(path, state.changed, found.metadata)
    return state, found


def text_file(path: str) -> pa.NativeFile:
    """Return a text file, decompressed as its name tells."""
    if not isinstance(path, Uri):
        return pa.input_stream(path)
    system, place = located(path)
    return system.open_input_stream(place, compression="detect")


def first_bytes(path: str, size: int) -> bytes:
    """Return how a file begins."""
    if isinstance(path, Uri):
        with opened(path) as file:
            return bytes(file.read(size))
    with Path(path).open("rb") as own:
        return own.read(size)


def in_hdfs(uri: Uri) -> bool:
    """Return whether a file is there, of which libhdfs would print a stack trace if it is not."""
    system, path = located(uri)
    return bool(system.get_file_info(path).type != pafs.FileType.NotFound)


def bytes_at(place: Place) -> bytes | None:
    """Return the content of a file or object, None if it is not there."""
    try:
        if not isinstance(place, Uri):
            return place.read_bytes()
        if place.scheme == "hdfs" and not in_hdfs(place):
            return None
        with opened(place) as file:
            return bytes(file.read())
    except FileNotFoundError:
        return None
