"""Archives large enough to be estimated, and joins of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import naive_estimate
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

JOIN: dict[str, Any] = {"on": "k", "time": "t", "window": 15}
SEVERAL = ["count", "avg(left.v) by right.g"]
FACT: dict[str, Any] = {
    "left_on": "k", "right_on": "m", "time": "t", "importance": "w",
    "fact_left": "a", "fact_right": "b", "fact_begin": "since", "fact_end": "to",
}  # fmt: skip


def streams(seed: int, rows: int = 300, ticks: int = 900, keys: int = 9) -> list[pa.Table]:
    """Return two streams with ties, null keys and null values."""
    rng = np.random.default_rng(seed)
    tables = []
    for _ in range(2):
        nulls = rng.random((3, rows)) < 0.1
        tables.append(
            pa.table(
                {
                    "t": np.sort(rng.integers(0, ticks, rows)),
                    "k": pa.array(rng.integers(0, keys, rows), mask=nulls[0]),
                    "w": rng.integers(0, 9, rows) / 4,
                    "v": pa.array(rng.normal(0, 5, rows), mask=nulls[1]),
                    "g": pa.array(rng.choice(["a", "b", "c"], rows), mask=nulls[2]),
                    "p": rng.integers(0, 2, rows),
                }
            )
        )
    return tables


def assert_exact(
    found: dict[str, pa.Table], tables: list[pa.Table], *, windows: tuple[int, int],
    keys: tuple[str, ...] = ("k",),
) -> None:  # fmt: skip
    """Compare what was aggregated exactly of a join of such streams with the oracle's pairs.

    Of ``count``, ``sum(importance)``, and, where they are there, ``count every 100`` and
    ``count by left.g``. A null in `keys` joins nothing.
    """
    cells = []
    for own in tables:
        ts, *key = (own.column(name).to_pylist() for name in ("t", *keys))
        joined = [None if None in one else one for one in zip(*key, strict=True)]
        cells.append(list(zip(ts, joined, strict=True)))
    pairs = naive_estimate.pairs_of(cells[0], cells[1], windows)
    weights = [own.column("w").to_pylist() for own in tables]
    [count] = found["count"].to_pylist()
    assert count["estimate"] == count["low"] == count["high"] == len(pairs)
    [total] = found["sum(importance)"].to_pylist()
    wanted = sum(min(weights[0][i], weights[1][j]) for i, j, _ in pairs)
    assert total["estimate"] == pytest.approx(wanted)
    if "count every 100" in found:
        lines = found["count every 100"].to_pylist()
        cut = {line["window_begin"]: line["estimate"] for line in lines}
        of_window = [ts // 100 * 100 for _, _, ts in pairs]
        assert cut == {begin: of_window.count(begin) for begin in cut}
        assert sum(cut.values()) == len(pairs)
    if "count by left.g" in found:
        groups = tables[0].column("g").to_pylist()
        by_group = naive_estimate.totals(pairs, lambda _i, _j: 1.0, lambda i, _j, _ts: (groups[i],))
        lines = found["count by left.g"].to_pylist()
        wanted_of = {key: total for key, (total, _) in by_group.items()}
        assert {(line["left.g"],): line["estimate"] for line in lines} == wanted_of


def written(folder: Path, tables: list[pa.Table], size: int) -> dict[str, str]:
    """Write both streams in row groups of a size, and return where they are."""
    found = {}
    for name, table in zip(("left", "right"), tables, strict=True):
        found[name] = str(folder / f"{name}.parquet")
        pq.write_table(table, found[name], row_group_size=size)
    return found


def large(folder: Path, rows: int = 60_000, size: int = 150) -> dict[str, str]:
    """Write two archives of which a part suffices."""
    rng = np.random.default_rng(2)
    tables = [
        pa.table(
            {
                "t": np.sort(rng.integers(0, rows, rows)),
                "k": rng.integers(0, 40, rows),
                "v": rng.normal(10, 1, rows),
                "g": rng.integers(0, 3, rows),
            }
        )
        for _ in range(2)
    ]
    return written(folder, tables, size)


def through(folder: Path, tables: list[pa.Table], fact: pa.Table, size: int = 20) -> dict[str, Any]:
    """Write streams and facts, and return the options of their join."""
    pq.write_table(fact, folder / "fact.parquet")
    return {**written(folder, tables, size), "fact": str(folder / "fact.parquet"), **FACT}


def linked_archives(folder: Path, rows: int = 40_000, *, text: bool = False) -> dict[str, Any]:
    """Return a join through facts that change, of which a part suffices."""
    rng = np.random.default_rng(9)

    def named(keys: np.ndarray) -> pa.Array:
        own = pa.array(keys)
        return own.cast(pa.string()) if text else own

    tables = [
        pa.table(
            {
                "t": np.sort(rng.integers(0, rows, rows)),
                name: named(rng.integers(0, 60, rows)),
                "w": rng.integers(1, 9, rows),
                "v": rng.normal(10, 1, rows),
                "g": rng.integers(0, 3, rows),
            }
        )
        for name in ("k", "m")
    ]
    key, number = rng.integers(0, 60, (2, 400)), np.arange(400)
    begin = rng.integers(0, rows, 400)
    to = pa.array(begin + rng.integers(1, rows, 400), mask=number % 3 == 0)
    fact = pa.table(
        {"a": named(key[0]), "b": named(key[1]),
         "since": pa.array(begin, mask=number % 4 == 0), "to": to, "id": number}
    )  # fmt: skip
    return {**through(folder, tables, fact, 150), "fact_id": "id", "window": 15}


def several_archives(folder: Path, rows: int = 30_000, size: int = 100) -> dict[str, Any]:
    """Return a join of three archives of which a part suffices."""
    rng, streams = np.random.default_rng(3), {}
    for name in "abc":
        table = pa.table(
            {"t": np.sort(rng.integers(0, rows, rows)), "v": rng.random(rows),
             "g": rng.integers(0, 3, rows)}
        )  # fmt: skip
        streams[name] = str(folder / f"{name}.parquet")
        pq.write_table(table, streams[name], row_group_size=size)
    return {"left": streams, "predicate": "band:v:0.1", "time": "t", "window": 5}
