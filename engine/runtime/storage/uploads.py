"""Objects put into an object store, each whole or not at all, and removed from it.

What puts them is obstore: unlike pyarrow it can put an object only if there is none, and publishes
none of which the writer has failed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from engine.runtime.errors import OutputError
from engine.runtime.storage import hadoop
from engine.runtime.storage.disk import scratch_home
from engine.runtime.storage.reading import refusal
from engine.runtime.storage.uris import Place, PlainOptions, Uri

_NAMES = {
    "s3": {
        "access_key": "access_key_id", "secret_key": "secret_access_key",
        "session_token": "session_token", "region": "region", "anonymous": "skip_signature",
    },
    "gs": {"anonymous": "service_account_key"},
    "abfs": {
        "account_key": "account_key", "sas_token": "sas_key", "tenant_id": "tenant_id",
        "client_id": "client_id", "client_secret": "client_secret",
    },
}  # fmt: skip
"""By scheme, what obstore calls the options."""
_ALWAYS = {"s3": {"checksum_algorithm": "SHA256"}}
_NOBODY = '{"disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": ""}'
"""An account that asks Google for no token, as ``skip_signature`` does for reading alone."""
_CLIENT = {"connect_timeout": "connect_timeout", "request_timeout": "timeout"}
_RETRIES = {"max_retries": 6, "retry_timeout": timedelta(seconds=60)}


class Object(NamedTuple):
    """An object below a folder."""

    name: str
    """Without the folder."""
    changed: datetime
    size: int


def _address(scheme: str, authority: str, given: dict[str, Any]) -> str | None:
    """Take the address of a store out of its options; None is the cloud's own."""
    if scheme != "abfs":
        form, where = given.pop("scheme", "https"), given.pop("endpoint_override", None)
        return where if where is None or "://" in where else f"{form}://{where}"
    for name in ("dfs_storage_authority", "dfs_storage_scheme"):
        given.pop(name, None)
    form, where = (
        given.pop("blob_storage_scheme", "https"),
        given.pop("blob_storage_authority", None),
    )
    account = authority.partition("@")[2].partition(".")[0]
    if where is None:
        return None
    return f"{form}://{account}{where}" if where.startswith(".") else f"{form}://{where}/{account}"


@lru_cache(maxsize=16)
def _store(scheme: str, authority: str, options: PlainOptions) -> Any:  # noqa: ANN401 - obstore's
    """Return a bucket or container, to which nothing has been said yet."""
    root = Uri(f"{scheme}://{authority}/", options)
    try:
        from obstore.store import from_url  # noqa: PLC0415 - an extra
    except ImportError:
        raise OutputError(
            f"{root} cannot be written without obstore: pip install 'winnowjoin[storage]'"
        ) from None
    given = root.keywords
    address = _address(scheme, authority, given)
    if scheme == "gs" and given.pop("anonymous", False):
        given["anonymous"] = _NOBODY
    client: dict[str, Any] = {
        _CLIENT[name]: f"{given.pop(name)}s" for name in _CLIENT if name in given
    }
    client["allow_http"] = str(address).startswith("http://")
    odd = sorted(given.keys() - _NAMES[scheme].keys())
    if odd:
        raise OutputError(
            f"{root} cannot be written with --storage-option {odd[0]}, which is for reading: say "
            "it in the environment"
        )
    config = {_NAMES[scheme][name]: own for name, own in given.items()} | _ALWAYS.get(scheme, {})
    if address is not None:
        config["base_url" if scheme == "gs" else "endpoint"] = address
    making: Any = from_url  # whose types tell the clouds apart
    return making(str(root), config=config, client_options=client, retry_config=_RETRIES)


@contextmanager
def _told(uri: Uri) -> Iterator[Any]:
    """Yield the store of a URI; what goes wrong with it is an `OutputError` of one sentence."""
    store = _store(uri.scheme, uri.authority, uri.options)
    from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra

    try:
        yield store
    except FileNotFoundError as error:
        raise OutputError(f"{uri} cannot be written: check the name of the bucket") from error
    except BaseError as error:
        raise OutputError(refusal(uri, error, "written")) from error


