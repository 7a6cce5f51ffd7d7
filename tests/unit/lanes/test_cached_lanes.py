"""Prepared lanes that nobody uses go by themselves; those in use and drafts stay."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.commands import main
from engine.lanes import cached
from engine.lanes.cached import LATELY_SECONDS, UNUSED_SECONDS, beyond, cached_lanes, tidy
from engine.lanes.manifest import MANIFEST, lane_folder

NOW = 2_000_000_000.0


def lanes(cache: Path, digit: str, size: int, age: float) -> Path:
    """Make what lanes look like from outside."""
    folder = cache / (digit * 32)
    folder.mkdir(parents=True)
    (folder / MANIFEST).write_bytes(b"x" * size)
    os.utime(folder, (NOW - age, NOW - age))
    return folder


def test_unused_lanes_go_and_others_stay(tmp_path: Path) -> None:
    old = lanes(tmp_path, "a", 10, UNUSED_SECONDS + 1)
    lately = lanes(tmp_path, "b", 10, UNUSED_SECONDS - 1)
    other = tmp_path / "mine"
    other.mkdir()
    os.utime(other, (0, 0))
    tidy(tmp_path, now=NOW)
    assert not old.exists()
    assert lately.exists()
    assert other.exists()


def test_lanes_beyond_the_bytes_go_but_not_those_used_lately(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached, "MOST_BYTES", 25)
    in_use = [lanes(tmp_path, own, 10, i) for i, own in enumerate("abc")]
    before = lanes(tmp_path, "d", 10, LATELY_SECONDS + 1)
    tidy(tmp_path, now=NOW)
    assert all(folder.exists() for folder in in_use)
    assert not before.exists()


def test_what_was_used_last_is_kept_first(tmp_path: Path) -> None:
    for i, own in enumerate("abcd"):
        lanes(tmp_path, own, 10, i)
    found = cached_lanes(tmp_path)
    assert [own.folder.name[0] for own in found] == list("abcd")
    assert [own.folder.name[0] for own in beyond(found, 25)] == list("cd")
    assert not beyond(found, 40)


def test_folders_of_others_stay_and_damaged_lanes_go(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs, file, damaged = (tmp_path / (digit * 32) for digit in "abc")
    theirs.mkdir()
    (theirs / "thesis.txt").touch()
    file.touch()
    (damaged / lane_folder(7)).mkdir(parents=True)
    assert [own.folder for own in cached_lanes(tmp_path)] == [damaged]
    assert main(["cache", "clean", "--cache", str(tmp_path)]) == 0
    assert sorted(tmp_path.iterdir()) == [theirs, file]
    assert (theirs / "thesis.txt").exists()
    capsys.readouterr()


def test_what_a_removal_that_was_killed_left_goes(tmp_path: Path) -> None:
    (tmp_path / f".{'0f' * 16}.gone" / "lane-00000").mkdir(parents=True)
    (tmp_path / ".mine.gone").mkdir()
    tidy(tmp_path)
    assert [own.name for own in tmp_path.iterdir()] == [".mine.gone"]


def test_what_killed_jobs_left_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of drafts without a process that has certainly ended, too, which stay."""
    words = [f"--cache={tmp_path}"]
    gone, running = tmp_path / f".{'a' * 32}.gone", tmp_path / f".{'b' * 32}.{'c' * 32}.tmp"
    for folder in (gone, running):
        folder.mkdir()
        (folder / "left").write_bytes(b"x" * 700)
    assert main(["cache", "list", *words]) == 0
    listed = capsys.readouterr().out
    assert listed.count("unfinished") == 2
    assert f"1,400 bytes in {tmp_path}" in listed
    assert main(["cache", "clean", *words]) == 0
    assert f"700 bytes removed from {tmp_path}" in capsys.readouterr().out
    assert not gone.exists()
    assert running.exists()


def test_a_cache_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert cached_lanes(tmp_path / "none") == []
    tidy(tmp_path / "none")
