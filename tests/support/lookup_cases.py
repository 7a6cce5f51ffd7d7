"""A stream and a fact relation with everything that can be wrong with them."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

ON = {"on": "k", "time": "t", "importance": "w"}
FACT = {"fact_on": "a", "fact_begin": "begin", "fact_end": "end"}
IDS = ["row", "fact_row", "ts", "importance"]


def cases(seed: int, size: int = 60) -> tuple[pa.Table, pa.Table]:
    """Return a stream and facts with nulls, bad intervals, duplicates and a payload."""
    draw = random.Random(seed)  # noqa: S311
    words = [None, "p", "q", "r" * 30, ""]
    stream = pa.table(
        {
            "k": pa.array([draw.choice(words) for _ in range(size)], pa.string()),
            "t": [draw.randrange(20) for _ in range(size)],
            "w": [float(draw.randrange(8)) for _ in range(size)],
            "list": [[i] * draw.randrange(3) for i in range(size)],
        }
    )
    rows = [
        (draw.choice(words), draw.choice([1, 2, None]), draw.choice([None, *range(15)]),
         draw.choice([None, *range(20)]))
        for _ in range(size)
    ]  # fmt: skip
    names = ("a", "v", "begin", "end")
    kinds = (pa.large_string(), pa.int16(), pa.int64(), pa.int32())
    columns = zip(names, kinds, zip(*rows, strict=True), strict=True)
    return stream, pa.table({name: pa.array(cells, kind) for name, kind, cells in columns})


def rows_of(outputs: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(outputs.column(name).to_pylist() for name in IDS), strict=True))
