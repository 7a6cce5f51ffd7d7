"""Archives without order or statistics: samples of keys, true within their intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from estimate_cases import assert_exact, streams
from thorough import guarded

import winnow
from engine.archives.roles import JoinColumns, Roles
from engine.archives.source import open_archive
from engine.jobs.estimate import scan, universe
from engine.runtime.errors import InputError
from engine.runtime.executors import SerialExecutor, ThreadExecutor

JOIN: dict[str, Any] = {"on": "k", "time": "t", "window": 30}
TEXTS = ["count", "sum(importance)", "avg(left.v)", "count by right.g"]


def shuffled(folder: Path, tables: list[pa.Table], kind: str) -> dict[str, str]:
    """Write archives that have no stretches of time."""
    places = {}
    for seed, (side, table) in enumerate(zip(("left", "right"), tables, strict=True)):
        order = np.random.default_rng(seed).permutation(table.num_rows)
        places[side] = str(folder / f"{side}.{kind}")
        if kind == "csv":
            pc.write_csv(table.take(pa.array(order)), places[side])
        else:
            rows = min(500, table.num_rows // 15)
            pq.write_table(table.take(pa.array(order)), places[side], row_group_size=rows)
    return places


def crowd(rows: int = 40_000, keys: int = 3000, hot: float = 0.0) -> list[pa.Table]:
    """Return streams of many keys, one of which may be hot."""
    tables = []
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        key = (keys * rng.random(rows) ** 1.5).astype(np.int64)
        key[rng.random(rows) < hot] = 7
        tables.append(
            pa.table({"t": np.sort(rng.integers(0, 4000, rows)), "k": key,
                      "v": rng.normal(10, 3, rows) + (key % 5), "g": key % 3})
        )  # fmt: skip
    return tables


class Counted:
    """A footer that counts how often its row groups are looked at."""

    def __init__(self, footer: pq.FileMetaData) -> None:
        self.footer, self.looks = footer, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.footer, name)

    def row_group(self, at: int) -> pq.RowGroupMetaData:
        """Return a row group's."""
        self.looks += 1
        return self.footer.row_group(at)


def test_parts_of_many_row_groups_are_found_in_one_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20,000 row groups took minutes: each was counted again with each that follows."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": range(300), "k": range(300)}), path, row_group_size=1)
    footer = Counted(pq.ParquetFile(path).metadata)
    monkeypatch.setattr(scan, "footer_of", lambda *_: footer)
    monkeypatch.setattr(scan, "_ROWS", 120)
    archive = open_archive(str(path), "left")
    joined = JoinColumns("tick", False, (pa.int64(),), ())
    parts = scan.sources_of(archive, 0, Roles(("k",), "t"), joined, (), quarantine=False)
    assert [own.row_groups for own in parts] == [120, 120, 60]
    spans = [span for own in parts if own.groups for span in own.groups.rows]
    assert spans == [(at, at + 1) for at in range(300)]
    assert footer.looks <= 300 * 4


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_everything_is_the_oracles(tmp_path: Path, kind: str) -> None:
    tables = streams(3)
    found = winnow.estimate(
        **shuffled(tmp_path, tables, kind), on="k", time="t", importance="w", window_left=30,
        window_right=55, aggregates=["count", "sum(importance)", "count by left.g"], within=1e-6,
    )  # fmt: skip
    assert found.report["how"] == "exact join"
    assert_exact(found.aggregates, tables, windows=(30, 55))


def test_a_sample_of_keys_is_printed_as_parts_of_the_keys(tmp_path: Path) -> None:
    places = shuffled(tmp_path, crowd(), "parquet")
    found = winnow.estimate(places["left"], places["right"], **JOIN, within="5%")
    assert found.report["how"] == "sample of keys"
    assert "parts of the keys" in " ".join(str(found).split())


