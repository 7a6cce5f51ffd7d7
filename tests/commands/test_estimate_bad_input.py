"""What is said of an estimate that cannot be made, and how one ends on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from estimate_cases import JOIN, large, several_archives

import winnow
from engine.commands import main
from engine.runtime.errors import InputError, SpecError


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return large(tmp_path_factory.mktemp("archives"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"within": "0%"}, r"within is 0; give more than 0% and less than 100%"),
        ({"within": 1}, r"within is 1; give more than 0%"),
        ({"within": "a bit"}, r"within is 'a bit'; give a share, such as 1% or 0.01"),
        ({"within": "nan"}, r"within is nan; give more"),
        ({"read": "150%"}, r"read is 1.5; give more than 0% and less than 100%"),
        ({"seconds": 0}, r"seconds is 0; give more than 0"),
        ({"seconds": float("nan")}, r"seconds is nan; give more than 0"),
        ({"confidence": 1}, r"confidence is 1; give one between 0 and 1"),
        ({"aggregates": ["count", "count"]}, r"aggregates 'count' is given twice"),
        ({"aggregates": "countt"}, r"aggregates 'countt' does not begin with a function"),
        ({"aggregates": "count every 1"}, r"windows of 1 ticks are more than .*longer"),
        ({"window": None}, r"window is missing"),
    ],
)
def test_options_that_mean_nothing(
    places: dict[str, str], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(SpecError, match=said):
        winnow.estimate(**{**places, **JOIN, **options})


def test_columns_that_there_are_not(places: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"stream right has no column 'w'"):
        winnow.estimate(**places, **JOIN, aggregates="sum(right.w)")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--policies=prob", "winnow sweep --within estimates several"),
        ("--lanes=3", "not lanes: leave it out"),
    ],
)
def test_what_is_not_estimated_names_what_to_use(
    option: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["estimate", option]) == 2
    told = capsys.readouterr().err
    assert f"there is no option {option.split('=', maxsplit=1)[0]}: " in told
    assert said in told
    name = option.split("=", maxsplit=1)[0].strip("-")
    with pytest.raises(TypeError, match=f"unexpected keyword '{name}': .*{said}"):
        winnow.estimate("a", "b", **{name: "x"})


def test_the_command_tells_what_the_function_finds(
    places: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report, plot = tmp_path / "r.json", tmp_path / "p.svg"
    words = ["estimate", "--engine=local", "--on=k", "--time=t", "--window=15", "--read=10%"]
    words += [f"--{side}={path}" for side, path in places.items()]
    words += ["--aggregate=count every 20000", f"--report={report}", f"--plot={plot}"]
    assert main(words) == 0
    told, content = capsys.readouterr().out, json.loads(report.read_text())
    found = winnow.estimate(**places, **JOIN, read="10%", aggregates="count every 20000")
    changing = {"seconds", "exact"}
    assert {n: own for n, own in content.items() if n not in changing} == {
        n: own for n, own in found.report.items() if n not in changing
    }
    assert "20000 to 39999" in told
    assert "intervals from" in told
    assert "the exact join would take about" in " ".join(told.split())
    assert plot.read_text().startswith("<?xml")


def test_a_target_that_a_limit_keeps_from_is_told(
    places: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["estimate", "--engine=local", "--on=k", "--time=t", "--window=15", "--read=25%"]
    words += [f"--{side}={path}" for side, path in places.items()]
    assert main([*words, "--within=0.1%"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "0.10 % was asked for, and the widest reaches" in told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--predicate=equi:k"], "--predicate is of a join of several streams: name them with"),
        (["--stream=a=x", "--on=k"], "--on is not available with --stream: it is of two streams"),
        (["--stream=a=x", "--memory=9"], "--memory is not available with --stream: a memory is of"),
        (["--stream=a=x", "--stream=b=x"], "--predicate is missing"),
        (["--stream=a"], "--stream is 'a'; write NAME=PATH"),
    ],
)
def test_options_of_two_and_of_several_streams_are_told_apart(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["estimate", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("as_job", [False, True])
def test_the_command_takes_several_streams(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], as_job: bool
) -> None:
    options, report = several_archives(tmp_path), tmp_path / "r.json"
    if as_job:
        streams = "".join(f"{name} = {path!r}\n" for name, path in options["left"].items())
        (tmp_path / "job.toml").write_text(
            "predicate = 'band:v:0.1'\ntime = 't'\nwindow = 5\nread = '10%'\n"
            f"aggregate = ['count by b.g']\n[stream]\n{streams}"
        )
        words = [f"--job={tmp_path / 'job.toml'}"]
    else:
        words = ["--predicate=band:v:0.1", "--time=t", "--window=a=5,5", "--read=10%"]
        words += [f"--stream={name}={path}" for name, path in options["left"].items()]
        words += ["--aggregate=count by b.g"]
    assert main(["estimate", "--engine=local", *words, f"--report={report}"]) == 0
    told, content = capsys.readouterr().out, json.loads(report.read_text())
    found = winnow.estimate(**options, read="10%", aggregates="count by b.g")
    changing = {"seconds", "exact"}
    assert {n: own for n, own in content.items() if n not in changing} == {
        n: own for n, own in found.report.items() if n not in changing
    }
    assert "b.g" in told
    assert "intervals from" in told
