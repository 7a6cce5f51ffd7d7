"""Sizes of clusters: against a worker's memory as measured, against counts, and bad input."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import ROOT
from thorough import guards

import winnow
from engine.commands import main
from engine.jobs.size.dealing import lanes_chosen, lanes_expected, speed_up
from engine.jobs.size.sizing import MIB, Wanted, sized, slot_bytes
from engine.models.profile.model import ArrivalProfile
from engine.options.budget import Amount, divided, parse_amounts
from engine.policies import POLICIES
from engine.replay.layout import SLOT
from engine.runtime.errors import SpecError

TENTH = parse_amounts("10%", None, None)

MEASURED = """
import json, re, sys
from pathlib import Path
from engine.runtime.executors import SerialExecutor
from engine.options.replay import REPLAY, job_of
from engine.jobs.replay.run import run_replay

left, right, cache, out, join = json.loads(sys.argv[1])
places = {"left": left, "right": right, "cache": cache, "out": out}
run_replay(job_of(REPLAY.from_keywords({**join, **places})), SerialExecutor())
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def streams(folder: Path, rows: int, keys: int, **columns: Any) -> Path:
    """Write two streams, one tuple a tick, of keys that are all as frequent."""
    rng = np.random.default_rng(5)
    folder.mkdir()
    for name in ("left", "right"):
        made = {"t": np.arange(rows), "k": rng.integers(0, keys, rows), "i": rng.random(rows)}
        pq.write_table(pa.table(made | columns), folder / f"{name}.parquet")
    return folder


