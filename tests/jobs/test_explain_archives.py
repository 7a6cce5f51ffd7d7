"""`winnow explain` of archives: what is measured of them, and a run set against the model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import multijoin_cases as cases
import naive_multijoin as naive
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from multijoin_cases import CASES, NAMES, WINDOWS
from options_given import line_of

import winnow
from engine.commands import main
from engine.commands.line import all_commands
from engine.commands.parser import given_of, parsed
from engine.jobs.explain_archives import measured_archives
from engine.runtime.errors import SpecError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return cases.write(tmp_path, cases.streams(0, 30))


def words(folder: Path, **options: Any) -> list[str]:
    """Return the command line; None leaves an option out."""
    settled = {
        "stream": [f"{name}={folder}/{name}.parquet" for name in NAMES],
        "predicate": "equi:k",
        "time": "t",
        "window": cases.per_stream(WINDOWS),
    } | options
    return line_of("explain", settled)


def explained(folder: Path, capsys: Any, *flags: str, **options: Any) -> dict[str, Any]:
    """Return the JSON."""
    assert main([*words(folder, **options), "--json", *flags]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_statistics_are_those_of_the_archives(folder: Path, capsys: Any) -> None:
    tables = cases.streams(0, 30)
    found = explained(folder, capsys)
    assert found["unit"] == "tick"
    joined = cases.tuples(tables, CASES["int"])
    times = [own.ts for rows in joined for own in rows]
    span = max(times) - min(times)
    for stream, name, rows, window in zip(found["streams"], NAMES, joined, WINDOWS, strict=True):
        assert stream["name"] == name
        assert stream["rate"] == pytest.approx(len(rows) / span)
        assert stream["window"] == window
        assert 1 <= stream["distinct"] <= 4
    assert found["low_selectivity"]["cost"] > 0
    assert found["expected"]["measured"] == []


def test_how_far_it_is_is_told(folder: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    command = all_commands()["explain"].COMMAND
    given = given_of(*parsed([*words(folder), "--measure"], {"explain": command}))
    measured_archives(given, lambda *own: seen.append(own))
    rows = sum(table.num_rows for table in cases.streams(0, 30).values())
    assert list(dict.fromkeys(own[0] for own in seen)) == ["read", "measure", "join"]
    last = {stage: (done, total) for stage, done, total in seen}
    assert last["read"] == (rows, rows)
    assert last["measure"] == (1, 1)
    assert last["join"][0] == last["join"][1] > rows / 2


@pytest.mark.parametrize("method", ["eager-nlj", "naive-nlj", "lazy-nlj", "eager-hash"])
def test_a_run_is_set_against_the_model(folder: Path, capsys: Any, method: str) -> None:
    tables = cases.streams(0, 30)
    lazy = {"tau": 5} if method == "lazy-nlj" else {}
    for name, hashes in (("int", True), ("band", False)):
        case = CASES[name]
        if "hash" in method and not hashes:
            continue
        more = {"buckets": 3} if "hash" in method else {}
        found = explained(folder, capsys, "--measure", predicate=case.predicate, method=method,
                          **lazy, **more)  # fmt: skip
        (run,) = found["expected"]["measured"]
        assert run["order"] == found["chosen"]
        order = [stream - 1 for stream in run["order"]]
        wanted = naive.run(
            method, cases.tuples(tables, case, None), [("ticks", own) for own in WINDOWS],
            case.meets, "clique", transitive=hashes, order=order,
            buckets=[3] * 3 if more else None, **lazy,
        )  # fmt: skip
        assert run["actual"] == wanted.comparisons > 0
        assert run["ratio"] == run["actual"] / run["expected"]


def test_a_burst_counts_for_as_much_time_as_it_takes(tmp_path: Path, capsys: Any) -> None:
    at = np.sort(np.concatenate([np.arange(1000), np.full(9000, 505)]))
    for name in NAMES:
        pq.write_table(pa.table({"t": at, "k": np.arange(at.size)}), tmp_path / f"{name}.parquet")
    for stream in explained(tmp_path, capsys, window=10)["streams"]:
        assert 10 <= stream["distinct"] <= 11  # one of 90 windows has 9,000 values more
        assert stream["distinct"] < stream["size"]


def test_a_model_that_is_far_off_says_why(tmp_path: Path, capsys: Any) -> None:
    at = np.arange(300)
    for skewed in (False, True):
        key = np.where(at % 3, 0, at) if skewed else at % 5
        for name in NAMES:
            pq.write_table(pa.table({"t": at, "k": key}), tmp_path / f"{name}.parquet")
        assert main([*words(tmp_path, window=40), "--measure"]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert ("takes rates for constant and all values for equally frequent" in shown) == skewed
        assert ("winnow multijoin --method eager-nlj --order" in shown) == skewed


def test_orders_of_every_direction(folder: Path, capsys: Any) -> None:
    found = explained(folder, capsys, "--measure", method="general-lazy-nlj", tau=4)
    assert found["expected"]["measured"][0]["order"] == found["chosen"]
    assert len(found["chosen"]) == 3


def test_times_are_told_in_seconds(folder: Path, capsys: Any) -> None:
    ticks = explained(folder, capsys, "--measure", method="lazy-nlj", tau=5)
    timed = explained(folder, capsys, "--measure", method="lazy-nlj", time="at",
                      window="a=9s,b=6s,c=12s", tau="5s")  # fmt: skip
    assert timed["unit"] == "second"
    assert timed["tau"] == 5
    for name in ("streams", "chosen", "chosen_cost"):
        assert str(timed[name]) == str(ticks[name])
    assert timed["expected"]["measured"][0]["span"] == ticks["expected"]["measured"][0]["span"]
    assert main(words(folder, time="at", window="rows:5")) == 0
    shown = capsys.readouterr().out
    assert "eager-nlj: comparisons per second" in shown
    assert main([*words(folder), "--measure"]) == 0
    shown = capsys.readouterr().out
    assert "comparisons per tick" in shown
    assert "actual" in shown


def test_python_says_the_same_of_paths_and_frames(folder: Path, capsys: Any) -> None:
    there = explained(folder, capsys, "--measure", method="lazy-nlj", tau=5)
    paths = {name: folder / f"{name}.parquet" for name in NAMES}
    join: Any = {"predicate": "equi:k", "time": "t", "method": "lazy-nlj", "tau": 5,
                 "window": dict(zip(NAMES, WINDOWS, strict=True)), "measure": True}  # fmt: skip
    for streams in (paths, cases.streams(0, 30)):
        found = winnow.explain(streams, **join)
        assert json.loads(json.dumps(found.report)) == there
    assert found.outputs["order"].to_pylist()[0] == there["chosen"]
    with pytest.raises(SpecError, match="rates is given, and stream has it measured"):
        winnow.explain(paths, rates=[1, 1, 1], **join)
    with pytest.raises(SpecError, match="predicate is of archives: name each of them with stream"):
        winnow.explain(rates=[1, 1, 1], windows=[1, 1, 1], distinct=[1, 1, 1], predicate="equi:k")
    with pytest.raises(SpecError, match="time_unit is of archives"):
        winnow.explain(rates=[1, 1, 1], windows=[1, 1, 1], distinct=[1, 1, 1], time_unit="s")


def test_other_predicates_columns_and_bad_rows(folder: Path, capsys: Any) -> None:
    found = explained(folder, capsys, "--measure", predicate="inner:tags:1", column="c.tags=terms",
                      join_graph="star")  # fmt: skip
    assert all(stream["distinct"] >= 1 for stream in found["streams"])
    times = cases.drawn(0, 30).column("t").to_pylist()
    bad = cases.drawn(0, 30).set_column(0, "t", pa.array([None, *times[1:]]))
    cases.write(folder, {"a": bad})
    assert main(words(folder)) == 2
    assert "column t: 1 row is null (row 0)" in capsys.readouterr().err
    explained(folder, capsys, bad_rows="quarantine")


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "rates": ({"rates": "1,1,1"}, r"--rates is given, and --stream has it measured: leave one out"),
    "shares": ({"selectivities": "1-2=1"}, r"--selectivities is given, and --stream has it meas"),
    "no stream": ({"stream": None}, r"--predicate is of archives: name each of them with --stream"),
    "no predicate": ({"predicate": None}, r"--predicate is missing"),
    "no window": ({"window": None}, r"window of stream a is missing"),
    "method": ({"method": "auto"}, r"method is 'auto'; choose one of eager-nlj"),
    "tau": ({"method": "lazy-nlj"}, r"--method lazy-nlj needs --tau"),
    "no tau": ({"tau": 4}, r"--tau 4 is of lazy methods"),
    "hash": ({"method": "eager-hash", "predicate": "band:v:1"}, r"hashes equal attributes, and"),
    "buckets": ({"method": "hybrid", "buckets": "1,-,3"}, r"buckets are '1,-,3'; give whole"),
    "path": ({"stream": ["a=x.parquet", "b=x.parquet"], "window": 3}, r"nothing is at x.parquet"),
    "column": ({"predicate": "equi:key"}, r"stream a \S+ has no column 'key'"),
    "top": ({"top": 0}, r"--top 0 must be 1 order or more"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_errors_say_what_is_wrong(folder: Path, capsys: Any, name: str) -> None:
    options, pattern = WRONG[name]
    assert main(words(folder, **options)) == 2
    shown, said = capsys.readouterr()
    assert shown == ""
    assert said.startswith("winnow explain: error: ")
    assert said.count("\n") == 1
    assert re.search(pattern, said), said
