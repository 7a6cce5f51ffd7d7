"""Reading the fact relation against its oracle: both forms, every bad row, every type of key."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import naive_facts as oracle
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

from engine.archives import canonical
from engine.archives.roles import Roles, check_present
from engine.archives.source import Archive, open_archive
from engine.facts import read
from engine.facts.read import FactTable, read_facts, table_archive
from engine.facts.relation import BEFORE, NEVER, order_by
from engine.facts.roles import FactRoles, check_fact_roles
from engine.runtime.errors import InputError, SpecError

INTERVALS = FactRoles(("a",), ("b",), begin="begin", end="end")
LOG = FactRoles(("a",), ("b",), op="op", time="time")
SHORT = {"insert": ["insert", "I", "+", " Insert "], "delete": ["delete", "d", "-", "DELETE"]}


def streams_of(
    fact: pa.Table | Archive, roles: FactRoles, time: pa.DataType
) -> list[tuple[Archive, Roles]]:
    """Return streams without rows whose attributes are F's."""
    schema = fact.schema
    made = []
    for side, own in (("left", roles.left), ("right", roles.right)):
        if own:
            fields = [(f"k{i}", schema.field(name).type) for i, name in enumerate(own)]
            table = pa.schema([*fields, ("t", time)]).empty_table()
            keys = tuple(name for name, _ in fields)
            made.append((table_archive(table, side), Roles(keys, "t")))
    return made


def told(
    given: pa.Table | Archive,
    roles: FactRoles,
    bad_rows: str = "quarantine",
    time: pa.DataType | None = None,
    **how: Any,
) -> FactTable:
    archive = given if isinstance(given, Archive) else table_archive(given, "fact")
    streams = streams_of(given, roles, time or pa.int64())
    columns = check_fact_roles(streams, archive, roles)
    return read_facts(given, roles, columns, bad_rows=bad_rows, **how)


def intervals(found: FactTable) -> list[tuple[float, float, int]]:
    """Return begin, end and row of all facts, by row."""
    facts = found.facts
    rows = zip(facts.begin.tolist(), facts.end.tolist(), facts.row.tolist(), strict=True)
    return sorted(
        (
            (-math.inf if b == BEFORE else b, math.inf if e == NEVER else e, row)
            for b, e, row in rows
        ),
        key=lambda fact: fact[2],
    )


def check(found: FactTable, expected: oracle.Relation, rows: int) -> None:
    facts = sorted(expected.facts, key=lambda fact: fact.row)
    assert intervals(found) == [(f.begin, f.end, f.row) for f in facts]
    keys = [f.key for f in sorted(facts, key=lambda f: f.row)]
    codes = found.facts
    by_row = np.argsort(codes.row)
    pairs = list(zip(codes.a[by_row].tolist(), codes.b[by_row].tolist(), strict=True))
    assert len(set(zip(keys, pairs, strict=True))) == len(set(keys)) == len(set(pairs))
    order = np.lexsort((codes.row, codes.begin, codes.b, codes.a))
    assert (order == np.arange(order.size)).all()
    assert {column.dtype for column in codes} == {np.dtype(np.int64)}
    assert found.duplicates == len(expected.duplicates)
    assert found.null_keys == len(expected.null_keys)
    assert found.rejected.column("row").to_pylist() == sorted(expected.bad)
    counted = found.facts.a.size + found.duplicates + found.null_keys + found.deletes
    assert found.rows == rows == counted + found.rejected.num_rows + found.between_ticks


WORDS = {
    "empty": "is not before the end",
    "overlaps": "overlaps the interval of the same fact in row",
    "op": "op",
    "no time": "null time of a delete",
    "there": "inserts what is there since row",
    "not there": "deletes what is not there",
    "one tick": "inserted and deleted at one tick",
}


def check_reasons(found: FactTable, expected: oracle.Relation) -> None:
    for row, reason in zip(
        *(found.rejected.column(name).to_pylist() for name in ("row", "reason")), strict=True
    ):
        assert WORDS[expected.bad[row]] in reason, (row, reason)


