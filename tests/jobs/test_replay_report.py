"""What a report says is true: counted again here from the rows, by brute force."""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections import Counter
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import naive
import pyarrow.parquet as pq
import pytest
from job_cases import (
    MEMORY,
    WINDOW,
    Output,
    Rows,
    Streams,
    arguments,
    oracle,
    peak,
    read,
    stream,
    streams,
    table,
)

from engine.commands import main
from engine.jobs.exact import key_totals as keys_module
from engine.policies import POLICIES
from engine.report.envelope import versions

SETTINGS: list[dict[str, Any]] = [
    {},
    {"policy": "prob", "lanes": 3},
    {"policy": "simpprob", "memory": "20%"},
    {"policy": "rand", "memory": None, "memory_left": 3},
    {"policy": "dimpprob", "memory": None, "memory_right": "30%", "start_ts": 40},
    {"memory": 0},
    {"memory": None},
    {"memory": None, "lanes": 4, "start_ts": 70},
    {"policy": "recent", "combine": "sum", "window_left": 30},
    {"policy": "age", "probe": "after_admission", "estimator": "window"},
]


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Streams:
    return streams(tmp_path_factory.mktemp("report"), seed=11, rows=300)


def exact_of(case: Streams, settings: dict[str, Any]) -> list[Output]:
    windows = {"window_left": settings.get("window_left", WINDOW), "window_right": WINDOW}
    return oracle(
        case.left,
        case.right,
        **windows,
        budget_left=None,
        budget_right=None,
        policy="recent",
        combine_name=settings.get("combine", "min"),
        start_ts=settings.get("start_ts"),
    )


def total(outputs: list[Output]) -> float:
    return math.fsum(o[3] for o in outputs)


@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_figures_add_up(case: Streams, tmp_path: Path, number: int) -> None:
    settings = SETTINGS[number]
    for name in ("left.parquet", "right.parquet"):
        (tmp_path / name).symlink_to(case.folder / name)
    assert main(arguments(tmp_path, **settings)) == 0
    found = read(tmp_path)
    report, result, exact = found.report, found.outputs, exact_of(case, settings)
    assert set(result) <= set(exact)
    assert len(set(result)) == len(result)
    for name, outputs in (("exact", exact), ("result", result)):
        assert report[name]["outputs"] == len(outputs)
        assert report[name]["importance"] == pytest.approx(total(outputs), rel=1e-12)
    lost = report["lost"]
    assert lost["outputs"] == len(exact) - len(result)
    assert lost["importance"] == pytest.approx(total(exact) - total(result), rel=1e-9, abs=1e-9)
    assert report["recall"] == pytest.approx(len(result) / len(exact))
    assert report["importance_recall"] == pytest.approx(total(result) / total(exact))
    check_rows(case, report)
    check_memory(case, settings, report)
    check_times(lost["by_time"], exact, result)
    check_keys(case.left, lost, exact, result)


def check_rows(case: Streams, report: dict[str, Any]) -> None:
    for side, rows in (("left", case.left), ("right", case.right)):
        nulls = sum(key is None for _, key, _ in rows)
        assert report["rows"][side] == len(rows)
        assert report["null_keys"][side] == nulls
        assert report["joined"][side] == len(rows) - nulls
        assert report["rejected"][side] == 0


def check_memory(case: Streams, settings: dict[str, Any], report: dict[str, Any]) -> None:
    windows = {"left": settings.get("window_left", WINDOW), "right": WINDOW}
    for side, rows in (("left", case.left), ("right", case.right)):
        needed = peak(rows, windows[side])
        budget = report["memory"][side]
        if settings.get("lanes", 1) == 1:
            assert report["peak_memory"][side] == min(needed, needed if budget is None else budget)
        elif budget is not None:
            assert report["peak_memory"][side] <= budget
        for span in report["exact_memory"]["by_time"]:
            ages = [span["to"] - ts for ts, key, _ in rows if key is not None]
            assert span[side] == sum(0 <= age <= windows[side] for age in ages)
    spans = report["exact_memory"]["by_time"], report["lost"]["by_time"]
    assert [own["to"] for own in spans[0]] == [own["to"] for own in spans[1]] != []


