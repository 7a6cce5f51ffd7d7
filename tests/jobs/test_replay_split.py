"""Replays whose memory is one, and of which the left side gets a fixed share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fact_job_cases import JOIN, NAMES, fact_table, rows_of
from fact_job_cases import case as through_facts
from job_cases import WINDOW, Streams, arguments, oracle, outputs_of, peak, read, streams

import winnow
from engine.commands import main
from engine.options.budget import parse_amounts, parse_split
from engine.runtime.errors import SpecError
from engine.runtime.warned import WinnowWarning

TABLES: dict[str, str] = {"on": "k", "time": "t", "importance": "i"}


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Streams:
    return streams(tmp_path_factory.mktemp("split"), seed=31, rows=300)


def sides_of(report: dict[str, Any]) -> tuple[int, int]:
    return report["memory"]["left"], report["memory"]["right"]


def nearest(total: int, tenths: int) -> int:
    """Return tenths of a memory, half a tuple rounded up."""
    return (tenths * total + 5) // 10


@pytest.mark.parametrize(("share", "tenths"), [("0", 0), (".30", 3), ("0.5", 5), ("1.0", 10)])
@pytest.mark.parametrize("memory", ["13", "25%"])
def test_the_left_side_gets_its_share_of_one_memory(
    case: Streams, tmp_path: Path, memory: str, share: str, tenths: int
) -> None:
    places = {"out": tmp_path / "out", "report": tmp_path / "report.json"}
    told = arguments(case.folder, memory=memory, split=share, policy="simpprob", **places)
    assert main(told) == 0
    found = read(tmp_path)
    both = 13 if memory == "13" else (peak(case.left) + peak(case.right)) // 4
    left = nearest(both, tenths)
    assert sides_of(found.report) == (left, both - left)
    assert found.report["memory"]["split"] == {0: "0", 3: "0.3", 5: "0.5", 10: "1"}[tenths]
    assert found.outputs == oracle(
        case.left, case.right, budget_left=left, budget_right=both - left, policy="simpprob"
    )


def test_half_of_a_number_of_tuples_is_the_even_split() -> None:
    for tuples in range(12):
        even = parse_amounts(str(tuples), None, None)
        assert parse_amounts(str(tuples), None, None, parse_split("0.5", "--split")) == even


def test_lanes_and_groups_share_the_parts_of_both_sides(case: Streams) -> None:
    groups = [[i % 2 for i in range(300)]] * 2
    tables = [
        pa.table({"t": ts, "k": key, "i": importance, "g": group})
        for (ts, key, importance), group in zip(
            (zip(*rows, strict=True) for rows in (case.left, case.right)), groups, strict=True
        )
    ]
    told = {**TABLES, "window": 9, "partition_by": "g", "lanes": 3, "policy": "simp"}
    fixed = winnow.replay(*tables, **told, memory=20, split=0.7)
    sides = winnow.replay(*tables, **told, memory_left=14, memory_right=6)
    assert fixed.outputs.equals(sides.outputs)
    assert sides_of(fixed.report) == sides_of(sides.report) == (28, 12)


def test_a_fixed_split_needs_no_model_and_so_holds_through_facts() -> None:
    one = through_facts(2)
    told = JOIN | NAMES | {"fact": fact_table(one.facts), "policy": "prob", "memory": 12}
    found = winnow.replay(*one.tables, **told, split=0.75)
    expected = one.expected(policy="prob", budget_left=9, budget_right=3)
    assert rows_of(found.outputs) == [tuple(o) for o in expected.outputs]


def test_job_files_give_a_split_as_a_number(case: Streams, tmp_path: Path) -> None:
    job, report = tmp_path / "job.toml", tmp_path / "report.json"
    job.write_text("split = 0.25\n")
    assert main(arguments(case.folder, out=None, job=job, report=report)) == 0
    assert sides_of(json.loads(report.read_text())) == (3, 9)


@pytest.mark.parametrize("wrong", ["1.01", "-0.1", "80%", "evn", "nan", "1e-1", ""])
def test_what_is_no_split_is_named(wrong: str) -> None:
    with pytest.raises(
        SpecError, match=rf"^--split is '{wrong}'; choose one of even, expected, pooled, or"
    ):
        parse_split(wrong, "--split")


def test_a_fixed_split_is_of_one_memory(case: Streams, capsys: pytest.CaptureFixture[str]) -> None:
    sided = {"memory_left": 3, "memory_right": 3}
    for memory in ({}, sided):
        told = arguments(case.folder, **{"out": None, "memory": None, "split": 0.5} | memory)
        assert main(told) == 2
        error = capsys.readouterr().err
        assert "--split 0.5 splits one memory over both streams: give --memory" in error


@pytest.mark.parametrize("policy", ["prob", "dgl", "yield", "rand", "dimpprob"])
@pytest.mark.parametrize("memory", ["13", "25%"])
def test_one_memory_for_both_sides_is_the_oracles(
    case: Streams, tmp_path: Path, memory: str, policy: str
) -> None:
    places = {"out": tmp_path / "out", "report": tmp_path / "report.json"}
    given = arguments(case.folder, memory=memory, split="pooled", policy=policy, **places)
    assert main(given) == 0
    found = read(tmp_path)
    both = 13 if memory == "13" else (peak(case.left) + peak(case.right)) // 4
    assert found.report["memory"] == {
        "left": None, "right": None, "both": both, "split": "pooled",
        "asked": dict.fromkeys(("left", "right"), memory) if memory == "25%"
        else {"left": "7", "right": "6"},
    }  # fmt: skip
    assert found.report["peak_memory"]["both"] == both
    assert found.outputs == oracle(
        case.left, case.right, budget_left=both, budget_right=0, policy=policy, pooled=True
    )


@pytest.mark.parametrize("grain", [1, 2, 3, 4])
def test_ages_of_both_sides_compare_however_fine_their_buckets(case: Streams, grain: int) -> None:
    curves = {"curve_left": (0.183, 0.01), "curve_right": (2.0, 0.5)}
    sides = (pq.read_table(case.folder / f"{side}.parquet") for side in ("left", "right"))
    found = winnow.replay(
        *sides, on="k", time="t", importance="i", window=WINDOW, memory=13, split="pooled",
        policy="age", params=curves | {"grain": grain},
    )  # fmt: skip
    fine = {name: [own for own in curve for _ in range(grain)] for name, curve in curves.items()}
    assert outputs_of(found.outputs) == oracle(
        case.left, case.right, budget_left=13, budget_right=0, policy="age", params=fine,
        pooled=True,
    )  # fmt: skip


def test_one_memory_for_both_sides_through_facts() -> None:
    one = through_facts(2)
    given = JOIN | NAMES | {"fact": fact_table(one.facts), "policy": "simpprob", "memory": 12}
    found = winnow.replay(*one.tables, **given, split="pooled")
    expected = one.expected(policy="simpprob", budget_left=9, budget_right=3, pooled=True)
    assert rows_of(found.outputs) == [tuple(o) for o in expected.outputs]


def test_the_table_shows_the_memory_of_both_sides(
    case: Streams, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(case.folder, out=None, memory=12, split="pooled")) == 0
    lines = capsys.readouterr().out.splitlines()
    (both,) = (line for line in lines if line.startswith("│ both"))
    assert [cell.strip() for cell in both.split("│")][-3:-1] == ["12", "12"]


def test_policies_that_do_not_compare_are_refused(
    case: Streams, capsys: pytest.CaptureFixture[str]
) -> None:
    given = arguments(case.folder, out=None, split="pooled", policy="age", window_left=3)
    assert main(given) == 2
    assert "do not compare across sides: give another split" in capsys.readouterr().err


ALONE = {"split": "even", "of": "21 tuples that the exact join holds of a stream", "enough": "5%"}
BOTH = {"split": "pooled", "of": "42 tuples that the exact join holds of both streams",
        "enough": "3%"}  # fmt: skip


@pytest.mark.parametrize(("task", "expected"), [
    *((task, own) for task in ("replay", "bound", "sweep") for own in (ALONE, BOTH)),
    ("profile", BOTH),
])  # fmt: skip
def test_a_percentage_of_no_tuple_is_warned_of(task: str, expected: dict[str, str]) -> None:
    split, of, enough = expected.values()
    stream = pa.table({"t": range(60), "k": [i % 7 for i in range(60)]})
    given: dict[str, Any] = {"on": "k", "time": "t", "window": 20}
    given |= {
        "replay": {"split": split, "policy": "prob"},
        "bound": {"split": split},
        "sweep": {"splits": split, "policies": ["prob"]},
        "profile": {},
    }[task]
    with pytest.warns(WinnowWarning) as told:
        getattr(winnow, task)(stream, stream, memory="1%", **given)
    (message,) = {str(one.message) for one in told}
    assert message == (
        f"memory 1% of the {of} at its peak is none: give {enough} or more, or a number of tuples"
    )
    getattr(winnow, task)(stream, stream, memory=enough, **given)


@pytest.mark.parametrize("task", ["replay_streams", "multijoin"])
@pytest.mark.parametrize(
    ("split", "of", "enough"),
    [("even", "21 tuples that the exact join holds of a stream", "5%"),
     ("pooled", "63 tuples that the exact join holds of all streams", "2%")],
)  # fmt: skip
def test_a_percentage_of_no_tuple_of_several_streams_is_warned_of(
    task: str, split: str, of: str, enough: str
) -> None:
    stream = pa.table({"t": range(60), "k": [at % 7 for at in range(60)]})
    facts = pa.table({name: range(7) for name in "abc"})

    def run(memory: str) -> None:
        given: dict[str, Any] = {"time": "t", "window": 20, "memory": memory, "split": split}
        if task == "multijoin":
            winnow.multijoin(dict.fromkeys("abc", stream), predicate="equi:k", **given)
        else:
            winnow.replay_streams(dict.fromkeys("abc", stream), facts, on="k", **given)

    with pytest.warns(WinnowWarning) as told:
        run("1%")
    assert [str(one.message) for one in told] == [
        f"memory 1% of the {of} at its peak is none: give {enough} or more, or a number of tuples"
    ]
    run(enough)
