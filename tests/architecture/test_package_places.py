"""What `winnow package` leaves if it is stopped or its disk is full, and the places it tells."""

from __future__ import annotations

import errno
import shlex
from contextlib import suppress
from pathlib import Path

import pytest

from engine.commands import main, warm
from spark_plugin.shipping import command, environment


def package(*words: str) -> int:
    """Run ``winnow package``."""
    return main(["package", *words], commands={"package": command})


def test_nothing_is_left_by_one_that_is_stopped_while_it_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(warm, "ship_kernels", stopped)
    places = "--out", str(tmp_path / "a.zip"), "--environment", str(tmp_path / "b.tar.gz")
    with suppress(KeyboardInterrupt):
        package(*places)
    assert not list(tmp_path.iterdir())


def test_a_zip_without_its_script_is_not_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert package("--out", str(tmp_path / "a.zip")) == 2
    assert not list(tmp_path.iterdir())


def test_the_command_that_is_printed_has_places_as_a_shell_and_spark_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "packed", lambda _: [])
    home = tmp_path / "of two words"
    home.mkdir()
    places = "--out", str(home / "a.zip"), "--environment", str(home / "b.tar.gz")
    assert package(*places, "--kernels", "none") == 0
    shown = capsys.readouterr().out.replace("\\\n", "")
    words = shlex.split(shown.split("spark-submit ", 1)[1])
    uri = f"{tmp_path}/of%20two%20words/b.tar.gz#env"  # Spark finds no file by its name as it is
    assert words[:4] == ["--py-files", str(home / "a.zip"), "--archives", uri]
    assert words[-3:] == [f"{home}/a-submit.py", "replay", "..."]
