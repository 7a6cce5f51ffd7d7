"""URIs of storage: what is one, what its options are, and that secrets stay where they belong."""

from __future__ import annotations

import copy
import pickle
import re
import sys
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from engine.api.keywords import call_text
from engine.archives.source import open_archive
from engine.options.kinds import PLACE, SOURCE, Kind
from engine.options.storage import ANYWHERE, STORAGE
from engine.runtime.errors import OutputError, SpecError
from engine.runtime.storage.reading import located, refusal
from engine.runtime.storage.uploads import put
from engine.runtime.storage.uris import (
    OPTIONS,
    PUBLIC,
    Uri,
    checked_options,
    place_of,
    source_of,
    storing,
)

SECRET = "quite-a-secret"  # noqa: S105 - of nothing


def test_what_is_a_uri_and_what_a_path() -> None:
    for text in ("s3://b/x", "s3a://b/x", "gs://b", "abfss://c@a.dfs.core.windows.net/x"):
        assert isinstance(place_of(text), Uri)
        assert place_of(text) == text
    for text in ("a/b", "/a", "s3", "s3/b", "x/~", "x=s3://b", "C:/x", "file:x"):
        assert place_of(text) == Path(text)
        assert type(source_of(text)) is str
    assert source_of("file:///a%20b/*.csv") == source_of("file:/a b/*.csv") == "/a b/*.csv"
    assert place_of(str(Path("s3://b/x"))) == "s3://b/x"  # as a Path has it
    with pytest.raises(SpecError, match="a file of host"):
        source_of("file://host/a")
    with pytest.raises(
        SpecError, match=r"^https://host/x is on a storage that is not known: .*s3://"
    ):
        place_of(f"https://me:{SECRET}@host/x")


def test_parts_of_a_uri() -> None:
    uri = Uri("abfs://c@a.dfs.core.windows.net/x/y/")
    assert (uri.scheme, uri.authority, uri.below, uri.name) == (
        "abfs", "c@a.dfs.core.windows.net", "x/y/", "y",
    )  # fmt: skip
    assert uri / "z" == "abfs://c@a.dfs.core.windows.net/x/y/z"
    assert Uri("s3a://b/x").scheme == "s3"


def test_options_go_along_and_are_not_seen() -> None:
    with storing({"secret_key": SECRET, "anonymous": "true", "project_id": "p"}):
        uri = Uri("s3://b/x")
    for own in (uri, uri / "y", pickle.loads(pickle.dumps(uri)), copy.deepcopy(uri)):  # noqa: S301
        assert own.keywords == {"secret_key": SECRET, "anonymous": True}
        assert SECRET not in f"{own} {own!r}"
    assert Uri("s3://b/x").keywords == {}
    assert Uri("gs://b/x", uri.options).keywords == {"anonymous": True, "project_id": "p"}


@pytest.mark.parametrize(
    "text",
    [
        f"s3://id:{SECRET}@b/x",
        f"s3://{SECRET}@b/x",
        f"s3://b/x?secret_key={SECRET}",
        f"s3://b?session_token={SECRET}",
        f"abfs://c:{SECRET}@a.dfs.core.windows.net/x",
    ],
)
def test_credentials_in_a_uri_are_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(SpecError, match="give them by --storage-option") as raised:
        Uri(text)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([SECRET], "has no value; write NAME=VALUE"),
        ([f"secret_kee={SECRET}"], "Did you mean 'secret_key'?"),
        ([f"secret_key={SECRET}", f"secret_key={SECRET}"], "is given more than once"),
        (["anonymous=perhaps"], "anonymous is 'perhaps': give true or false"),
        (["connect_timeout=soon"], "connect_timeout is 'soon': give a number"),
    ],
)
def test_wrong_options(given: list[str], words: str) -> None:
    with pytest.raises(SpecError) as raised:
        STORAGE.read("--storage-option", given)
    assert words in str(raised.value)
    assert SECRET not in str(raised.value)


