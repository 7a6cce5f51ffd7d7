"""Archives: found, typed, and their rows turned into tuples."""

from __future__ import annotations

import datetime as dt
import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.archives import canonical, families
from engine.archives.normalise import normalise
from engine.archives.roles import JoinColumns, Roles, check_roles
from engine.archives.source import Archive, open_archive
from engine.archives.ticks import FAULTS, ticks
from engine.runtime.errors import SpecError
from engine.runtime.time_units import parse_window

ROLES = Roles(("k",), "t")


def archive(folder: Path, side: str, columns: dict[str, Any]) -> Archive:
    path = folder / f"{side}.parquet"
    pq.write_table(pa.table(columns), path)
    return open_archive(str(path), side)


def both(
    folder: Path, left: dict[str, Any], right: dict[str, Any], roles: Roles = ROLES
) -> JoinColumns:
    return check_roles(archive(folder, "left", left), roles, archive(folder, "right", right), roles)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=100), min_size=1), st.integers(0, 2**64 - 1), st.data())
def test_xxh64_of_text_is_that_of_the_reference(cells: list[bytes], seed: int, data: Any) -> None:
    start = data.draw(st.integers(0, len(cells) - 1))
    values = pa.array(cells, pa.large_binary()).slice(start)
    expected = [xxhash.xxh64_intdigest(cell, seed=seed) for cell in cells[start:]]
    assert canonical.hashed([values], seed, len(values)).tolist() == expected


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.text()), min_size=1))
def test_the_hash_of_a_column_is_the_seed_of_the_next(rows: list[tuple[int, str]]) -> None:
    numbers, words = zip(*rows, strict=True)
    columns = [pa.array(numbers, pa.int64()), pa.array(words, pa.large_string())]
    expected = []
    for number, word in rows:
        first = xxhash.xxh64_intdigest(number.to_bytes(8, "little", signed=True), seed=42)
        expected.append(xxhash.xxh64_intdigest(word.encode(), seed=first))
    assert canonical.hashed(columns, 42, len(rows)).tolist() == expected


def test_wide_decimals_are_hashed_as_their_bytes() -> None:
    values = pa.array([Decimal(-5), Decimal(10**30)], pa.decimal128(38, 0))
    expected = [
        xxhash.xxh64_intdigest(value.to_bytes(16, "little", signed=True), seed=42)
        for value in (-5, 10**30)
    ]
    assert canonical.hashed([values], 42, 2).tolist() == expected


