"""Estimates of several streams: exact where everything is read, and in every slice."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import naive_multijoin as naive
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from estimate_cases import several_archives

import winnow
from engine.commands import main
from engine.jobs.estimate.several import streams_plan
from engine.jobs.estimate.task import join_stretch
from engine.jobs.multijoin.join_task import open_join
from engine.options.estimate_streams import ESTIMATE_STREAMS, estimate_streams_of
from engine.runtime.errors import InputError, SpecError

Streams = dict[str, pa.Table]
PREDICATES: dict[str, tuple[naive.Meets, tuple[str, ...]]] = {
    "equi:k": (naive.equi(), ("k",)),
    "band:v:1.5": (naive.band(1.5), ("v",)),
    "distance:v,u:2": (naive.distance(2.0), ("v", "u")),
}


def streams(seed: int, number: int = 3, rows: int = 90, ticks: int = 150) -> Streams:
    """Return streams with ties, within and between them, and nulls."""
    rng = np.random.default_rng(seed)
    return {
        name: pa.table(
            {
                "t": np.sort(rng.integers(0, ticks, rows)),
                "k": pa.array(rng.integers(0, 4, rows), mask=rng.random(rows) < 0.1),
                "v": pa.array(rng.integers(0, 12, rows) / 2, mask=rng.random(rows) < 0.1),
                "u": rng.integers(0, 6, rows) / 2,
                "w": rng.integers(0, 9, rows) / 4,
                "x": rng.normal(0, 5, rows),
                "g": rng.choice(["p", "q"], rows),
            }
        )
        for name in "abcd"[:number]
    }


def written(folder: Path, tables: Streams, size: int = 10) -> dict[str, str]:
    found = {}
    for name, table in tables.items():
        found[name] = str(folder / f"{name}.parquet")
        pq.write_table(table, found[name], row_group_size=size)
    return found


def outputs(
    tables: Streams, predicate: str, windows: list[int], graph: str, combine: str
) -> list[naive.Output]:
    meets, columns = PREDICATES[predicate]
    found = []
    for table in tables.values():
        cells = list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))
        rest = (table.column(name).to_pylist() for name in ("t", "w"))
        found.append(
            [
                naive.Tuple(ts, row, own if len(own) > 1 else own[0], weight)
                for row, (own, ts, weight) in enumerate(zip(cells, *rest, strict=True))
                if None not in own
            ]
        )
    sizes = [("ticks", size) for size in windows]
    return naive.exact(found, sizes, meets, graph=graph, combine=combine)


@pytest.mark.parametrize("graph", ["clique", "star"])
@pytest.mark.parametrize("predicate", PREDICATES)
def test_all_of_a_join_is_the_oracles(tmp_path: Path, predicate: str, graph: str) -> None:
    tables = streams(len(predicate))
    texts = [
        "count", "sum(importance)", "avg(b.x)", "sum(c.x) by a.g, c.g every 40",
        "count(a.v) every 25", "avg(importance) by b.g",
    ]  # fmt: skip
    found = winnow.estimate(
        written(tmp_path, tables), predicate=predicate, join_graph=graph, time="t",
        importance="w", window={"a": 6, "": 4}, combine="sum", aggregates=texts, within=0.001,
    )  # fmt: skip
    assert found.report["how"] == "exact join"
    pairs = outputs(tables, predicate, [6, 4, 4], graph, "sum")
    assert len(pairs) > 100
    columns = {n: {c: own.column(c).to_pylist() for c in "gxv"} for n, own in tables.items()}
    names = list(tables)

    def cell(rows: tuple[int, ...], name: str, column: str) -> Any:
        return columns[name][column][rows[names.index(name)]]

    def check(
        text: str,
        value: Callable[[tuple[int, ...], float], float | None],
        by: tuple[str, ...] = (),
        every: int = 0,
    ) -> None:
        wanted: dict[Any, list[float]] = {}
        for rows, ts, weight in pairs:
            begin = ts // every * every if every else None
            key = (begin, *(cell(rows, *name.split(".")) for name in by))
            own = value(rows, weight)
            wanted.setdefault(key, []).extend([] if own is None else [own])
        for line in found.aggregates[text].to_pylist():
            own = wanted.pop((line["window_begin"], *(line[name] for name in by)), [])
            total = sum(own) / len(own) if text.startswith("avg") else sum(own)
            assert line["estimate"] == pytest.approx(total, rel=1e-9, abs=1e-9), (text, line)
        assert not wanted

    check("count", lambda _rows, _weight: 1.0)
    check("sum(importance)", lambda _rows, weight: weight)
    check("avg(b.x)", lambda rows, _weight: cell(rows, "b", "x"))
    check("sum(c.x) by a.g, c.g every 40", lambda rows, _weight: cell(rows, "c", "x"),
          ("a.g", "c.g"), 40)  # fmt: skip
    check("count(a.v) every 25", lambda rows, _weight: (
        None if cell(rows, "a", "v") is None else 1.0), every=25)  # fmt: skip
    check("avg(importance) by b.g", lambda _rows, weight: weight, ("b.g",))


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("graph", ["clique", "star"])
@pytest.mark.parametrize("predicate", PREDICATES)
def test_every_output_is_in_one_slice(
    tmp_path: Path, predicate: str, graph: str, number: int
) -> None:
    rows = 200 if number == 2 else 80
    tables = streams(number, number, rows=rows, ticks=rows)
    windows = [1, 2, 0][:number]
    given = ESTIMATE_STREAMS.from_keywords(
        {"predicate": predicate, "join_graph": graph, "time": "t",
         "window": dict(zip(tables, windows, strict=True))}
    )  # fmt: skip
    asked = estimate_streams_of(written(tmp_path, tables, 4), given)
    plan = streams_plan(asked, open_join(asked.base))
    found = [join_stretch(plan.task(place)).sums[0].sums[0, 0] for place in range(plan.slices)]
    pairs = outputs(tables, predicate, windows, graph, "min")
    wanted = [
        sum(begin <= ts < end for _, ts, _ in pairs) for begin, end in pairwise(plan.edges.tolist())
    ]
    assert len(found) > 4
    assert found == wanted
    assert sum(wanted) > 0


def test_intervals_of_several_streams_hold_what_the_join_has(tmp_path: Path) -> None:
    options = several_archives(tmp_path)
    truth = winnow.multijoin(
        options["left"], predicate="band:v:0.1", time="t", window=5, columns="ids",
        out=tmp_path / "out",
    ).report  # fmt: skip
    held = 0
    for seed in range(20):
        found = winnow.estimate(**options, aggregates=["count", "sum(c.v)"], read="15%", seed=seed)
        assert found.report["how"] == "sample"
        assert found.report["read"]["share"] < 0.3
        [line] = found.aggregates["count"].to_pylist()
        exact = truth["result"]["outputs"]
        assert line["high"] - line["low"] < 0.3 * exact
        held += line["low"] <= exact <= line["high"]
    assert held >= 17


def test_the_streams_are_told_and_can_be_drawn(tmp_path: Path) -> None:
    options = several_archives(tmp_path)
    found = winnow.estimate(options.pop("left"), **options, start_ts=1000)
    assert list(found.report["rows"]) == ["a", "b", "c"]
    assert found.report["window"] == {"a": 5, "b": 5, "c": 5, "tick": "tick", "zone": None}
    assert found.report["predicate"] == "band:v:0.1"
    assert found.report["by_time"][0]["from"] == 1000
    [axis] = found.plot().axes
    assert "count(*) over time" in axis.get_title(loc="left")


def test_groups_and_small_numbers_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        table = {"t": [0, 0, 1], "k": [1, 2, 2], "v": [0.00289, 7.0, 9.0], "g": ["x", "y", "y"]}
        pq.write_table(pa.table(table), tmp_path / f"{name}.parquet")
    streams = [f"--stream={name}={tmp_path}/{name}.parquet" for name in "ab"]
    asked = ["--aggregate", "avg(a.v) by b.g", "--engine", "local"]
    assert not main(
        ["estimate", *streams, "--predicate", "equi:k", "--time", "t", "--window", "9", *asked]
    )
    lines = [line.split("│") for line in capsys.readouterr().out.splitlines() if "│" in line]
    assert [[cell.strip() for cell in line[1:3]] for line in lines] == [
        ["x", "0.00289"], ["y", "8.00"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"window": "rows:9"}, r"window of stream a counts tuples.* give ticks or a duration"),
        ({"aggregates": "sum(left.v)"}, r"'left.v' is no value: give a.COLUMN, b.COLUMN, c.COL"),
        ({"predicate": None}, r"predicate is missing"),
        ({"window": None}, r"window of stream a is missing"),
        ({"start_ts": "x"}, r"x"),
    ],
)
def test_options_that_mean_nothing(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    given = {**several_archives(tmp_path, rows=600), **options}
    with pytest.raises(SpecError, match=said):
        winnow.estimate(**given)


def test_tables_and_columns_that_there_are_not(tmp_path: Path) -> None:
    options = several_archives(tmp_path, rows=600)
    with pytest.raises(InputError, match=r"stream b has no column 'z'"):
        winnow.estimate(**options, aggregates="sum(b.z)")
    tables: Any = {**options.pop("left"), "c": pa.table({"t": [1], "v": [1.0]})}
    with pytest.raises(InputError, match=r"stream c has no column 'z'"):
        winnow.estimate(tables, **(options | {"aggregates": "sum(c.z)"}))
    with pytest.raises(TypeError, match=r"unexpected keyword 'memory': a memory is of two"):
        winnow.estimate(tables, **options, memory=3)
