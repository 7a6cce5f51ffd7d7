"""Jobs that mean nothing: exit status 2, what is wrong and of which join, and nothing replayed."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_cases import streams

import winnow
from engine.commands import main
from engine.runtime.errors import InputError, OutputError, SpecError
from engine.runtime.warned import WinnowWarning

JOIN: dict[str, Any] = {
    "name": "a", "left": "left.parquet", "right": "right.parquet", "on": "k", "time": "t",
    "window": 9,
}  # fmt: skip

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "no memory": ({"memory": None}, r"memory is missing: give tuples, or a percentage"),
    "memory": ({"memory": "lots"}, r"memory is 'lots'; give a whole number of tuples"),
    "negative memory": ({"memory": -4}, r"memory is '-4'; give a whole number of tuples, 0 or"),
    "true memory": ({"memory": True}, r"memory is True; give text or a number"),
    "half a tuple": ({"memory": 1.5}, r"memory is '1\.5'; give a whole number of tuples"),
    "no joins": ({"join": []}, r"there are no joins: name them, each in a table \[\[join\]\]"),
    "one join": ({"join": JOIN}, r"join must be a list of tables, each written as \[\[join\]\]"),
    "joins": ({"joins": [JOIN]}, r"unknown option 'joins'\. Did you mean 'join'\?"),
    "metric": ({"metric": "recal"}, r"metric is 'recal'; choose one .* Did you mean 'recall'\?"),
    "half a round": ({"refine": 0.5}, r"refine is 0\.5; give a whole number"),
    "true rounds": ({"refine": True}, r"refine is True; give a whole number"),
    "negative rounds": ({"refine": -1}, r"refine is -1; give a number of rounds, 0 or more"),
    "refined error": (
        {"metric": "error", "refine": 1},
        r"refine is 1, but metric is 'error', .* leave refine out",
    ),
    "one name": ({"join": [JOIN, JOIN]}, r"two joins have the name 'a': give each its own"),
    "no sample": ({"metric": "error", "memory": 0}, r"memory is 0; a sample needs some"),
    "no share": ({"metric": "error", "memory": "0%"}, r"memory is 0; a sample needs some"),
}
JOINS: dict[str, tuple[dict[str, Any], str]] = {
    "option": ({"windw": 9}, r"join a: unknown option 'windw'\. Did you mean 'window'\?"),
    "partition": ({"partition_by": "g"}, r"join a: unknown option 'partition_by'"),
    "left": ({"left": None}, r"join a: left is missing: name the archive of the left stream"),
    "on": ({"on": None}, r"join a: on is missing: name the column"),
    "window": ({"window": None}, r"join a: window is missing"),
    "negative": ({"window": -1}, r"join a: window -1 of stream left must be 0 ticks or more"),
    "kind": ({"window": [3]}, r"join a: window is \[3\]; give text or a number"),
    "weight": ({"weight": 0}, r"weight of join a is 0; give a finite number above 0"),
    "less": ({"weight": -2.5}, r"weight of join a is -2\.5; give a finite number above 0"),
    "nan": ({"weight": float("nan")}, r"weight of join a is nan; give a finite number above 0"),
    "infinite": (
        {"weight": float("inf")},
        r"weight of join a is inf; give a finite number above 0",
    ),
    "list": ({"name": ["a"]}, r"^name of join 1 is \['a'\]; give text or a number"),
    "blank": ({"name": " "}, r"^name of join 1 is ' '; give some text, or leave it out"),
    "number": ({"name": 5, "on": None}, r"^join 5: on is missing"),
    "unnamed": ({"name": None, "on": None}, r"^join 1: on is missing"),
    "unnamed archive": ({"name": None, "left": "nowhere.parquet"}, r"^join 1: .*nowhere\.parquet"),
    "unnamed weight": ({"name": None, "weight": 0}, r"^weight of join 1 is 0"),
    "open": ({"policy": "auto", "param": {"buckets": 3}}, r"join a: param is of a policy: name it"),
    "heavy": ({"weight": "two"}, r"join a: weight is 'two'; give a number"),
    "policy": ({"policy": "porb"}, r"join a: there is no policy 'porb'; .* mean 'prob'\?"),
    "param": ({"param": {"buckets": 3}}, r"join a: param is of a policy: name it with policy"),
    "parameter": ({"policy": "age", "param": {"bucket": 3}}, r"join a: policy age has no param"),
    "table": ({"policy": "age", "param": "buckets"}, r"join a: param is .*; write name=value"),
    "estimator": ({"estimator": "histry"}, r"join a: estimator is 'histry'.*mean 'history'\?"),
    "method": ({"method": "uniform"}, r"method of join a is of another metric than recall"),
    "archive": ({"left": "nowhere.parquet"}, r"join a: .*nowhere\.parquet"),
    "column": ({"time": "tt"}, r"join a: .*tt"),
    "profile": ({"profile": "left.parquet"}, r"join a: .*left\.parquet"),
    "duration": ({"window": "7d"}, r"join a: window 7d .*, or say what a tick is with time_unit$"),
    "lanes": ({"lanes": 0}, r"join a: lanes is 0; it must be 1 or more"),
}
ERRORS: dict[str, tuple[dict[str, Any], str]] = {
    "method": ({"method": "unifrom"}, r"join a: method is 'unifrom'; .* mean 'uniform'\?"),
    "named policy": ({"policy": "age"}, r"policy of join a is of another metric than error"),
    **{
        name: ({name: own}, rf"{name} of join a is of another metric than error: leave it out")
        for name, own in (
            ("policy", "auto"),
            ("estimator", "history"),
            ("probe", "after_admission"),
            ("profile", "left.json"),
        )
    },
}


def refused(folder: Path, content: dict[str, Any], message: str) -> None:
    """Hold that jobs are refused, from Python, with a message, before anything is replayed."""
    command: list[str] = []
    with pytest.raises((SpecError, InputError)) as error:
        winnow.allocate(
            content, cache=folder / "cache", progress=lambda *stage: command.append(stage[0])
        )
    assert re.search(message, str(error.value)), str(error.value)
    assert not any("replay" in stage for stage in command)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    streams(tmp_path, rows=20)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def given(content: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if value is not None}


@pytest.mark.parametrize("case", CASES)
def test_jobs_that_mean_nothing(folder: Path, case: str) -> None:
    options, message = CASES[case]
    refused(folder, given({"memory": "20%", "join": [JOIN]} | options), message)


@pytest.mark.parametrize("case", JOINS)
def test_joins_that_mean_nothing(folder: Path, case: str) -> None:
    options, message = JOINS[case]
    refused(folder, {"memory": 9, "join": [given(JOIN | options)]}, message)


@pytest.mark.parametrize("case", ERRORS)
def test_samples_that_mean_nothing(folder: Path, case: str) -> None:
    options, message = ERRORS[case]
    content = {"memory": 9, "metric": "error", "join": [given(JOIN | options)]}
    refused(folder, content, message)


def test_a_warning_says_of_which_join_it_is(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side in (0, 1):
        pq.write_table(pa.table({"t": [1, 2], "k": [side, side]}), folder / f"{side}.parquet")
    apart = JOIN | {"name": "b", "left": "0.parquet", "right": "1.parquet"}
    found = r"join b: the exact join of left, .* check the join attributes, window and start_ts"
    with pytest.warns(WinnowWarning, match=found):
        winnow.allocate({"memory": 4, "join": [JOIN, apart]}, cache=folder / "cache")
    lines = [f"{name} = {str(own)!r}" for name, own in apart.items()]
    text = "\n".join(["memory = 4", "[[join]]", *lines])
    (folder / "jobs.toml").write_text(text)
    assert main(["allocate", "jobs.toml", "--cache", "cache"]) == 0
    assert re.search(found, capsys.readouterr().err)


TOMLS = {
    "none": (None, r"job file .*jobs\.toml cannot be read"),
    "an archive": ("PAR1\udc80", r"job file .*jobs\.toml is no TOML"),
    "broken": ("memory = \n", r"job file .*jobs\.toml is no TOML"),
    "unknown": ('memory = 3\nmetrik = "recall"\n', r"unknown option 'metrik'.*mean 'metric'\?"),
    "not here": ("memory = 3\n", r"there are no joins"),
}


@pytest.mark.parametrize("case", TOMLS)
def test_files_that_mean_nothing(
    folder: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content, message = TOMLS[case]
    if content is not None:
        (folder / "jobs.toml").write_bytes(os.fsencode(content))
    words = ["allocate", "jobs.toml", "--engine=local", "--report=r.json", "--plots=plots"]
    assert main(words) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("winnow allocate: error: ")
    assert re.search(message, shown.err), shown.err
    assert not shown.out
    assert not (folder / "r.json").exists()
    assert not (folder / "plots").exists()


def test_places_that_cannot_be_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f'{name} = "{value}"' for name, value in JOIN.items()]
    (folder / "jobs.toml").write_text("\n".join(["memory = 9", "[[join]]", *lines]) + "\n")
    words = ["allocate", "jobs.toml", "--engine=local", "--cache=cache"]
    assert main([*words, f"--report={folder}"]) == 2
    assert "is a folder: name a file" in capsys.readouterr().err
    assert main([*words, "--plots=left.parquet"]) == 2
    shown = capsys.readouterr()
    assert "left.parquet is no folder" in shown.err
    assert not shown.out


def test_a_cache_that_cannot_be_written_is_named_as_it_was_given(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An option of the command on its line, and a keyword in Python; of joins it is neither."""
    cache = folder / "left.parquet" / "cache"
    with pytest.raises(OutputError, match=r"^join a: lanes .* another folder by cache or"):
        winnow.allocate({"memory": 9, "join": [JOIN]}, cache=cache)
    lines = [f'{name} = "{value}"' for name, value in JOIN.items()]
    (folder / "jobs.toml").write_text("\n".join(["memory = 9", "[[join]]", *lines]) + "\n")
    assert main(["allocate", "jobs.toml", "--engine=local", f"--cache={cache}"]) == 2
    assert "name another folder by --cache or" in capsys.readouterr().err
