"""What is said of a profile that cannot be made, or of a file that is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from job_cases import stream
from profile_cases import profiled, written

import winnow
from engine.commands import main
from engine.models.profile.model import ArrivalProfile
from engine.runtime.errors import OutputError, SpecError


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    written(tmp_path, stream(1, 40), stream(2, 40))
    return tmp_path


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"buckets": 0}, r"buckets is 0; give a whole number from 1 to 100000"),
        ({"keys": 0}, r"keys is 0; give a whole number from 1"),
        ({"monitor": -1}, r"monitor is -1; give a whole number from 1"),
        ({"retain": 0.0}, r"retain is 0.0; give the part of the tuples to retain, more than 0"),
        ({"retain": 1.5}, r"retain is 1.5"),
        ({"retain": float("nan")}, r"retain is nan"),
        ({"window": None}, r"window is missing: give it, or window_left and window_right"),
        ({"window": 2**60}, r"buckets 100 of a window of 1152921504606846976 ticks are more"),
        ({"window": "5 parsecs"}, r"window 5 parsecs of stream left"),
        ({"lanes": 0}, r"lanes is 0"),
        ({"memory": "10%:5%:5%"}, r"memory has the range '10%:5%:5%'"),
        ({"measure": "recal"}, r"measure is 'recal'.*Did you mean 'recall'"),
        ({"on": None}, r"on is missing"),
    ],
)
def test_options_that_mean_nothing(archives: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        profiled(archives, **options)


def test_keywords_that_there_are_not(archives: Path) -> None:
    with pytest.raises(TypeError, match="unexpected keyword 'memory_left'"):
        profiled(archives, memory_left=3)


def test_places_that_cannot_be_written(archives: Path) -> None:
    with pytest.raises(OutputError, match=r"profile .* is a folder: name a file"):
        profiled(archives, out=archives)
    blocked = archives / "left.parquet" / "p"
    with pytest.raises(OutputError, match=r"profile .*left\.parquet is no folder to write to"):
        profiled(archives, out=blocked)
    with pytest.raises(OutputError, match=r"plots .*left\.parquet is no folder to write to"):
        profiled(archives, plots=blocked)


def test_messages_on_tables_name_no_folder() -> None:
    table = pa.table({"t": [1.5], "k": [1]})
    with pytest.raises(ValueError, match="left frame: column t") as caught:
        winnow.profile(table, table, on="k", time="t", window=1)
    assert "/tmp" not in str(caught.value)  # noqa: S108 - no file is made there


def test_the_command_line_says_so_too(archives: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = f"profile --engine local --left {archives}/left.parquet --on k --time t"
    command += f" --right {archives}/right.parquet --cache {archives}/cache"
    for more, said in (
        ("", "--window is missing"),
        ("--window 3 --retain 2", "--retain is 2.0"),
        (f"--window 3 --out {archives}", "is a folder"),
    ):
        assert main([*command.split(), *more.split()]) == 2
        assert said in capsys.readouterr().err


def changed(path: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.pop("winnow"), r"is no profile: winnow profile --out FILE makes one"),
        (lambda c: c.update(winnow="sweep"), r"is no profile"),
        (lambda c: c.update(version=9), r"is of version 9, and this winnow reads version 1"),
        (lambda c: c.pop("fit"), r"lacks the field 'fit'"),
        (lambda c: c["streams"].pop("right"), r"lacks the field 'right'"),
        (lambda c: c["streams"]["left"]["age"].pop("k_opt"), r"lacks the field 'k_opt'"),
        (lambda c: c["frequencies"].pop("rest"), r"lacks the field 'rest'"),
        (lambda c: c["windows"].update(left="soon"), r"a field that means nothing"),
        (lambda c: c["streams"]["left"]["age"].update(buckets=[]), r"age.buckets are empty"),
        (lambda c: c["frequencies"]["left"].pop(), r"left and right are not of one length"),
        (lambda c: c["frequencies"]["codes"].reverse(), r"frequencies.codes do not ascend"),
        (lambda c: c["correlation"]["edges"].pop(), r"correlation.edges are not one more"),
        (lambda c: c.update(span=[1]), r"a field that means nothing"),
    ],
)
def test_files_that_are_no_profile(
    archives: Path, change: Callable[[dict[str, Any]], Any], said: str
) -> None:
    path = archives / "p.json"
    profiled(archives, out=path)
    with pytest.raises(SpecError, match=said):
        ArrivalProfile.load(changed(path, change))


@pytest.mark.parametrize("content", ["", "[1]", "{", "PAR1"])
def test_files_that_are_not_even_json_of_ours(tmp_path: Path, content: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(content)
    with pytest.raises(SpecError, match="is no profile"):
        ArrivalProfile.load(path)


def test_a_profile_itself_is_no_path(archives: Path) -> None:
    sides = (archives / f"{side}.parquet" for side in ("left", "right"))
    told: dict[str, Any] = {"on": "k", "time": "t", "window": 2, "memory": 2}
    with pytest.raises(SpecError, match="profile is ArrivalProfile, which is no path: give one"):
        winnow.replay(*sides, **told, profile=profiled(archives))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"profile .*p\.json cannot be read"):
        ArrivalProfile.load(tmp_path / "p.json")
    path = tmp_path / "b.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SpecError, match="cannot be read"):
        ArrivalProfile.load(path)