def measured(folder: Path, out: Path | None = None, **join: Any) -> float:
    """Return the peak resident memory, MiB, of a process that runs all tasks of a replay."""
    given = {"on": "k", "time": "t", "importance": "i", "policy": "yield"} | join
    left, right = (str(folder / f"{name}.parquet") for name in ("left", "right"))
    words = [left, right, str(folder / "lanes"), None if out is None else str(out), given]
    done = subprocess.run(  # noqa: S603 - our own lines
        [sys.executable, "-c", MEASURED, json.dumps(words)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(done.stdout) / 1024


def profiled(folder: Path, window: int) -> ArrivalProfile:
    return winnow.profile(
        folder / "left.parquet", folder / "right.parquet", on="k", time="t", importance="i",
        window=window, cache=folder / "lanes",
    ).profile  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> ArrivalProfile:
    return profiled(streams(tmp_path_factory.mktemp("size") / "small", 4000, 300), 500)


@guards("engine/jobs/size", "tests/jobs/test_size.py")
def test_a_worker_takes_what_was_foretold(tmp_path: Path) -> None:
    """At most that, and at least 5/7 of it, as docs/size.md says."""
    warm = streams(tmp_path / "warm", 2000, 100)
    measured(warm, tmp_path / "warm_out", window=50, memory="50%")  # compiles
    wide = {f"c{i}": np.arange(400_000) for i in range(16)}
    folder = streams(tmp_path / "large", 400_000, 100_000, **wide)
    for window, memory, out in ((300_000, "100%", None), (40_000, "10%", tmp_path / "out")):
        told = parse_amounts(memory, None, None)
        width = 0.0 if out is None else 8.0 * 19
        wanted = Wanted(told, lanes=1, row_bytes=(width, width))
        foretold = sized(profiled(folder, window), wanted)["worker"]["peak"]
        columns = {} if out is None else {"columns": "all"}
        found = measured(folder, out, window=window, memory=memory, **columns)
        assert found <= foretold <= 1.4 * found, (window, memory, found, foretold)
    wanted = Wanted(parse_amounts("10%", None, None), lanes=1, reference="none")
    foretold = sized(profiled(folder, 300_000), wanted)["worker"]["peak"]
    found = measured(folder, window=300_000, memory="10%", reference="none")
    assert found <= foretold <= 1.4 * found, (found, foretold)


def test_memory_follows_what_is_held(small: ArrivalProfile) -> None:
    left, right = small.streams
    large = replace(
        small, streams=tuple(replace(one, rows=10**7, peak=10**6) for one in (left, right))
    )

    def worker(profile: ArrivalProfile = large, **wanted: Any) -> dict[str, int]:
        return sized(profile, Wanted(lanes=1, **wanted))["worker"]

    alone = worker(memory=TENTH, reference="none")
    exact, tenth, whole = worker(), worker(memory=TENTH), worker(memory=divided(Amount(share=1)))
    assert exact["join_memory"] == 0
    assert whole["join_memory"] == pytest.approx(10 * tenth["join_memory"], abs=10)
    assert whole["join_memory"] == -(-2 * 10**6 * slot_bytes(POLICIES["yield"]) // MIB)
    tuples = worker(memory=divided(Amount(tuples=200_000)))
    assert tuples["join_memory"] == tenth["join_memory"]
    wide = worker(memory=TENTH, row_bytes=(100.0, 0.0))
    assert wide["payload"] > 2 * 10**8 // MIB
    assert wide["peak"] == pytest.approx(tenth["peak"] + wide["payload"], abs=2)
    ring = 1.5 * 24 * 2**22  # two windows of 10^6 and a batch fit in 2^22 slots
    assert exact["exact_count"] == tenth["exact_count"] == -(-ring // MIB)
    assert alone["exact_count"] == 0
    assert alone["join_memory"] == tenth["join_memory"]
    with pytest.raises(SpecError, match="--reference none leaves the exact join"):
        Wanted(reference="none")


def test_the_page_says_what_a_policy_takes_for_a_tuple() -> None:
    page = (ROOT / "docs" / "size.md").read_text()
    told = re.findall(r"(\d+)(?: bytes)? for `(\w+)`", page)
    assert told == [(f"{slot_bytes(POLICIES[name]):.0f}", name) for name in ("dgl", "yield")]


def test_every_policy_is_sized(small: ArrivalProfile) -> None:
    for name, policy in POLICIES.items():
        assert slot_bytes(policy) >= SLOT.itemsize
        assert sized(small, Wanted(TENTH, name))["worker"]["peak"] > 200
    with pytest.raises(SpecError, match="policy bottom-k samples the join"):
        Wanted(TENTH, "bottom-k")


def test_lanes_share_all_tuples_and_the_heaviest_key_stays_whole(small: ArrivalProfile) -> None:
    counts = small.frequencies.counts
    for lanes in (1, 7, 64):
        dealt = lanes_expected(small, lanes)
        assert dealt.shares.sum(axis=1) == pytest.approx([1.0, 1.0])
        assert dealt.keys.sum() == counts.codes.size
        assert 1 <= speed_up(small, dealt, 4) <= min(lanes, 4) + 1e-9
    heavy = counts.left.copy()
    heavy[0] = 9 * heavy.sum()
    skewed = replace(
        small, frequencies=replace(small.frequencies, counts=counts._replace(left=heavy))
    )
    share = heavy[0] / heavy.sum()
    assert lanes_expected(skewed, 64).shares[0].max() >= share
    rows = np.array([stream.rows for stream in small.streams])
    most = rows.sum() / (rows[0] * share)
    assert speed_up(skewed, lanes_expected(skewed, 64), 16) <= most
    assert speed_up(small, lanes_expected(small, lanes_chosen(small, 8)), 8) > 6
    assert lanes_chosen(small, 1) == 1


def test_keys_that_a_sketch_leaves_out_are_dealt_evenly(small: ArrivalProfile) -> None:
    none = small.frequencies.counts._replace(
        codes=np.zeros(0, np.int64), left=np.zeros(0, np.int64), right=np.zeros(0, np.int64)
    )
    rest = {"keys": 300, "left": 4000, "right": 4000}
    sketched = replace(
        small, frequencies=replace(small.frequencies, counts=none, rest=rest, kind="sketch")
    )
    dealt = lanes_expected(sketched, 4)
    assert dealt.shares.tolist() == [[0.25] * 4] * 2
    assert dealt.keys.tolist() == [75.0] * 4


def test_executors_hold_their_workers_and_gpus_their_tasks(small: ArrivalProfile) -> None:
    found = sized(small, Wanted(TENTH, cores=10, executor_cores=4))
    settings, worker = found["settings"], found["worker"]
    assert settings["spark.executor.instances"] == 3
    overhead = int(settings["spark.executor.memoryOverhead"].removesuffix("m"))
    assert overhead >= 4 * (worker["peak"] + worker["compile"])
    assert found["gpu"] is None
    assert sized(small, Wanted(cores=2))["settings"]["spark.executor.cores"] == 2
    left, right = small.streams
    large = replace(small, streams=(replace(left, rows=10**8), replace(right, rows=10**8)))
    tasks = [sized(large, Wanted(TENTH, gpu_memory=size))["gpu"]["tasks"] for size in (0.1, 40, 80)]
    assert tasks[0] == 0
    assert 2 * tasks[1] <= tasks[2] <= 2 * tasks[1] + 1
    host = sized(large, Wanted(TENTH, gpu_memory=80))["gpu"]["host"]
    assert host >= 160 * 16_000_000 // MIB


def test_nothing_takes_next_to_nothing(tmp_path: Path) -> None:
    folder = streams(tmp_path / "none", 0, 1)
    found = sized(profiled(folder, 10), Wanted(TENTH))
    assert found["lanes"]["speed_up"] == 1.0
    assert found["worker"]["peak"] <= 300


def test_the_command_prints_settings_that_spark_reads(
    small: ArrivalProfile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small.save(tmp_path / "p.json")
    words = ["size", f"--profile={tmp_path}/p.json", "--memory=10%", "--row-bytes=40,16"]
    assert main([*words, "--format=json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == sized(small, Wanted(TENTH, row_bytes=(40.0, 16.0)))
    assert main([*words, "--format=properties"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert dict(line.split() for line in lines) == {
        name: str(value) for name, value in found["settings"].items()
    }
    assert main([*words, "--gpu-memory=80"]) == 0
    shown = capsys.readouterr().out
    assert "a task on a GPU" in shown
    assert all(line in shown for line in lines if "Overhead" not in line)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--lanes=0", "--lanes is 0; it must be 1 or more"),
        ("--executor-cores=0", "--executor-cores is 0"),
        ("--row-bytes=wide", "--row-bytes is 'wide'; give numbers with commas"),
        ("--row-bytes=-1", "--row-bytes is -1; give bytes, 0 or more"),
        ("--gpu-memory=0", "--gpu-memory is 0.0; give the GiB of a GPU, above 0"),
        ("--format=yaml", "--format is 'yaml'; choose one of table, json, properties"),
        ("--memory=lots", "--memory is 'lots'"),
        ("--policy=simpl", "Did you mean 'simp'"),
    ],
)
def test_what_means_nothing_is_refused(
    small: ArrivalProfile, tmp_path: Path, capsys: pytest.CaptureFixture[str], given: str, said: str
) -> None:
    small.save(tmp_path / "p.json")
    assert main(["size", f"--profile={tmp_path}/p.json", given]) == 2
    assert said in capsys.readouterr().err.replace("\n", " ")


def test_a_policy_that_is_still_to_be_chosen_has_no_size(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["size", "--profile", "nowhere.json", "--memory", "10%", "--policy", "auto"]) == 2
    assert "give the policy that winnow profile advises" in capsys.readouterr().err
