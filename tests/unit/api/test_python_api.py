"""The functions on Arrow tables and on archives: the oracle's rows, and the command line's."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_cases import (
    MEMORY,
    WINDOW,
    Streams,
    only,
    oracle,
    outputs_of,
    stream,
    streams,
    table,
    winnow,
)
from replay_cases import remaining

import winnow as the_package
from engine.api.pairs import replay
from engine.api.result import Result
from engine.runtime.errors import InputError, SpecError

TIMED: dict[str, Any] = {
    "on": "k", "time": "t", "importance": "i", "window": WINDOW, "memory": MEMORY, "policy": "dgl"
}  # fmt: skip
CURVES = {"curve_left": [1.0, 3.0, 2.0], "curve_right": [1.0, 3.0, 2.0]}
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "defaults": ({}, {}),
    "text": ({"window": str(WINDOW), "memory": str(MEMORY)}, {}),
    "sides": (
        {"window": None, "window_left": 3, "window_right": "20"},
        {"window_left": 3, "window_right": 20},
    ),
    "nothing": ({"window": 0, "memory": 0}, dict.fromkeys(
        ("window_left", "window_right", "budget_left", "budget_right"), 0)),
    "one side": (
        {"memory": None, "memory_right": 0},
        {"budget_left": None, "budget_right": 0},
    ),
    "exact": ({"memory": None, "policy": None}, {"budget_left": None, "budget_right": None}),
    "policy": (
        {"policy": "rand", "seed": 9, "probe": "after_admission", "combine": "mean"},
        {"policy": "rand", "seed": 9, "probe": "after_admission", "combine_name": "mean"},
    ),
    "parameters": (
        {"params": {"alpha": 2, "beta": "0.25"}, "estimator": "window", "start_ts": 30},
        {"params": {"alpha": 2, "beta": 0.25}, "estimator": "window", "start_ts": 30},
    ),
    "curves": (
        {"policy": "age", "params": {"curve": [1.0, 3.0, 2.0]}},
        {"policy": "age", "params": CURVES},
    ),
    "function": (
        {"policy": "custom", "params": {"function": remaining}},
        {"policy": "custom", "params": {"function": remaining}},
    ),
}  # fmt: skip
TIMES = {"seconds", "tuples_per_second", "out"}


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Streams:
    return streams(tmp_path_factory.mktemp("api"), seed=3)


@pytest.fixture
def tables(case: Streams) -> list[pa.Table]:
    return [pq.read_table(case.folder / f"{side}.parquet") for side in ("left", "right")]


@pytest.mark.parametrize("name", OPTIONS)
def test_tables_give_the_oracles_rows(case: Streams, tables: list[pa.Table], name: str) -> None:
    options, settings = OPTIONS[name]
    found = replay(*tables, **(TIMED | options))
    assert outputs_of(found.outputs) == oracle(case.left, case.right, **settings)
    assert found.rejected == {}


def test_tables_archives_and_the_command_line_agree(
    case: Streams, tables: list[pa.Table], tmp_path: Path
) -> None:
    theirs = winnow(case.folder, policy="simpprob", lanes=2)
    ours = replay(*tables, **(TIMED | {"policy": "simpprob"}), lanes=2)
    report = replay(
        case.folder / "left.parquet",
        str(case.folder / "*ight.parquet"),
        out=tmp_path / "out",
        cache=tmp_path / "cache",
        **(TIMED | {"policy": "simpprob"}),
        lanes=2,
    ).report
    assert ours.outputs.equals(theirs.table)
    assert pq.read_table(tmp_path / "out").equals(theirs.table)
    for name in theirs.report.keys() - TIMES:
        assert ours.report[name] == report[name] == theirs.report[name]
    assert ours.report["out"] is None
    assert report["out"] == str(tmp_path / "out")


def test_archives_are_replayed_as_they_lie(case: Streams, tmp_path: Path) -> None:
    report = replay(
        *(case.folder / f"{side}.parquet" for side in ("left", "right")),
        cache=tmp_path,
        **TIMED,
    ).report
    assert report["result"]["outputs"] == len(oracle(case.left, case.right))
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_outputs_are_counted_alone(
    case: Streams, tables: list[pa.Table], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kept = replay(*tables, **TIMED)
    files = [case.folder / f"{side}.parquet" for side in ("left", "right")]
    before = {*tmp_path.iterdir()}
    for streams_ in (tables, files):
        found = replay(*streams_, count_only=True, **TIMED)
        assert {*tmp_path.iterdir()} == before
        assert found.report.result == kept.report.result
        assert found.report.result.outputs == kept.outputs.num_rows
        assert "recall" in found._repr_html_()
        for take in (Result.to_pandas, Result.to_polars, pa.table):
            with pytest.raises(SpecError, match="only counted: leave count_only out"):
                take(found)
    with pytest.raises(SpecError, match="count_only keeps no outputs, and out is where"):
        replay(*tables, count_only=True, out=tmp_path / "out", **TIMED)


def test_uuids_are_keys_and_groups(tables: list[pa.Table]) -> None:
    def with_uuids(table: pa.Table) -> pa.Table:
        keys = [None if key is None else UUID(int=key).bytes for key in table["k"].to_pylist()]
        prices = pa.array([Decimal(1), None] * (len(keys) // 2), pa.decimal64(9, 2))
        at = table.schema.get_field_index("k")
        return table.set_column(at, "k", pa.array(keys, pa.uuid())).append_column("price", prices)

    named = [*map(with_uuids, tables)]
    kept, found = replay(*tables, **TIMED), replay(*named, **TIMED)
    ids = ["left_row", "right_row", "ts"]
    assert found.outputs.select(ids).equals(kept.outputs.select(ids))
    assert found.outputs.schema.field("left_k").type == pa.uuid()
    whole = {name: TIMED[name] for name in ("on", "time", "window")} | {"fraction": 1}
    by_key, price = "count(*) by right.k", "count(*) by left.price"
    plain = the_package.sample(*tables, **whole, aggregates=by_key).aggregates[by_key]
    groups = the_package.sample(*named, **whole, aggregates=[by_key, price]).aggregates
    assert groups[by_key]["estimate"].equals(plain["estimate"])
    assert groups[price]["left.price"].to_pylist() == [Decimal(1), None]
    facts = named[0].select(["k"]).append_column("n", pa.array(range(len(named[0]))))
    facts = facts.filter(facts["k"].is_valid())
    looked = the_package.lookup(named[1], facts, on="k", time="t")
    first = tables[0]["k"].to_pylist()
    assert looked.outputs.num_rows == sum(
        first.count(key) for key in tables[1]["k"].to_pylist() if key is not None
    )


def test_payload_keeps_its_types(case: Streams, tables: list[pa.Table]) -> None:
    rows = tables[0].num_rows
    more = {
        "word": pa.array(["a", None] * (rows // 2)).dictionary_encode(),
        "when": pa.array(range(rows), pa.timestamp("s")),
        "long": pa.array(["x"] * rows, pa.large_string()),
    }
    left = tables[0]
    for name, column in more.items():
        left = left.append_column(name, column)
    found = replay(left, tables[1], **TIMED).outputs
    for name, column in more.items():
        assert found.schema.field(f"left_{name}").type == column.type
        expected = pa.chunked_array([column]).take(found.column("left_row"))
        assert found.column(f"left_{name}").to_pylist() == expected.to_pylist()
    assert outputs_of(found) == oracle(case.left, case.right)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("window", [WINDOW, "9s"])
def test_a_tick_is_the_unit_of_the_timestamps(case: Streams, unit: str, window: int | str) -> None:
    scale = 1 if window == WINDOW else {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    sides, tables = [], []
    for rows in (case.left, case.right):
        sides.append([(t * scale, k, i) for t, k, i in rows])
        times = pa.array([t for t, *_ in sides[-1]], pa.timestamp(unit))
        tables.append(table(rows).set_column(0, "t", times))
    start = 20 if window == WINDOW else "1970-01-01T00:00:20Z"
    found = replay(*tables, **(TIMED | {"window": window, "start_ts": start}))
    windows = {"window_left": WINDOW * scale, "window_right": WINDOW * scale}
    assert outputs_of(found.outputs) == oracle(*sides, **windows, start_ts=20 * scale)
    assert found.outputs.schema.field("left_t").type == pa.timestamp(unit)
    assert found.report["window"] == {
        "left": WINDOW * scale,
        "right": WINDOW * scale,
        "tick": unit,
        "zone": None,
    }


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_rejected_rows_come_back(unit: str) -> None:
    rows = stream(33)
    times = pa.array([None if i == 4 else t for i, (t, *_) in enumerate(rows)], pa.timestamp(unit))
    left = table(rows).set_column(0, "t", times)
    right = table(stream(34)).set_column(
        0, "t", pa.array([t for t, *_ in stream(34)], pa.timestamp(unit))
    )
    found = replay(left, right, **TIMED, bad_rows="quarantine")
    good = only(rows, set(range(len(rows))) - {4})
    assert outputs_of(found.outputs) == oracle(good, stream(34))
    ((side, rejected),) = found.rejected.items()
    assert side == "left"
    assert rejected.num_rows == found.report["rejected"]["left"] == 1
    assert "null time" in rejected.to_pylist()[0].values()


def test_several_keys_and_partitions() -> None:
    sides, tables, groups = (stream(35), stream(36)), [], []
    for rows in sides:
        group = [(t + (k or 0)) % 2 for t, k, _ in rows]
        groups.append(group)
        tables.append(table(rows, g=group, one=[1] * len(rows)))
    found = replay(*tables, **(TIMED | {"on": ["k", "one"]}), partition_by=["g"])
    expected = []
    for value in (0, 1):
        own = [
            only(rows, {i for i, g in enumerate(group) if g == value})
            for rows, group in zip(sides, groups, strict=True)
        ]
        expected += oracle(*own)
    assert outputs_of(found.outputs) == sorted(expected, key=lambda o: (o[2], o[0], o[1]))


def test_empty_tables(tables: list[pa.Table]) -> None:
    found = replay(tables[0].slice(0, 0), tables[1], **TIMED)
    assert found.outputs.num_rows == 0
    assert found.outputs.schema.names[5:] == [f"left_{n}" for n in "tkip"] + [
        f"right_{n}" for n in "tkip"
    ]
    assert found.report["recall"] == 1.0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"policy": "simprob"}, SpecError, r"Did you mean 'simpprob'\?"),
        ({"on": None}, SpecError, "on is missing: name the column, or left_on and right_on"),
        ({"time": None}, SpecError, "time is missing"),
        ({"window": None}, SpecError, "window is missing"),
        ({"window": -1}, SpecError, "window -1 of stream left must be 0 ticks or more"),
        ({"on": "kk"}, InputError, r"left frame has no column 'kk'"),
        ({"on": "k, p"}, InputError, r"no column 'k, p'.* Give several .* list: \['k', 'p'\]"),
        ({"memory": 10.5}, SpecError, "is '10.5'; give a whole number of tuples"),
        ({"params": {"alfa": 1}}, SpecError, r"Did you mean 'alpha'\?"),
    ],
)
def test_errors_say_nothing_of_temporary_folders(
    tables: list[pa.Table], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        replay(*tables, **(TIMED | options))
    assert tempfile.gettempdir() not in str(caught.value)


def test_bad_rows_are_told_without_a_folder(tables: list[pa.Table]) -> None:
    bad = tables[0].set_column(2, "i", pa.array([-1.0] * tables[0].num_rows))
    with pytest.raises(InputError, match=r"^left frame: column i: 150 rows are negative"):
        replay(bad, tables[1], **TIMED)


def test_nothing_is_left_behind(tables: list[pa.Table], monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    replay(*tables, **TIMED)
    with pytest.raises(SpecError):
        replay(*tables, **(TIMED | {"combine": "avg"}))
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_keyword_is_no_option() -> None:
    with pytest.raises(TypeError, match="unexpected keyword 'windw'"):
        replay("a.parquet", "b.parquet", windw=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"unexpected keyword 'xyz': help\(replay\) lists all"):
        replay("a.parquet", "b.parquet", xyz=3)  # type: ignore[call-arg]
    for given in (("a.parquet", "b.parquet"), ({"a": "a.parquet", "b": "b.parquet"},)):
        with pytest.raises(TypeError, match=r"'xyz': help\(estimate\) lists all"):
            the_package.estimate(*given, xyz=3)  # type: ignore[call-overload]


def test_importing_the_package_loads_nothing_heavy() -> None:
    script = (
        "import winnow, sys; print([m for m in ('numba', 'numpy', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run(  # noqa: S603 - this interpreter, our own script
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = the_package.nothing


def test_what_runs_no_tasks_is_refused() -> None:
    wrong: Any = "spark"
    for call in (
        lambda: the_package.replay("a", "b", on="k", time="t", window=2, executor=wrong),
        lambda: the_package.allocate({}, executor=wrong),
        lambda: the_package.sample("a", "b", on="k", time="t", window=2, executor=wrong),
    ):
        with pytest.raises(TypeError, match=r"executor is 'spark', which runs no tasks: .*Spark"):
            call()


def test_a_message_has_names_of_one_kind() -> None:
    rows = table([(1, 1, 1.0)])
    with pytest.raises(SpecError, match=r"^memory and memory_left or memory_right exclude each"):
        the_package.replay(rows, rows, on="k", time="t", window=2, memory=4, memory_left=2)