def check_times(bins: list[dict[str, Any]], exact: list[Output], result: list[Output]) -> None:
    assert all(a["to"] + 1 == b["from"] for a, b in itertools.pairwise(bins))
    for part in bins:
        inside = [
            [o for o in outputs if part["from"] <= o[2] <= part["to"]]
            for outputs in (exact, result)
        ]
        assert part["exact_outputs"] == len(inside[0])
        assert part["lost_outputs"] == len(inside[0]) - len(inside[1])
        assert part["exact_importance"] == pytest.approx(total(inside[0]), rel=1e-12)
        lost = total(inside[0]) - total(inside[1])
        assert part["lost_importance"] == pytest.approx(lost, rel=1e-9, abs=1e-9)
    assert sum(part["exact_outputs"] for part in bins) == len(exact)


def check_keys(left: Rows, lost: dict[str, Any], exact: list[Output], result: list[Output]) -> None:
    counts: Counter[Any] = Counter()
    weights: dict[Any, list[float]] = {}
    kept, kept_weights = Counter(left[o[0]][1] for o in result), Counter()
    for o in exact:
        counts[left[o[0]][1]] += 1
        weights.setdefault(left[o[0]][1], []).append(o[3])
    for o in result:
        kept_weights[left[o[0]][1]] += o[3]
    losing = [key for key in counts if counts[key] > kept[key]]
    said = lost["top_keys"]
    assert lost["top_keys_complete"]
    assert {entry["key"] for entry in said} == set(losing)
    for entry in said:
        key = entry["key"]
        assert entry["exact_outputs"] == counts[key]
        assert entry["lost_outputs"] == counts[key] - kept[key]
        assert entry["exact_importance"] == pytest.approx(math.fsum(weights[key]), rel=1e-12)
        difference = math.fsum(weights[key]) - kept_weights[key]
        assert entry["lost_importance"] == pytest.approx(difference, rel=1e-9, abs=1e-9)
    losses = [entry["lost_importance"] for entry in said]
    assert losses == sorted(losses, reverse=True)


def test_the_ten_keys_that_lost_most_of_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = stream(90, 600, keys=40, span=300), stream(91, 600, keys=40, span=300)
    spread = [[(t, None if k is None else (t * 7 + k) % 60, i) for t, k, i in s] for s in sides]
    for name, rows in zip(("left", "right"), spread, strict=True):
        pq.write_table(table(rows), tmp_path / f"{name}.parquet")
    reports = []
    for idle in (1 << 16, 4):
        monkeypatch.setattr(keys_module, "IDLE", idle)
        assert main(arguments(tmp_path, window=40, memory=20, out=None)) == 0
        reports.append(json.loads((tmp_path / "report.json").read_text())["lost"])
    assert reports[0]["top_keys"] == reports[1]["top_keys"]
    lost: Counter[Any] = Counter()
    windows = {"window_left": 40, "window_right": 40}
    pairs = [
        naive.replay(*spread, **windows, budget_left=k, budget_right=k, policy="dgl").outputs
        for k in (None, 10)
    ]
    for sign, outputs in zip((1, -1), pairs, strict=True):
        for row, _, _, importance in outputs:
            lost[spread[0][row][1]] += sign * importance
    expected = [key for key, _ in lost.most_common(10)]
    assert [entry["key"] for entry in reports[0]["top_keys"]] == expected


def test_text_keys_are_named(tmp_path: Path) -> None:
    sides = stream(92), stream(93)
    for name, rows in zip(("left", "right"), sides, strict=True):
        words = [None if k is None else f"key {k}" for _, k, _ in rows]
        pq.write_table(table(rows, w=words, n=[1] * len(rows)), tmp_path / f"{name}.parquet")
    assert main(arguments(tmp_path, on="w")) == 0
    named = [entry["key"] for entry in read(tmp_path).report["lost"]["top_keys"]]
    assert named
    assert set(named) <= {f"key {k}" for k in range(5)}
    assert main(arguments(tmp_path, on="w,n", out=tmp_path / "two")) == 0
    both = json.loads((tmp_path / "report.json").read_text())["lost"]["top_keys"]
    assert [entry["key"] for entry in both] == [[name, 1] for name in named]


