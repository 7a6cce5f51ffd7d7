"""Estimates through facts: exact where everything is read, and in every slice; true elsewhere."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import naive_estimate
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from estimate_cases import linked_archives, through

import winnow
from engine.jobs.estimate.plan import plan_of
from engine.jobs.estimate.task import join_stretch
from engine.jobs.frame import open_job
from engine.options.estimate import ESTIMATE, estimate_of


def linked(
    seed: int, rows: int = 250, ticks: int = 600, text: bool = False, facts: int = 40
) -> tuple[list[pa.Table], pa.Table]:
    """Return two streams with ties and null keys, and facts of which some begin and end."""
    rng = np.random.default_rng(seed)
    kind = (lambda own: [f"key {one}" for one in own]) if text else list
    tables = []
    for name in ("k", "m"):
        null = rng.random(rows) < 0.1
        tables.append(
            pa.table(
                {
                    "t": np.sort(rng.integers(0, ticks, rows)),
                    name: pa.array(kind(rng.integers(0, 7, rows).tolist()), mask=null),
                    "w": rng.integers(0, 9, rows) / 4,
                    "v": rng.normal(0, 5, rows),
                    "p": rng.integers(0, 2, rows),
                }
            )
        )
    pairs = sorted({(int(a), int(b)) for a, b in rng.integers(0, 8, (facts, 2))})
    lines = []
    for a, b in pairs:
        begin = int(rng.integers(0, ticks // 2))
        end = begin + int(rng.integers(1, ticks // 2))
        lines += [(a, b, None if begin % 3 == 0 else begin, end)]
        lines += [(a, b, end, None)] if begin % 2 else []
    a, b, begins, ends = (list(own) for own in zip(*lines, strict=True))
    fact = pa.table(
        {"a": kind(a), "b": kind(b), "since": pa.array(begins, pa.int64()),
         "to": pa.array(ends, pa.int64())}
    )  # fmt: skip
    return tables, fact


def joined(
    tables: list[pa.Table], fact: pa.Table, windows: tuple[int, int]
) -> list[tuple[int, int, int]]:
    sides = [
        list(zip(table.column("t").to_pylist(), table.column(name).to_pylist(), strict=True))
        for table, name in zip(tables, ("k", "m"), strict=True)
    ]
    columns = (fact.column(name).to_pylist() for name in ("a", "b", "since", "to"))
    return naive_estimate.pairs_through(*sides, list(zip(*columns, strict=True)), windows)


@pytest.mark.parametrize(("seed", "text"), [(0, False), (1, True), (2, False)])
def test_all_of_a_join_through_facts_is_the_oracles(tmp_path: Path, seed: int, text: bool) -> None:
    tables, fact = linked(seed, text=text)
    texts = ["count", "sum(importance)", "sum(right.v) by left.p", "count every 100"]
    found = winnow.estimate(
        **through(tmp_path, tables, fact), window_left=20, window_right=35, aggregates=texts,
        within=0.001,
    )  # fmt: skip
    assert found.report["how"] == "exact join"
    pairs = joined(tables, fact, (20, 35))
    assert len(pairs) > 100
    assert len({*pairs}) <= len(pairs)
    weights = [table.column("w").to_pylist() for table in tables]
    value, part = tables[1].column("v").to_pylist(), tables[0].column("p").to_pylist()
    [line] = found.aggregates["count"].to_pylist()
    assert line["estimate"] == len(pairs)
    [line] = found.aggregates["sum(importance)"].to_pylist()
    assert line["estimate"] == pytest.approx(
        sum(min(weights[0][i], weights[1][j]) for i, j, _ in pairs)
    )
    for line in found.aggregates["sum(right.v) by left.p"].to_pylist():
        wanted = sum(value[j] for i, j, _ in pairs if part[i] == line["left.p"])
        assert line["estimate"] == pytest.approx(wanted, abs=1e-9)
    for line in found.aggregates["count every 100"].to_pylist():
        wanted = sum(line["window_begin"] <= ts < line["window_end"] for *_, ts in pairs)
        assert line["estimate"] == wanted
    assert found.report["fact"]["facts"] == fact.num_rows


@pytest.mark.parametrize("seed", range(3))
def test_every_output_through_facts_is_in_one_slice(tmp_path: Path, seed: int) -> None:
    tables, fact = linked(seed, rows=600, ticks=150)  # many ties
    options = {**through(tmp_path, tables, fact, 10), "window_left": 1, "window_right": 2}
    asked = estimate_of(ESTIMATE.from_keywords(options))
    plan = plan_of(asked, open_job(asked.base))
    slices = [join_stretch(plan.task(place)).sums[0].sums[0, 0] for place in range(plan.slices)]
    pairs = joined(tables, fact, (1, 2))
    edges = plan.edges.tolist()
    wanted = [sum(begin <= ts < end for *_, ts in pairs) for begin, end in pairwise(edges)]
    assert len(slices) > 8
    assert slices == wanted


def test_partitions_starts_and_logs_are_those_of_a_replay(tmp_path: Path) -> None:
    tables, fact = linked(4, text=True)
    options = {**through(tmp_path, tables, fact), "window": 25}
    for more in ({"partition_by": "p"}, {"start_ts": 222}, {"fact_access": "binary"}):
        found = winnow.estimate(**options, **more, within=0.001)
        replayed = winnow.replay(**options, **more, cache=tmp_path / "cache").report
        [line] = found.aggregates["count(*)"].to_pylist()
        assert line["estimate"] == replayed["exact"]["outputs"] > 0
        assert found.report["fact"] == replayed["fact"]


def test_intervals_through_facts_hold_what_a_replay_counts(tmp_path: Path) -> None:
    options = linked_archives(tmp_path)
    truth = winnow.replay(**options, cache=tmp_path / "cache").report["exact"]
    held, widths = 0, []
    for seed in range(20):
        found = winnow.estimate(
            **options, aggregates=["count", "sum(importance)"], read="15%", seed=seed
        )
        assert found.report["how"] == "sample"
        assert found.report["read"]["share"] < 0.3
        for text, name in (("count", "outputs"), ("sum(importance)", "importance")):
            [line] = found.aggregates[text].to_pylist()
            widths.append((line["high"] - line["low"]) / truth[name])
            held += line["low"] <= truth[name] <= line["high"]
    assert np.median(widths) < 0.3
    assert held >= 35  # of 40


def replayed(options: dict[str, Any], folder: Path) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the report of a replay, and what it comes to."""
    report = winnow.replay(**options, cache=folder / "cache").report
    recalls = {name: report[name] for name in ("recall", "importance_recall")}
    return report, recalls | {name: report["result"][name] for name in ("outputs", "importance")}


