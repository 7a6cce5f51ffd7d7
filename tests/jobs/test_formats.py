"""Jobs on archives that are not Parquet: what they give for Parquet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from file_formats import WRITE

import winnow

JOIN: dict[str, Any] = {"on": "k", "time": "t", "importance": "w", "window": 40}


JOBS: dict[str, Callable[[Path, Path, Path], winnow.Result]] = {
    "replay": lambda a, b, _: winnow.replay(a, b, **JOIN, memory=20, policy="prob", lanes=2),
    "replay of ids": lambda a, b, _: winnow.replay(a, b, **JOIN, memory=20, columns="ids"),
    "facts": lambda a, b, c: winnow.replay(
        a, b, fact=c, fact_left="g", fact_right="k", on="g", time="t", window=9
    ),
    "lookup": lambda a, _, c: winnow.lookup(
        stream=a, fact=c, on="k", time="t", fact_begin="t", fact_end="u"
    ),
    "multijoin": lambda a, b, c: winnow.multijoin(
        {"a": a, "b": b, "c": c}, predicate="band:w:0.1", time="t", window=20
    ),
}


def stream(seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    time = np.sort(random.integers(0, 600, 200))
    return pa.table({
        "t": time, "u": time + 50, "k": random.integers(0, 9, 200), "g": random.integers(0, 2, 200),
        "w": np.round(random.random(200), 3),
    })  # fmt: skip


@pytest.mark.parametrize("ending", ["jsonl.gz", "feather", "de.csv"])
@pytest.mark.parametrize("job", JOBS)
def test_outputs_are_those_of_parquet(tmp_path: Path, job: str, ending: str) -> None:
    found = []
    for form, write in (("parquet", pq.write_table), (ending, WRITE[ending])):
        places = []
        for seed in range(3):
            places.append(tmp_path / f"{seed}.{form}")
            write(stream(seed), places[-1])
        found.append(JOBS[job](*places))
    assert found[0].outputs.num_rows
    assert found[1].outputs.equals(found[0].outputs)


@pytest.mark.parametrize("ending", ["csv", "feather"])
def test_times_in_seconds_are_joined_with_facts_in_seconds(tmp_path: Path, ending: str) -> None:
    kind = pa.timestamp("s")
    rows = pa.table({"t": pa.array([5, 15, 25], kind), "k": [1, 2, 1]})
    facts = pa.table({
        "k": [1, 2], "g": [1, 1], "from": pa.array([1, 1], kind), "to": pa.array([20, 20], kind),
    })  # fmt: skip
    interval = {"fact_begin": "from", "fact_end": "to"}
    ends = {"fact_left": "k", "fact_right": "g", "window": 9, **interval}
    places = [tmp_path / f"{name}.{ending}" for name in ("rows", "facts")]
    for table, place in zip((rows, facts), places, strict=True):
        WRITE[ending](table, place)
    for own, fact in ((rows, facts), (rows, places[1]), (places[0], places[1])):
        found = winnow.lookup(own, fact, on="k", time="t", **interval)
        assert found.outputs.select(["row", "fact_row"]).to_pydict() == {
            "row": [0, 1], "fact_row": [0, 1]
        }  # fmt: skip
        assert found.outputs["ts"].type == found.outputs["stream_t"].type == kind
        joined = winnow.replay(own, own, fact=fact, on="k", time="t", **ends)
        assert joined.report.window.tick == "s"
        assert joined.outputs.select(["left_row", "right_row"]).to_pylist() == [
            {"left_row": 0, "right_row": 0}
        ]
