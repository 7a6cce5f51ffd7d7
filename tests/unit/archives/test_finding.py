"""Which files a name, a folder or a glob means: none twice, and none left out without a word."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.archives.finding import paths_of
from engine.runtime.errors import InputError, SpecError
from engine.runtime.storage.uris import place_of, source_of


def names(folder: Path, where: str) -> list[str]:
    return [os.path.relpath(path, folder) for path in paths_of(str(folder / where), "left")]


def made(folder: Path, *places: str) -> None:
    for place in places:
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).touch()


def refused(folder: Path, where: str, told: str) -> None:
    with pytest.raises(InputError, match=f"^the left archive: .*{told}"):
        names(folder, where)


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Make a folder one that this user may not read, whoever runs the tests."""

    def close(folder: Path, *, inside: bool = False) -> None:
        scan, look, may = os.scandir, Path.stat, os.access

        def scanning(place: Any = ".") -> Any:
            if Path(place) == folder:
                raise PermissionError(13, "Permission denied", str(place))
            return scan(place)

        def looking(place: Path, **how: Any) -> os.stat_result:
            if inside and folder in place.parents:
                raise PermissionError(13, "Permission denied", str(place))
            return look(place, **how)

        def access(place: Any, mode: int, **how: Any) -> bool:
            return may(place, mode, **how) and not (inside and Path(place) == folder)

        monkeypatch.setattr(os, "scandir", scanning)
        monkeypatch.setattr(Path, "stat", looking)
        monkeypatch.setattr(os, "access", access)

    return close


@pytest.mark.parametrize("where", ["arch", "arch/*", "arch/**", "arch/*/*", "arch/**/*.csv"])
def test_a_folder_that_may_not_be_read_is_told(
    tmp_path: Path, where: str, closed: Callable[..., None]
) -> None:
    made(tmp_path, "arch/a.csv", "arch/day2/b.csv", "arch/day3/c.csv")
    closed(tmp_path / "arch/day2")
    refused(tmp_path, where, "folder .*arch/day2 may not be read: allow it with chmod")


@pytest.mark.parametrize("where", ["no", "no/a.csv", "no/*.csv", "no/in/*.csv"])
def test_nothing_is_found_in_a_folder_that_may_not_be_entered(
    tmp_path: Path, where: str, closed: Callable[..., None]
) -> None:
    made(tmp_path, "no/a.csv", "no/in/b.csv")
    closed(tmp_path / "no", inside=True)
    refused(tmp_path, where, r"folder \S*/no(/in)? may not be read")


@pytest.mark.parametrize("where", ["arch", "arch/*", "arch/**", "arch/**/*.csv"])
def test_links_of_folders_are_followed_and_no_file_is_read_twice(
    tmp_path: Path, where: str
) -> None:
    made(tmp_path, "real/in/b.csv", "arch/a.csv", "arch/own/c.csv")
    for name, place in (("day2", "../real"), ("again", "own"), ("late", "../real/in")):
        (tmp_path / "arch" / name).symlink_to(place)
    (tmp_path / "arch/own/up").symlink_to("..")
    (tmp_path / "real/round").symlink_to(".")
    found = names(tmp_path, where)
    assert {Path(own).name for own in found} == {"a.csv", "b.csv", "c.csv"}
    assert len(found) == 3
    assert "arch/own/c.csv" in found


def test_one_file_by_two_links_of_its_own_is_two(tmp_path: Path) -> None:
    made(tmp_path, "store/x", "arch/a.csv")
    for name in ("b", "c"):
        (tmp_path / f"arch/{name}.csv").symlink_to("../store/x")
    assert names(tmp_path, "arch") == ["arch/a.csv", "arch/b.csv", "arch/c.csv"]


@pytest.mark.parametrize("where", ["arch", "arch/*", "arch/**", "arch/b.csv"])
def test_what_is_no_file_is_refused_by_its_name(tmp_path: Path, where: str) -> None:
    made(tmp_path, "arch/a.csv")
    own = tmp_path / "arch/b.csv"
    os.mkfifo(own)
    refused(tmp_path, where, r"arch/b.csv is a FIFO and no file")
    own.unlink()
    own.symlink_to("gone.csv")
    refused(tmp_path, where, r"arch/b.csv is a link to gone.csv, which is not there")
    own.unlink()
    own.symlink_to("b.csv")
    refused(tmp_path, where, r"arch/b.csv is a link in a loop of links")
    own.rename(tmp_path / "arch/_b.csv")
    assert names(tmp_path, "arch") == ["arch/a.csv"]


def test_a_socket_is_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as own:
        own.bind("a.csv")
        refused(tmp_path, "a.csv", "a.csv is a socket and no file")


def test_patterns_match_as_those_of_shells(tmp_path: Path) -> None:
    made(tmp_path, "2024-01/a.csv", "2024-02/in/b.csv", "2025-01/c.csv", "_x/d.csv", ".y/e.csv")
    made(tmp_path, "z[1].csv")
    assert names(tmp_path, "2024-*") == ["2024-01/a.csv", "2024-02/in/b.csv"]
    assert names(tmp_path, "2024-*/*.csv") == ["2024-01/a.csv"]
    assert names(tmp_path, "*/[bc].csv") == ["2025-01/c.csv"]
    assert names(tmp_path, "**/[bc].csv") == ["2024-02/in/b.csv", "2025-01/c.csv"]
    assert names(tmp_path, "_*/*.csv") == ["_x/d.csv"]
    assert names(tmp_path, "z[1].csv") == names(tmp_path, "z[[]1].csv") == ["z[1].csv"]
    refused(tmp_path, "2026-*", "no file matches")


def test_relative_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, "a.csv", "in/b.csv")
    monkeypatch.chdir(tmp_path)
    assert paths_of("**/*.csv", "left") == [str(tmp_path / "a.csv"), str(tmp_path / "in/b.csv")]
    assert paths_of("in/../*.csv", "left") == [str(tmp_path / "in/../a.csv")]


def test_names_that_no_library_takes_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = os.fsdecode(b"\xe4.csv")
    made(tmp_path, odd)
    refused(tmp_path, "", re.escape(r"\udce4.csv' is not in UTF-8: give another name"))
    for text, told in ((odd, "is not in UTF-8"), ("a\0b", "has a NUL character")):
        for read in (source_of, place_of):
            with pytest.raises(SpecError, match=told):
                read(text)
    with monkeypatch.context() as latin:
        latin.setattr(sys, "getfilesystemencoding", lambda: "ascii")
        with pytest.raises(SpecError, match=r"is not in ascii, .*: set PYTHONUTF8=1$"):
            source_of(odd)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(SpecError, match=r"a.csv is a path from the current folder, which is gone"):
        source_of("a.csv")
    assert source_of(str(tmp_path)) == str(tmp_path)