# --- intervals ---------------------------------------------------------------------------------


def drawn(seed: int, size: int) -> list[oracle.Row]:
    draw = random.Random(seed)  # noqa: S311
    few = draw.choice([1, 2, 5])
    return [
        (
            (draw.choice([None, *range(few)]), draw.choice([None, *"xyz"[:few]])),
            (draw.choice([None, 1, 2]),),
            draw.choice([None, *range(-1, 9)]),
            draw.choice([None, *range(12)]),
        )
        for _ in range(size)
    ]


def table_of(rows: list[oracle.Row]) -> pa.Table:
    return pa.table(
        {
            "a": pa.array([key[0] for key, *_ in rows], pa.int32()),
            "b": pa.array([key[1] for key, *_ in rows], pa.string()),
            "which": pa.array([identity[0] for _, identity, *_ in rows], pa.float64()),
            "begin": pa.array([row[2] for row in rows], pa.int64()),
            "end": pa.array([row[3] for row in rows], pa.int64()),
        }
    )


@pytest.mark.parametrize("seed", range(60))
def test_intervals_are_those_of_the_oracle(seed: int) -> None:
    rows = drawn(seed, random.Random(seed).choice([0, 1, 12, 60]))  # noqa: S311
    roles = FactRoles(("a",), ("b",), "begin", "end", identity=("which",) if seed % 2 else ())
    if seed % 2 == 0:
        rows_ = [(key, (), begin, end) for key, _, begin, end in rows]
        expected = oracle.of_rows(rows_)
    else:
        expected = oracle.of_rows(rows)
    found = told(table_of(rows), roles)
    check(found, expected, len(rows))
    check_reasons(found, expected)


def test_a_static_relation_and_half_an_interval() -> None:
    table = pa.table({"a": [1, 1, 2, None], "b": [5, 5, 5, 5], "t": [3, 4, 3, 3]})
    found = told(table, FactRoles(("a",), ("b",)))
    assert intervals(found) == [(-math.inf, math.inf, 0), (-math.inf, math.inf, 2)]
    assert (found.duplicates, found.null_keys) == (1, 1)
    found = told(table, FactRoles(("a",), ("b",), begin="t"))
    assert intervals(found) == [(3, math.inf, 0), (3, math.inf, 2)]
    assert found.rejected.column("reason").to_pylist() == [
        "overlaps the interval of the same fact in row 0"
    ]
    found = told(table, FactRoles(("a",), end="t", identity=("t",)))
    assert intervals(found) == [(-math.inf, 3, 0), (-math.inf, 4, 1), (-math.inf, 3, 2)]


def test_identity_tells_facts_of_one_pair_apart() -> None:
    table = pa.table(
        {"a": [1] * 4, "b": [2] * 4, "id": ["p", "q", None, "p"], "begin": [0, 2, 0, 0]}
    )
    found = told(table, FactRoles(("a",), ("b",), begin="begin", identity=("id", "a", "id")))
    assert [row for *_, row in intervals(found)] == [0, 1, 2]
    assert found.facts.row.tolist() == [0, 2, 1]  # by begin
    assert found.duplicates == 1


@pytest.mark.parametrize(
    ("begin", "reason"),
    [
        (pa.array([math.nan, 0.0]), "NaN begin"),
        (pa.array([math.inf, 0.0]), "infinite begin"),
        (pa.array([1.5, 0.0]), "begin 1.5 is not a whole number of ticks"),
        (pa.array([2**63, 0], pa.uint64()), "begin out of int64 range"),
        (pa.array([2**62, 0]), "begin beyond 2^62 ticks"),
        (pa.array([7, 0]), "begin 7 is not before the end"),
    ],
)
def test_wrong_times(begin: pa.Array, reason: str) -> None:
    table = pa.table({"a": [1, None], "b": [1, 1], "begin": begin, "end": [7, 7]})
    found = told(table, INTERVALS)
    assert found.rejected.to_pylist()[0] | {"begin": 0} == {
        "row": 0, "reason": reason, "a": 1, "b": 1, "begin": 0, "end": 7,
    }  # fmt: skip
    assert (found.rejected.num_rows, found.null_keys) == (1, 1)
    swapped = FactRoles(("a",), ("b",), end="begin")
    if "before" not in reason:
        reasons = told(table, swapped).rejected.column("reason").to_pylist()
        assert reasons == [reason.replace("begin", "end", 1)]