@pytest.mark.parametrize(
    ("seed", "text", "own"),
    [
        (0, False, {"memory": 9, "policy": "prob", "start_ts": 222}),
        (1, True, {"memory": "20%", "policy": "dgl", "estimator": "window"}),
        (2, False, {"memory": "30%", "policy": "simp", "split": "pooled"}),
        (0, True, {"memory": "25%", "policy": "age"}),
        (1, False, {"memory": "25%", "policy": "yield"}),
        (2, True, {"memory_left": 7, "policy": "prob", "estimator": "history"}),
    ],
)
def test_all_of_a_replay_through_facts_is_the_replay(
    tmp_path: Path, seed: int, text: bool, own: dict[str, Any]
) -> None:
    options = {
        **through(tmp_path, *linked(seed, text=text), 10), "window_left": 40, "window_right": 25,
        "fact_access": "binary", **own,
    }  # fmt: skip
    found = winnow.estimate(**options, within=0.001)
    assert found.report["how"] == "whole replay"
    report, wanted = replayed(options, tmp_path)
    assert wanted["recall"] < 0.99
    for measure, table in found.aggregates.items():
        [line] = table.to_pylist()
        assert line["estimate"] == pytest.approx(wanted[measure], rel=1e-12), measure
    assert found.report["memory"].items() <= report["memory"].items()
    assert found.report["fact"] == report["fact"]
    assert found.report["pass"] == 1.0  # the keys tell which tuples facts join


@pytest.mark.parametrize("text", [False, True])
def test_intervals_through_facts_hold_what_a_replay_keeps(tmp_path: Path, text: bool) -> None:
    options = {
        **linked_archives(tmp_path, 120_000, text=text), "memory": "20%", "policy": "dgl",
        "estimator": "window",
    }  # fmt: skip
    _, wanted = replayed(options, tmp_path)
    held = 0
    for seed in range(6):
        found = winnow.estimate(**options, read="40%", seed=seed)
        assert found.report["how"] == "sample"
        for measure, table in found.aggregates.items():
            [line] = table.to_pylist()
            held += line["low"] < wanted[measure] < line["high"]
            assert line["high"] - line["low"] < 0.2 * wanted[measure]
    assert held >= 21  # of 24


def test_what_facts_there_are_is_told(tmp_path: Path) -> None:
    tables, fact = linked(0)
    options = {**through(tmp_path, tables, fact), "window": 20}
    told = str(winnow.estimate(**options))
    assert f"facts: {fact.num_rows} of {fact.num_rows} rows" in told
    bad = fact.set_column(3, "to", pa.array([-1] * fact.num_rows))
    pq.write_table(bad, options["fact"])
    aside = winnow.estimate(**options, bad_rows="quarantine")
    assert aside.report["fact"]["rejected"] > 0
