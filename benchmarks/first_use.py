"""CPU seconds of commands with an empty cache, again, and with all kernels compiled.

Streams of 1,000 rows. Each command starts from an empty cache and once more from what that left:
kernels that were interpreted are not there. With ``--warm`` a third column is of commands after
``winnow warm``, whose own time is told. One core, with start-up; Python's bytecode is there, as
where winnow was installed.

    python benchmarks/first_use.py [--only COMMANDS] [--warm] [--json FILE]
"""

from __future__ import annotations

import argparse
import compileall
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from reproduce.record import with_others, write

from engine.report.envelope import versions

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "first_use.json"
ROWS, KEYS = 1000, 80
_PAIR = "--left {data}/left.parquet --right {data}/right.parquet --on k --time t"
_WITHIN = f"{_PAIR} --window 100 --memory 32"
_STREAMS = (
    "--stream left={data}/left.parquet --stream right={data}/right.parquet "
    "--stream third={data}/third.parquet --time t --window 12"
)
_AGGREGATES = "--importance v --aggregate count --aggregate sum(importance)"
WARM = "warm"
COMMANDS = {
    "replay, one policy": f"replay {_WITHIN} --policy prob",
    "replay": f"replay {_WITHIN}",
    "sweep": f"sweep {_PAIR} --windows 100",
    "sample": f"sample {_WITHIN} {_AGGREGATES}",
    "estimate": f"estimate {_PAIR} --window 10 {_AGGREGATES}",
    "bound": f"bound {_WITHIN}",
    "allocate": "allocate {data}/joins.toml",
    "multijoin": f"multijoin {_STREAMS} --predicate equi:k",
    "multijoin, harvested": f"multijoin {_STREAMS} --predicate band:v:1 --throttle 0.5 "
    "--basic-window 3 --adapt-every 20",
    "lookup": "lookup --stream {data}/left.parquet --on k --time t --fact {data}/fact.parquet "
    "--fact-on a",
    "profile": f"profile {_PAIR} --window 100 --out {{data}}/profile.json",
    "explain": "explain --rates 10,1,1,3 --windows 100,100,100,100 --distinct 500,50,40,5",
}


def write_streams(data: Path) -> None:
    """Write three streams, a fact relation and the joins of an allocation."""
    rng = np.random.default_rng(5)
    for name in ("left", "right", "third"):
        columns = {
            "t": np.cumsum(rng.integers(0, 3, ROWS)),
            "k": rng.integers(0, KEYS, ROWS),
            "v": rng.integers(1, 9, ROWS) / 1.0,
        }
        pq.write_table(pa.table(columns), data / f"{name}.parquet")
    facts = {"a": np.arange(KEYS), "b": np.arange(KEYS)[::-1]}
    pq.write_table(pa.table(facts), data / "fact.parquet")
    joins = "".join(
        f'[[join]]\nname = "{other}"\nleft = "{data}/left.parquet"\n'
        f'right = "{data}/{other}.parquet"\non = "k"\ntime = "t"\nwindow = 100\n'
        for other in ("right", "third")
    )
    (data / "joins.toml").write_text(f'memory = "30%"\n{joins}')


def spent(name: str, data: Path, cache: Path) -> float:
    """Run a command in a process of its own; return its CPU seconds."""
    environment = os.environ | {"WINNOW_CACHE": str(cache)}
    for own in ("PYTHONDONTWRITEBYTECODE", "WINNOW_COMPILE"):  # as users have it
        environment.pop(own, None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = COMMANDS.get(name, name).format(data=data).split()
    subprocess.run(  # noqa: S603 - our own command line
        [sys.executable, "-m", "winnow", *words], capture_output=True, check=True,
        env=environment,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    (data / "profile.json").unlink(missing_ok=True)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure, print and write everything."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", help="names of commands, with commas; the file keeps others")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--json", type=Path, default=RESULTS)
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for package in ("engine", "gpu_kernels", "winnow"):  # as an installation does
        compileall.compile_dir(HERE.parent / package, quiet=1)
    asked = args.only.split(",") if args.only else COMMANDS
    names = [own for own in COMMANDS if own.split(",")[0] in asked]
    rows: list[dict[str, str | float]] = []
    with tempfile.TemporaryDirectory() as place:
        data, own, full = Path(place), Path(place, "own"), Path(place, "full")
        write_streams(data)
        print(f"{'command':24}{'cold':>8}{'again':>8}{'compiled':>10}  CPU s")
        if args.warm:
            rows.append({"command": WARM, "cold": round(spent(WARM, data, full), 2)})
            print(f"{WARM:24}{rows[0]['cold']:8.1f}", flush=True)
        for name in names:
            shutil.rmtree(own, ignore_errors=True)
            caches = {"cold": own, "again": own} | ({"compiled": full} if args.warm else {})
            took = {kind: round(spent(name, data, cache), 2) for kind, cache in caches.items()}
            rows.append({"command": name, **took})
            compiled = f"{took['compiled']:10.1f}" if args.warm else ""
            print(f"{name:24}{took['cold']:8.1f}{took['again']:8.1f}{compiled}", flush=True)
    load = os.getloadavg()[0]
    every = with_others(rows, args.json, "command") if args.only else rows
    known = {"versions": versions(), "load": round(load, 1), "rows": every}
    write(args.json, known)


if __name__ == "__main__":
    main()