def test_bad_rows_are_an_error_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "fact").mkdir()
    good = {"a": [1, 2, 3], "b": [1, 1, 1], "begin": [0, 1, 2], "end": [5, 6, 7]}
    pq.write_table(pa.table(good), tmp_path / "fact" / "a.parquet")
    bad = {"a": [1, 9, 8], "b": [1, 1, 1], "begin": [2, 4, 5], "end": [9, 4, 3]}
    pq.write_table(pa.table(bad), tmp_path / "fact" / "b.parquet")
    archive = open_archive(str(tmp_path / "fact"), "fact")
    with pytest.raises(
        InputError,
        match=r"b\.parquet: column begin: 2 rows are not before the end \(rows 1, 2\); .*b\.parquet"
        r": column begin: 1 row is within an earlier interval of the same fact \(row 0\): "
        r"correct them, name columns that tell .* with --fact-id, or use --bad-rows quarantine",
    ):
        told(archive, INTERVALS, "error")
    found = told(archive, INTERVALS)
    assert found.rejected.column_names == ["row", "reason", "file", "a", "b", "begin", "end"]
    assert found.rejected.column("row").to_pylist() == [3, 4, 5]
    assert all(file.endswith("b.parquet") for file in found.rejected.column("file").to_pylist())


# --- change logs -------------------------------------------------------------------------------


def changes(seed: int, size: int) -> list[oracle.Change]:
    draw = random.Random(seed)  # noqa: S311
    wrong = [None, "update"] if seed % 3 == 0 else []
    return [
        (
            (draw.choice([1, 2, None]), draw.choice(["x", "y"])),
            (draw.choice([None, 1]),),
            draw.choice([*["insert", "delete"] * 4, *wrong]),
            draw.choice([None, *range(9)]),
        )
        for _ in range(size)
    ]


def log_of(rows: list[oracle.Change], seed: int = 0) -> pa.Table:
    draw = random.Random(seed)  # noqa: S311
    ops = [op if op not in SHORT else draw.choice(SHORT[op]) for _, _, op, _ in rows]
    base = table_of([(key, identity, time, None) for key, identity, _, time in rows])
    return pa.table(
        {name: base.column(name) for name in ("a", "b", "which")}
        | {"time": base.column("begin"), "op": pa.array(ops, pa.string())}
    )


@pytest.mark.parametrize("seed", range(60))
def test_a_log_is_that_of_the_oracle(seed: int) -> None:
    rows = changes(seed, random.Random(seed).choice([0, 3, 15, 60]))  # noqa: S311
    roles = FactRoles(("a",), ("b",), op="op", time="time", identity=("which",) * (seed % 2))
    told_apart = [(key, identity if seed % 2 else (), op, t) for key, identity, op, t in rows]
    expected = oracle.of_changes(told_apart)
    found = told(log_of(rows, seed), roles)
    check(found, expected, len(rows))
    check_reasons(found, expected)


@pytest.mark.parametrize("seed", range(20))
def test_a_log_equals_its_intervals(seed: int) -> None:
    """Write F's intervals as a log, in any order of rows, and read both."""
    draw = random.Random(seed)  # noqa: S311
    facts = told(table_of(drawn(seed, 40)), INTERVALS).facts
    rows = [
        {"a": a, "b": b, "begin": None if begin == BEFORE else begin,
         "end": None if end == NEVER else end}
        for a, b, begin, end, _ in zip(*(c.tolist() for c in facts), strict=True)
    ]  # fmt: skip
    log = [{"op": "i", "time": row["begin"], "a": row["a"], "b": row["b"]} for row in rows]
    log += [
        {"op": "d", "time": row["end"], "a": row["a"], "b": row["b"]}
        for row in rows
        if row["end"] is not None
    ]
    draw.shuffle(log)
    log.sort(key=lambda change: change["op"])  # at one tick a delete comes first
    kinds = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    one = told(pa.Table.from_pylist(rows, kinds.append(pa.field("begin", pa.int64())).append(
        pa.field("end", pa.int64()))), INTERVALS, "error")  # fmt: skip
    other = told(
        pa.Table.from_pylist(
            log, kinds.append(pa.field("op", pa.string())).append(pa.field("time", pa.int64()))
        ),
        LOG,
        "error",
    )
    for mine, its in zip(one.facts[:4], other.facts[:4], strict=True):
        assert mine.tolist() == its.tolist()
    assert other.deletes == sum(row["end"] is not None for row in rows)