def test_options_as_reports_have_them() -> None:
    given = {"secret_key": SECRET, "region": "eu"}
    assert STORAGE.public(given) == {"secret_key": "...", "region": "eu"}
    assert STORAGE.public([f"{n}={own}" for n, own in given.items()]) == [
        "secret_key=...", "region=eu",
    ]  # fmt: skip
    assert STORAGE.public(SECRET) == ["=..."]
    assert checked_options("", {"anonymous": True, "load-frequency": 9}) == {
        "anonymous": "true", "load_frequency": "9",
    }  # fmt: skip


def test_what_may_be_shown_is_no_secret() -> None:
    known = {name for options in OPTIONS.values() for name in options}
    assert known >= PUBLIC
    assert not [name for name in PUBLIC if any(word in name for word in ("key", "token", "secret"))]


def test_an_error_of_a_store_has_its_remedy_and_no_secret() -> None:
    uri = Uri("s3://b/x", (("secret_key", SECRET), ("region", "us-east-1")))
    error = OSError(
        "When reading information for key 'x' in bucket 'b': AWS Error UNKNOWN (HTTP status 301) "
        f"during HeadObject operation: {SECRET} us-east-1 (Request ID: 5)\nmore"
    )
    assert refusal(uri, error) == (
        "s3://b/x cannot be read (When reading information for key 'x' in bucket 'b': AWS Error "
        "UNKNOWN (HTTP status 301) during HeadObject operation: ... us-east-1): give the bucket's "
        "region by --storage-option region=NAME"
    )


def test_kinds_of_places() -> None:
    assert isinstance(SOURCE.read("--left", "s3://b/x"), Uri)
    assert isinstance(ANYWHERE.read("--plan", "s3://b/x"), Uri)
    with pytest.raises(SpecError, match="--cache is s3://b/x; give a path on a disk"):
        PLACE.read("--cache", Path("s3://b/x"))


def test_calls_are_told_without_secrets() -> None:
    told = call_text(
        "allocate", {"jobs": {"join": [{"storage-option": {"secret_key": SECRET}}]}}, ()
    )
    assert "secret_key" in told
    assert SECRET not in told


def test_file_systems_of_other_clouds_and_paths_in_them() -> None:
    given = (("anonymous", "true"), ("account_key", "a2V5"))
    for text, kind, path in (
        ("gs://bucket/a/b/", pafs.GcsFileSystem, "bucket/a/b"),
        ("abfss://c@account.dfs.core.windows.net/a/*", pafs.AzureFileSystem, "c/a/*"),
    ):
        system, found = located(Uri(text, given))
        assert type(system) is kind
        assert found == path


@pytest.mark.parametrize(
    ("text", "missing", "words"),
    [
        ("s3://b/x", "obstore.store", "without obstore: pip install 'winnowjoin"),
        ("hdfs://host/x", "", "hdfs://host/x cannot be written ("),
    ],
)
def test_what_cannot_be_written_is_told(
    monkeypatch: pytest.MonkeyPatch, text: str, missing: str, words: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(OutputError, match=re.escape(words)):
        put(Uri(text, (("user", "of this test"),)), b"")


def test_a_tilde_is_a_home_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert place_of("~/out") == tmp_path / "out"
    assert place_of("~") == tmp_path
    assert place_of("a~b/~") == Path("a~b/~")
    assert source_of("~nobody-of-this-name.csv") == "~nobody-of-this-name.csv"


def test_a_file_whose_name_starts_with_a_tilde_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("~nobody-of-this-name.csv").write_text("a,b\n1,2\n")
    assert open_archive("~nobody-of-this-name.csv", "left").schema.names == ["a", "b"]


@pytest.mark.parametrize("kind", [SOURCE, PLACE, ANYWHERE])
def test_an_empty_path_is_not_the_current_folder(kind: Kind) -> None:
    with pytest.raises(SpecError, match="--left is empty: give a path"):
        kind.read("--left", "")
