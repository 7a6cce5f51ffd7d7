"""Sizes of stretches by their keys: the pairs that keys make, whatever footers hide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import naive_estimate
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from estimate_cases import JOIN, large
from thorough import guards

import winnow
from engine.jobs.estimate.draw import Joins
from engine.jobs.estimate.keys import cost_of_keys, pairs_by_keys, with_keys
from engine.jobs.estimate.plan import plan_of
from engine.jobs.frame import open_job
from engine.options.estimate import ESTIMATE, estimate_of
from engine.runtime.errors import SpecError
from engine.runtime.executors import SerialExecutor, ThreadExecutor


def even(seed: int, rows: int = 240) -> pa.Table:
    """Return a stream with a row every tick, so that rows lie where they are supposed to."""
    rng = np.random.default_rng(seed)
    keys = [None if own == 9 else f"key {own}" for own in rng.integers(0, 10, rows)]
    return pa.table({"t": np.arange(rows) + seed, "k": keys, "j": rng.integers(0, 3, rows)})


@pytest.mark.parametrize("on", [["k"], ["j"], ["j", "k"]])
def test_pairs_are_the_oracles(tmp_path: Path, on: list[str]) -> None:
    tables = even(0), even(3)
    given: dict[str, Any] = {"on": on, "time": "t", "window_left": 3, "window_right": 5}
    for side, table in zip(("left", "right"), tables, strict=True):
        pq.write_table(table, tmp_path / f"{side}.parquet", row_group_size=7)
        given[side] = str(tmp_path / f"{side}.parquet")
    options = estimate_of(ESTIMATE.from_keywords(given))
    plan = plan_of(options, open_job(options.base))
    joins = Joins(plan, SerialExecutor(), 0)
    found = with_keys(plan, joins, lambda *_: None)
    assert found is not None
    sides = []
    for table in tables:
        cells = [table.column(name).to_pylist() for name in on]
        keys = [None if None in own else own for own in zip(*cells, strict=True)]
        sides.append(list(zip(table.column("t").to_pylist(), keys, strict=True)))
    pairs = naive_estimate.pairs_of(sides[0], sides[1], (3, 5))
    places = Counter(int(np.searchsorted(plan.edges, ts, "right")) - 1 for *_, ts in pairs)
    wanted = np.array([places[at] for at in range(plan.slices)])
    assert found.measures.alike == pytest.approx(wanted / wanted.sum())
    assert found.measures[:2] == plan.measures[:2]
    assert cost_of_keys(plan) <= joins.read["bytes"] < plan.all["bytes"]
    assert joins.read["rows"] == 0


TEXTS = ["count", "avg(left.v)", "avg(right.v)"]


def hot(folder: Path, rows: int = 100_000) -> dict[str, Any]:
    """Write archives in a few parts of which most rows have one key; of 8 bytes, as all have."""
    places = {}
    for seed, side in enumerate(("left", "right")):
        rng = np.random.default_rng(seed)
        key = rng.integers(0, 300, rows)
        for begin in (7_000, 23_000, 24_500, 48_000, 81_000):
            key[begin : begin + 200] = np.where(rng.random(200) < 0.5, 7, key[begin : begin + 200])
        table = pa.table({"t": np.arange(rows), "k": key, "v": rng.normal(10, 1, rows),
                          "w": rng.uniform(1, 2, rows)})  # fmt: skip
        places[side] = str(folder / f"{side}.parquet")
        pq.write_table(table, places[side], row_group_size=50, use_dictionary=False,
                       compression="none")  # fmt: skip
    return {**JOIN, **places, "window": 20, "importance": "w"}


@guards("engine/jobs/estimate", "engine/sampling", "tests/jobs/test_estimate_keys.py")
def test_keys_show_what_footers_hide(tmp_path: Path) -> None:
    given = hot(tmp_path)
    true = winnow.estimate(**given, aggregates=TEXTS, within=1e-9).aggregates
    truth = [true[text]["estimate"][0].as_py() for text in TEXTS]
    held, reached = 0, []
    for seed in range(10):
        found = winnow.estimate(**given, aggregates=TEXTS, sizes="keys", read="60%", seed=seed)
        assert found.report["sizes"] == "keys"
        assert 0.2 < found.report["pass"] < found.report["read"]["share"] < 0.75
        for text, value in zip(TEXTS, truth, strict=True):
            [line] = found.aggregates[text].to_pylist()
            held += line["low"] <= value <= line["high"]
        reached.append(found.report["within"]["reached"])
    assert held >= 27
    assert np.median(reached) < 0.03
    hidden = [
        winnow.estimate(**given, sizes="footers", read="20%", seed=seed) for seed in range(10)
    ]
    assert all(own.report["sizes"] == "footers" and not own.report["pass"] for own in hidden)
    lines = [own.aggregates["count(*)"].to_pylist()[0] for own in hidden]
    assert sum(line["low"] is not None and line["high"] >= truth[0] for line in lines) < 8


def test_keys_are_read_where_bytes_are_limited_and_a_slice_outweighs_the_others(
    tmp_path: Path,
) -> None:
    """Keys are few bytes, but most of the exact join's time: a target alone does not read them."""
    given = hot(tmp_path)
    chosen = [
        winnow.estimate(**given, aggregates=TEXTS, read="40%", seed=seed) for seed in range(4)
    ]
    assert "keys" in [own.report["sizes"] for own in chosen]
    assert all(own.report["how"] == "sample" for own in chosen)
    plain = winnow.estimate(**given, aggregates=TEXTS, within="5%")
    assert plain.report["sizes"] == "footers"


def test_any_executor_finds_the_same(tmp_path: Path) -> None:
    given = hot(tmp_path)
    runs = [
        winnow.estimate(**given, aggregates=TEXTS, sizes="keys", within="4%", executor=executor)
        for executor in (SerialExecutor(), ThreadExecutor(3))
    ]
    assert runs[0].aggregates == runs[1].aggregates
    assert runs[0].report["read"] == runs[1].report["read"]


class Interrupting(SerialExecutor):
    """Is interrupted as soon as keys are to be read."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yield results until then."""
        if function is pairs_by_keys:
            raise KeyboardInterrupt
        for item in items:
            yield function(item)


def test_a_pass_that_is_stopped_gives_what_there_is(tmp_path: Path) -> None:
    given = {**hot(tmp_path), "aggregates": TEXTS}
    with pytest.raises(KeyboardInterrupt):
        winnow.estimate(**given, sizes="keys", executor=Interrupting())
    seed = next(
        seed
        for seed in range(20)
        if winnow.estimate(**given, read="40%", seed=seed).report["sizes"] == "keys"
    )
    found = winnow.estimate(**given, read="40%", seed=seed, executor=Interrupting())
    assert found.report["stopped"] == "interrupted"
    assert found.report["sizes"] == "footers"
    assert found.aggregates["count"]["estimate"][0].as_py() > 0


def test_replays_have_no_sizes_by_keys(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="sizes keys is of exact joins of two streams"):
        winnow.estimate(**large(tmp_path), **JOIN, memory="10%", policy="prob", sizes="keys")