MOMENT = dt.datetime(2020, 1, 1, 12, 30, 15)  # noqa: DTZ001 - times without a zone
UTC = MOMENT.replace(tzinfo=dt.UTC)
PAIRS = {
    "int8 with int64": (pa.array([1, -7, 127], pa.int8()), pa.array([-7, 127, 128])),
    "uint64 with uint8": (pa.array([0, 255, 2**64 - 1], pa.uint64()), pa.array([255], pa.uint8())),
    "uint64 with int64": (
        pa.array([1, 2**63, 2**64 - 1], pa.uint64()),
        pa.array([1, -1, -(2**63)]),
    ),
    "bool": (pa.array([True, False]), pa.array([False])),
    "string with dictionary": (
        pa.array(["a", "", "b", "é"]),
        pa.array(["é", "a", "", "c"]).dictionary_encode(),
    ),
    "large_string with string_view": (
        pa.array(["a", "bb"], pa.large_string()),
        pa.array(["bb", "c"], pa.string_view()),
    ),
    "binary with fixed": (pa.array([b"ab", b"cd", b""]), pa.array([b"cd"], pa.binary(2))),
    "dates": (
        pa.array([dt.date(1969, 12, 31), dt.date(2020, 1, 1)], pa.date32()),
        pa.array([dt.date(2020, 1, 1)], pa.date64()),
    ),
    "timestamps of one unit": (
        pa.array([MOMENT, MOMENT + dt.timedelta(1)], pa.timestamp("us")),
        pa.array([MOMENT], pa.timestamp("us")),
    ),
    "timestamps s with ms": (
        pa.array([MOMENT, MOMENT + dt.timedelta(1)], pa.timestamp("s")),
        pa.array([MOMENT, MOMENT + dt.timedelta(0, 0, 1000)], pa.timestamp("ms")),
    ),
    "zones of two names": (
        pa.array([UTC], pa.timestamp("us", "UTC")),
        pa.array([UTC], pa.timestamp("us", "Europe/Rome")),
    ),
    "decimals of two scales": (
        pa.array([Decimal("1.50"), Decimal("-0.01")], pa.decimal128(9, 2)),
        pa.array([Decimal("1.5000"), Decimal("1.5001")], pa.decimal128(12, 4)),
    ),
    "decimal with int": (
        pa.array([Decimal("2.00"), Decimal("2.01")], pa.decimal128(5, 2)),
        pa.array([2, 200]),
    ),
    "wide decimals": (
        pa.array([Decimal(10**20), Decimal(-1)], pa.decimal128(38, 2)),
        pa.array([Decimal(10**20), Decimal(-1)], pa.decimal256(50, 10)),
    ),
    "null type": (pa.nulls(2), pa.array(["a", "b"])),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
def test_codes_are_equal_exactly_when_values_are(pair: tuple[pa.Array, pa.Array]) -> None:
    kind = families.canonical_type(pair[0].type, pair[1].type)
    assert isinstance(kind, pa.DataType)
    sides = []
    for values in pair:
        held = values.drop_null()
        found = canonical.codes([canonical.canonical(held, kind)], 42, len(held))
        sides.append(list(zip(held.to_pylist(), found.tolist(), strict=True)))
    for one, code in (*sides[0], *sides[1]):
        for other, other_code in (*sides[0], *sides[1]):
            assert (one == other) == (code == other_code)


def test_a_timestamp_beyond_the_finer_unit_keeps_its_own_code() -> None:
    far = pa.array([2**62, 0], pa.timestamp("s"))
    kind = families.canonical_type(far.type, pa.timestamp("ns"))
    assert len(set(canonical.codes([canonical.canonical(far, kind)], 42, 2).tolist())) == 2


def test_times_of_two_units_are_ticks_of_the_finer(tmp_path: Path) -> None:
    left = {"k": [1], "t": pa.array([5], pa.timestamp("s"))}
    right = {"k": [1], "t": pa.array([5001], pa.timestamp("ms"))}
    columns = both(tmp_path, left, right)
    assert columns.unit == "ms"
    assert normalise(pa.table(left), ROLES, columns, 0).ts.tolist() == [5000]
    assert normalise(pa.table(right), ROLES, columns, 0).ts.tolist() == [5001]


@pytest.mark.parametrize(
    ("times", "unit"),
    [
        (pa.array([3], pa.date32()), "day"),
        (pa.array([3 * 86_400_000], pa.date64()), "day"),
        (pa.array([3.0]), "tick"),
        (pa.array([3], pa.uint64()), "tick"),
        (pa.array([3], pa.int8()), "tick"),
        (pa.array([3], pa.timestamp("us", "UTC")), "us"),
    ],
)
def test_times_are_ticks(tmp_path: Path, times: pa.Array, unit: str) -> None:
    rows = {"k": [1], "t": times}
    columns = both(tmp_path, rows, rows)
    assert columns.unit == unit
    assert normalise(pa.table(rows), ROLES, columns, 0).ts.tolist() == [3]


def test_every_wrong_cell_is_rejected_once_with_its_reason() -> None:
    roles = Roles(("k",), "t", "i")
    columns = JoinColumns("tick", False, (pa.int64(),), ())
    table = pa.table(
        {
            "t": [None, float("nan"), float("inf"), 1.5, 1e19, 1.0, 1.0, 1.0, 1.0, 2.0, 3.0],
            "k": pa.array([1, 1, None, 1, 1, 1, 1, 1, 1, None, 7]),
            "i": [1.0, -1.0, 1.0, 1.0, 1.0, None, float("nan"), float("inf"), -2.0, 1.0, -0.0],
        }
    )
    found = normalise(table, roles, columns, 100)
    assert found.rejected.column("reason").to_pylist() == [
        "null time",
        "NaN time",
        "infinite time",
        "time 1.5 is not a whole number of ticks",
        "time out of int64 range",
        "null importance",
        "NaN importance",
        "infinite importance",
        "negative importance",
    ]
    assert found.rejected.column("row").to_pylist() == list(range(100, 109))
    assert found.null_keys == 1
    assert (found.row.tolist(), found.key.tolist()) == ([110], [7])
    assert not np.signbit(found.importance[0])
    assert sum(fault.total for fault in found.faults) == 9


def test_times_that_overflow_the_finer_unit_are_rejected() -> None:
    columns = JoinColumns("ns", False, (pa.int64(),), ())
    table = pa.table({"k": [1, 1], "t": pa.array([2**62, 1], pa.timestamp("s"))})
    found = normalise(table, ROLES, columns, 0)
    assert found.rejected.column("reason").to_pylist() == ["time out of int64 range"]
    unsigned = pa.table({"k": [1], "t": pa.array([2**63], pa.uint64())})
    ticks = JoinColumns("tick", False, (pa.int64(),), ())
    assert normalise(unsigned, ROLES, ticks, 0).faults[0].total == 1


@pytest.mark.parametrize(
    "weights",
    [
        pa.array([2**63 + 2**10], pa.uint64()),
        pa.array([Decimal("1.25")], pa.decimal128(5, 2)),
        pa.array([0.5], pa.float32()),
    ],
)
def test_importance_is_widened_to_float64(weights: pa.Array) -> None:
    columns = JoinColumns("tick", False, (pa.int64(),), ())
    table = pa.table({"k": [1], "t": [1], "i": weights})
    found = normalise(table, Roles(("k",), "t", "i"), columns, 0)
    assert found.importance.tolist() == [float(weights[0].as_py())]


def test_files_come_by_path_and_hidden_ones_are_skipped(tmp_path: Path) -> None:
    for name in ("b.parquet", "a.pq", "_SUCCESS", ".a.parquet.crc", "_temporary/c.parquet"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"k": [1]}), path)
    for where in (tmp_path, tmp_path / "*"):
        found = open_archive(str(where), "left")
        assert [Path(file.path).name for file in found.files] == ["a.pq", "b.parquet"]
        assert [file.rows for file in found.files] == [1, 1]


