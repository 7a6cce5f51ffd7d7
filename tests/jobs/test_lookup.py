"""``winnow lookup`` and its functions: every row against the oracle and against DuckDB's SQL."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import duckdb
import naive_facts as oracle
import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest
from lookup_cases import FACT, IDS, ON, cases, rows_of
from places import DATA, ROOT

from engine.commands import main
from engine.facts import access as access_module
from engine.facts import read
from engine.facts.access import METHODS, Binary, access_by, group_by
from engine.facts.lookup import FactLookup
from engine.facts.relation import BEFORE, NEVER, Facts
from engine.runtime.errors import InputError, OutputError, SpecError
from winnow import lookup

BPI = DATA / "bpi2020"
LOOKUP = ROOT / "docs" / "lookup.md"
real = pytest.mark.skipif(not BPI.is_dir(), reason=f"the real archives are not at {DATA}")


# --- access methods ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("method", METHODS)
def test_every_access_method_finds_the_same(method: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    spread = [3, 50, 2**62][seed % 3]
    column = rng.integers(-spread, spread, [0, 1, 2, 100, 1000][seed % 5])
    column = np.sort(column) if seed % 2 else column
    codes = np.concatenate([column[:60], rng.integers(-spread, spread, 60), [BEFORE, NEVER, -1, 0]])
    access = access_by(method, column)
    groups = access.groups
    found = access.find(codes)
    assert found.dtype == np.int64
    assert groups.codes.tolist() == sorted(set(column.tolist()))
    for code, group in zip(codes.tolist(), found.tolist(), strict=True):
        expected = np.flatnonzero(column == code).tolist()
        assert (group == -1) == (not expected)
        if expected:
            assert groups.facts[groups.first[group] : groups.first[group + 1]].tolist() == expected
    assert [groups.first[0], groups.first[-1]] == [0, column.size]


def test_each_method_is_itself() -> None:
    ascending, other = np.array([1, 2, 2]), np.array([2, 1, 2])
    kinds = [type(access_by(method, ascending)).__name__ for method in METHODS]
    assert kinds == ["Scan", "Index", "Hash", "Binary"]
    assert isinstance(access_by("binary", other), access_module.Index)
    with pytest.raises(SpecError, match="sorted by the other: use index"):
        Binary(other)
    with pytest.raises(SpecError, match=r"--fact-access is 'hahs'; choose one of scan, index, hash"
                       r", binary. Did you mean 'hash'\?"):  # fmt: skip
        access_by("hahs", ascending)
    assert group_by(np.empty(0, np.int64)).first.tolist() == [0]


# --- matches -----------------------------------------------------------------------------------


def random_facts(seed: int) -> tuple[Facts, list[oracle.Fact]]:
    draw = random.Random(seed)  # noqa: S311
    size = [0, 1, 5, 40, 300][seed % 5]
    rows = []
    for row in draw.sample(range(1000), size):
        begin = draw.choice([BEFORE, *range(12)])
        end = draw.choice([NEVER, *range(max(begin, 0) + 1, 15)])
        rows.append((draw.randrange(4), draw.randrange(1 + seed % 3), begin, end, row))
    rows.sort(key=lambda fact: (*fact[:3], fact[4]))
    facts = Facts(*np.array(rows, np.int64).reshape(-1, 5).T)
    return facts, [oracle.Fact((key,), begin, end, row) for key, _, begin, end, row in rows]


@pytest.mark.parametrize("seed", range(40))
def test_matches_are_those_of_the_oracle(seed: int) -> None:
    facts, plain = random_facts(seed)
    rng = np.random.default_rng(seed)
    ts, codes = rng.integers(-2, 16, 80), rng.integers(-1, 5, 80)
    lookup = FactLookup(facts, access_by(METHODS[seed % 4], facts.a))
    stream = [(t, (key,), 1.0) for t, key in zip(ts.tolist(), codes.tolist(), strict=True)]
    expected = [(i, row) for i, row, *_ in oracle.lookup(stream, plain)]
    for most in (10**6, 7, 1):
        found = list(lookup.matches(codes, ts, most=most))
        pairs = [
            pair
            for part in found
            for pair in zip(part.arrival.tolist(), facts.row[part.fact].tolist(), strict=True)
        ]
        assert pairs == expected
        largest = max((np.bincount(part.arrival).max() for part in found), default=0)
        assert all(part.arrival.size <= max(most, 2 * largest) for part in found)


def test_facts_that_have_ended_are_not_met_again() -> None:
    # One version of a fact a tick: a scan of the group would take 4e10 steps.
    n = 200_000
    ticks = np.arange(n)
    zeros = np.zeros(n, np.int64)
    facts = Facts(zeros, zeros, ticks, ticks + 2, ticks)
    lookup = FactLookup(facts, access_by("hash", zeros))
    (found,) = lookup.matches(zeros, ticks)
    assert found.arrival.size == 2 * n - 1
    assert (np.abs(found.arrival - found.fact - 0.5) == 0.5).all()


def test_an_attribute_with_the_code_of_a_fact_is_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def same(columns: list[pa.Array], seed: int, rows: int) -> Any:
        del columns, seed
        return np.full(rows, 5, np.int64)

    monkeypatch.setattr("engine.archives.normalise.codes", same)
    monkeypatch.setattr(read, "codes", same)
    stream = pa.table({"k": ["x", "y", "x"], "t": [1, 2, 3]})
    fact = pa.table({"k": ["x"], "v": [7]})
    found = lookup(stream, fact, on="k", time="t")
    assert found.outputs.column("row").to_pylist() == [0, 2]


# --- tables and archives -----------------------------------------------------------------------


def expected_of(stream: pa.Table, fact: pa.Table) -> tuple[list[Any], oracle.Relation]:
    rows = [
        ((a,), (v,), begin, end)
        for a, v, begin, end in zip(*(c.to_pylist() for c in fact.columns), strict=True)
    ]
    relation = oracle.of_rows(rows)
    tuples = [
        (t, (k,), w)
        for k, t, w in zip(*(stream.column(n).to_pylist() for n in ("k", "t", "w")), strict=True)
    ]
    return oracle.lookup(tuples, relation.facts), relation


@pytest.mark.parametrize("seed", range(16))
def test_tables_equal_the_oracle(seed: int) -> None:
    stream, fact = cases(seed)
    expected, relation = expected_of(stream, fact)
    found = lookup(stream, fact, **ON, **FACT, bad_rows="quarantine", fact_access=METHODS[seed % 4])
    assert rows_of(found.outputs) == expected
    assert expected
    both = [f"stream_{n}" for n in stream.column_names] + [f"fact_{n}" for n in fact.column_names]
    assert found.outputs.column_names == IDS + both
    for prefix, table, at in (("stream", stream, "row"), ("fact", fact, "fact_row")):
        taken = table.take(found.outputs.column(at))
        for name in table.column_names:
            column = found.outputs.column(f"{prefix}_{name}")
            assert (column.type, column.to_pylist()) == (
                taken.column(name).type, taken.column(name).to_pylist(),
            )  # fmt: skip
    report = found.report
    assert report["rows"] == {"stream": 60, "fact": 60}
    assert report["outputs"] == len(expected)
    assert report["matched"] == len({row for row, *_ in expected})
    assert report["importance"] == sum(importance for *_, importance in expected)
    assert report["facts"] == len(relation.facts)
    assert report["duplicates"] == len(relation.duplicates)
    assert report["null_keys"]["fact"] == len(relation.null_keys)
    assert report["null_keys"]["stream"] == stream.column("k").null_count
    assert report["rejected"] == {"stream": 0, "fact": len(relation.bad)}
    assert "stream" not in found.rejected
    if relation.bad:
        assert found.rejected["fact"].column("row").to_pylist() == sorted(relation.bad)
        assert found.rejected["fact"].schema.field("a").type == pa.large_string()


@pytest.mark.parametrize("columns", ["all", "ids"])
@pytest.mark.parametrize("kind", ["parquet", "csv", "folder"])
def test_archives_equal_tables(tmp_path: Path, kind: str, columns: str) -> None:
    stream, fact = cases(5)
    stream = stream.drop_columns(["list"]).set_column(
        0, "k", pa.array([None if k == "" else k for k in stream.column("k").to_pylist()])
    )
    fact = fact.set_column(
        0, "a", pa.array([None if a == "" else a for a in fact.column("a").to_pylist()])
    )
    paths = []
    for name, table in (("stream", stream), ("fact", fact)):
        if kind == "csv":
            paths.append(tmp_path / f"{name}.csv")
            pv.write_csv(table, paths[-1])
        elif kind == "parquet":
            paths.append(tmp_path / f"{name}.parquet")
            pq.write_table(table, paths[-1], row_group_size=9)
        else:
            paths.append(tmp_path / name)
            paths[-1].mkdir()
            for i in range(0, 60, 25):
                pq.write_table(table.slice(i, 25), paths[-1] / f"{i:03d}.parquet")
    how: dict[str, Any] = {**ON, **FACT, "bad_rows": "quarantine", "columns": columns}
    expected = lookup(stream, fact, **how)
    report = lookup(*paths, out=tmp_path / "out", **how).report
    written = pq.read_table(tmp_path / "out")
    assert written.column_names == expected.outputs.column_names
    assert written.to_pylist() == expected.outputs.to_pylist()
    own = ("seconds", "rows_per_second", "out")
    assert {n: v for n, v in report.items() if n not in own} == {
        n: v for n, v in expected.report.items() if n not in own
    }
    assert (tmp_path / "out" / "_SUCCESS").exists()
    aside = pq.read_table(tmp_path / "out" / "_rejected" / "fact.parquet")
    for name in ("row", "reason"):
        assert aside.column(name).to_pylist() == expected.rejected["fact"].column(name).to_pylist()
    assert not (tmp_path / "out" / "_rejected" / "stream.parquet").exists()
    counted = lookup(*paths, **how).report
    assert counted["outputs"] == report["outputs"]
    assert counted["out"] is None


@pytest.mark.parametrize("seed", range(6))
def test_a_change_log_gives_what_its_intervals_give(seed: int) -> None:
    stream, fact = cases(seed)
    clean = lookup(stream, fact, **ON, **FACT, bad_rows="quarantine")
    facts = read.read_facts  # the log is written from what was there
    assert facts is read.read_facts
    _, relation = expected_of(stream, fact)
    rows = []
    for own in relation.facts:
        cells = fact.slice(own.row, 1).to_pylist()[0]
        told = {"a": cells["a"], "v": cells["v"], "origin": own.row}
        rows.append({"op": "insert", "at": cells["begin"]} | told)
        if cells["end"] is not None:
            rows.append({"op": "delete", "at": cells["end"]} | told)
    kinds = [("op", pa.string()), ("at", pa.int64()), ("a", pa.string()), ("v", pa.int16()),
             ("origin", pa.int64())]  # fmt: skip
    log = pa.Table.from_pylist(rows, pa.schema(kinds))
    found = lookup(stream, log, **ON, fact_on="a", fact_op="op", fact_time="at")
    pairs = zip(*(found.outputs.column(n).to_pylist() for n in ("row", "fact_origin")), strict=True)
    assert sorted(pairs) == sorted((row, own) for row, own, *_ in rows_of(clean.outputs))


def test_equals_duckdb_with_several_columns_and_timestamps() -> None:
    rng = np.random.default_rng(3)
    n = 3000
    base = np.datetime64("2024-03-31T00:00:00", "ms")
    stream = pa.table(
        {
            "x": rng.integers(0, 9, n).astype(np.int16),
            "y": rng.choice(["a", "b", "c"], n),
            "t": base + rng.integers(0, 10**7, n),
            "w": rng.random(n),
        }
    )
    begin = base.astype("datetime64[us]") + rng.integers(0, 10**10, 500)
    fact = pa.table(
        {
            "fy": pa.array(rng.choice(["a", "b", "d"], 500)).dictionary_encode(),
            "fx": pa.array(rng.integers(0, 9, 500).astype(np.int16)).cast(pa.decimal128(12, 3)),
            "since": begin,
            "until": begin + rng.integers(1, 5 * 10**9, 500),
            "id": np.arange(500),
        }
    )
    found = lookup(
        stream, fact, on=("x", "y"), time="t", importance="w", fact_on=("fx", "fy"),
        fact_begin="since", fact_end="until", columns="ids",
    )  # fmt: skip
    plain = fact.set_column(0, "fy", fact.column("fy").cast(pa.string()))
    with duckdb.connect() as base_:
        base_.register("s", stream)
        base_.register("f", plain)
        count, weight = base_.sql(
            "SELECT count(*), sum(w) FROM s JOIN f "
            "ON x = fx AND y = fy AND since <= t AND t < until"
        ).fetchall()[0]
    assert count > 1000
    assert found.report["outputs"] == count
    assert found.report["importance"] == pytest.approx(weight, rel=1e-12)
    assert found.report["tick"] == "ms"


def test_an_as_of_join_by_the_statement_of_the_docs_equals_duckdb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At ties of a symbol's quotes any of them may be the last: here they are equal."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(8)
    for name, number in (("quotes", 2_000), ("trades", 500)):
        ts, symbol = np.sort(rng.integers(0, 3_000, number)), rng.integers(0, 20, number)
        table = pa.table({"ts": ts, "symbol": symbol, "price": 100 * ts + symbol})
        pq.write_table(table, f"{name}.parquet")
    (statement,) = re.findall("```sql\n(.+?)```", LOOKUP.read_text(), re.DOTALL)
    duckdb.sql(statement)
    found = lookup(
        "trades.parquet", "active.parquet", on="symbol", time="ts", fact_begin="ts",
        fact_end="until",
    )  # fmt: skip
    expected = duckdb.sql(
        "SELECT t.ts, t.symbol, q.price FROM 'trades.parquet' t ASOF JOIN (SELECT DISTINCT * "
        "FROM 'quotes.parquet') q ON t.symbol = q.symbol AND t.ts >= q.ts ORDER BY ALL"
    ).fetchall()
    own = pa.table(found)
    names = ("stream_ts", "stream_symbol", "fact_price")
    assert sorted(zip(*(own[name].to_pylist() for name in names), strict=True)) == expected
    assert 400 < len(expected) < 500


def test_an_empty_stream_and_an_empty_relation(tmp_path: Path) -> None:
    stream, fact = cases(1)
    for one, other in ((stream.slice(0, 0), fact), (stream, fact.slice(0, 0))):
        found = lookup(one, other, **ON, **FACT, bad_rows="quarantine")
        assert found.outputs.num_rows == 0
        assert found.outputs.column_names[4:] == [
            *(f"stream_{n}" for n in stream.column_names), *(f"fact_{n}" for n in fact.column_names)
        ]  # fmt: skip
        for name, table in (("stream", one), ("fact", other)):
            pq.write_table(table, tmp_path / f"{name}.parquet")
        paths = (tmp_path / "stream.parquet", tmp_path / "fact.parquet")
        out = tmp_path / f"out-{one.num_rows}"
        lookup(*paths, out=out, **ON, **FACT, bad_rows="quarantine")
        assert pq.read_table(out).schema.names == found.outputs.schema.names
        assert pq.read_table(out).num_rows == 0


def test_rows_that_differ_anywhere_are_several_facts() -> None:
    stream = pa.table({"k": [1], "t": [5]})
    fact = pa.table({"k": [1, 1, 1], "v": ["x", "y", "x"]})
    found = lookup(stream, fact, on="k", time="t")
    assert rows_of(found.outputs) == [(0, 0, 5, 1.0), (0, 1, 5, 1.0)]
    assert found.report["duplicates"] == 1
    found = lookup(stream, fact, on="k", time="t", fact_id="k")
    assert rows_of(found.outputs) == [(0, 0, 5, 1.0)]
    assert found.report["duplicates"] == 2


def test_outputs_of_many_parts_are_in_order(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("engine.jobs.output.GROUP_ROWS", 100)
    monkeypatch.setattr("engine.jobs.lookup.run._MATCHES", 64)
    rng = np.random.default_rng(0)
    stream = pa.table({"k": rng.integers(0, 40, 300_000), "t": np.arange(300_000)})
    fact = pa.table({"k": np.arange(20), "v": np.arange(20)})
    for name, table in (("s", stream.slice(0, 3000)), ("f", fact)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    paths = (tmp_path / "s.parquet", tmp_path / "f.parquet")
    lookup(*paths, on="k", time="t", out=tmp_path / "out")
    written = pq.read_table(tmp_path / "out")
    rows = np.flatnonzero(stream.column("k").to_numpy() < 20)
    assert written.column("row").to_pylist() == rows[rows < 3000].tolist()
    assert written.column("fact_v").to_pylist() == written.column("stream_k").to_pylist()
    whole = lookup(stream, fact, on="k", time="t", columns="ids")
    assert whole.outputs.column("row").to_pylist() == rows.tolist()


# --- the command line --------------------------------------------------------------------------


def told(folder: Path, *more: str) -> list[str]:
    stream, fact = cases(2)
    if not (folder / "s.parquet").exists():
        pq.write_table(stream, folder / "s.parquet")
        pq.write_table(fact, folder / "f.parquet")
    given = f"lookup --stream {folder}/s.parquet --on k --time t --importance w"
    fact_ = f"--fact {folder}/f.parquet --fact-on a --fact-begin begin --fact-end end"
    return [*given.split(), *fact_.split(), *more]


def test_the_command_line_says_what_the_function_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report, out = tmp_path / "deep" / "report.json", tmp_path / "new" / "out"
    more = ("--bad-rows", "quarantine", "--report", str(report), "--out", str(out))
    assert main(told(tmp_path, *more)) == 0
    stream, fact = cases(2)
    expected = lookup(stream, fact, **ON, **FACT, bad_rows="quarantine")
    content = json.loads(report.read_text())
    assert content.keys() == expected.report.keys()
    assert content["outputs"] == expected.report["outputs"]
    assert content["out"] == str(out)
    assert pq.read_table(out).to_pylist() == expected.outputs.to_pylist()
    shown = capsys.readouterr().out
    assert f"{content['outputs']:,}" in shown
    assert "seconds: facts" in shown


def test_a_job_file(tmp_path: Path) -> None:
    told(tmp_path)
    lines = [
        f'stream = "{tmp_path}/s.parquet"', f'fact = "{tmp_path}/f.parquet"', 'on = ["k"]',
        'time = "t"', "fact-on = 'a'", "fact-id = ['v', 'begin', 'end']", "fact-access = 'scan'",
        f'report = "{tmp_path}/report.json"',
    ]  # fmt: skip
    (tmp_path / "job.toml").write_text("\n".join(lines))
    assert main(["lookup", "--job", str(tmp_path / "job.toml"), "--fact-access", "index"]) == 0
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["access"] == "index"
    stream, fact = cases(2)
    static = lookup(stream, fact, on="k", time="t", fact_on="a")
    assert content["outputs"] == static.report["outputs"]


WRONG: dict[str, tuple[str, str]] = {
    "bad rows": ("", r"f.parquet: column begin: \d+ rows are not before the end .*--bad-rows quar"),
    "choice": ("--bad-rows skip", "--bad-rows is 'skip'; choose one of error, quarantine"),
    "columns": ("--columns idss", "--columns is 'idss'; choose .* Did you mean 'ids'"),
    "access": ("--fact-access tree", "--fact-access is 'tree'; choose one of scan, index"),
    "stream column": ("--on key", "stream archive .*s.parquet has no column 'key'"),
    "fact column": ("--fact-on aa", "fact archive .* has no column 'aa'.*Did you mean 'a'"),
    "fact has another": ("--fact-on w", "no column 'w': it has .* attribute with --fact-on"),
    "types": (
        "--fact-on v",
        r"k of the stream archive \(string\) and column v of the fact archive",
    ),
    "counts": (
        "--fact-on a,v",
        r"the stream archive joins by k, and the fact relation by a, v: name equally many columns",
    ),
    "log": ("--fact-op a", "--fact-op is given without --fact-time"),
    "both": ("--fact-op a --fact-time v", "change log, and --fact-begin"),
    "time": ("--time k", "time column k has type string"),
    "importance": ("--importance k", "importance column k has type string"),
    "nothing": ("--fact nowhere.parquet", "fact archive: nothing is at nowhere.parquet"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_and_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    more, message = WRONG[name]
    assert main(told(tmp_path, "--out", str(tmp_path / "a" / "out"), *more.split())) == 2
    with pytest.raises(InputError, match=message):
        raise InputError(capsys.readouterr().err)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.parquet", "s.parquet"]


@pytest.mark.parametrize("missing", ["--stream", "--on", "--time", "--fact"])
def test_options_that_must_be_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    words = told(tmp_path)
    at = words.index(missing)
    assert main(words[:at] + words[at + 2 :]) == 2
    assert f"{missing} is missing" in capsys.readouterr().err


def test_bad_rows_of_the_stream(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    stream = pa.table({"k": [1, 1, None, 1], "t": [0.0, 1.5, None, 3.0], "w": [1.0, 1.0, 1.0, -1]})
    for i in range(2):
        pq.write_table(stream, tmp_path / "s" / f"{i}.parquet")
    pq.write_table(pa.table({"k": [1]}), tmp_path / "f.parquet")
    paths = (tmp_path / "s", tmp_path / "f.parquet")
    with pytest.raises(
        InputError,
        match=r"0\.parquet: column t: 1 row is null \(row 2\); .*column w: 1 row is negative "
        r"\(row 3\); .*1\.parquet: column t: 1 row is null \(row 2\)",
    ):
        lookup(*paths, **ON, out=tmp_path / "out")
    assert not list(tmp_path.glob("*out*"))
    report = lookup(*paths, **ON, out=tmp_path / "out", bad_rows="quarantine").report
    assert report["rejected"] == {"stream": 6, "fact": 0}
    assert report["outputs"] == 2
    aside = pq.read_table(tmp_path / "out" / "_rejected" / "stream.parquet")
    assert aside.column_names == ["row", "reason", "file", "k", "t", "w"]
    assert aside.column("row").to_pylist() == [1, 2, 3, 5, 6, 7]
    assert aside.column("file").to_pylist()[5].endswith("1.parquet")


def test_places_that_are_taken(tmp_path: Path) -> None:
    words = told(tmp_path)
    paths = words[words.index("--stream") + 1], words[words.index("--fact") + 1]
    (tmp_path / "out").mkdir()
    with pytest.raises(OutputError, match="exists: remove it or give another out"):
        lookup(*paths, **ON, fact_on="a", out=tmp_path / "out")
    with pytest.raises(
        SpecError, match="column row of the fact archive would be written as fact_r"
    ):
        lookup(pa.table({"k": [1], "t": [1]}), pa.table({"k": [1], "row": [1]}), on="k",
                      time="t")  # fmt: skip
    assert main([*words, "--report", str(tmp_path)]) == 2
    with pytest.raises(TypeError, match="unexpected keyword 'onn'"):
        lookup(pa.table({}), pa.table({}), onn="k")  # type: ignore[call-arg]
    with pytest.raises(SpecError, match="time is missing: name the column"):
        lookup(pa.table({}), pa.table({}), on="k")


def test_an_archive_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: Any) -> None:
    words = told(tmp_path)
    stream = Path(words[words.index("--stream") + 1])
    before = read.read_facts

    def meanwhile(*args: Any, **how: Any) -> Any:
        pq.write_table(cases(3)[0].slice(0, 5), stream)
        return before(*args, **how)

    monkeypatch.setattr("engine.jobs.lookup.run.read_facts", meanwhile)
    with pytest.raises(InputError, match=r"s\.parquet changed while it was read"):
        lookup(stream, tmp_path / "f.parquet", **ON, fact_on="a", out=tmp_path / "out")
    assert not list(tmp_path.glob("*out*"))


# --- real archives -----------------------------------------------------------------------------


def duck(select: str, tables: str) -> tuple[Any, ...]:
    with duckdb.connect() as base:
        query = f"SELECT {select} FROM {tables}"  # noqa: S608 - ours
        row: tuple[Any, ...] = base.sql(query).fetchall()[0]
    return row


@real
@pytest.mark.parametrize("access", METHODS)
def test_permits_through_their_declarations_equal_duckdb(access: str) -> None:
    stream, fact = BPI / "permit_submitted.parquet", BPI / "declaration_submitted.parquet"
    how: dict[str, Any] = {"on": "key", "time": "ts", "importance": "importance"}
    report = lookup(stream, fact, **how, fact_access=access).report
    numbered = f"(SELECT *, row_number() OVER () n FROM '{stream}') r"  # noqa: S608 - ours
    count, matched, importance = duck(
        "count(*), count(DISTINCT r.n), sum(r.importance::DOUBLE)",
        f"{numbered} JOIN '{fact}' f USING (key)",
    )
    assert (report["outputs"], report["matched"]) == (count, matched)
    assert count == 7758
    assert report["importance"] == pytest.approx(importance, rel=1e-12)


@real
def test_payments_through_declarations_as_they_are_submitted_equal_duckdb(tmp_path: Path) -> None:
    stream, fact = BPI / "declaration_paid.parquet", BPI / "declaration_submitted.parquet"
    how: dict[str, Any] = {
        "on": "key", "time": "ts", "importance": "importance", "fact_on": "decl",
        "fact_begin": "ts", "fact_id": "key",
    }  # fmt: skip
    with pytest.raises(InputError, match="1699 rows are within an earlier interval of the sa"):
        lookup(stream, fact, **how)
    report = lookup(stream, fact, **how, bad_rows="quarantine", out=tmp_path / "out").report
    first = f"(SELECT key, decl, min(ts) ts FROM '{fact}' GROUP BY ALL)"  # noqa: S608 - ours
    joined = f"'{stream}' r JOIN {first} f ON r.key = f.decl AND f.ts <= r.ts"
    select = "count(*), sum(r.importance::DOUBLE), sum(r.key::HUGEINT * f.key)"
    count, importance, both = duck(select, joined)
    assert report["outputs"] == count == 6078
    assert report["importance"] == pytest.approx(importance, rel=1e-12)
    written = pq.read_table(tmp_path / "out")
    keys = (written.column(name).to_pylist() for name in ("stream_key", "fact_key"))
    assert sum(a * b for a, b in zip(*keys, strict=True)) == both
