"""A sample's rows, weights, estimates and memory are the oracle's, whatever the lanes."""

from __future__ import annotations

import csv
import json
import math
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from job_cases import MEMORY, WINDOW, Streams, only, stream, streams, table
from naive_sampling import Sample, naive_aggregate, naive_exact
from sample_cases import METHODS, Given, Row, arguments, oracle, read, sampled

import winnow
from engine.commands import main
from engine.jobs.exact import key_totals as keys_module
from engine.jobs.sample import task as task_module
from engine.lanes.reader import lane_batches

CASES = [
    ("eq-cluster", {}),
    ("pps-cluster", {}),
    ("pps-cluster", {"size": "weighted"}),
    ("pps-cluster", {"size": "equal"}),
    ("bottom-k", {}),
    ("bottom-k", {"size": "weighted"}),
    ("eq-cluster", {"fraction": 0.3}),
    ("pps-cluster", {"fraction": 0.3}),
    ("uniform", {"fraction": 0.3}),
    ("uniform", {"fraction": 0.3, "count": "frequency"}),
    ("uniform", {"fraction": 0.3, "count": "age"}),
]


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Streams:
    return streams(tmp_path_factory.mktemp("sample"), seed=5, rows=200)


def told(method: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return a case as options of the command."""
    return {"method": method} | settings | ({"memory": None} if "fraction" in settings else {})


def same_rows(found: list[Row], expected: Sample) -> None:
    assert [row[:4] for row in found] == [row[:4] for row in expected.rows]
    weights = [row[4] for row in found]
    assert weights == pytest.approx([row[4] for row in expected.rows], rel=1e-5)


@pytest.mark.parametrize(("method", "settings"), CASES)
def test_rows_and_estimates_are_the_oracles(
    case: Streams, tmp_path: Path, method: str, settings: dict[str, Any]
) -> None:
    places = {"out": tmp_path / "out", "report": tmp_path / "report.json"}
    assert main(arguments(case.folder, **told(method, settings), **places, seed=3)) == 0
    found = read(tmp_path)
    expected = oracle(case.left, case.right, Given(method, seed=3, **settings))
    assert expected.rows
    same_rows(found.rows, expected)
    report = found.report
    exact = naive_exact(*(rows_with_numbers(rows) for rows in case[:2]), (WINDOW, WINDOW))
    assert report["exact"]["outputs"] == len(exact)
    assert report["sample"]["rows"] == len(expected.rows)
    for name, total, truth in (
        ("outputs", expected.outputs, len(exact)),
        ("importance", expected.importance, math.fsum(row[3] for row in exact)),
    ):
        own = report["estimates"][name]
        assert own["estimate"] == pytest.approx(total.estimate, rel=1e-5)
        assert own["standard_error"] == pytest.approx(math.sqrt(total.variance), rel=1e-5)
        assert own["exact"] == pytest.approx(truth)
        assert own["low"] <= own["estimate"] <= own["high"]
        wanted = abs(total.estimate - truth) / truth
        assert own["relative_error"] == pytest.approx(wanted, rel=1e-4, abs=1e-6)
    assert tuple(report["peak_memory"].values()) == expected.peaks
    times = [ts for rows in case[:2] for ts, key, _ in rows if key is not None]
    span = max(times) - min(times) + 1
    mean = [held / span for held in expected.held]
    assert list(report["memory"]["mean"].values()) == pytest.approx(mean)


@pytest.mark.parametrize(
    ("method", "lanes", "settings"),
    [("pps-cluster", 1, {}), ("pps-cluster", 4, {}), ("pps-cluster", 4, {"fraction": 0.3}),
     ("bottom-k", 1, {})],
)  # fmt: skip
def test_sizes_go_by_the_values_that_are_added_up(
    tmp_path: Path, method: str, lanes: int, settings: dict[str, Any]
) -> None:
    rng, sides = np.random.default_rng(7), (stream(41, 200), stream(42, 200))
    value = [None if v < 0.1 else v for v in (1 / rng.random(200)).tolist()]
    value[3], value[4:20], value[30] = math.nan, 16 * [None], -90.0
    none = [None] * 200
    for name, rows, column in zip(("left", "right"), sides, (value, none), strict=True):
        values = pa.array(column, pa.float64(), from_pandas=False)
        pq.write_table(table(rows, v=values), tmp_path / f"{name}.parquet")
    asked = ["avg(left.v)", "sum(right.i)", "count(*)", "sum(right.v) every 50", "count(left.i)"]
    found = sampled(tmp_path, aggregate=asked, lanes=lanes, **told(method, settings))
    assert found.report["method"]["size"] == "values"
    columns = [value], [[importance for _, _, importance in sides[1]], none]
    expected = oracle(*sides, Given(method, size="values", values=columns, **settings))
    assert expected.rows
    same_rows(found.rows, expected)
    plain = oracle(*sides, Given(method, **settings))
    assert expected.rows != plain.rows


def test_without_values_to_add_up_sizes_are_matches(case: Streams, tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    words = ["profile", "--engine", "local", "--on", "k", "--time", "t", "--window", str(WINDOW)]
    places = [f"--{side}={case.folder / f'{side}.parquet'}" for side in ("left", "right")]
    assert main([*words, *places, "--out", str(profile)]) == 0
    for options, size in (
        ({}, "matches"),
        ({"aggregate": ["count(*)", "count(left.i) every 50"]}, "matches"),
        ({"aggregate": "sum(left.i)", "profile": profile}, "matches"),
        ({"aggregate": "sum(left.i)", "size": "matches"}, "matches"),
        ({"aggregate": "sum(left.i)", "method": "eq-cluster"}, None),
        ({"aggregate": "avg(importance)"}, "values"),
    ):
        places = {"out": None, "report": tmp_path / "report.json"}
        assert main(arguments(case.folder, **places, **options)) == 0
        assert json.loads((tmp_path / "report.json").read_text())["method"]["size"] == size


def rows_with_numbers(rows: Any) -> list[Any]:
    return [(ts, key, imp, row) for row, (ts, key, imp) in enumerate(rows)]


@pytest.mark.parametrize("method", ["eq-cluster", "pps-cluster"])
def test_what_is_expected_of_memory_is_what_was_asked(case: Streams, method: str) -> None:
    paths = case.folder / "left.parquet", case.folder / "right.parquet"
    join: Any = {"on": "k", "time": "t", "window": WINDOW, "cache": case.folder / "cache"}
    found = winnow.sample(*paths, method=method, memory_left=7, memory_right=4, **join)
    memory = found.report["memory"]
    assert memory["expected"] == {"left": pytest.approx(7), "right": pytest.approx(4)}
    means = []
    for seed in range(40):
        report = winnow.sample(
            *paths, method=method, memory_left=7, memory_right=4, seed=seed, **join
        ).report
        means.append(list(report["memory"]["mean"].values()))
    error = np.std(means, axis=0) / math.sqrt(40)
    assert np.all(np.abs(np.mean(means, axis=0) - [7, 4]) < 4 * error)


def test_uniform_has_one_memory_for_both_streams(case: Streams, tmp_path: Path) -> None:
    shared = {"cache": case.folder / "cache"} | {
        side: case.folder / f"{side}.parquet" for side in ("left", "right")
    }
    found = sampled(tmp_path, method="uniform", **shared)
    expected = found.report["memory"]["expected"]
    assert expected["left"] + expected["right"] == pytest.approx(MEMORY)
    fraction = found.report["inclusion"]["left"]
    assert fraction == found.report["inclusion"]["right"]
    same_rows(found.rows, oracle(case.left, case.right, Given("uniform", fraction=fraction)))


@pytest.mark.parametrize(
    ("method", "settings"),
    [case for case in CASES if case[0] != "bottom-k"]
    + [("uniform", {}), ("uniform", {"memory": "20%"}), ("pps-cluster", {"memory": "20%"})],
)
def test_lanes_change_nothing(
    case: Streams, tmp_path: Path, method: str, settings: dict[str, Any]
) -> None:
    results = []
    for lanes in (1, 3, 7):
        folder = tmp_path / str(lanes)
        places = {"out": folder / "out", "report": folder / "report.json"}
        options = told(method, settings)
        assert main(arguments(case.folder, lanes=lanes, **places, **options)) == 0
        results.append(read(folder))
    first = results[0]
    assert first.rows
    for other in results[1:]:
        assert other.rows == first.rows
        assert other.report["inclusion"] == first.report["inclusion"]
        for name in ("exact", "sample", "estimates"):
            assert flat(other.report[name]) == pytest.approx(flat(first.report[name]))


def flat(content: dict[str, Any]) -> list[float]:
    """Return all numbers of a part of a report."""
    found = []
    for value in content.values():
        found += flat(value) if isinstance(value, dict) else [value]
    return found


@pytest.mark.parametrize("method", ["eq-cluster", "pps-cluster", "uniform"])
@pytest.mark.parametrize("memory", ["25%", "8"])
def test_less_is_kept_where_memory_must_not_overflow(
    case: Streams, tmp_path: Path, method: str, memory: str
) -> None:
    kept, rows = [], []
    for number, options in enumerate(({}, {"overflow": 0.2}, {"overflow": 0.01, "lanes": 3},
                                      {"overflow": 0.01})):  # fmt: skip
        folder = tmp_path / str(number)
        places = {"out": folder / "out", "report": folder / "report.json"}
        given = arguments(case.folder, method=method, memory=memory, **places, **options)
        assert main(given) == 0
        kept.append(read(folder).report["inclusion"]["left"])
        rows.append(read(folder).rows)
    assert kept[0] > kept[1] > kept[2] == kept[3] > 0
    assert rows[2] == rows[3]


@pytest.mark.parametrize("method", METHODS)
def test_every_partition_has_its_own_budget(tmp_path: Path, method: str) -> None:
    sides, groups = (stream(82, 200, keys=4), stream(83, 200, keys=4)), []
    for number, name in enumerate(("left", "right")):
        group = np.random.default_rng(number).integers(0, 2, 200).tolist()
        groups.append(group)
        pq.write_table(table(sides[number], g=group), tmp_path / f"{name}.parquet")
    amount: dict[str, Any] = {"fraction": 0.4, "memory": None} if method == "uniform" else {}
    lanes = None if method == "bottom-k" else 2
    found = sampled(tmp_path, method=method, partition_by="g", lanes=lanes, **amount)
    expected: list[Any] = []
    for value in (0, 1):
        own = [
            only(rows, {i for i, g in enumerate(group) if g == value})
            for rows, group in zip(sides, groups, strict=True)
        ]
        fraction = amount.get("fraction")
        expected += oracle(*own, Given(method, fraction=fraction)).rows
    expected.sort(key=lambda row: (row[2], row[0], row[1]))
    assert [row[:4] for row in found.rows] == [row[:4] for row in expected]
    weights = [row[4] for row in found.rows]
    assert weights == pytest.approx([row[4] for row in expected], rel=1e-5)
    if method != "uniform":
        assert found.report["memory"]["left"] == 2 * (MEMORY // 2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("options", [{"combine": "sum", "start_ts": 40}, {"window_right": 0}])
def test_windows_combine_and_start(
    case: Streams, tmp_path: Path, method: str, options: dict[str, Any]
) -> None:
    places = {"out": tmp_path / "out", "report": tmp_path / "report.json"}
    amount: dict[str, Any] = {"fraction": 0.5} if method == "uniform" else {}
    memory = {"memory": None} if amount else {}
    assert main(arguments(case.folder, method=method, **amount, **memory, **options, **places)) == 0
    given = Given(
        method,
        (WINDOW, options.get("window_right", WINDOW)),
        combine=options.get("combine", "min"),
        start_ts=options.get("start_ts"),
        **amount,
    )
    expected = oracle(case.left, case.right, given)
    assert expected.rows
    same_rows(read(tmp_path).rows, expected)


@pytest.mark.parametrize("method", METHODS)
def test_batches_and_dropped_keys_change_nothing(
    case: Streams, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    places = {"out": tmp_path / "out", "report": tmp_path / "report.json"}
    options = told(method, {"fraction": 0.4})
    assert main(arguments(case.folder, **options, **places)) == 0
    expected = read(tmp_path)

    def small(*files: Path | None, **settings: Any) -> Any:
        return lane_batches(*files, batch_rows=9, **settings)

    monkeypatch.setattr(task_module, "lane_batches", small)
    monkeypatch.setattr(keys_module, "IDLE", 2)
    places = {"out": tmp_path / "again" / "out", "report": tmp_path / "again" / "report.json"}
    assert main(arguments(case.folder, **options, **places)) == 0
    again = read(tmp_path / "again")
    assert again.rows == expected.rows
    assert flat(again.report["estimates"]) == pytest.approx(flat(expected.report["estimates"]))


def test_payload_stands_beside_its_rows(case: Streams, tmp_path: Path) -> None:
    places = {"out": tmp_path / "out", "report": tmp_path / "report.json"}
    assert main(arguments(case.folder, **places)) == 0
    found = read(tmp_path).table
    for side in ("left", "right"):
        numbers = found.column(f"{side}_row").to_pylist()
        assert found.column(f"{side}_p").to_pylist() == [f"{side} {row}" for row in numbers]
    assert found.column_names[:5] == ["left_row", "right_row", "ts", "importance", "weight"]
    places = {"out": tmp_path / "ids" / "out", "report": tmp_path / "ids" / "report.json"}
    assert main(arguments(case.folder, columns="ids", **places)) == 0
    assert read(tmp_path / "ids").table.num_columns == 5


AGGREGATES = [
    ("count(*) every 40 over 80", "count", 40, 80, None),
    ("sum(importance) by left.k", "sum", None, None, "k"),
    ("avg(left.i)", "avg", None, None, None),
    ("sum(right.i) every 30", "sum", 30, None, None),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lanes", [1, 3])
def test_aggregates_are_the_oracles_and_tell_what_is_true(
    case: Streams, tmp_path: Path, method: str, lanes: int
) -> None:
    if method == "bottom-k" and lanes > 1:
        lanes = 1
    options = told(method, {"fraction": 0.4}) | {
        "aggregate": [text for text, *_ in AGGREGATES],
        "exact_aggregates": True,
        "aggregates_out": tmp_path / "tables",
        "out": tmp_path / "out",
        "report": tmp_path / "report.json",
        "lanes": lanes,
    }
    assert main(arguments(case.folder, **options)) == 0
    found = read(tmp_path)
    rows = [(*row, stored_of(row, case)) for row in found.rows]
    exact = naive_exact(*(rows_with_numbers(r) for r in case[:2]), (WINDOW, WINDOW))
    for number, (text, func, every, over, by) in enumerate(AGGREGATES, start=1):
        table = pq.read_table(tmp_path / "tables" / f"aggregate-{number}.parquet")
        written = pyarrow.csv.read_csv(tmp_path / "tables" / f"aggregate-{number}.csv")
        assert written.num_rows == table.num_rows
        cells = {}
        for which in (rows, exact):
            values = [value_of(text, row, case) for row in which]
            groups = None if by is None else [case.left[row[0]][1] for row in which]
            span = (min(row[2] for row in exact), max(row[2] for row in exact))
            cells[which is exact] = naive_aggregate(
                func, which, values, groups, every=every, over=over, span=span,
                independent=method == "uniform" and which is rows,
            )  # fmt: skip
        checked = 0
        for line in table.to_pylist():
            key = (line["window_begin"], line["window_end"], line.get("left.k"))
            cell, truth = cells[False].get(key), cells[True].get(key)
            if cell is not None:
                checked += 1
                assert line["estimate"] == pytest.approx(cell.estimate, rel=1e-9)
                assert line["rows"] == cell.rows
                if line["standard_error"] is not None:
                    wanted = math.sqrt(cell.variance)
                    assert line["standard_error"] == pytest.approx(wanted, rel=1e-6, abs=1e-9)
            if truth is not None:
                assert line["exact"] == pytest.approx(truth.estimate)
        assert checked >= len(cells[False])
        summary = found.report["aggregates"][number - 1]
        assert summary["aggregate"] == text
        assert summary["estimates"] == table.num_rows
        told_covered = [c for c in table.column("covered").to_pylist() if c is not None]
        assert summary["covered"] == pytest.approx(sum(told_covered) / len(told_covered))


def stored_of(row: Row, case: Streams) -> int:
    """Return which member of an output was stored: simultaneous ones are the left's."""
    left, right = case.left[row[0]][0], case.right[row[1]][0]
    return 1 if right < left else 0 if left < right else 2


def value_of(text: str, row: Any, case: Streams) -> float:
    if "importance" in text or "*" in text:
        return float(row[3])
    return case.left[row[0]][2] if "left.i" in text else case.right[row[1]][2]


def test_python_gives_the_rows_and_figures_of_the_command_line(
    case: Streams, tmp_path: Path
) -> None:
    text = "sum(left.i) every 50"
    places = {"out": tmp_path / "out", "report": tmp_path / "report.json"}
    assert main(arguments(case.folder, method="bottom-k", aggregate=text, **places)) == 0
    expected = read(tmp_path)
    sides = [pq.read_table(case.folder / f"{side}.parquet") for side in ("left", "right")]
    found = winnow.sample(
        *sides, on="k", time="t", importance="i", window=WINDOW, memory=MEMORY, method="bottom-k",
        aggregates=text,
    )  # fmt: skip
    assert found.outputs is not None
    order = [("ts", "ascending"), ("left_row", "ascending"), ("right_row", "ascending")]
    assert found.outputs.sort_by(order).equals(expected.table.sort_by(order))
    for name in ("estimates", "sample", "exact", "inclusion", "method", "aggregates"):
        assert found.report[name] == expected.report[name]
    archived = winnow.sample(
        case.folder / "left.parquet", case.folder / "right.parquet", on="k", time="t",
        importance="i", window=WINDOW, memory=MEMORY, method="bottom-k", aggregates=[text],
        cache=tmp_path / "cache", out=tmp_path / "other",
    )  # fmt: skip
    assert archived.aggregates[text].equals(found.aggregates[text])
    assert pq.read_table(tmp_path / "other").sort_by(order).equals(found.outputs.sort_by(order))


def test_times_of_whole_seconds_have_durations() -> None:
    stamps = pa.array([0, 30, 60, 90, 120, 200], pa.int64()).cast(pa.timestamp("s"))
    side = pa.table({"t": stamps, "k": [1] * 6})
    found = winnow.sample(
        side, side, on="k", time="t", window="1min", fraction=1.0, aggregates="count(*) every 1min"
    )
    assert found.report["window"] == {"left": 60, "right": 60, "tick": "s", "zone": None}
    windows = found.aggregates["count(*) every 1min"]
    assert windows.column("window_end").cast(pa.int64()).to_pylist()[:2] == [60, 120]
    assert pc.sum(windows.column("estimate")).as_py() == found.report["exact"]["outputs"]
    assert found.outputs is not None
    assert found.outputs.schema.field("left_t").type == pa.timestamp("s")


def test_rows_set_aside_are_handed_back(tmp_path: Path) -> None:
    rows = table(stream(4, 60))
    bad = rows.set_column(2, "i", pa.array([-1.0, *rows.column("i").to_pylist()[1:]]))
    pq.write_table(bad, tmp_path / "left.parquet")
    pq.write_table(rows, tmp_path / "right.parquet")
    found = sampled(tmp_path, bad_rows="quarantine")
    assert found.report["rejected"] == {"left": 1, "right": 0}
    assert pq.read_table(tmp_path / "out" / "_rejected" / "left.parquet").num_rows == 1
    result = winnow.sample(
        bad, rows, on="k", time="t", importance="i", window=WINDOW, memory=MEMORY,
        bad_rows="quarantine",
    )  # fmt: skip
    assert list(result.rejected) == ["left"]


@pytest.mark.parametrize("method", METHODS)
def test_streams_without_rows_or_matches_give_an_empty_sample(tmp_path: Path, method: str) -> None:
    some = [(t, t, 1.0) for t in range(20)]
    other = [(t, 100 + t, 1.0) for t in range(20)]
    for number, (left, right) in enumerate((([], some), (some, other), ([], []))):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, rows in (("left", left), ("right", right)):
            pq.write_table(table(rows), folder / f"{name}.parquet")
        found = sampled(
            folder, method=method, memory=4, aggregate="count(*) every 5", exact_aggregates=True
        )
        assert found.rows == []
        assert found.report["estimates"]["outputs"]["estimate"] == 0
        assert found.report["estimates"]["outputs"]["exact"] == 0
        [counts] = found.report["aggregates"]
        assert counts["covered"] in ((1.0, None) if counts["estimates"] else (None,))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("right", [[], [(100, 1, 1.0)], [(1, 2, 1.0)]])
def test_the_total_of_no_output_is_a_row(right: list[Row], method: str, tmp_path: Path) -> None:
    left = [(0, 1, 1.0), (5, 1, 1.0)]
    for name, rows in (("left", left), ("right", right)):
        pq.write_table(table(rows), tmp_path / f"{name}.parquet")
    found = winnow.sample(
        str(tmp_path / "left.parquet"), str(tmp_path / "right.parquet"), on="k", time="t",
        importance="i", window=WINDOW, memory=4, method=method,
        aggregates=["count(*)", "avg(importance)"], exact_aggregates=True,
    ).aggregates.values()  # fmt: skip
    (count,), (mean,) = (one.to_pylist() for one in found)
    assert (count["estimate"], count["low"], count["high"], count["exact"]) == (0, 0, 0, 0)
    assert (mean["estimate"], mean["exact"]) == (None, None)


def test_everything_fits_and_is_certain(case: Streams, tmp_path: Path) -> None:
    for method in METHODS:
        folder = tmp_path / method
        places = {"out": folder / "out", "report": folder / "report.json"}
        assert main(arguments(case.folder, method=method, memory=1000, **places)) == 0
        found = read(folder)
        assert {row[4] for row in found.rows} == {1.0}
        assert len(found.rows) == found.report["exact"]["outputs"]
        own = found.report["estimates"]["outputs"]
        assert own["low"] == own["high"] == own["estimate"] == len(found.rows)


@pytest.mark.parametrize("power", [-960, -300, 130, 300])
@pytest.mark.parametrize("method", ["pps-cluster", "bottom-k"])
@pytest.mark.parametrize("size", ["weighted", "values"])
def test_a_sample_does_not_depend_on_the_unit_of_values(size: str, method: str, power: int) -> None:
    rng = np.random.default_rng(8)
    keys, own = rng.integers(0, 5, (2, 300)), 1 + rng.pareto(1.5, (2, 300))
    found = [
        winnow.sample(
            *(
                pa.table({"t": np.arange(300), "k": keys[side], "v": np.ldexp(own[side], unit)})
                for side in (0, 1)
            ),
            on="k", time="t", window=20, memory=8, importance="v", method=method, size=size,
            aggregates="avg(left.v)",
        )
        for unit in (0, power)
    ]  # fmt: skip
    rows = [table.outputs.select(["left_row", "right_row", "weight"]) for table in found]
    assert rows[0].equals(rows[1])
    totals = [own.report["estimates"]["importance"] for own in found]
    for name in ("estimate", "low", "high", "standard_error"):
        assert totals[1][name] == pytest.approx(math.ldexp(totals[0][name], power), rel=1e-9)


def test_sums_may_be_more_than_float64_holds() -> None:
    one = pa.table({"t": range(300), "k": [i % 5 for i in range(300)], "v": [1.7e308] * 300})
    asked = ["sum(left.v)", "avg(left.v) every 100"]
    given = {"on": "k", "time": "t", "window": 20, "memory": 8, "exact_aggregates": True}
    found = winnow.sample(one, one, **given, aggregates=asked).aggregates
    [total] = found[asked[0]].to_pylist()
    assert (total["exact"], total["low"]) == (math.inf, None)
    assert total["no_interval"] == "a value or their sum is not finite"
    for line in found[asked[1]].to_pylist():
        assert line["estimate"] == pytest.approx(line["exact"], rel=1e-12)
    for memory in (8, "100%"):  # of all of which the average is known
        own = winnow.sample(one, one, **given | {"memory": memory}, aggregates="avg(left.v)")
        [mean] = own.aggregates["avg(left.v)"].to_pylist()
        assert mean["estimate"] == pytest.approx(1.7e308) == mean["exact"]


def test_tables_of_groups_that_are_bytes_are_written_as_text(tmp_path: Path) -> None:
    own = uuid.UUID(int=7)
    groups = {
        "u": pa.array([own.bytes, None], pa.uuid()),
        "raw": pa.array([b"\xff\x00", b"a"]),
        "text": pa.array([b"a,b", None]),
    }
    stream = pa.table({"t": [1, 2], "k": [1, 2], **groups})
    winnow.sample(
        stream, stream, on="k", time="t", window=0, fraction=1, cache=tmp_path / "cache",
        aggregates="count by left.u, left.raw, right.text", aggregates_out=tmp_path / "tables",
    )  # fmt: skip
    with (tmp_path / "tables" / "aggregate-1.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = [[row[name] for name in ("left.u", "left.raw", "right.text")] for row in rows]
    assert found == [[str(own), "ff00", "a,b"], ["", "61", ""]]


@pytest.mark.parametrize("command", ["sample", "estimate"])
def test_groups_by_nanoseconds_and_far_times_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    stream = pa.table(
        {
            "t": [1, 2], "k": [1, 1],
            "fine": pa.array([1_714_550_400_000_000_001, None], pa.timestamp("ns")),
            "zoned": pa.array([1_714_550_400_500, None], pa.timestamp("ms", "Europe/Berlin")),
            "far": pa.array([-(2**60), None], pa.timestamp("us")),
            "day": pa.array([-(2**31), None], pa.int32()).view(pa.date32()),
        }
    )  # fmt: skip
    pq.write_table(stream, tmp_path / "stream.parquet")
    place = str(tmp_path / "stream.parquet")
    texts = (f"count by left.{name}" for name in ("fine", "zoned", "far", "day"))
    given = ["--aggregate=" + text for text in texts]
    given += ["--fraction=1", f"--cache={tmp_path / 'cache'}"] if command == "sample" else []
    arguments = ["--left", place, "--right", place, "--on=k", "--time=t", "--window=0", *given]
    assert main([command, *arguments, "--engine=local"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "2024-05-01 08:00:00.000000001" in shown
    assert "2024-05-01 10:00:00.500+02:00" in shown
    assert "-34565-05-17" in shown
    assert "-5877641-06-23" in shown