def test_changes_that_mean_nothing_are_an_error() -> None:
    table = pa.table(
        {
            "a": [1, 1, 1, 2, 2, 3, 4],
            "b": [1] * 7,
            "op": ["insert", "insert", "delete", "delete", "insert", "replace", None],
            "time": [0, 3, 5, 1, 2, 0, 0],
        }
    )
    with pytest.raises(
        InputError,
        match="; ".join(
            rf"column op of the facts: 1 row is {fault} \(row {row}\)"
            for fault, row in (
                ("null", 6),
                ("neither insert nor delete", 5),
                ("inserting a fact that is there already", 1),
                ("deleting a fact that is not there", 3),
            )
        )
        + ": correct them",
    ):
        told(table, LOG, "error")
    reasons = told(table, LOG).rejected.column("reason").to_pylist()
    assert "op 'replace' is neither insert nor delete" in reasons
    assert "inserts what is there since row 0" in reasons


def test_an_update_is_a_delete_and_an_insert_at_one_tick() -> None:
    table = pa.table({"a": [1] * 4, "op": list("+-+-"), "time": [None, 4, 4, 4]})
    found = told(table, FactRoles(("a",), op="op", time="time"))
    assert intervals(found) == [(-math.inf, 4, 0)]
    assert found.rejected.column("reason").to_pylist() == [
        "inserted and deleted at one tick, in rows 2 and 3",
        "inserted and deleted at one tick, in rows 3 and 2",
    ]
    found = told(table.slice(0, 3), FactRoles(("a",), op="op", time="time"), "error")
    assert intervals(found) == [(-math.inf, 4, 0), (4, math.inf, 2)]


# --- types -------------------------------------------------------------------------------------

DAY = dt.date(1969, 12, 30)
AT = dt.datetime(2024, 3, 31, 0, 30, tzinfo=dt.UTC)
KEYS: dict[str, list[Any]] = {
    "int8": [pa.array([k - 2 for k in range(5)], pa.int8())],
    "uint64": [pa.array([2**64 - 1 - k for k in range(5)], pa.uint64())],
    "string": [pa.array(["", "a", "ab", "αβγ" * 9, "x" * 70])],
    "dictionary": [pa.array(list("vwxyz")).dictionary_encode()],
    "view": [pa.array(list("vwxyz"), pa.string_view())],
    "binary": [pa.array([bytes([k] * k) for k in range(5)])],
    "fixed": [pa.array([bytes([k] * 3) for k in range(5)], pa.binary(3))],
    "date": [pa.array([DAY + dt.timedelta(k) for k in range(5)])],
    "timestamp": [pa.array([AT + dt.timedelta(0, k) for k in range(5)], pa.timestamp("ms", "UTC"))],
    "decimal": [pa.array([Decimal(k) / 4 for k in range(5)], pa.decimal128(9, 2))],
    "wide": [pa.array([Decimal(k) * 10**25 for k in range(5)], pa.decimal128(38, 2))],
    "widest": [pa.array([Decimal(k) * 10**25 for k in range(5)], pa.decimal256(60, 2))],
    "several": [pa.array([0, 0, 1, 1, 2]), pa.array(["p", "q", "p", "q", ""])],
}