def test_the_fingerprint_follows_the_files(tmp_path: Path) -> None:
    one = archive(tmp_path, "left", {"k": [1]}).fingerprint
    assert open_archive(str(tmp_path / "left.parquet"), "left").fingerprint == one
    assert archive(tmp_path, "left", {"k": [1, 2]}).fingerprint != one


def test_csv_of_any_ending_has_types(tmp_path: Path) -> None:
    text = "t,k,i\n2020-01-01 00:00:00,a,1\n"
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(text.replace(",1", ",1.5").encode()))
    found = open_archive(str(tmp_path), "left")
    assert found.schema.types == [pa.timestamp("s"), pa.string(), pa.float64()]
    (tmp_path / "c.tsv").write_text(text.replace(",", "\t"))
    assert open_archive(str(tmp_path / "c.tsv"), "left").schema.names == ["t", "k", "i"]


@pytest.mark.parametrize(
    ("text", "unit", "ticks"),
    [
        ("400", "tick", 400),
        ("0", "s", 0),
        ("-0", "s", 0),
        ("10min", "s", 600),
        ("1h30m", "s", 5400),
        ("250ms", "us", 250_000),
        ("2 days", "day", 2),
        ("1.5h", "ms", 5_400_000),
        ("1 week 1 day", "day", 8),
        ("60S", "ns", 60 * 10**9),
    ],
)
def test_windows_are_ticks_or_durations(text: str, unit: str, ticks: int) -> None:
    assert parse_window(text, unit, "left") == ticks


@pytest.mark.parametrize(
    ("text", "unit", "message"),
    [
        ("-5min", "s", "must be 0 ticks or more"),
        ("250ms", "s", "not a whole number of ticks"),
        ("1.5", "s", "not a whole number of ticks"),
        ("5m", "s", "write min"),
        ("5 minuets", "s", "Did you mean 'minutes'"),
        ("", "s", "neither a number of ticks nor a duration"),
    ],
)
def test_wrong_windows_are_told(text: str, unit: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_window(text, unit, "left")


@pytest.mark.parametrize("held", ["s", "ms", "us", "ns"])
def test_times_that_are_held_in_a_finer_unit_are_whole_ticks(held: str) -> None:
    """As of a CSV with whole seconds that was written as Parquet, which has milliseconds."""
    column = pa.chunked_array([pa.array([-7, 0, 1_714_521_601, None], pa.timestamp("s"))])
    ts, faults = ticks(column.cast(pa.timestamp(held)), "s", zoned=False)
    assert ts.dtype == np.int64
    assert ts[:3].tolist() == [-7, 0, 1_714_521_601]
    assert [FAULTS[fault].words for fault in faults] == ["", "", "", "null"]
    if held != "s":
        ts, faults = ticks(
            pa.chunked_array([pa.array([1001], pa.timestamp(held))]), "s", zoned=False
        )
        assert FAULTS[faults[0]].words == "not a whole number of ticks"
