"""URIs of object stores and of HDFS, as text that knows how its storage is reached.

A `Uri` is a path like any other to whoever hands it on: as text it has no credentials, and
`engine.runtime.storage.reading` opens it. Every command loads this, so it is light.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Self, TypeAlias
from urllib.parse import unquote, urlsplit

from engine.runtime.errors import SpecError, WinnowError, did_you_mean


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower() == "true"


Reads: TypeAlias = Callable[[str], Any]
_S3: dict[str, Reads] = {
    "access_key": str, "secret_key": str, "session_token": str, "anonymous": _flag, "region": str,
    "endpoint_override": str, "scheme": str, "role_arn": str, "session_name": str,
    "external_id": str, "load_frequency": int, "connect_timeout": float, "request_timeout": float,
    "force_virtual_addressing": _flag, "tls_ca_file_path": str,
}  # fmt: skip
_GS: dict[str, Reads] = {
    "anonymous": _flag, "scheme": str, "endpoint_override": str, "project_id": str,
}  # fmt: skip
_ABFS: dict[str, Reads] = {
    "account_key": str, "sas_token": str, "tenant_id": str, "client_id": str,
    "client_secret": str, "blob_storage_authority": str, "dfs_storage_authority": str,
    "blob_storage_scheme": str, "dfs_storage_scheme": str,
}  # fmt: skip
_HDFS: dict[str, Reads] = {"user": str, "kerb_ticket": str, "replication": int}
OPTIONS: Mapping[str, Mapping[str, Reads]] = {
    "s3": _S3, "s3a": _S3, "gs": _GS, "gcs": _GS, "abfs": _ABFS, "abfss": _ABFS, "hdfs": _HDFS,
    "viewfs": _HDFS,
}  # fmt: skip
"""By scheme, the keywords of pyarrow's file system, and what reads each from text."""
_PLAIN = {"s3a": "s3", "gcs": "gs", "abfss": "abfs", "viewfs": "hdfs"}
PUBLIC = {
    "anonymous", "region", "endpoint_override", "scheme", "load_frequency", "connect_timeout",
    "request_timeout", "force_virtual_addressing", "tls_ca_file_path", "project_id",
    "blob_storage_authority", "dfs_storage_authority", "blob_storage_scheme", "dfs_storage_scheme",
    "user", "replication",
}  # fmt: skip
"""Options that may be shown; all others are secret."""
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
HIDDEN = "..."
"""What is shown in place of a secret."""
_SCHEME = re.compile(rf"({'|'.join(OPTIONS)}):/(/?)(?=.)")
_QUERY = re.compile(r"\?[A-Za-z_]+=")
_FILE = re.compile(r"file:(//[^/]*)?/")
_OTHER = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_USED: ContextVar[tuple[tuple[str, str], ...]] = ContextVar("storage options", default=())

PlainOptions: TypeAlias = tuple[tuple[str, str], ...]


class Uri(str):
    """The place of a file or folder that is not on a disk.

    Parameters
    ----------
    text : str
        Begins with one of the schemes in `OPTIONS`.
    options : tuple of (str, str), optional
        How its storage is reached: by default as `storing` has it.

    Raises
    ------
    SpecError
        If it has a password or a query, which are no part of a place.
    """

    __slots__ = ("options",)
    options: PlainOptions

    def __new__(cls, text: str, options: PlainOptions | None = None) -> Self:
        """Check the text."""
        found = super().__new__(cls, _SCHEME.sub(r"\1://", text, count=1))
        user, at, rest = found.authority.rpartition("@")
        if (at and (":" in user or found.scheme in ("s3", "gs"))) or _QUERY.search(found):
            bare = _QUERY.split(f"{found.scheme}://{rest or found.authority}/{found.below}")[0]
            raise SpecError(
                f"{bare} is given with options or credentials in the URI: give them by "
                "--storage-option or in the environment"
            )
        found.options = _USED.get() if options is None else options
        return found

    def __reduce__(self) -> tuple[type[Uri], tuple[str, PlainOptions]]:
        """Return what copies and pickles are made of."""
        return Uri, (str(self), self.options)

    def __truediv__(self, name: str) -> Uri:
        """Return what is called `name` in this folder."""
        return Uri(f"{self.rstrip('/')}/{name}", self.options)

    @property
    def scheme(self) -> str:
        """Of its storage: s3 for s3a as well, and so on."""
        own = self.partition(":")[0]
        return _PLAIN.get(own, own)

    @property
    def authority(self) -> str:
        """Bucket, container and account, or host."""
        return self.partition("://")[2].partition("/")[0]

    @property
    def below(self) -> str:
        """The path below the authority, without a slash before it."""
        return self.partition("://")[2].partition("/")[2]

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.rstrip("/").rpartition("/")[2]

    @property
    def parent(self) -> Uri:
        """The folder that it is in."""
        return Uri(self.rstrip("/").rpartition("/")[0], self.options)

    @property
    def keywords(self) -> dict[str, Any]:
        """The options that are of its storage, read; S3's endpoint also from the environment."""
        known = OPTIONS[self.scheme]
        found = {name: known[name](own) for name, own in self.options if name in known}
        there = next(filter(None, map(os.environ.get, _ENDPOINTS)), None)
        if self.scheme == "s3" and there is not None:
            found.setdefault("endpoint_override", there)
        return found

    def public(self, message: str) -> str:
        """Return a message without the secrets of the options."""
        for name, own in self.options:
            if name not in PUBLIC and own:
                message = message.replace(own, HIDDEN)
        return message


Place: TypeAlias = Path | Uri
_MOST_OF_NAME, _MOST_OF_PATH = 255, 4095


