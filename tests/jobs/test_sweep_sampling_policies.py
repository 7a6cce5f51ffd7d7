"""Samples in a sweep: every cell is what the definitions say of it, whatever stands beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from job_cases import arguments, streams
from sampled_cases import KINDS, NAMES, Sampled, brute
from sweep_cases import FIGURES, drifting, swept
from test_sweep import small_batches

from engine.commands import main
from engine.jobs.sweep import sampled
from engine.jobs.sweep import shared_batches as feed
from engine.policies import POLICIES
from engine.runtime.errors import SpecError
from engine.runtime.executors import SerialExecutor

Streams = tuple[list[Any], list[Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return drifting(tmp_path_factory.mktemp("sampled"), rows=260)


def groups(folder: Path, by: str | None = None) -> list[Streams]:
    """Return the streams of each partition group; a tuple of another group has a null key."""
    tables = [pq.read_table(folder / f"{side}.parquet").to_pylist() for side in ("left", "right")]
    values = sorted({row[by] for rows in tables for row in rows}) if by else [None]
    found = []
    for value in values:
        left, right = (
            [
                (row["t"], row["k"] if by is None or row[by] == value else None, row["i"])
                for row in rows
            ]
            for rows in tables
        )
        found.append((left, right))
    return found


def expected(streams: list[Streams], line: dict[str, Any], kind: str, **options: Any) -> Any:
    """Return outputs, importance and peaks of a cell, group by group by brute force."""
    whole = int(line["memory"])
    told = {"probe": line["probe"], "seed": line["seed"]} | options
    runs = [
        brute(
            Sampled(
                left, right, (line["window_left"], line["window_right"]),
                (whole - whole // 2, whole // 2), line["policy"], kind, **told,
            )
        )
        for left, right in streams
    ]  # fmt: skip
    return {
        "outputs": sum(one.counted for one in runs),
        "peak_left": sum(one.peaks[0] for one in runs),
        "peak_right": sum(one.peaks[1] for one in runs),
        "importance": pytest.approx(sum(one.importance for one in runs), rel=1e-12),
    }


@pytest.mark.parametrize("probe", ["before_admission", "after_admission"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_cell_equals_the_brute_force(folder: Path, kind: str, probe: str) -> None:
    told: dict[str, Any] = {"combine": "product", "start_ts": 60} if kind == "equal" else {}
    lines = swept(
        folder, policies=NAMES, memory="0,5,24,999", windows="4,60", seeds="0,3", probe=probe,
        params={"size": kind}, **told,
    ).table.to_pylist()  # fmt: skip
    assert len(lines) == 3 * 4 * 2 * 2
    for line in lines:
        ref = expected(groups(folder), line, kind, **told)
        assert {name: line[name] for name in ref} == ref, line
    assert all(line["recall"] == 1.0 for line in lines if line["memory"] == "999")
    assert len({line["outputs"] for line in lines}) > 10


@pytest.mark.parametrize("policy", NAMES)
def test_every_group_is_sampled_for_itself(folder: Path, policy: str) -> None:
    lines = swept(
        folder, policies=policy, memory="4,12", windows="60", partition_by="g",
        params={} if policy == "eq-cluster" else {"size": "weighted"},
    ).table.to_pylist()  # fmt: skip
    for line in lines:
        ref = expected(groups(folder, "g"), line, "weighted")
        assert {name: line[name] for name in ref} == ref, line


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_does_not_depend_on_hash_lanes(folder: Path, kind: str) -> None:
    told: dict[str, Any] = {
        "policies": "eq-cluster,pps-cluster", "memory": "6,20", "windows": "4,60", "seeds": "0:2",
        "partition_by": "g", "params": {"pps-cluster.size": kind},
    }  # fmt: skip
    one, many = (
        swept(folder, lanes=lanes, **told).table.select(["outputs", "recall"]) for lanes in (1, 3)
    )
    assert many.equals(one)
    assert len(set(one["outputs"].to_pylist())) > 5


def test_batches_and_forgotten_keys_change_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, Any] = {
        "policies": NAMES, "memory": "7,50%", "windows": "2,8", "seeds": "0,1",
        "params": {"size": "weighted"},
    }  # fmt: skip
    before = swept(folder, **told).table
    monkeypatch.setattr(feed, "IDLE", 4)
    monkeypatch.setattr(feed, "lane_batches", small_batches(13))
    monkeypatch.setattr(sampled, "lane_batches", small_batches(13))
    after = swept(folder, SerialExecutor(), **told).table
    assert after.select(FIGURES).equals(before.select(FIGURES))


def test_other_policies_are_as_they_were(folder: Path) -> None:
    names = [name for name in POLICIES if name != "custom"]
    told: dict[str, Any] = {"memory": "12,40%", "windows": "9", "seeds": "0,4"}
    alone = swept(folder, policies=names, **told).table
    beside = swept(folder, policies=[*NAMES, *names], **told).table
    rest = beside.filter([name in POLICIES for name in beside["policy"].to_pylist()])
    columns = [*FIGURES, "policy", "seed"]
    assert rest.select(columns).equals(alone.select(columns))


@pytest.mark.parametrize("estimator", ["window", "history"])
def test_the_estimator_does_not_matter(folder: Path, estimator: str) -> None:
    told: dict[str, Any] = {"policies": NAMES, "memory": "12", "windows": "9,60"}
    before = swept(folder, **told).table.select(FIGURES)
    assert swept(folder, estimators=estimator, **told).table.select(FIGURES).equals(before)


def test_advice_is_about_what_a_replay_can_do(folder: Path) -> None:
    found = swept(
        folder, policies="pps-cluster,bottom-k,rand", memory="10%:100%:30%",
        targets={"recall": 0.5}, bound="flow",
    )  # fmt: skip
    (advice,) = found.advice
    assert advice.best is not None
    assert advice.best.policy == "rand"
    for line in found.table.to_pylist():
        bounded = line["best_upper"] is not None
        assert bounded == (line["policy"] != "pps-cluster"), "it may hold more than its memory"
        if bounded:
            assert line["importance"] <= line["best_upper"] * (1 + 1e-12)


def test_a_sweep_of_samples_alone_has_a_table_and_plots(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = swept(folder, policies=NAMES, memory="10%,50%", out=out, seeds="0:3")
    assert found.table.num_rows == 3 * 2 * 4
    assert found.report["grid"]["policies"]["bottom-k"] == {"size": "matches"}
    assert found.report["seconds"]["sizes"] >= 0
    assert (out / "recall.png").exists()
    assert found.advice == []


def test_samples_alone_have_no_advice(folder: Path) -> None:
    with pytest.raises(SpecError, match=r"eq-cluster,bottom-k, all samples, .*: add a policy"):
        swept(folder, policies="eq-cluster,bottom-k", targets={"recall": 0.5})


def test_samples_have_no_pooled_memory(folder: Path) -> None:
    with pytest.raises(SpecError, match="its own: give another split than pooled"):
        swept(folder, policies="bottom-k", splits="pooled")


def test_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for word in arguments(folder)[1:] if word.startswith(("--left", "--right"))]
    words += ["--on=k", "--time=t", "--importance=i", "--engine=local", f"--cache={folder}/cache"]
    grid = ["--windows=9", "--policies=eq-cluster,PPS_CLUSTER,bottom-k", "--memory=12"]
    assert main(["sweep", *words, *grid, "--param=size=weighted"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in NAMES)


@pytest.mark.parametrize("policy", NAMES)
def test_a_replay_names_the_command_that_weighs_rows(
    policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    streams(tmp_path)
    assert main(arguments(tmp_path, policy=policy)) == 2
    method = policy.replace("_", "-")
    said = " ".join(capsys.readouterr().err.split())
    assert f"use winnow sample --method {method}" in said
    assert not (tmp_path / "out").exists()


def test_facts_are_refused(folder: Path, tmp_path: Path) -> None:
    fact = tmp_path / "fact.parquet"
    pq.write_table(pq.read_table(folder / "left.parquet"), fact)
    with pytest.raises(SpecError, match="fact joins other keys"):
        swept(folder, policies="bottom-k", fact=fact, fact_left="k", fact_right="t")


def test_sizes_that_mean_nothing(folder: Path) -> None:
    with pytest.raises(SpecError, match="give one of matches, weighted, equal"):
        swept(folder, policies="bottom-k", params={"size": "large"})
    with pytest.raises(SpecError, match="has a parameter 'size'"):
        swept(folder, policies="eq-cluster", params={"size": "equal"})
    with pytest.raises(SpecError, match="there is no policy 'pps'"):
        swept(folder, policies="pps")