@pytest.mark.parametrize(("key", "in_order"), [(None, True), (2, False)])
def test_sorted_tells_of_the_rows_that_took_part(
    tmp_path: Path, key: int | None, in_order: bool
) -> None:
    pq.write_table(table([(5, 1, 1.0), (1, key, 1.0), (6, 2, 1.0)]), tmp_path / "left.parquet")
    pq.write_table(table([(1, 1, 1.0)]), tmp_path / "right.parquet")
    assert main(arguments(tmp_path)) == 0
    assert read(tmp_path).report["sorted"] == {"left": in_order, "right": True}


def test_a_key_of_several_partitions_is_named_by_each(tmp_path: Path) -> None:
    sides = stream(94), stream(95)
    for name, rows in zip(("left", "right"), sides, strict=True):
        parts = [f"part {row % 2}" for row in range(len(rows))]
        pq.write_table(table(rows, p=parts), tmp_path / f"{name}.parquet")
    exact = naive.exact_pairs(*sides, WINDOW, WINDOW)
    counts = Counter((f"part {i % 2}", sides[0][i][1]) for i, j in exact if i % 2 == j % 2)
    assert main(arguments(tmp_path, partition_by="p", memory=0)) == 0
    said = read(tmp_path).report["lost"]["top_keys"]
    assert {tuple(own["key"]): own["exact_outputs"] for own in said} == counts


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"custom"}))
def test_everything_in_memory_is_exact(case: Streams, tmp_path: Path, policy: str) -> None:
    for name in ("left.parquet", "right.parquet"):
        (tmp_path / name).symlink_to(case.folder / name)
    assert main(arguments(tmp_path, memory="100%", policy=policy)) == 0
    found = read(tmp_path)
    assert found.outputs == exact_of(case, {})
    report = found.report
    assert report["recall"] == report["importance_recall"] == 1.0
    assert report["lost"]["outputs"] == report["lost"]["importance"] == 0
    assert report["lost"]["top_keys"] == []
    assert all(part["lost_outputs"] == 0 for part in report["lost"]["by_time"])


def test_settings_are_told(case: Streams, tmp_path: Path) -> None:
    for name in ("left.parquet", "right.parquet"):
        (tmp_path / name).symlink_to(case.folder / name)
    assert main(arguments(tmp_path, param="alpha=2", seed=5, probe="after_admission")) == 0
    report = read(tmp_path).report
    assert report["policy"] == {
        "name": "dgl",
        "parameters": {"alpha": 2.0, "beta": None, "initial": "simpprob"},
        "estimator": "memory",
        "probe": "after_admission",
        "combine": "min",
        "profile": None,
    }
    assert report["seed"] == 5
    assert report["memory"] == {
        "left": MEMORY // 2,
        "right": MEMORY // 2,
        "both": MEMORY,
        "asked": {"left": str(MEMORY // 2), "right": str(MEMORY // 2)},
        "split": "even",
    }
    assert report["device"]["used"] == "cpu"
    assert {"winnowjoin", "numba", "numpy", "pyarrow", "python"} <= report["versions"].keys()
    assert {"prepare", "profile", "replay"} <= report["seconds"].keys()
    assert report["tuples_per_second"] > 0


def test_a_loaded_package_without_metadata_is_named_by_its_own_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("engine.report.envelope._stated", nothing)
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    assert versions()["pyspark"] == "not installed"  # which says nothing of when it is loaded
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(__version__="4.2.0"))
    found = versions()
    assert found["pyspark"] == "4.2.0"
    assert found["winnowjoin"] == "not installed"