@pytest.mark.parametrize(
    "hot",
    [
        0.2,
        *guarded(
            [0.0], "engine/jobs/estimate", "engine/sampling", "tests/jobs/test_estimate_by_keys.py"
        ),
    ],
)
def test_samples_of_keys_hold_the_truth(tmp_path: Path, hot: float) -> None:
    """Also where one key has most of the outputs: it is drawn for certain."""
    places, texts = shuffled(tmp_path, crowd(hot=hot), "parquet"), TEXTS[: 3 if hot else 4]
    true = winnow.estimate(**places, **JOIN, aggregates=texts, within=1e-9)
    assert true.report["how"] == "exact join"
    held, lines, sampled = 0, 0, 0
    for seed in range(15):
        found = winnow.estimate(**places, **JOIN, aggregates=texts, within="30%", seed=seed)
        if found.report["how"] == "exact join":
            continue  # a first round promised too little
        sampled += 1
        assert found.report["how"] == "sample of keys"
        assert "is not sorted by time" in found.report["why"]
        assert 0 < found.report["read"]["tuples"] < 0.5 * found.report["exact"]["tuples"]
        assert found.report["read"]["share"] > 1
        assert found.report["slices"]["certain"] > 0
        for text in texts:
            exact = true.aggregates[text].to_pylist()
            for own, line in zip(found.aggregates[text].to_pylist(), exact, strict=True):
                assert own.get("right.g") == line.get("right.g")
                held += own["low"] <= line["estimate"] <= own["high"]
                lines += 1
    assert sampled >= 10
    assert held >= 0.93 * lines


def test_any_executor_and_every_number_of_passes_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = shuffled(tmp_path, crowd(), "parquet")
    monkeypatch.setattr(scan, "_ROWS", 3000)
    runs = [
        winnow.estimate(**places, **JOIN, aggregates=TEXTS, within="20%", executor=executor)
        for executor in (SerialExecutor(), ThreadExecutor(3))
    ]
    assert runs[0].aggregates == runs[1].aggregates
    assert runs[0].report["read"] == runs[1].report["read"]
    whole = winnow.estimate(**places, **JOIN, aggregates=TEXTS, within=1e-9)
    monkeypatch.setattr(universe, "_HELD", 9000)
    parts = winnow.estimate(**places, **JOIN, aggregates=TEXTS, within=1e-9)
    count, wanted = (own.aggregates["count"].column("estimate") for own in (parts, whole))
    assert count == wanted
    assert parts.report["read"]["rows"] > whole.report["read"]["rows"]


def test_the_cost_is_told_before_rows_are_read(tmp_path: Path) -> None:
    places, told = shuffled(tmp_path, crowd(2000), "csv"), list[str]()
    winnow.estimate(**places, **JOIN, within="20%", progress=lambda stage, *_: told.append(stage))
    size = 2 * sum(Path(place).stat().st_size for place in places.values())
    wanted = f"keys; all rows are read, {size:,} bytes, for left is CSV"
    assert told.index(wanted) < told.index("all rows")


def test_null_keys_bad_rows_and_the_start_are_those_of_a_replay(tmp_path: Path) -> None:
    tables = streams(5)
    given = {**shuffled(tmp_path, tables, "parquet"), "on": "g", "time": "t", "window": 20,
             "start_ts": 333}  # fmt: skip
    found = winnow.estimate(**given, within=1e-6)
    replayed = winnow.replay(**given, cache=tmp_path / "cache").report
    assert found.aggregates["count(*)"]["estimate"][0].as_py() == replayed["exact"]["outputs"]
    weights = np.array(tables[1].column("w").to_pylist())
    weights[7] = -1
    tables[1] = tables[1].set_column(tables[1].column_names.index("w"), "w", pa.array(weights))
    for kind in ("parquet", "csv"):
        places = shuffled(tmp_path, tables, kind)
        wrong = {**places, "on": "k", "time": "t", "window": 20, "importance": "w"}
        with pytest.raises(InputError, match="column w: 1 row is"):
            winnow.estimate(**wrong, within=1e-6)
        found = winnow.estimate(**wrong, bad_rows="quarantine", within=1e-6)
        assert found.report["rejected"] == 1


@pytest.mark.parametrize(
    ("asked", "message"),
    [({"read": "10%"}, "read is of archives of which parts"),
     ({"aggregates": "count every 100"}, "every is of parts of time")],
)  # fmt: skip
def test_what_keys_do_not_tell_is_refused(
    tmp_path: Path, asked: dict[str, Any], message: str
) -> None:
    places = shuffled(tmp_path, crowd(2000), "parquet")
    with pytest.raises(InputError, match=message):
        winnow.estimate(**places, **JOIN, **asked)