def put(
    uri: Uri, content: bytes | Path | IO[bytes], *, new: bool = False, draft: Uri | None = None
) -> None:
    """Put an object, whole.

    Parameters
    ----------
    uri : Uri
    content : bytes, Path or file
        Read to its end.
    new : bool
        Whether it may replace nothing: of several that put it at once, one does.
    draft : Uri, optional
        The folder in which HDFS has it until it is whole, if not its own.

    Raises
    ------
    FileExistsError
        If it is new and there is one.
    OutputError
        If the store refuses.
    """
    if uri.scheme == "hdfs":
        hadoop.put(uri, content, new=new, draft=draft)
        return
    with _told(uri) as store:
        from obstore import exceptions  # noqa: PLC0415 - an extra
        from obstore import put as put_object  # noqa: PLC0415

        try:
            put_object(store, uri.below, content, mode="create" if new else "overwrite")
        except exceptions.AlreadyExistsError:
            raise FileExistsError(uri) from None


def objects(folder: Uri) -> list[Object]:
    """Return the objects below a folder, by name.

    Raises
    ------
    OutputError
        If the store refuses.
    """
    if folder.scheme == "hdfs":
        return sorted(Object(*own) for own in hadoop.files(folder))
    with _told(folder) as store:
        from obstore import list as listed  # noqa: PLC0415 - an extra

        begin = folder.below.rstrip("/") + "/"
        found = [own for some in listed(store, begin) for own in some]
    return sorted(
        Object(own["path"][len(begin) :], own["last_modified"], own["size"])
        for own in found
        if own["path"].startswith(begin)
    )


def remove(folder: Uri, names: Iterable[str]) -> None:
    """Remove objects below a folder, those that are there.

    Raises
    ------
    OutputError
        If the store refuses.
    """
    if folder.scheme == "hdfs":
        hadoop.remove(folder, names)
        return
    with _told(folder) as store:
        from obstore import delete  # noqa: PLC0415 - an extra

        paths = [(folder / name).below for name in names]
        try:
            delete(store, paths)
        except FileNotFoundError:  # as Azure and Google say of the first that is gone already
            for path in paths:
                with suppress(FileNotFoundError):
                    delete(store, path)


def write_bytes(place: Place, content: bytes) -> None:
    """Write a small file or object."""
    if isinstance(place, Uri):
        put(place, content)
    else:
        place.write_bytes(content)


class NewFile:
    """A file on its way to a disk, where it grows.

    Attributes
    ----------
    home : Path
        Folder on the disk that it takes.
    """

    def __init__(self, path: Path) -> None:
        self._path, self.home = path, path.parent

    def begun(self) -> Path | IO[bytes]:
        """Return what is to be written to."""
        self.home.mkdir(exist_ok=True)
        return self._path

    def publish(self) -> None:
        """Have it seen, now that it is complete."""

    def withdraw(self) -> None:
        """Leave nothing of it."""
        self._path.unlink(missing_ok=True)


class NewObject(NewFile):
    """A file without a name, which becomes an object when it is complete."""

    def __init__(self, uri: Uri) -> None:
        self._uri, self.home = uri, scratch_home()
        self._file: IO[bytes] | None = None

    def begun(self) -> IO[bytes]:
        """Return the file."""
        self._file = tempfile.TemporaryFile(dir=self.home)  # noqa: SIM115 - closed when published
        return self._file

    def publish(self) -> None:
        """Put the object."""
        if self._file is not None and not self._file.closed:
            self._file.seek(0)
            put(self._uri, self._file)
            self._file.close()

    def withdraw(self) -> None:
        """Drop the file."""
        if self._file is not None:
            self._file.close()


def new_file(place: Place) -> NewFile:
    """Return a file or an object to write."""
    return NewObject(place) if isinstance(place, Uri) else NewFile(place)