def _picked(values: pa.Array, picks: list[int]) -> pa.Array:
    if values.type == pa.string_view():  # which Arrow takes nothing from
        return _picked(values.cast(pa.string()), picks).cast(pa.string_view())
    return values.take(pa.array(picks))


@pytest.mark.parametrize("name", KEYS)
def test_attributes_of_any_type(name: str) -> None:
    draw = random.Random(name)  # noqa: S311
    picks = [draw.randrange(5) for _ in range(40)]
    times = [(draw.randrange(9), draw.choice([None, 5, 10])) for _ in picks]
    columns = {f"k{i}": _picked(values, picks) for i, values in enumerate(KEYS[name])}
    table = pa.table(columns | {"begin": [b for b, _ in times], "end": [e for _, e in times]})
    roles = FactRoles(tuple(columns), begin="begin", end="end")
    expected = oracle.of_rows([((k,), (), *time) for k, time in zip(picks, times, strict=True)])
    found = told(table, roles)
    check(found, expected, 40)
    distinct = np.unique(found.facts.a)
    if found.values[0]:  # codes are hashes: the values that they stand for
        assert {len(own) for own in found.values[0]} == {distinct.size}
        again = canonical.codes(found.values[0], found.seed, distinct.size)
        assert again.tolist() == distinct.tolist()


def test_types_in_common_with_both_streams() -> None:
    fact = pa.table({"a": pa.array([1], pa.int16()), "b": ["x"], "t": pa.array([3], pa.int32())})
    roles = FactRoles(("a",), ("b",), begin="t")

    def stream(side: str, kind: pa.DataType) -> tuple[Archive, Roles]:
        schema = pa.schema([("k", kind), ("at", pa.float64())])
        return table_archive(schema.empty_table(), side), Roles(("k",), "at")

    archive = table_archive(fact, "fact")
    left, right = stream("left", pa.decimal128(20, 2)), stream("right", pa.large_string())
    found = check_fact_roles([left, right], archive, roles)
    assert (found.left, found.right) == ((pa.decimal128(20, 2),), (pa.large_string(),))
    assert (found.unit, found.fine, found.factor) == ("tick", "tick", 1)
    with pytest.raises(InputError, match=r"column k of the right table \(bool\) and column b of "
                       r"the fact table \(string\): they are not of one kind: cast"):  # fmt: skip
        check_fact_roles([left, stream("right", pa.bool_())], archive, roles)
    two = FactRoles(("a", "b"), ("b",))
    with pytest.raises(SpecError, match=r"the left table joins by k, and the fact relation "
                       r"by a, b: name equally many columns"):  # fmt: skip
        check_fact_roles([left, right], archive, two)
    with pytest.raises(SpecError, match=r"right table joins by k, and .* by nothing: name"):
        check_fact_roles([left, right], archive, FactRoles(("a",)))
    with pytest.raises(InputError, match=r"fact table has no column 'bb'.*Did you mean 'b'"):
        check_fact_roles([left, right], archive, FactRoles(("a",), ("bb",)))
    with pytest.raises(InputError, match="op column a of the fact archive has type int16: it must"):
        check_fact_roles([left], archive, FactRoles(("a",), op="a", time="t"))
    with pytest.raises(InputError, match=r"time column b of the fact archive has type string|"
                       r"time column b has type string"):  # fmt: skip
        check_fact_roles([left], archive, FactRoles(("a",), begin="b"))


@pytest.mark.parametrize(
    ("stream", "fact", "begin", "ticks"),
    [
        ("s", "ms", [1000, 1001, 1999, 2000], [1, 2, 2, 2]),
        ("s", "ns", [-1, 1, 10**9, 5 * 10**9], [0, 1, 1, 5]),
        ("us", "s", [-1, 0, 1, 2], [-(10**6), 0, 10**6, 2 * 10**6]),
        ("ms", "ms", [4, 5, 6, 7], [4, 5, 6, 7]),
    ],
)
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_times_of_other_units(
    stream: str, fact: str, begin: list[int], ticks: list[int], zone: str | None
) -> None:
    table = pa.table({"a": [1, 2, 3, 4], "begin": pa.array(begin, pa.timestamp(fact, zone))})
    roles = FactRoles(("a",), begin="begin")
    found = told(table, roles, "error", pa.timestamp(stream, zone))
    assert found.facts.begin.tolist() == ticks
    found = told(table, FactRoles(("a",), end="begin"), "error", pa.timestamp(stream, zone))
    assert found.facts.end.tolist() == ticks


