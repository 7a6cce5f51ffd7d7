"""Archives joined through a fact relation, in many types, and what the oracle says of them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any, NamedTuple

import naive
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from job_cases import Rows, stream, table

Fact = tuple[int, int, int | None, int | None, int]
NAMES: dict[str, Any] = {
    "fact_left": "a", "fact_right": "b", "fact_begin": "begin", "fact_end": "end", "fact_id": "n",
}  # fmt: skip
JOIN: dict[str, Any] = {"on": "k", "time": "t", "importance": "i", "window": 9}


def facts(seed: int, count: int = 30, *, span: int = 120, keys: int = 5) -> list[Fact]:
    """Return facts with intervals, open ones among them, told apart by their number."""
    rng = np.random.default_rng([seed, 77])
    found = []
    for i in range(count):
        begin, end = sorted(rng.choice(span, 2, replace=False).tolist())
        found.append(
            (
                int(rng.integers(0, keys)),
                int(rng.integers(0, keys)),
                None if rng.random() < 0.3 else begin,
                None if rng.random() < 0.3 else end,
                i,
            )
        )
    return found


def fact_table(found: list[Fact]) -> pa.Table:
    """Return facts as an archive with columns a, b, begin, end, n, and a payload."""
    a, b, begin, end, number = (list(column) for column in zip(*found, strict=True))
    whole = pa.int64()
    return pa.table(
        {
            "a": pa.array(a, whole),
            "b": pa.array(b, whole),
            "begin": pa.array(begin, whole),
            "end": pa.array(end, whole),
            "n": pa.array(number, whole),
            "note": pa.array([f"fact {n}" for n in number]),
        }
    )


def as_log(found: list[Fact], seed: int) -> pa.Table:
    """Return the changes that make the same facts, shuffled among those of one time."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[int | None, int, str, Fact]] = []
    for fact in found:
        rows.append((fact[2], 1, "insert", fact))
        if fact[3] is not None:
            rows.append((fact[3], 0, "delete", fact))
    order = sorted(
        range(len(rows)),
        key=lambda i: (-1 if (ts := rows[i][0]) is None else ts, rng.random()),
    )
    rows = [rows[i] for i in order]
    return pa.table(
        {
            "at": pa.array([row[0] for row in rows], pa.int64()),
            "op": pa.array([row[2] for row in rows]),
            "a": pa.array([row[3][0] for row in rows], pa.int64()),
            "b": pa.array([row[3][1] for row in rows], pa.int64()),
            "n": pa.array([row[3][4] for row in rows], pa.int64()),
        }
    )


class Case(NamedTuple):
    """Two streams and the facts that join them."""

    left: Rows
    right: Rows
    facts: list[Fact]

    @property
    def tables(self) -> tuple[pa.Table, pa.Table]:
        """The streams as tables with a payload column."""
        left, right = (
            table(rows, p=pa.array([f"{name} {i}" for i in range(len(rows))]))
            for name, rows in (("left", self.left), ("right", self.right))
        )
        return left, right

    def written(self, folder: Path) -> dict[str, str]:
        """Write archives; return their paths by what they are."""
        named = dict(zip(("left", "right"), self.tables, strict=True))
        named["fact"] = fact_table(self.facts)
        for name, content in named.items():
            pq.write_table(content, folder / f"{name}.parquet")
        return {name: str(folder / f"{name}.parquet") for name in named}

    def expected(self, **options: Any) -> naive.Replay:
        """Return what the oracle makes of it."""
        given: dict[str, Any] = {
            "window_left": 9, "window_right": 9, "budget_left": None, "budget_right": None,
            "policy": "recent", "params": {},
        }  # fmt: skip
        return naive.replay(self.left, self.right, fact=self.facts, **(given | options))


def case(seed: int, rows: int = 150) -> Case:
    """Return random streams and facts."""
    return Case(stream(2 * seed, rows), stream(2 * seed + 1, rows), facts(seed))


def rows_of(outputs: pa.Table) -> list[tuple[Any, ...]]:
    """Return outputs as the oracle has them, times in ticks, without weights."""
    columns = [
        outputs.column(name) for name in ("left_row", "right_row", "ts", "importance", "fact_row")
    ]
    columns[2] = columns[2].cast(pa.int64())
    found = zip(*(column.to_pylist() for column in columns), strict=True)
    return sorted(found, key=lambda o: (o[2], o[0], o[1], o[4]))


def in_type(kind: str, values: list[int | None]) -> pa.Array:
    """Return keys in another type, one to one."""
    if kind == "string":
        return pa.array([None if v is None else f"key {v}" * (v + 1) for v in values])
    if kind == "decimal":
        return pa.array(values, pa.int64()).cast(pa.decimal128(30, 2))
    if kind == "small":
        return pa.array(values, pa.int8())
    if kind == "date":
        day = dt.date(2024, 1, 1)
        return pa.array([None if v is None else day + dt.timedelta(v) for v in values])
    return pa.array(values, pa.int64())


def parted(seed: int) -> Case:
    """Return a case whose relation has four parts."""
    one = case(seed, 300)
    facts = [(a, a if a < 3 else 3 + b % 2, *rest) for a, b, *rest in one.facts]
    return one._replace(facts=facts)  # type: ignore[arg-type]
