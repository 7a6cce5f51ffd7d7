"""Commands whose help, reports and errors are held as goldens, and how an answer is compared."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from places import ROOT

from engine.policies import POLICIES, SAMPLING

COMMON = "--engine local --cache {folder}/lanes"
PAIR = f"--left {{folder}}/left.parquet --right {{folder}}/right.parquet --on k --time t {COMMON}"
IMPORTANCE = "--importance v"
STREAMS = " ".join(f"--stream {name}={{folder}}/{name}.parquet:k" for name in ("left", "right"))
FACT = "--fact {folder}/fact.parquet"
THROUGH = f"{FACT} --fact-left a --fact-right b"
SEVERAL = (
    "--stream left={folder}/left.parquet --stream right={folder}/right.parquet "
    "--stream third={folder}/third.parquet --time t"
)
SIZED = "--profile {goldens}/reports/profile.json --memory 10% --lanes 4 --row-bytes 40,16"
CLUSTER = "--cores 4 --tasks-per-gpu 2 --spark 4.0.0 --jar /opt/a.jar --discovery /opt/gpus"

JOINS = """
memory = "30%"

[[join]]
left = "{folder}/left.parquet"
right = "{folder}/right.parquet"
on = "k"
time = "t"
window = 20
policy = "prob"

[[join]]
name = "third"
left = "{folder}/left.parquet"
right = "{folder}/third.parquet"
on = "k"
time = "t"
window = 9
policy = "prob"
"""

REPORTS = {
    "replay": f"replay {PAIR} {IMPORTANCE} --window 20 --memory 16 --policy dgl {{report}}",
    "replay_exact": f"replay {PAIR} --window 20 {{report}}",
    "replay_bound": f"replay {PAIR} {IMPORTANCE} --window 20 --memory 10% --policy simp"
    " --bound flow {report}",
    "replay_facts": f"replay {PAIR} --window 20 --memory 16 --policy yield {THROUGH} {{report}}",
    "replay_streams": f"replay {STREAMS} {FACT} --fact-on left=a --fact-on right=b --time t"
    " --window 20 --memory 16 --policy prob --engine local {report}",
    "sweep": f"sweep {PAIR} {IMPORTANCE} --windows 20 --memory 25%,50% --policies simp,prob,rand"
    " --target recall=0.5 {report}",
    "bound": f"bound {PAIR} {IMPORTANCE} --window 20 --memory 10% --method flow {{report}}",
    "sample": f"sample {PAIR} {IMPORTANCE} --window 20 --memory 40 --method bottom-k"
    " --aggregate count(*) --aggregate sum(importance) {report}",
    "estimate": "estimate --left {folder}/left.parquet --right {folder}/right.parquet --on k"
    " --time t --importance v --window 3 --aggregate count --aggregate sum(importance)"
    " --engine local {report}",
    "estimate_replay": "estimate --left {folder}/left.parquet --right {folder}/right.parquet --on k"
    " --time t --importance v --window 3 --memory 50% --policy prob --read 40%"
    " --engine local {report}",
    "multijoin": f"multijoin {SEVERAL} --predicate equi:k --window 12 --engine local {{report}}",
    "multijoin_harvest": f"multijoin {SEVERAL} --predicate band:v:1 --window 12 --throttle 0.5"
    " --basic-window 3 --adapt-every 20 --engine local {report}",
    "lookup": "lookup --stream {folder}/left.parquet --on k --time t --fact {folder}/fact.parquet"
    " --fact-on a {report}",
    "profile": f"profile {PAIR} --window 20 --out {{file}} --html {{page}}",
    "allocate": f"allocate {{folder}}/joins.toml {COMMON} {{report}}",
    "prepare": f"prepare {PAIR} --lanes 2",
    "prepare_facts": f"prepare {PAIR} {THROUGH}",
    "size": f"size {SIZED}",
    "size_gpu": f"size {SIZED} --gpu-memory 80 --format json",
    "size_properties": f"size {SIZED} --format properties",
    "package": "package --out {folder}/winnow.zip",
    "spark_conf": f"spark-conf {CLUSTER}",
    "spark_conf_flags": f"spark-conf {CLUSTER} --master yarn --format flags",
    "spark_conf_json": f"spark-conf {CLUSTER} --mode explainOnly --shuffle spark --format json",
    "policies": "policies",
    "completion": "completion bash",
    "explain": "explain --rates 10,1,1,3 --windows 100,100,100,100 --distinct 500,50,40,5"
    " --html {page}",
    "warm": "warm --only explain",
    "cache": "cache list --cache {folder}",
    "cache_clean": "cache clean --keep 1GB --cache {folder}",
    "explain_json": "explain --rates 10,1,3 --windows 100,100,50 --distinct 500,50,5 --json {file}",
    "report": "report {goldens}/reports/outputs --html {page}",
    "generate": "generate zipf --rows 50 --domain 9 --seed 3 --out {folder}/made",
}
"""A small run of each command: {report} is --report and --html with their files; {file} and
{page} are these files alone."""

ERRORS = {
    "replay_policy": f"replay {PAIR} --window 20 --memory 16 --policy dgll",
    "replay_window": f"replay {PAIR} --memory 16",
    "replay_effort": f"replay {PAIR} --window 20 --memory 16 --gap 0.1",
    "replay_column": f"replay {PAIR} --importance nothing --window 20 --memory 16",
    "replay_job_file": "replay --job {folder}/job.toml",
    "replay_split": f"replay {PAIR} --window 20 --split expected",
    "replay_streams": f"replay {STREAMS} {FACT} --time t --window 20 --memory 16 --lanes 2",
    "sweep_memory": f"sweep {PAIR} --windows 20 --memory 5%:1%:1%",
    "sweep_target": f"sweep {PAIR} --windows 20 --target recal=0.9",
    "bound_method": f"bound {PAIR} --window 20 --memory 16 --method flaw",
    "bound_objective": f"bound {PAIR} --window 20 --memory 16 --objective most",
    "sample_method": f"sample {PAIR} --window 20 --memory 16 --method bottomk",
    "sample_aggregate": f"sample {PAIR} --window 20 --memory 16 --aggregate sum(x",
    "estimate_within": "estimate --left {folder}/left.parquet --right {folder}/right.parquet --on k"
    " --time t --window 3 --within 200%",
    "estimate_memory": "estimate --left {folder}/left.parquet --right {folder}/right.parquet --on k"
    " --time t --window 3 --memory 10%",
    "multijoin_predicate": f"multijoin {SEVERAL} --predicate bond:v:1 --window 12",
    "multijoin_throttle": f"multijoin {SEVERAL} --predicate band:v:1 --window 12 --throttle 2",
    "lookup_fact": "lookup --stream {folder}/left.parquet --on k --time t",
    "profile_window": f"profile {PAIR}",
    "explain_rates": "explain --rates 1,x",
    "size_profile": "size --profile {folder}/none.json",
    "generate_rows": "generate zipf --rows -3 --domain 9 --out {folder}/made",
    "allocate_option": "allocate {folder}/job.toml --memory 10",
    "allocate_joins": "allocate {folder}/job.toml",
    "package_out": "package",
    "completion": "completion tcsh",
    "warm_only": "warm --only reply",
    "cache_do": "cache remove",
    "cache_folder": "cache clean --cache {folder}/nowhere",
    "cache_list": "cache list --keep 1GB",
    "cache_keep": "cache clean --keep plenty",
    "policies_option": "policies --policy dgl",
    "spark_conf_cores": "spark-conf --cores 0",
    "report_folder": "report {folder}",
    "prepare_time": "prepare --left {folder}/left.parquet --right {folder}/right.parquet --on k",
}

GOLDENS = ROOT / "tests" / "commands" / "goldens"
_COMMAND = re.compile(r"^winnow replay .*\\\n(?:    .*\n)+", re.MULTILINE)
"""One of several lines, which break by the length of folders."""
_TIMES = re.compile(r"^(?:seconds: |[\d.]+ s\b).*", re.MULTILINE | re.DOTALL)
_SIZES = re.compile(r"\b[\d,]+ bytes")
_LANES = re.compile(r"\b[0-9a-f]{32}\b")
_MACHINE = {
    "bytes",
    "seconds",
    "tuples_per_second",
    "rows_per_second",
    "device",
    "cpu_seconds",
    "wall_seconds",
}


def write_streams(folder: Path) -> None:
    """Write three small streams, a fact relation, two joins, and a job with a misspelt option."""
    rng = np.random.default_rng(5)
    for name, keys in (("left", 8), ("right", 8), ("third", 6)):
        ts = np.cumsum(rng.integers(0, 3, 240))
        pq.write_table(
            pa.table(
                {"t": ts, "k": rng.integers(0, keys, 240), "v": rng.integers(1, 9, 240) / 1.0}
            ),
            folder / f"{name}.parquet",
            row_group_size=10,
        )
    pq.write_table(pa.table({"a": [0, 1, 2, 3, 1], "b": [1, 2, 2, 5, 0]}), folder / "fact.parquet")
    (folder / "job.toml").write_text('left = "left.parquet"\nwindw = 20\n')
    (folder / "joins.toml").write_text(JOINS.replace("{folder}", str(folder)))


def words(line: str, folder: Path, report: Path) -> list[str]:
    """Return a case's arguments."""
    page = report.with_suffix(".html")
    own = {"report": f"--report {report} --html {page}", "file": report, "page": page}
    places = {**own, "folder": folder, "goldens": GOLDENS}
    return line.format_map(places).split()


def settled(text: str, folder: Path) -> str:
    """Return what is printed without times, devices, folders, sizes of files and policies."""
    text = _COMMAND.sub(lambda found: found[0].replace(" \\\n   ", ""), text)
    text = text.replace(str(folder), "FOLDER")
    text = _TIMES.sub("seconds: ...\n", text)
    for names in ([*POLICIES, *SAMPLING], POLICIES):  # listed by `winnow policies` alone
        text = text.replace(", ".join(names), "POLICIES").replace(",".join(names), "POLICIES")
    text = _LANES.sub("LANES", _SIZES.sub("... bytes", text))
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def settled_json(path: Path, folder: Path) -> Any:
    """Return a report without times, versions, devices and folders."""
    return _without(json.loads(path.read_text().replace(str(folder), "FOLDER")))


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _settled(name, own) for name, own in value.items()}
    return [_without(own) for own in value] if isinstance(value, list) else value


def _settled(name: str, value: Any) -> Any:
    """Return a value of a report; of what depends on the machine, only the names."""
    if name == "versions":
        return "..."
    if name in _MACHINE:
        return dict.fromkeys(value, "...") if isinstance(value, dict) else "..."
    return _without(value)
