"""Multi-way joins of lanes: every value of some columns, or every part of a hash, by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import multijoin_cases as cases
import naive_multijoin as naive
import numpy as np
import pyarrow as pa
import pytest
from multijoin_cases import CASES, NAMES, expected, joined
from options_given import multijoin_options

from engine.jobs.multijoin import lanes
from engine.jobs.multijoin.lanes import dealt
from engine.jobs.multijoin.run import run_multijoin
from engine.report.envelope import Report
from engine.report.joins import multijoin_shown
from engine.runtime.errors import InputError, SpecError
from engine.runtime.executors import SerialExecutor
from winnow import estimate, multijoin

SHED = {"basic_window": 2, "adapt_every": 6}
VALUES = ("north", "south", None)


def roomed(seed: int, rows: int = 40, values: tuple[Any, ...] = VALUES) -> dict[str, pa.Table]:
    """Return three streams whose rows are in rooms, some in none."""
    found = {}
    for at, (name, table) in enumerate(cases.streams(seed, rows).items()):
        rng = np.random.default_rng([seed, at])
        rooms = [values[int(own)] for own in rng.integers(0, len(values), rows)]
        found[name] = table.append_column("room", pa.array(rooms))
    return found


def alone(tables: Mapping[str, pa.Table], value: Any, column: str = "room") -> dict[str, pa.Table]:
    """Return the streams with all rows but those of one value in no lane; rows keep numbers."""
    found = {}
    for name, table in tables.items():
        cells = [own if own == value else None for own in table.column(column).to_pylist()]
        at = table.schema.get_field_index(column)
        kind = table.schema.field(column).type
        found[name] = table.set_column(at, column, pa.array(cells, kind))
    return found


def by_value(
    tables: Mapping[str, pa.Table], case: cases.Case, column: str = "room", **options: Any
) -> list[naive.Output]:
    """Return what the oracle joins value by value, with row numbers of the whole."""
    outputs = []
    values = {own for table in tables.values() for own in table.column(column).to_pylist()}
    for value in values - {None}:
        rows = {
            name: [i for i, own in enumerate(table.column(column).to_pylist()) if own == value]
            for name, table in tables.items()
        }
        own = {name: table.take(rows[name]) for name, table in tables.items()}
        for members, *rest in expected(own, case, **options):
            numbers = (rows[name][i] for name, i in zip(NAMES, members, strict=True))
            outputs.append((tuple(numbers), *rest))
    return sorted(outputs, key=lambda output: (output[1], output[0]))


@pytest.mark.parametrize("name", ["int", "band", "sets", "cosine", "theta of a module"])
@pytest.mark.parametrize("graph", ["clique", "star"])
def test_every_value_is_a_join_of_its_own(tmp_path: Path, name: str, graph: str) -> None:
    tables = roomed(5)
    cases.write(tmp_path, tables, row_group_size=7)
    done = joined(tmp_path, CASES[name], partition_by="room", join_graph=graph)
    assert done.rows == by_value(tables, CASES[name], graph=graph)
    assert done.rows
    report = done.report
    nulls = {n: tables[n].column("room").null_count for n in NAMES}
    assert all(report["null_keys"][n] >= own for n, own in nulls.items())
    assert report["rows"] == {n: table.num_rows for n, table in tables.items()}
    told = report["lanes"]
    assert (told["partition_by"], told["per_group"], told["groups"]) == (["room"], 1, 2)
    assert told["replayed"] == 2
    assert [own["lane"] for own in told["by_lane"]] == [["north"], ["south"]]
    assert sum(own["outputs"] for own in told["by_lane"]) == len(done.rows)
    for stream in NAMES:
        assert sum(own["joined"][stream] for own in told["by_lane"]) == report["joined"][stream]


@pytest.mark.parametrize(
    "options",
    [{"window": "rows:3"}, {"method": "lazy-nlj", "tau": 5}, {"method": "eager-hash"}],
    ids=["rows", "lazy", "hash"],
)
def test_windows_of_tuples_and_p3s_algorithms(tmp_path: Path, options: dict[str, Any]) -> None:
    tables = roomed(6)
    cases.write(tmp_path, tables)
    windows = [("rows", 3)] * 3 if "window" in options else cases.WINDOWS
    done = joined(tmp_path, CASES["int"], partition_by="room", **options)
    assert done.rows == by_value(tables, CASES["int"], windows=windows)
    whole = {n: own for n, own in done.report["method"].items() if n in ("insertions", "peak")}
    parts = Counter()
    for value in ("north", "south"):
        place = tmp_path / value
        place.mkdir()
        cases.write(place, alone(tables, value))
        own = joined(place, CASES["int"], partition_by="room", **options).report["method"]
        parts.update({name: own[name] for name in whole})
    assert whole == dict(parts)


@pytest.mark.parametrize("column", ["small", "word", "bits", "day", "moment", "zoned", "money"])
def test_columns_of_any_type_make_lanes(tmp_path: Path, column: str) -> None:
    tables = cases.streams(8, 30)
    cases.write(tmp_path, tables)
    given = {"partition_by": column}
    if column == "small":
        given["partition_by"] = "a=k,b=small,c=unsigned"
        tables = {
            n: t.drop(["small"]).append_column("small", t.column("k")) for n, t in tables.items()
        }
    done = joined(tmp_path, CASES["band"], **given)
    assert done.rows == by_value(tables, CASES["band"], column)
    assert done.rows
    values = {own for t in tables.values() for own in t.column(column).to_pylist()}
    assert done.report["lanes"]["groups"] == len(values - {None})


def test_several_columns(tmp_path: Path) -> None:
    tables = {
        name: table.append_column(
            "both",
            pa.array([
                None if None in pair else f"{pair[0]} {pair[1]}"
                for pair in zip(
                    table.column("room").to_pylist(), table.column("yes").to_pylist(), strict=True
                )
            ]),
        )
        for name, table in roomed(9).items()
    }  # fmt: skip
    cases.write(tmp_path, tables)
    done = joined(tmp_path, CASES["band"], partition_by="room,yes")
    assert done.rows == by_value(tables, CASES["band"], "both")
    assert [own["lane"] for own in done.report["lanes"]["by_lane"]] == [
        ["north", False], ["north", True], ["south", False], ["south", True],
    ]  # fmt: skip


BUDGETS: dict[str, dict[str, Any]] = {
    "throttle": {"throttle": 0.3, **SHED},
    "capacity": {"capacity": 40, **SHED},
    "random drop": {"capacity": 9, "shedding": "random-drop", **SHED},
    "memory": {"memory": "20%", "policy": "prob"},
    "one memory": {"memory": 6, "split": "pooled", "policy": "dgl"},
    "age": {"memory": "30%", "policy": "age"},
}


@pytest.mark.parametrize("name", BUDGETS)
def test_a_lane_within_a_budget_is_as_if_it_were_alone(tmp_path: Path, name: str) -> None:
    options, tables = BUDGETS[name], roomed(11, 60)
    cases.write(tmp_path, tables)
    done = joined(tmp_path, CASES["int"], partition_by="room", **options)
    assert done.report["exact"]["outputs"] == len(by_value(tables, CASES["int"]))
    rows = []
    for own in done.report["lanes"]["by_lane"]:
        (value,) = own["lane"]
        place = tmp_path / value
        place.mkdir()
        cases.write(place, alone(tables, value))
        given = options | ({"capacity": own["capacity"]} if "capacity" in options else {})
        single = joined(place, CASES["int"], partition_by="room", **given)
        assert single.report["result"]["outputs"] == own["outputs"]
        assert single.report["exact"]["outputs"] == own["exact_outputs"]
        if "comparisons" in own:
            assert single.report["harvest"]["comparisons"] == own["comparisons"]
        rows += single.rows
    assert done.rows == sorted(rows, key=lambda output: (output[1], output[0]))
    assert 0 < len(rows) < done.report["exact"]["outputs"]
    if "capacity" in options:
        given = [own["capacity"] for own in done.report["lanes"]["by_lane"]]
        assert sum(given) == pytest.approx(options["capacity"])


def test_the_best_possible_of_lanes_is_that_of_all(tmp_path: Path) -> None:
    tables = roomed(12, 50)
    cases.write(tmp_path, tables)
    given = {"partition_by": "room", "memory": 6, "policy": "prob", "bound": "auto"}
    whole = joined(tmp_path, CASES["int"], **given).report["bound"]
    parts = []
    for value in ("north", "south"):
        place = tmp_path / value
        place.mkdir()
        cases.write(place, alone(tables, value))
        parts.append(joined(place, CASES["int"], **given).report["bound"])
    for own in ("lower", "upper"):
        assert whole[own] == pytest.approx(sum(part[own] for part in parts))


def test_hash_lanes_lose_no_output_and_compare_less(tmp_path: Path) -> None:
    tables = cases.streams(13, 60)
    cases.write(tmp_path, tables)
    given = {"throttle": 1.0, **SHED}
    whole = joined(tmp_path, CASES["int"], **given)
    assert whole.rows == expected(tables, CASES["int"])
    for number in (1, 2, 5):
        cut = joined(tmp_path, CASES["int"], lanes=number, **given)
        assert cut.rows == whole.rows
        told = cut.report["lanes"]
        assert (told["per_group"], told["groups"], len(told["by_lane"])) == (number, 1, number)
        assert cut.report["joined"] == whole.report["joined"]
        assert cut.report["rows"] == whole.report["rows"]
        less = cut.report["harvest"]["comparisons"] < whole.report["harvest"]["comparisons"]
        assert less == (number > 1)


def test_vectors_with_equal_attributes_beside_have_hash_lanes(tmp_path: Path) -> None:
    case = CASES["equi and cosine"]
    tables = cases.streams(14, 50)
    cases.write(tmp_path, tables)
    done = joined(tmp_path, case, lanes=3, throttle=1.0, **SHED)
    assert done.rows == expected(tables, case)
    assert done.rows


def test_a_capacity_goes_where_it_yields_most() -> None:
    rng = np.random.default_rng(3)
    n = 600
    tables = {}
    for name in ("a", "b"):
        rooms = rng.integers(0, 2, n)
        value = np.where(rooms == 0, rng.integers(0, 4, n), rng.integers(0, 400, n))
        tables[name] = pa.table({"t": np.arange(n), "v": value, "room": rooms})
    given = {"predicate": "band:v:0.5", "time": "t", "window": 60, **SHED}
    found = multijoin(tables, partition_by="room", capacity=20, **given).report
    many, few = found["lanes"]["by_lane"]
    assert many["capacity"] > 5 * few["capacity"]
    assert many["capacity"] + few["capacity"] == pytest.approx(20)
    evenly = sum(
        multijoin(alone(tables, room), partition_by="room", capacity=10, **given).report["result"][
            "outputs"
        ]
        for room in (0, 1)
    )
    assert found["result"]["outputs"] > 1.2 * evenly


@pytest.mark.parametrize("number", [1, 2, 3, 8])
@pytest.mark.parametrize("options", [{}, {"throttle": 0.3, **SHED}, {"capacity": 40, **SHED}])
def test_any_number_of_tasks_gives_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], number: int
) -> None:
    tables = roomed(15, 40, ("a", "b", "c", "d", "e", None))
    cases.write(tmp_path, tables, row_group_size=9)
    whole = joined(tmp_path, CASES["int"], partition_by="room", **options)
    monkeypatch.setattr(lanes, "_number", lambda *_: number)
    cut = joined(tmp_path, CASES["int"], partition_by="room", **options)
    assert cut.rows == whole.rows
    assert cases.without_runs(cut.report) == cases.without_runs(whole.report)
    assert cut.report["slices"] == min(5, number)


def test_lanes_are_drawn_and_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases.write(tmp_path, roomed(18))
    done = joined(tmp_path, CASES["int"], partition_by="room", throttle=0.3, **SHED)
    said = capsys.readouterr().out
    for lane in done.report["lanes"]["by_lane"]:
        (row,) = [line for line in said.splitlines() if f" {lane['lane'][0]} " in line]
        assert f" {lane['outputs']} " in row
        assert f" {lane['exact_outputs']} " in row
    shown = multijoin_shown(Report(done.report))
    assert shown.pictured is None  # there are no intervals of all lanes to draw
    (chart,) = [own for own in shown.drawn() if own.title == "Outputs by room"]
    both = {own["lane"][0]: own for own in done.report["lanes"]["by_lane"]}
    found, lost = (dict(zip(chart.names, own.values, strict=True)) for own in chart.series)
    for name, own in both.items():
        assert (found[name], found[name] + lost[name]) == (own["outputs"], own["exact_outputs"])


def test_lanes_are_dealt_out_evenly() -> None:
    rows = Counter({(at,): size for at, size in enumerate([9, 1, 1, 8, 3, 3, 2])})
    found = dealt(rows, 3)
    assert sorted(lane for own in found for lane in own) == sorted(rows)
    assert sorted(sum(rows[lane] for lane in own) for own in found) == [9, 9, 9]
    assert dealt(Counter(), 4) == [((),)]


def test_no_lane_at_all(tmp_path: Path) -> None:
    tables = roomed(16, 10, (None,))
    tables = {n: t.set_column(t.num_columns - 1, "room", pa.nulls(10, pa.string()))
              for n, t in tables.items()}  # fmt: skip
    cases.write(tmp_path, tables)
    for options in ({}, {"throttle": 0.5, **SHED}, {"memory": 4}):
        done = joined(tmp_path, CASES["int"], partition_by="room", **options)
        assert done.rows == []
        assert done.report["lanes"]["groups"] == 0
        assert done.report["null_keys"] == dict.fromkeys(NAMES, 10)


def test_bad_rows_are_told_once(tmp_path: Path) -> None:
    tables = roomed(17, 30)
    wrong = tables["b"].column("i").to_pylist()
    wrong[4] = -1.0
    at = tables["b"].schema.get_field_index("i")
    tables["b"] = tables["b"].set_column(at, "i", pa.array(wrong))
    cases.write(tmp_path, tables)
    done = joined(tmp_path, CASES["int"], partition_by="room", bad_rows="quarantine")
    assert done.report["rejected"] == {"a": 0, "b": 1, "c": 0}
    options = multijoin_options(
        tables, None, {"predicate": "equi:k", "time": "t", "importance": "i", "window": 5,
                       "partition_by": "room"},
    )  # fmt: skip
    with pytest.raises(InputError, match=r"row 4"):
        run_multijoin(options, SerialExecutor())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partition_by": "rom"}, "has no column 'rom'.* Did you mean 'room'"),
        ({"partition_by": {"a": "room"}}, "names room of a, none of b, none of c: name equally"),
        ({"partition_by": {"a": "room", "": "k"}}, r"\(string\) and column k .*cast"),
        ({"partition_by": "room", "slices": 2}, "partition_by and slices divide the join"),
        ({"lanes": 2}, "lanes are of joins that shed load.*slices.*partition_by"),
        ({"lanes": 2, "memory": 5}, "lanes are of joins that shed load"),
        ({"lanes": 2, "throttle": 0.5, "predicate": "band:v:1", **SHED}, "of equal attributes"),
        ({"lanes": 2, "throttle": 0.5, "partition_by": "room", **SHED}, "give one of them"),
        ({"slices": 2, "method": "eager-nlj"}, "cut joins by method auto.*eager-nlj"),
    ],
)
def test_what_does_not_go_together_is_said(options: dict[str, Any], message: str) -> None:
    given = {"predicate": "equi:k", "time": "t", "window": 5} | options
    with pytest.raises((SpecError, InputError), match=message):
        multijoin(roomed(1, 5), **given)


def test_what_indexes_cost_is_what_capacities_are_divided_by() -> None:
    tables = roomed(19, 200, ("north", "south"))
    given = {"predicate": "band:v:0.1", "time": "t", "window": 9, "partition_by": "room", **SHED}
    found = [
        [own["capacity"] for own in multijoin(tables, capacity=500, probe=probe, **given).report[
            "lanes"]["by_lane"]]
        for probe in ("scan", "index")
    ]  # fmt: skip
    assert found[0] != found[1]
    assert [sum(own) for own in found] == pytest.approx([500, 500])


@pytest.mark.parametrize(
    ("names", "outputs"),
    [("x=y", 5), (["x=y"], 5), (["x=y", "a,b"], 3), ({"x": "a,b", "y": ["a,b"]}, 5)],
)
def test_pythons_columns_have_any_name(names: Any, outputs: int) -> None:
    rows = pa.table({"t": [1, 2, 3], "k": [1, 1, 1], "x=y": [1, 1, 2], "a,b": [1, 2, 2]})
    found = multijoin(
        {"x": rows, "y": rows}, predicate="equi:k", time="t", window=9, partition_by=names
    )
    assert found.outputs.num_rows == outputs


def test_pythons_times_and_importances_have_any_name() -> None:
    rows = pa.table({"x=t": [1, 2, 3], "k": [1, 1, 1], "x,y=i": [1.0, 2.0, 3.0]})
    streams = {"x": rows, "y": rows}
    named: dict[str, Any] = {"time": "x=t", "importance": "x,y=i"}
    found = multijoin(streams, predicate="equi:k", window=9, **named)
    assert sum(found.outputs["importance"].to_pylist()) == 14
    assert (
        estimate(streams, predicate="equi:k", window=9, **named).outputs["estimate"][0].as_py() == 9
    )