def test_a_fact_between_two_ticks_is_active_at_none() -> None:
    kind = pa.timestamp("ms")
    table = pa.table(
        {"a": [1, 1, 1], "begin": pa.array([1001, 1500, 1900], kind),
         "end": pa.array([1500, 1900, 2001], kind)}
    )  # fmt: skip
    roles = FactRoles(("a",), begin="begin", end="end")
    found = told(table, roles, "error", pa.timestamp("s"))
    assert intervals(found) == [(2, 3, 2)]
    assert (found.between_ticks, found.rows) == (2, 3)


def test_begins_that_become_one_tick_are_in_the_order_of_rows() -> None:
    begin = pa.array([1900, 1100, 1500, 900], pa.timestamp("ms"))
    table = pa.table({"a": [1] * 4, "begin": begin, "id": [0, 1, 2, 3]})
    found = told(table, FactRoles(("a",), begin="begin", identity=("id",)), time=pa.timestamp("s"))
    assert found.facts.row.tolist() == [3, 0, 1, 2]
    assert found.facts.begin.tolist() == [1, 2, 2, 2]


@pytest.mark.parametrize(
    ("stream", "fact", "message"),
    [
        (pa.int64(), pa.timestamp("s"), "they are not of one kind: make both plain numbers"),
        (pa.timestamp("s"), pa.date32(), "time column t of the left table .*begin of the fact"),
        (pa.timestamp("s"), pa.timestamp("s", "UTC"), "only one of them has a time zone"),
    ],
)
def test_times_of_another_kind(stream: pa.DataType, fact: pa.DataType, message: str) -> None:
    table = pa.table({"a": [1], "begin": pa.array([None], fact)})
    with pytest.raises(InputError, match=message):
        told(table, FactRoles(("a",), begin="begin"), time=stream)


def test_dates() -> None:
    table = pa.table({"a": [1], "begin": pa.array([2], pa.date32()), "end": [None]})
    table = table.set_column(2, "end", pa.nulls(1, pa.date32()))
    found = told(table, FactRoles(("a",), begin="begin", end="end"), time=pa.date32())
    assert intervals(found) == [(2, math.inf, 0)]


# --- CSV, payload, seeds, options --------------------------------------------------------------


def test_csv_with_cells_that_are_no_times(tmp_path: Path) -> None:
    path = tmp_path / "fact.csv"
    lines = [*("1,x,2,9\n" for _ in range(1)), "2,x,soon,9\n", "3,,2,9\n", "4,y,,\n", "4,y,5,8.0\n"]
    filler = "".join(f"{i},z,1,2\n" for i in range(10, 600_000))
    path.write_text("a,b,begin,end\n" + filler + "".join(lines))
    archive = open_archive(str(path), "fact")
    first = 600_000 - 10
    found = told(archive, INTERVALS)
    rejected = found.rejected.select(["row", "reason", "begin"]).to_pylist()
    assert rejected == [
        {"row": first + 1, "reason": "begin 'soon' does not read as a time", "begin": "soon"},
        {"row": first + 4, "reason": f"overlaps the interval of the same fact in row {first + 3}",
         "begin": "5"},
    ]  # fmt: skip
    assert (found.rows, found.null_keys) == (first + 5, 1)
    assert intervals(found)[-2:] == [(2, 9, first), (-math.inf, math.inf, first + 3)]
    with pytest.raises(InputError, match=r"fact\.csv: column begin: 1 row is not a time \(row 5"):
        told(archive, INTERVALS, "error")


