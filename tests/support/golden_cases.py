"""Commands whose help, reports and errors are held as goldens, and how an answer is compared."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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
    "multijoin": f"multijoin {SEVERAL} --predicate equi:k --window 12 --engine local {{report}}",
    "multijoin_harvest": f"multijoin {SEVERAL} --predicate band:v:1 --window 12 --throttle 0.5"
    " --basic-window 3 --adapt-every 20 --engine local {report}",
    "lookup": "lookup --stream {folder}/left.parquet --on k --time t --fact {folder}/fact.parquet"
    " --fact-on a {report}",
    "profile": f"profile {PAIR} --window 20 --out {{folder}}/profile.json",
    "policies": "policies",
    "explain": "explain --rates 10,1,1,3 --windows 100,100,100,100 --distinct 500,50,40,5",
    "generate": "generate zipf --rows 50 --domain 9 --seed 3 --out {folder}/made",
}
"""A small run of each command that reports, in words; {report} is --report and its file."""

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
    "multijoin_predicate": f"multijoin {SEVERAL} --predicate bond:v:1 --window 12",
    "multijoin_throttle": f"multijoin {SEVERAL} --predicate band:v:1 --window 12 --throttle 2",
    "lookup_fact": "lookup --stream {folder}/left.parquet --on k --time t",
    "profile_window": f"profile {PAIR}",
    "explain_rates": "explain --rates 1,x",
    "size_profile": "size --profile {folder}/none.json",
    "generate_rows": "generate zipf --rows -3 --domain 9 --out {folder}/made",
    "allocate_joins": "allocate {folder}/job.toml --memory 10",
    "prepare_time": "prepare --left {folder}/left.parquet --right {folder}/right.parquet --on k",
}

_TIMES = re.compile(r"^(?:seconds: |[\d.]+ s\b).*", re.MULTILINE | re.DOTALL)
_VOLATILE = {
    "seconds",
    "versions",
    "tuples_per_second",
    "rows_per_second",
    "device",
    "cpu_seconds",
    "wall_seconds",
}


def write_streams(folder: Path) -> None:
    """Write three small streams, a fact relation and a job file with a misspelt option."""
    rng = np.random.default_rng(5)
    for name, keys in (("left", 8), ("right", 8), ("third", 6)):
        ts = np.cumsum(rng.integers(0, 3, 240))
        pq.write_table(
            pa.table(
                {"t": ts, "k": rng.integers(0, keys, 240), "v": rng.integers(1, 9, 240) / 1.0}
            ),
            folder / f"{name}.parquet",
        )
    pq.write_table(pa.table({"a": [0, 1, 2, 3, 1], "b": [1, 2, 2, 5, 0]}), folder / "fact.parquet")
    (folder / "job.toml").write_text('left = "left.parquet"\nwindw = 20\n')


def words(line: str, folder: Path, report: Path) -> list[str]:
    """Return a case's arguments."""
    asked = line.replace("{report}", f"--report {report}").replace("{folder}", str(folder))
    return asked.split()


def settled(text: str, folder: Path) -> str:
    """Return what is printed without times, devices and folders."""
    text = text.replace(str(folder), "FOLDER")
    text = _TIMES.sub("seconds: ...\n", text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def settled_json(path: Path, folder: Path) -> Any:
    """Return a report without times, versions, devices and folders."""
    return _without(json.loads(path.read_text().replace(str(folder), "FOLDER")))


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without(own) for name, own in value.items() if name not in _VOLATILE}
    return [_without(own) for own in value] if isinstance(value, list) else value
