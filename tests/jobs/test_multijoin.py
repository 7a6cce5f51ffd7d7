"""Multi-way joins from archives and tables to outputs and report: rows are the oracle's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import multijoin_cases as cases
import naive_multijoin as naive
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from multijoin_cases import CASES, NAMES, WINDOWS, expected, found, joined, streams
from pyarrow import csv

import winnow
from engine.commands import main
from engine.options.multijoin import METHODS
from winnow import multijoin

winnow.register_theta("rises", cases.rises)
P3 = METHODS[1:]
GRAPHS = ("clique", "star")
SETTINGS: dict[str, dict[str, Any]] = {
    "lazy-nlj": {"tau": 7}, "general-lazy-nlj": {"tau": 3, "expire_every": 9},
    "lazy-hash": {"tau": 5, "buckets": 3}, "eager-hash": {"buckets": "a=2,5"},
    "hybrid": {"buckets": "b=4"}, "eager-nlj": {"expire_every": 8},
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return cases.write(tmp_path, streams(0))


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", CASES)
def test_every_predicate_from_archives_and_tables(tmp_path: Path, name: str, graph: str) -> None:
    case, some = CASES[name], 0
    for seed in range(3):
        tables = streams(seed)
        wanted = expected(tables, case, graph)
        some += len(wanted)
        place = tmp_path / str(seed)
        place.mkdir()
        cases.write(place, tables)
        archived = joined(place, case, join_graph=graph)
        assert archived.rows == wanted
        result = multijoin(
            tables, predicate=case.predicate, columns_of=case.columns, join_graph=graph, time="t",
            importance="i", window=dict(zip(NAMES, WINDOWS, strict=True)),
        )  # fmt: skip
        assert result.outputs is not None
        assert str(result.outputs.to_pylist()) == str(archived.outputs.to_pylist())  # with NaN
        assert result.outputs.schema.field("a_coded").type == tables["a"].schema.field("coded").type
        told = cases.without_runs(archived.report)
        assert cases.without_runs(result.report) == told
        nulls = {n: t.num_rows - len(own) for (n, t), own in
                 zip(tables.items(), cases.tuples(tables, case), strict=True)}  # fmt: skip
        assert told["null_keys"] == nulls
        assert told["rows"] == dict.fromkeys(NAMES, 16)
        assert told["joined"] == {own: 16 - number for own, number in nulls.items()}
        assert told["result"] == {
            "outputs": len(wanted), "importance": round(sum(o[2] for o in wanted), 9),
        }  # fmt: skip
        assert told["exact"] == told["result"]
    assert some


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *((name, method) for name in ("int", "several") for method in P3),
        *((name, method) for name in ("band", "sets", "theta") for method in P3 if "nlj" in method),
    ],
)
def test_every_method_of_p3_gives_the_same_rows(tmp_path: Path, name: str, method: str) -> None:
    case = CASES[name]
    tables = streams(5)
    cases.write(tmp_path, tables)
    options = SETTINGS.get(method, {})
    for graph in GRAPHS:
        wanted = expected(tables, case, graph)
        assert wanted
        for more in ({}, {"order": "c,a,b"}, {"window": "rows:5"}):
            done = joined(tmp_path, case, method=method, join_graph=graph, **(options | more))
            if "window" in more:
                assert done.rows == expected(tables, case, graph, windows=[("rows", 5)] * 3)
                continue
            assert done.rows == wanted
            told = done.report["method"]
            assert told["name"] == method
            if "order" in more and method != "general-lazy-nlj":
                assert told["orders"] == [["c", "a", "b"]]
            assert told["insertions"] == sum(done.report["joined"].values())
            assert told["comparisons"] > 0
            assert (told["max_delay"] > 0) == ("lazy" in method)


def test_the_work_told_is_the_oracles(tmp_path: Path) -> None:
    tables, case = streams(6), CASES["band"]
    cases.write(tmp_path, tables)
    done = joined(tmp_path, case, method="eager-nlj", order="b,c,a").report["method"]
    windows = [("ticks", own) for own in WINDOWS]
    run = naive.run("eager-nlj", cases.tuples(tables, case), windows, case.meets, "clique",
                    transitive=False, order=(1, 2, 0))  # fmt: skip
    for name in ("comparisons", "visits", "insertions", "expirations", "accesses", "peak"):
        assert done[name] == getattr(run, name), name


@pytest.mark.parametrize("combine", naive.COMBINES)
def test_importance_and_the_first_time(folder: Path, combine: str) -> None:
    wanted = expected(streams(0), CASES["int"], combine=combine, start_ts=20)
    done = joined(folder, combine=combine, start_ts=20)
    assert done.rows == wanted
    assert done.report["start_ts"] == 20
    assert done.report["combine"] == combine


def test_windows_are_durations_on_times_and_numbers_of_tuples(folder: Path) -> None:
    wanted = expected(streams(0), CASES["int"])
    given = {"time": "at", "window": "a=9s,b=6s,c=0.2min", "start_ts": "1970-01-01"}
    done = joined(folder, **given)
    moments = streams(0)["a"].column("at").cast(pa.int64())
    shift = moments[0].as_py() - streams(0)["a"].column("t")[0].as_py() * 10**6
    at = done.outputs.schema.get_field_index("ts")
    assert done.outputs.schema.field("ts").type == streams(0)["a"].schema.field("at").type
    ticks = done.outputs.set_column(at, "ts", done.outputs["ts"].cast(pa.int64()))
    assert cases.found(ticks) == [(o[0], o[1] * 10**6 + shift, o[2]) for o in wanted]
    ticks = {"a": 9 * 10**6, "b": 6 * 10**6, "c": 12 * 10**6}
    assert done.report["window"] == {**ticks, "tick": "us", "zone": None}
    mixed = joined(folder, window="a=rows:3,b=6,c=rows:0")
    windows = [("rows", 3), 6, ("rows", 0)]
    assert mixed.rows == expected(streams(0), CASES["int"], windows=windows)
    told = {"a": "rows:3", "b": 6, "c": "rows:0", "tick": "tick", "zone": None}
    assert mixed.report["window"] == told


def test_a_report_tells_times_in_their_zone() -> None:
    at = pa.array([0, 60_000_000, 125_000_000], pa.timestamp("us", "Europe/Berlin"))
    found = winnow.multijoin(
        {name: pa.table({"at": at, "k": [1, 1, 2]}) for name in NAMES},
        predicate="equi:k", time="at", window="1min",
    )  # fmt: skip
    assert found.report.window.zone == "Europe/Berlin"
    assert found.report.lost.by_time[0].begin == "1970-01-01 01:00:00+01:00"


def test_payload_or_ids_alone(folder: Path) -> None:
    whole, ids = joined(folder), joined(folder, columns="ids")
    assert ids.outputs.column_names == ["a_row", "b_row", "c_row", "ts", "importance", "weight"]
    assert whole.outputs.select(ids.outputs.column_names).equals(ids.outputs)
    for name, table in streams(0).items():
        rows = whole.outputs.column(f"{name}_row")
        for column in ("p", "tags", "vec", "money", "coded"):
            given = table.column(column).take(rows).combine_chunks()
            own = whole.outputs.column(f"{name}_{column}").to_pylist()
            assert own == given.to_pylist(), column
    counted = joined(folder, out=None)
    assert counted.report["out"] is None
    assert counted.report["result"]["outputs"] == whole.outputs.num_rows
    assert cases.without_runs(counted.report) == cases.without_runs(whole.report)


def test_text_archives(folder: Path) -> None:
    for name, table in streams(0).items():
        plain = table.select(["t", "at", "i", "p", "k", "v", "word"])
        csv.write_csv(plain, folder / f"{name}.csv")
    named = [f"{name}={folder}/{name}.csv" for name in NAMES]
    for case in ("int", "band"):
        done = joined(folder, CASES[case], stream=named)
        assert done.rows == expected(streams(0), CASES[case])
    done = joined(folder, stream=[named[0], *(f"{n}={folder}/{n}.parquet" for n in "bc")])
    assert done.rows == expected(streams(0), CASES["int"])


def test_a_job_file_says_the_same(folder: Path, tmp_path: Path) -> None:
    text = f"""
        predicate = "equi:word,k"
        time = "t"
        importance = "i"
        engine = "local"
        method = "lazy-hash"
        tau = 5
        order = ["c", "a", "b"]
        out = "{tmp_path}/out"
        [window]
        a = 9
        b = 6
        c = "12"
        [buckets]
        b = 4
        [stream]
        a = "{folder}/a.parquet"
        b = "{folder}/b.parquet"
        c = "{folder}/c.parquet"
        [column]
        b.word = "coded"
    """
    (tmp_path / "job.toml").write_text(text)
    command = ["multijoin", "--job", f"{tmp_path}/job.toml", "--report", f"{tmp_path}/r.json"]
    assert main(command) == 0
    assert found(pq.read_table(tmp_path / "out")) == expected(streams(0), CASES["several"])
    again = [*command, "--out", f"{tmp_path}/out2", "--predicate", "equi:k", "--method", "auto"]
    assert main(again) == 2  # auto has no tau


def test_two_streams_and_eight(tmp_path: Path) -> None:
    case = cases.Case("band:k:2", cases.plain("k"), naive.band(2.0))
    many = {name: cases.drawn(at, 4, 12) for at, name in enumerate("abcdefgh")}
    for names in ("ab", "abcdefgh"):
        own = {name: many[name] for name in names}
        windows = [7] * len(names)
        wanted = expected(own, case, windows=windows, importance=None)
        result = multijoin(own, predicate=case.predicate, time="t", window=7, columns="ids")
        assert result.outputs is not None
        assert found(result.outputs, names) == wanted
        cases.write(tmp_path, own)
        named = [f"{name}={tmp_path}/{name}.parquet" for name in names]
        done = joined(tmp_path, case, stream=named, importance=None, window=7)
        assert found(done.outputs, names) == wanted
    assert wanted


def test_nothing_to_join(tmp_path: Path) -> None:
    tables = streams(0)
    none = tables["b"].slice(0, 0)
    apart = tables["b"].set_column(0, "t", pa.array([900] * 16))
    for b in (none, apart):
        for name in ("text", "band", "dictionaries", "theta", "distance"):
            case = CASES[name]
            cases.write(tmp_path, tables | {"b": b})
            for options in ({}, {"method": "eager-nlj"}, {"throttle": 0.5, "basic_window": 2,
                            "adapt_every": 5}):  # fmt: skip
                done = joined(tmp_path, case, **options)
                assert done.outputs.num_rows == 0
                assert "b_word" in done.outputs.column_names
                assert done.report["recall"] == 1.0
            assert done.report["rows"]["b"] == b.num_rows
    cases.write(tmp_path, {name: table.slice(0, 0) for name, table in tables.items()})
    empty = joined(tmp_path, CASES["sets"])
    assert empty.report["lost"]["by_time"] == []
    assert empty.report["result"] == {"outputs": 0, "importance": 0.0}


def test_bad_rows_are_set_aside_and_counted(folder: Path) -> None:
    tables = streams(0)
    times = tables["a"].column("t").to_pylist()
    weights = tables["c"].column("i").to_pylist()
    times[3], weights[0], weights[9] = None, -1.0, float("nan")
    bad = tables | {
        "a": tables["a"].set_column(0, "t", pa.array(times, pa.int64())),
        "c": tables["c"].set_column(2, "i", pa.array(weights)),
    }
    cases.write(folder, bad)
    kept = {
        name: [own for own in rows if own.row not in {"a": (3,), "c": (0, 9)}.get(name, ())]
        for name, rows in zip(NAMES, cases.tuples(tables, CASES["int"]), strict=True)
    }
    windows = [("ticks", own) for own in WINDOWS]
    wanted = naive.exact(list(kept.values()), windows, naive.equi(), "clique")
    done = joined(folder, bad_rows="quarantine")
    assert done.rows == wanted
    assert done.report["rejected"] == {"a": 1, "b": 0, "c": 2}
    assert done.report["rows"] == dict.fromkeys(NAMES, 16)
    aside = pq.read_table(next(folder.glob("run-*")) / "out" / "_rejected" / "c.parquet")
    assert aside.column("row").to_pylist() == [0, 9]
    assert aside.column("reason").to_pylist() == ["negative importance", "NaN importance"]
    result = multijoin(
        bad, predicate="equi:k", time="t", importance="i", bad_rows="quarantine", columns="ids",
        window=dict(zip(NAMES, WINDOWS, strict=True)),
    )  # fmt: skip
    assert set(result.rejected) == {"a", "c"}
    assert result.rejected["c"].column("row").to_pylist() == [0, 9]
    assert result.rejected["a"].schema.field("coded").type == tables["a"].schema.field("coded").type
    assert result.outputs is not None
    assert found(result.outputs) == wanted


def test_archives_in_order_are_told_from_others(folder: Path) -> None:
    tables = streams(0)
    cases.write(folder, tables | {"b": tables["b"].sort_by("t")})
    assert joined(folder).report["sorted"] == {"a": False, "b": True, "c": False}


def test_infinite_attributes_and_folders_of_files(tmp_path: Path) -> None:
    far, case = float("inf"), CASES["band"]
    tables = {
        name: pa.table({"t": [0, 1, 2, 3], "v": [far, -far, 1.0, at * 0.1], "i": [1.0] * 4})
        for at, name in enumerate(NAMES)
    }
    for name, table in tables.items():
        (tmp_path / name).mkdir()
        pq.write_table(table.slice(0, 3), tmp_path / name / "x.parquet")
        pq.write_table(table.slice(3), tmp_path / name / "y.parquet")
    named = [f"{name}={tmp_path}/{name}" for name in NAMES]
    for own in (case, CASES["distance of one"], CASES["theta"]):
        done = joined(tmp_path, own, stream=named)
        assert done.rows == expected(tables, own)


def test_python_takes_a_folder_for_the_output(folder: Path, tmp_path: Path) -> None:
    result = multijoin(
        {name: folder / f"{name}.parquet" for name in NAMES}, predicate="equi:k", time="t",
        window=4, out=tmp_path / "new" / "out",
    )  # fmt: skip
    assert result.report["out"] == str(tmp_path / "new" / "out")
    windows = [4] * 3
    wanted = expected(streams(0), CASES["int"], windows=windows, importance=None)
    assert found(pq.read_table(tmp_path / "new" / "out")) == wanted
    assert found(result.outputs) == wanted
    with pytest.raises(TypeError, match="unexpected keyword 'side'"):
        multijoin({}, side=2)  # type: ignore[call-arg]
