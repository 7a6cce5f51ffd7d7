"""The command line: every option does what it says, row for row as the oracle does."""

from __future__ import annotations

import csv
import itertools
import json
import shutil
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_cases import (
    MEMORY,
    WINDOW,
    Rows,
    Streams,
    arguments,
    by_row,
    only,
    oracle,
    outputs_of,
    peak,
    read,
    stream,
    streams,
    table,
    winnow,
)
from replay_cases import remaining

from engine.commands import main
from engine.commands.asked import Asked
from engine.options.command import Command, Group
from engine.options.option import Option
from engine.policies import POLICIES, SAMPLING
from engine.runtime.errors import SpecError

BASE = 1_700_000_000
"""Seconds since 1970 at which the streams with timestamps begin."""
CURVES = {"curve_left": [1.0, 3.0, 2.0], "curve_right": [1.0, 3.0, 2.0]}
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "defaults": ({}, {}),
    "windows uneven": (
        {"window": None, "window_left": 3, "window_right": 20},
        {"window_left": 3, "window_right": 20},
    ),
    "window and one side": ({"window_right": 4}, {"window_right": 4}),
    "windows of 0": ({"window": 0}, {"window_left": 0, "window_right": 0}),
    "memory odd": ({"memory": 7}, {"budget_left": 4, "budget_right": 3}),
    "memory 0": ({"memory": 0}, {"budget_left": 0, "budget_right": 0}),
    "memory of each": (
        {"memory": None, "memory_left": 2, "memory_right": 9},
        {"budget_left": 2, "budget_right": 9},
    ),
    "left memory alone": (
        {"memory": None, "memory_left": 3},
        {"budget_left": 3, "budget_right": None},
    ),
    "right memory alone": (
        {"memory": None, "memory_right": 0},
        {"budget_left": None, "budget_right": 0},
    ),
    "exact": ({"memory": None}, {"budget_left": None, "budget_right": None}),
    "exact in lanes": ({"memory": None, "lanes": 3}, {"budget_left": None, "budget_right": None}),
    "memory beyond need": ({"memory": 10_000}, {"budget_left": None, "budget_right": None}),
    "all of the memory": ({"memory": "100%"}, {"budget_left": None, "budget_right": None}),
    **{
        f"policy {name}": ({"policy": name}, {"policy": name})
        for name in POLICIES
        if name not in {"age", "custom"}
    },
    "policy in capitals": ({"policy": "Until-Expiry"}, {"policy": "until_expiry"}),
    "age": (
        {"policy": "age", "param": "curve=1,3,2"},
        {"policy": "age", "params": CURVES},
    ),
    "age by side": (
        {"policy": "age", "param": ["curve_left=1;3;2", "curve_right=0,1"]},
        {"policy": "age", "params": CURVES | {"curve_right": [0.0, 1.0]}},
    ),
    "custom": (
        {"policy": "custom", "param": "function=replay_cases:remaining"},
        {"policy": "custom", "params": {"function": remaining}},
    ),
    "parameters": (
        {"param": ["alpha=2", "beta=0.25", "initial=importance"]},
        {"params": {"alpha": 2.0, "beta": 0.25, "initial": "importance"}},
    ),
    "weights": (
        {"policy": "additive", "param": ["A=2", "B=0.5", "D=0", "ties=importance"]},
        {"policy": "additive", "params": {"A": 2, "B": 0.5, "D": 0, "ties": "importance"}},
    ),
    "seed": ({"policy": "rand", "seed": 7}, {"policy": "rand", "seed": 7}),
    "negative seed": ({"policy": "rand", "seed": -1}, {"policy": "rand", "seed": 2**64 - 1}),
    "after admission": ({"probe": "after_admission"}, {"probe": "after_admission"}),
    "window estimator": ({"estimator": "window"}, {"estimator": "window"}),
    "history estimator": (
        {"estimator": "history", "policy": "dimpprob"},
        {"estimator": "history", "policy": "dimpprob"},
    ),
    **{
        f"combine {name}": ({"combine": name}, {"combine_name": name})
        for name in ("sum", "product", "max", "mean")
    },
    "start": ({"start_ts": 60}, {"start_ts": 60}),
    "start before all": ({"start_ts": -5}, {}),
    "left columns": ({"on": None, "left_on": "k", "right_on": "k", "right_time": "t"}, {}),
    "device": ({"device": "cpu"}, {}),
}  # fmt: skip


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Streams:
    return streams(tmp_path_factory.mktemp("archives"))