def test_a_log_in_csv_equals_that_in_parquet(tmp_path: Path) -> None:
    table = log_of(changes(4, 80))
    pv.write_csv(table, tmp_path / "log.csv")
    pq.write_table(table, tmp_path / "log.parquet")
    one, other = (
        told(open_archive(str(tmp_path / name), "fact"), LOG) for name in ("log.csv", "log.parquet")
    )
    assert intervals(one) == intervals(other)
    reasons = [found.rejected.column("reason").to_pylist() for found in (one, other)]
    assert reasons[0] == reasons[1]


def test_files_in_their_order_are_one_archive(tmp_path: Path) -> None:
    table = table_of(drawn(3, 50))
    for i, start in enumerate(range(0, 50, 20)):
        pq.write_table(table.slice(start, 20), tmp_path / f"{i}.parquet", row_group_size=7)
    found = told(open_archive(str(tmp_path), "fact"), INTERVALS, payload=True)
    expected = told(table, INTERVALS)
    assert intervals(found) == intervals(expected)
    assert found.payload is not None
    assert found.payload.equals(table)
    assert expected.payload is None
    reasons = [own.rejected.column("reason").to_pylist() for own in (found, expected)]
    assert reasons[0] == reasons[1]


def test_the_seed_rises_until_codes_are_one_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = canonical.codes

    def weak(columns: list[pa.Array], seed: int, rows: int) -> np.ndarray[Any, Any]:
        return whole(columns, seed, rows) % (2 ** (seed - canonical.LANE_SEED))

    monkeypatch.setattr(read, "codes", weak)
    words = [str(k) for k in range(50)]
    table = pa.table({"a": words, "b": words[::-1]})
    found = told(table, FactRoles(("a",), ("b",)))
    assert found.seed > canonical.LANE_SEED + 5
    assert np.unique(found.facts.a).size == np.unique(found.facts.b).size == 50
    assert pc.all(pc.is_in(found.values[0][0].cast(pa.string()), pa.array(words))).as_py()


def test_roles_that_mean_nothing() -> None:
    with pytest.raises(SpecError, match="no join attribute"):
        FactRoles(())
    with pytest.raises(SpecError, match="--fact-op is given without --fact-time"):
        FactRoles(("a",), op="op")
    with pytest.raises(SpecError, match="--fact-time is given without --fact-op"):
        FactRoles(("a",), time="t")
    with pytest.raises(SpecError, match="is a change log, and --fact-end that"):
        FactRoles(("a",), op="op", time="t", end="e")
    with pytest.raises(SpecError, match="are both t: an interval needs two"):
        FactRoles(("a",), begin="t", end="t")
    with pytest.raises(InputError, match="more than one column a"):
        table_archive(pa.table([[1], [2]], names=["a", "a"]), "fact")


def test_a_column_that_cannot_tell_facts_apart() -> None:
    table = pa.table({"a": [1], "id": [[1]]})
    with pytest.raises(InputError, match=r"column id .* has type list<.*name the columns that do"):
        told(table, FactRoles(("a",), identity=("id",)))


@pytest.mark.parametrize("seed", range(20))
def test_order_by_several_columns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = [
        rng.integers(-(2**63), 2**63, 500),
        rng.choice([BEFORE, -3, 4, NEVER], 500),
        rng.choice([BEFORE, 0, 1], 500),
        np.full(500, 9),
        rng.integers(0, 3, 500),
    ]
    rng.shuffle(columns)
    columns = columns[: 1 + seed % 5]
    assert order_by(columns, 500).tolist() == np.lexsort(columns[::-1]).tolist()


def test_checking_a_column_does_not_list_all_of_them() -> None:
    class Wide:
        """A schema of very many columns."""

        def get_all_field_indices(self, name: str) -> list[int]:
            return [7] if name == "c7" else []

        @property
        def names(self) -> list[str]:
            listed.append(1)
            return ["c7"]

    listed: list[int] = []
    archive = table_archive(pa.table({"a": [1]}), "fact")
    object.__setattr__(archive, "schema", Wide())
    check_present(archive, "c7")
    assert not listed
    with pytest.raises(InputError, match="has no column 'c8'"):
        check_present(archive, "c8")