def source_of(text: str) -> str:
    """Return a path, pattern or URI as a path or pattern on a disk, or a `Uri`.

    Examples
    --------
    >>> source_of("file:///data/a.parquet"), source_of("s3a://bucket/a.parquet").scheme
    ('/data/a.parquet', 's3')
    """
    if isinstance(text, Uri):
        return text
    if _SCHEME.match(text):
        return Uri(text)
    if not _FILE.match(text):
        other = _OTHER.match(text)
        if other is None:
            return _checked(text)
        bare = other[0] + text[other.end() :].rpartition("@")[2]
        raise SpecError(
            f"{bare} is on a storage that is not known: copy it to a disk, or to one of "
            + ", ".join(f"{own}://" for own in OPTIONS)
        )
    parts = urlsplit(text)
    if parts.netloc not in ("", "localhost"):
        raise SpecError(f"{text} is a file of {parts.netloc}: write file:///PATH for one of here")
    return _checked(unquote(parts.path))


def _checked(path: str) -> str:
    """Return a path on a disk that can be one; ``~`` is the home where the system knows one.

    File systems bound the bytes of a name, and of it all.
    """
    checked_text(path, SpecError)
    path = os.path.expanduser(path)  # noqa: PTH111 - Path's fails where there is no such user
    if not path.startswith("/"):
        try:
            Path.cwd()
        except FileNotFoundError:
            raise SpecError(
                f"{path} is a path from the current folder, which is gone: change to another folder"
            ) from None
    parts = [(len(own.encode()), own) for own in path.split("/")]
    size, name = max(parts)
    if size > _MOST_OF_NAME or len(path) > _MOST_OF_PATH:
        raise SpecError(
            f"{path[:40]}... is too long for a path: its longest name, {name[:20]}..., has "
            f"{size:,} bytes of {_MOST_OF_NAME} at most, and all has {len(path):,} of "
            f"{_MOST_OF_PATH:,}; shorten it"
        )
    return path


def in_utf8(what: str, text: str, error: type[WinnowError], remedy: str) -> str:
    """Return text that libraries take, which want UTF-8; raise `error` of other."""
    try:
        text.encode()
    except UnicodeEncodeError:
        fact, own = "not in UTF-8", sys.getfilesystemencoding()
        if own != "utf-8":
            fact, remedy = f"not in {own}, by which Python reads it here", "set PYTHONUTF8=1"
        raise error(f"{what} {text!a} is {fact}: {remedy}") from None
    return text


def checked_text(path: str, error: type[WinnowError]) -> str:
    """Return a path that libraries take, which want UTF-8 without NUL; raise `error` of others."""
    in_utf8("path", path, error, "give another name, such as a link's")
    if "\0" in path:
        raise error(f"path {path!r} has a NUL character, which no path has: leave it out")
    return path


def place_of(text: str) -> Place:
    """Return a path or URI as a path on a disk, or a `Uri`."""
    found = source_of(text)
    return found if isinstance(found, Uri) else Path(found)


def text_of(place: Place) -> str:
    """Return a place as text that `source_of` and `place_of` make it of."""
    return place if isinstance(place, Uri) else str(place)


def extended(text: str, ending: str) -> str:
    """Return a path or URI with something after its name."""
    found = f"{text}{ending}"
    return Uri(found, text.options) if isinstance(text, Uri) else found


def absolute(place: Place) -> str:
    """Return the same text for the same place."""
    return str(place).rstrip("/") if isinstance(place, Uri) else str(place.absolute())


def between(place: Place, folder: Place) -> list[str] | None:
    """Return the names from a folder down to a place in it, whatever links lead there, else None.

    Examples
    --------
    >>> between(Path("out/a"), Path("out")), between(Path("out"), Path("out/a"))
    (['a'], None)
    >>> between(Uri("s3://b/out"), Uri("s3://b/out/")), between(Path("out"), Uri("s3://b/out"))
    ([], None)
    """
    if isinstance(place, Uri) or isinstance(folder, Uri):
        whole, home = f"{absolute(place)}/", f"{absolute(folder)}/"
        return whole[len(home) :].split("/")[:-1] if whole.startswith(home) else None
    path, above = Path(os.path.realpath(place)), os.path.realpath(folder)
    return [*path.relative_to(above).parts] if path.is_relative_to(above) else None


def within(place: Place, folder: Place) -> bool:
    """Tell whether a place is a folder or in it."""
    return between(place, folder) is not None


def path_of(flag: str, text: str) -> Path:
    """Return the path of an option that takes no URI but of a disk."""
    found = place_of(text)
    if isinstance(found, Path):
        return found
    raise SpecError(f"{flag} is {found}; give a path on a disk")


def checked_options(flag: str, values: Mapping[str, Any]) -> dict[str, str]:
    """Return options of storage as text, by name.

    Raises
    ------
    SpecError
        If there is none of a name, or its value is not of its kind; secrets are not told.
    """
    known = {name: own for options in OPTIONS.values() for name, own in options.items()}
    found = {}
    for name, value in values.items():
        own = name.strip().replace("-", "_")
        if own not in known:
            hint = did_you_mean(own, known) or f" There are {', '.join(sorted(known))}."
            raise SpecError(f"{flag} has no {own!r}.{hint}")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        try:
            known[own](text)
        except ValueError as error:
            raise SpecError(f"{flag} {own} is {text!r}: give {_wanted(error)}") from None
        found[own] = text
    return found


def _wanted(error: ValueError) -> str:
    return str(error) if str(error) == "true or false" else "a number"


@contextmanager
def storing(options: Mapping[str, str]) -> Iterator[None]:
    """Give every `Uri` that is made in the block these options."""
    mark = _USED.set(tuple(options.items()))
    try:
        yield
    finally:
        _USED.reset(mark)
