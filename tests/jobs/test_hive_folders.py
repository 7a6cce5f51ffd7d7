"""Archives in folders named as in ``day=2024-03-01`` give what files with those columns give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

import winnow
from engine.runtime.errors import InputError

ROLES: dict[str, Any] = {"on": "k", "time": "t", "window": 20}
DAYS = ["2024-03-01", "2024-03-02", "__HIVE_DEFAULT_PARTITION__"]


def streams(folder: Path, kind: str = "parquet", rows: int = 40) -> tuple[Path, Path]:
    """Write both streams in folders, and with the folders' columns in one file each."""
    rng = np.random.default_rng(5)
    for side in ("left", "right"):
        tables = []
        for day in DAYS:
            for level in (1, 2):
                own = folder / "hive" / side / f"day={day}" / f"level={level}"
                own.mkdir(parents=True)
                for part in range(2):
                    times = pa.array(rng.integers(0, 60, rows))  # tied, and not in order
                    table = pa.table({"t": times, "k": rng.integers(0, 6, rows)})
                    write = pq.write_table if kind == "parquet" else pv.write_csv
                    write(table, own / f"{part}.{kind}")
                    known = pa.scalar(None if day == DAYS[2] else day, pa.string())
                    table = table.append_column("day", pa.repeat(known, rows).cast(pa.date32()))
                    level_column = pa.repeat(pa.scalar(level, pa.int32()), rows)
                    tables.append(table.append_column("level", level_column))
        flat = folder / "flat" / f"{side}.parquet"
        flat.parent.mkdir(exist_ok=True)
        # Null sorts as "__HIVE...": after the digits, in the order of paths.
        pq.write_table(pa.concat_tables(tables), flat, row_group_size=rows)
    return folder / "hive", folder / "flat"


def same(
    folder: Path, places: tuple[Path, Path], job: Callable[..., Any], **options: Any
) -> pa.Table:
    """Run a job on both; return the outputs, which are equal."""
    found = []
    for at, (place, end) in enumerate(zip(places, ("", ".parquet"), strict=True)):
        out = folder / f"out-{at}"
        cache = {"cache": folder / f"cache-{at}"} if "fact_on" not in options else {}
        job(f"{place}/left{end}", f"{place}/right{end}", **options, **cache, out=out)
        found.append(pq.read_table(out))
    assert found[0].num_rows > 50
    assert found[0].equals(found[1])
    return found[0]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize(
    "own",
    [
        {"memory": 10, "policy": "prob"},
        {"memory": 20, "policy": "prob", "on": ["k", "level"], "importance": "level"},
        {"memory": "30%", "policy": "rand", "partition_by": "level"},
        {"memory": 40, "policy": "rand", "on": "day", "columns": "ids", "lanes": 2},
    ],
)
def test_a_replay_gives_the_same_rows(tmp_path: Path, own: dict[str, Any], kind: str) -> None:
    found = same(tmp_path, streams(tmp_path, kind), winnow.replay, **ROLES | own)
    named = {"left_day", "left_level", "right_day", "right_level"}
    assert named.issubset(found.column_names) == ("columns" not in own)


def test_a_folder_may_hold_the_times(tmp_path: Path) -> None:
    options = {"on": ["k", "t"], "time": "day", "window": 0, "memory": 50, "policy": "rand"}
    places = streams(tmp_path)
    with pytest.raises(InputError, match="day: 40 rows are null"):
        same(tmp_path, places, winnow.replay, **options)
    same(tmp_path, places, winnow.replay, **options, bad_rows="quarantine")
    rejected = [pq.read_table(tmp_path / f"out-{at}/_rejected/left.parquet") for at in (0, 1)]
    assert rejected[0].drop(["file"]).equals(rejected[1].drop(["file"]))
    places_of = set(rejected[0]["file"].to_pylist())
    assert len(places_of) == 4
    assert all(f"/day={DAYS[2]}/" in place for place in places_of)


def test_other_jobs_give_the_same_rows(tmp_path: Path) -> None:
    places = streams(tmp_path)
    same(tmp_path, places, winnow.sample, **ROLES | {"on": ["k", "day"]}, fraction=0.5)
    looked = {"on": ["k", "level"], "fact_on": ["k", "level"], "time": "t"}
    same(tmp_path / "looked", places, winnow.lookup, **looked)


def test_an_estimate_draws_the_same_stretches(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for side in ("left", "right"):
        parts = []
        for at in range(300):
            own = tmp_path / "hive" / side / f"n={at:03d}"
            own.mkdir(parents=True)
            times = np.sort(rng.integers(at * 1000, (at + 1) * 1000, 1000))
            parts.append(pa.table({"t": times, "k": rng.integers(0, 200, 1000)}))
            pq.write_table(parts[-1], own / "part.parquet")
            number = pa.repeat(pa.scalar(at, pa.int32()), 1000)
            parts[-1] = parts[-1].append_column("n", number)
        (tmp_path / "flat").mkdir(exist_ok=True)
        whole = pa.concat_tables(parts)
        pq.write_table(whole, tmp_path / "flat" / f"{side}.parquet", row_group_size=1000)
    options = ROLES | {"on": ["k", "n"], "window": 50, "within": "5%"}
    found = [
        winnow.estimate(
            f"{tmp_path}/{place}/left{end}", f"{tmp_path}/{place}/right{end}", **options
        )
        for place, end in (("hive", ""), ("flat", ".parquet"))
    ]
    assert found[0].report["read"]["share"] < 0.9
    assert found[0].aggregates == found[1].aggregates