@pytest.fixture
def case(archives: Streams, tmp_path: Path) -> Iterator[Streams]:
    """Give the test the module's archives in a folder of its own."""
    for name in ("left.parquet", "right.parquet"):
        (tmp_path / name).symlink_to(archives.folder / name)
    yield Streams(archives.left, archives.right, tmp_path)
    leftovers = [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert leftovers == []


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_gives_the_oracles_rows(case: Streams, name: str) -> None:
    options, settings = OPTIONS[name]
    found = winnow(case.folder, **options)
    assert found.outputs == oracle(case.left, case.right, **settings)
    assert found.report["result"]["outputs"] == len(found.outputs)


@pytest.mark.parametrize("seed", range(4))
def test_every_policy_on_other_streams(tmp_path: Path, seed: int) -> None:
    for number, policy in enumerate(sorted(set(POLICIES) - {"age", "custom"})):
        case = streams(tmp_path, 100 * seed + number + 2, rows=90)
        out = tmp_path / policy
        probe = ("before_admission", "after_admission")[(seed + number) % 2]
        estimator = ("memory", "window", "history")[(seed + number) % 3]
        options = {"policy": policy, "probe": probe, "estimator": estimator}
        assert main(arguments(tmp_path, out=out, **options)) == 0
        assert outputs_of(pq.read_table(out)) == oracle(case.left, case.right, **options)


@pytest.mark.parametrize("percent", ["10%", "37.5 %", ".5%", "0%", "250%"])
def test_memory_as_a_percentage_of_each_sides_peak(case: Streams, percent: str) -> None:
    share = Fraction(percent.rstrip(" %")) / 100
    budgets = [int(share * peak(rows)) for rows in (case.left, case.right)]
    found = winnow(case.folder, memory=percent, policy="simpprob")
    assert found.outputs == oracle(
        case.left, case.right, policy="simpprob", budget_left=budgets[0], budget_right=budgets[1]
    )
    assert [found.report["memory"][side] for side in ("left", "right")] == budgets


def measured_curve(rows: Rows, other: Rows, window: int, buckets: int) -> list[float]:
    """Return the matches a row makes with later rows of the other stream, by its age."""
    ages = [
        there - here
        for here, key, _ in rows
        for there, other_key, _ in other
        if key is not None and key == other_key and 0 < there - here <= window
    ]
    counts = np.bincount([(age - 1) * buckets // window for age in ages], minlength=buckets)
    return [float(count) for count in counts]


@pytest.mark.parametrize(("buckets", "grain", "cut"), [(4, 0, 2), (2, 0, 4), (2, 1, 1), (1, 3, 3)])
def test_age_measures_its_curves(case: Streams, buckets: int, grain: int, cut: int) -> None:
    curves = {
        "curve_left": np.repeat(measured_curve(case.left, case.right, WINDOW, buckets), cut),
        "curve_right": np.repeat(measured_curve(case.right, case.left, WINDOW, buckets), cut),
    }
    command = [f"buckets={buckets}", *([f"grain={grain}"] if grain else [])]
    found = winnow(case.folder, policy="age", param=command)
    params = {name: curve.tolist() for name, curve in curves.items()}
    assert found.outputs == oracle(case.left, case.right, policy="age", params=params)


CUT = {"curve_left": [1.0, 1.0, 3.0, 3.0], "curve_right": [1.0, 1.0, 3.0, 3.0]}


@pytest.mark.parametrize(
    ("given", "params"),
    [
        (["curve=1,3"], {"curve_left": [1.0, 3.0], "curve_right": [1.0, 3.0]}),
        (["curve=1,3", "grain=2"], CUT),
    ],
)
def test_a_given_curve_is_cut_only_if_asked(
    case: Streams, given: list[str], params: dict[str, list[float]]
) -> None:
    found = winnow(case.folder, policy="age", param=given)
    assert found.outputs == oracle(case.left, case.right, policy="age", params=params)


def timed(rows: Rows, unit: str, scale: int) -> pa.Table:
    times = pa.array([(BASE + ts) * scale for ts, _, _ in rows], pa.timestamp(unit))
    return table(rows).set_column(0, "t", times)


@pytest.mark.parametrize(
    ("window", "units", "tick"),
    [
        ("9s", ("ms", "ms"), 1000),
        ("9 seconds", ("us", "ms"), 10**6),
        ("0.15min", ("us", "us"), 10**6),
    ],
)
def test_durations_on_timestamps(tmp_path: Path, window: str, units: Any, tick: int) -> None:
    scales = {"s": 1, "ms": 1000, "us": 10**6}
    sides = stream(20), stream(21)
    for name, rows, unit in zip(("left", "right"), sides, units, strict=True):
        pq.write_table(timed(rows, unit, scales[unit]), tmp_path / f"{name}.parquet")
    start = str(np.datetime64(BASE + 50, "s"))
    found = winnow(tmp_path, window=window, start_ts=f"{start}Z", policy="additive")
    left, right = ([((BASE + t) * tick, k, i) for t, k, i in rows] for rows in sides)
    assert found.outputs == oracle(
        left,
        right,
        window_left=9 * tick,
        window_right=9 * tick,
        start_ts=(BASE + 50) * tick,
        policy="additive",
    )
    assert found.report["window"]["left"] == 9 * tick
    assert found.report["start_ts"] == (BASE + 50) * tick


def test_dates_have_days_as_ticks(tmp_path: Path) -> None:
    sides = stream(22), stream(23)
    for name, rows in zip(("left", "right"), sides, strict=True):
        days = pa.array([ts for ts, _, _ in rows], pa.int32()).cast(pa.date32())
        pq.write_table(table(rows).set_column(0, "t", days), tmp_path / f"{name}.parquet")
    found = winnow(tmp_path, window="1week 2days", start_ts="1970-02-01")
    assert found.outputs == oracle(*sides, start_ts=31)


def test_without_importance_every_tuple_has_one(case: Streams) -> None:
    sides = [[(ts, key, 1.0) for ts, key, _ in rows] for rows in (case.left, case.right)]
    found = winnow(case.folder, importance=None)
    assert found.outputs == oracle(*sides)
    one = winnow(case.folder, importance=None, left_importance="i", out=case.folder / "one")
    del one
    dataset = outputs_of(pq.read_table(case.folder / "one"))
    assert dataset == oracle(case.left, sides[1])


def test_csv_folder_and_glob(tmp_path: Path) -> None:
    left, right = stream(30), stream(31)
    with (tmp_path / "left.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["t", "k", "i"])
        writer.writerows([("" if cell is None else cell) for cell in row] for row in left)
    folder = tmp_path / "right"
    folder.mkdir()
    cuts = [0, 40, 40, 111, len(right)]
    for number, (begin, end) in enumerate(itertools.pairwise(cuts)):
        pq.write_table(table(right[begin:end]), folder / f"{number}.parquet")
    (folder / "_SUCCESS").touch()
    expected = oracle(left, right)
    found = winnow(tmp_path, left=tmp_path / "left.csv", right=folder)
    assert found.outputs == expected
    assert main(
        arguments(
            tmp_path,
            left=tmp_path / "*.csv",
            right=folder / "[0-9].parquet",
            out=tmp_path / "globbed",
        )
    ) == 0  # fmt: skip
    assert outputs_of(pq.read_table(tmp_path / "globbed")) == expected


def test_the_payload_is_that_of_the_rows(case: Streams) -> None:
    found = winnow(case.folder).table
    assert found.schema.names == [
        *("left_row", "right_row", "ts", "importance", "weight"),
        *(f"left_{name}" for name in "tkip"),
        *(f"right_{name}" for name in "tkip"),
    ]
    for side in ("left", "right"):
        archive = pq.read_table(case.folder / f"{side}.parquet")
        rows = found.column(f"{side}_row")
        for name in archive.column_names:
            expected = archive.column(name).take(rows)
            assert found.column(f"{side}_{name}").to_pylist() == expected.to_pylist()
    assert set(found.column("weight").to_pylist()) == {1.0}


def test_ids_alone(case: Streams) -> None:
    found = winnow(case.folder, columns="ids")
    assert found.table.schema == pa.schema(
        [
            ("left_row", pa.int64()),
            ("right_row", pa.int64()),
            ("ts", pa.int64()),
            ("importance", pa.float64()),
            ("weight", pa.float64()),
        ]
    )
    assert found.outputs == oracle(case.left, case.right)
    assert (case.folder / "out" / "_SUCCESS").exists()


def test_counting_alone_agrees(case: Streams) -> None:
    whole = winnow(case.folder).report
    assert main(arguments(case.folder, out=None)) == 0
    counted = json.loads((case.folder / "report.json").read_text())
    for name in ("rows", "exact", "result", "recall", "lost", "peak_memory", "memory", "policy"):
        assert counted[name] == whole[name]
    assert counted["out"] is None


@pytest.mark.parametrize("memory", [MEMORY, "25%"])
def test_partitions_are_joins_of_their_own(tmp_path: Path, memory: int | str) -> None:
    sides, groups = (stream(40, 240), stream(41, 240)), []
    for name, rows in zip(("left", "right"), sides, strict=True):
        rng = np.random.default_rng(len(name))
        group = rng.choice(["a", "b", "only left" if name == "left" else "c"], len(rows)).tolist()
        groups.append(group)
        pq.write_table(table(rows, g=pa.array(group)), tmp_path / f"{name}.parquet")
    expected = []
    for value in "ab":
        own = [
            only(rows, {i for i, g in enumerate(group) if g == value})
            for rows, group in zip(sides, groups, strict=True)
        ]
        budgets = [
            MEMORY // 2 if memory == MEMORY else int(Fraction(1, 4) * peak(rows)) for rows in own
        ]
        expected += oracle(*own, budget_left=budgets[0], budget_right=budgets[1])
    found = winnow(tmp_path, memory=memory, partition_by="g")
    assert found.outputs == by_row(expected)
    assert found.report["lanes"]["groups"] == 4


def test_several_join_attributes(tmp_path: Path) -> None:
    sides = stream(50, keys=6), stream(51, keys=6)
    for name, rows in zip(("left", "right"), sides, strict=True):
        keys = [key for _, key, _ in rows]
        halves = pa.array([None if k is None else k // 2 for k in keys], pa.int8())
        words = pa.array([None if k is None else "ab"[k % 2] for k in keys])
        pq.write_table(table(rows, half=halves, word=words), tmp_path / f"{name}.parquet")
    assert winnow(tmp_path, on="half,word").outputs == oracle(*sides)


def quarantined(folder: Path) -> tuple[list[Rows], list[dict[int, str]]]:
    """Write streams with bad rows; return what is good of them, and what is wrong with the rest."""
    good, bad = [], []
    faults = {
        5: ("t", None, "null time"),
        17: ("i", float("nan"), "NaN importance"),
        18: ("i", float("inf"), "infinite importance"),
        90: ("i", -1.0, "negative importance"),
        91: ("i", None, "null importance"),
    }
    for number, name in enumerate(("left", "right")):
        rows = stream(60 + number)
        own = {at: fault for at, fault in faults.items() if number == 0 or at < 18}
        columns = {name: table(rows).column(name).to_pylist() for name in "tki"}
        for at, (column, cell, _) in own.items():
            columns[column][at] = cell
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
        good.append(only(rows, set(range(len(rows))) - own.keys()))
        bad.append({at: reason for at, (_, _, reason) in own.items()})
    return good, bad


def test_quarantine_sets_bad_rows_aside(tmp_path: Path) -> None:
    good, bad = quarantined(tmp_path)
    found = winnow(tmp_path, bad_rows="quarantine")
    assert found.outputs == oracle(*good)
    for side, reasons, rows in zip(("left", "right"), bad, good, strict=True):
        rejected = pq.read_table(tmp_path / "out" / "_rejected" / f"{side}.parquet")
        names = rejected.column_names
        texts = rejected.column(next(n for n in names if "reason" in n)).to_pylist()
        places = rejected.column(next(n for n in names if n.lstrip("_") == "row")).to_pylist()
        assert dict(zip(places, texts, strict=True)) == reasons
        report = found.report
        assert report["rejected"][side] == len(reasons)
        assert report["rows"][side] == len(rows)
        assert report["rows"][side] == (
            report["joined"][side] + report["null_keys"][side] + report["rejected"][side]
        )


def test_unsorted_archives_are_sorted_and_said_to_be(case: Streams, tmp_path: Path) -> None:
    assert winnow(case.folder).report["sorted"] == {"left": False, "right": False}
    folder = tmp_path / "sorted"
    folder.mkdir()
    for name, rows in (("left", sorted(case.left, key=lambda r: r[0])), ("right", case.right)):
        pq.write_table(table(rows), folder / f"{name}.parquet")
    assert winnow(folder).report["sorted"] == {"left": True, "right": False}


def test_empty_streams(tmp_path: Path) -> None:
    rows = stream(70)
    for empty in ("left", "right", "both"):
        folder = tmp_path / empty
        folder.mkdir()
        for name in ("left", "right"):
            pq.write_table(
                table([] if empty in {name, "both"} else rows), folder / f"{name}.parquet"
            )
        found = winnow(folder)
        assert found.outputs == []
        assert found.table.num_columns == 5 + 6
        assert found.report["exact"] == {"outputs": 0, "importance": 0.0}
        assert found.report["recall"] == found.report["importance_recall"] == 1.0
        assert found.report["lost"]["outputs"] == 0


def test_a_job_file_and_what_the_command_line_overrides(case: Streams) -> None:
    job = case.folder / "job.toml"
    job.write_text(
        f"""
        left = "{case.folder}/left.parquet"
        right = "{case.folder}/right.parquet"
        on = ["k"]
        time = "t"
        importance = "i"
        window-left = 4
        window_right = 9
        memory = "10"
        policy = "simp"
        combine = "sum"
        start-ts = 30
        out = "{case.folder}/never"
        report = "{case.folder}/report.json"
        cache = "{case.folder}/cache"
        engine = "local"

        [param]
        alpha = 2.5
        beta = 0.1
        """
    )
    assert main(["replay", f"--job={job}", f"--out={case.folder}/out", "--policy=dgl"]) == 0
    found = read(case.folder)
    assert not (case.folder / "never").exists()
    assert found.outputs == oracle(
        case.left,
        case.right,
        window_left=4,
        budget_left=5,
        budget_right=5,
        combine_name="sum",
        start_ts=30,
        params={"alpha": 2.5, "beta": 0.1},
    )


REPLACED = [
    ("memory-left = 4\nmemory-right = 7", "replay --memory 12 --policy dgl", (6, 6)),
    ("memory = 12", "replay --memory-left 4 --memory-right 7 --policy dgl", (4, 7)),
    ("memory = 12", "sample --fraction 0.5 --method eq-cluster", (None, None)),
    ("memory-left = 4", "sample --fraction 0.5 --method uniform", (None, None)),
    ("fraction = 0.5", "sample --memory 12", (6, 6)),
    ('plan = "none"', "replay --memory 12 --policy dgl", (6, 6)),
]


@pytest.mark.parametrize(("stated", "words", "memory"), REPLACED)
def test_the_command_line_replaces_what_it_excludes_in_a_job_file(
    case: Streams, stated: str, words: str, memory: tuple[int | None, ...]
) -> None:
    job, report = case.folder / "job.toml", case.folder / "report.json"
    sides = [f'{side} = "{case.folder}/{side}.parquet"' for side in ("left", "right")]
    job.write_text("\n".join([*sides, 'on = "k"', 'time = "t"', "window = 9", stated]))
    assert main([*words.split(), "--engine=local", f"--job={job}", f"--report={report}"]) == 0
    found = json.loads(report.read_text())["memory"]
    assert (found["left"], found["right"]) == memory


def test_the_terminal_shows_the_report(case: Streams, capsys: pytest.CaptureFixture[str]) -> None:
    report = winnow(case.folder).report
    shown, said = capsys.readouterr()
    assert said == ""
    for word in ("policy dgl", "recall", "keys that lost most", f"{case.folder}/out"):
        assert word in shown.replace("\n", "") or word in shown
    assert f"{100 * report['recall']:.2f} %" in shown
    assert f"{report['lost']['outputs']:,}" in shown


def test_lanes_without_columns_are_no_outputs_without_a_folder(
    case: Streams, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [w for w in arguments(case.folder) if w.startswith(("--engine", "--left", "--right"))]
    words += ["--on=k", "--time=t", f"--cache={case.folder}/cache"]
    assert main(["prepare", *words, "--columns=ids"]) == 0
    assert "warning" not in capsys.readouterr().err


def test_prepared_lanes_are_used_again(case: Streams) -> None:
    words = [w for w in arguments(case.folder) if w.startswith(("--engine", "--left", "--right"))]
    words += ["--on=k", "--time=t", "--importance=i", f"--cache={case.folder}/cache"]
    assert main(["prepare", *words]) == 0
    before = {path: path.stat().st_mtime_ns for path in (case.folder / "cache").rglob("*")}
    winnow(case.folder)
    after = {path: path.stat().st_mtime_ns for path in (case.folder / "cache").rglob("*")}
    lanes = {path for path in before if path.suffix == ".parquet" or path.name == "manifest.json"}
    assert len(lanes) == 3
    assert {path: after[path] for path in lanes} == {path: before[path] for path in lanes}
    found_out = after.keys() - before.keys()
    assert sorted(path.name.split("-")[0] for path in found_out) == ["exact", "profile"]
    shutil.rmtree(case.folder / "out")
    winnow(case.folder)
    files = {path: own for path, own in after.items() if path.is_file()}  # folders tell of use
    assert {path: path.stat().st_mtime_ns for path in files} == files


def test_policies_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies"]) == 0
    shown = capsys.readouterr().out
    for policy in (*POLICIES, *SAMPLING):
        assert policy in shown


class Greeted(TypedDict, total=False):
    """Who is greeted."""

    name: Annotated[str, Option("whom", positional=True)]


def test_a_command_of_another_package_is_one_of_winnows(capsys: pytest.CaptureFixture[str]) -> None:
    class Greet:
        COMMAND = Command("greet", "greet someone", (Group("", (Greeted,)),))

        def run(self, asked: Asked, /) -> int:
            name = asked.given["name"]
            if name == "nobody":
                raise SpecError("nobody is there: name somebody")
            sys.stdout.write(f"hello {name}\n")
            return 0

    assert main(["greet", "Ada"], commands={"greet": Greet()}) == 0
    assert capsys.readouterr().out == "hello Ada\n"
    assert main(["greet", "nobody"], commands={"greet": Greet()}) == 2
    assert "winnow greet: error: nobody is there" in capsys.readouterr().err
