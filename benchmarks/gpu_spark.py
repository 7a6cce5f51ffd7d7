"""Spark, the RAPIDS Accelerator and the kernels on one GPU; every row is compared with the CPU's.

gpu_spark.sh calls this; it sets up Java, Spark and Python's path from a folder of parts.

    benchmarks/gpu_spark.sh PARTS [--dry] [--rows N] [--lanes N] [--json FILE]

Two kinds of input run in one session of an application with one executor that owns the GPU:
archives (tasks read their files themselves) and DataFrames (scanned, arranged and sorted by
RAPIDS). Each task uses the GPU that Spark gave it. The CPU's rows come from the local engine.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from gpu_suite import commit, surroundings
from reproduce.record import write

from engine.jobs.replay.run import run_replay
from engine.options.replay import REPLAY, job_of
from engine.runtime.executors import Executor, ThreadExecutor

SPAN, KEYS, WINDOW = 40, 2000, 4000
"""Ticks a row, distinct keys, and W in ticks."""
ORDER = [("ts", "ascending"), ("left_row", "ascending"), ("right_row", "ascending")]
PYTHON_SHARE = 0.4
"""Of the GPU's memory, for the kernels of all tasks; RAPIDS' pool has the rest."""
ROLES = {"on": "k", "time": "t", "importance": "i"}


def write_archive(path: Path, rows: int, seed: int) -> None:
    """Write a stream of `rows` rows in no order: skewed keys, a payload of text."""
    rng = np.random.default_rng(seed)
    keys = np.minimum(rng.zipf(1.3, rows), KEYS) - 1
    table = pa.table(
        {
            "t": rng.integers(0, SPAN * rows, rows),
            "k": keys.astype(np.int64),
            "i": rng.integers(0, 100, rows) / 4.0,
            "p": pa.array(keys.astype(str)),
        }
    )
    pq.write_table(table, path, row_group_size=1 << 18)


def submit_arguments(args: argparse.Namespace, work: Path) -> str:
    """Return ``PYSPARK_SUBMIT_ARGS``: an application with the GPU, or in a dry run without.

    The settings are those that ``winnow spark-conf`` prints.
    """
    from spark_plugin.rapids.options import RapidsOptions  # noqa: PLC0415 - not to import pyspark
    from spark_plugin.rapids.settings import settings_of  # noqa: PLC0415 - before it is set up

    (jar,) = (args.parts / "jars").glob("*.jar")
    cluster = f"local-cluster[1,{args.tasks},{args.memory_mib}]"
    master = f"local[{args.tasks}]" if args.dry else cluster
    options = RapidsOptions(
        master=master,
        tasks_per_gpu=args.tasks,
        cores=args.tasks,
        memory=f"{args.memory_mib}m",
        python_share=PYTHON_SHARE,
        mode="explainOnly" if args.dry else "executeOnGPU",
        jar=str(jar),
    )
    conf: dict[str, object] = {setting.name: setting.value for setting in settings_of(options)}
    conf |= {
        "spark.local.dir": work / "local",
        "spark.rapids.sql.explain": "NONE",
        "spark.sql.shuffle.partitions": args.tasks,
        "spark.default.parallelism": args.tasks,
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    words = [f"--conf {name}={value}" for name, value in conf.items()]
    driver = "2g" if args.dry else "8g"
    return " ".join([f"--master {master} --driver-memory {driver}", *words, "pyspark-shell"])


def replayed(folder: Path, out: Path, executor: Executor, **given: Any) -> tuple[pa.Table, Any]:  # noqa: ANN401 - options of a job
    """Return the rows of a replay of the archives, in order, and its report."""
    places = {"left": folder / "left.parquet", "right": folder / "right.parquet", "out": out}
    options = REPLAY.from_keywords(places | ROLES | given | {"cache": folder / "cache"})
    report = run_replay(job_of(options), executor)
    return pq.read_table(out, partitioning=None).sort_by(ORDER), report.content


def operators(frame: Any) -> Counter[str]:  # noqa: ANN401 - a DataFrame
    """Return how often each operator is in the plan that was run, as adaptive execution left it."""
    text = frame._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001 - the only way
    final = text.partition("== Initial Plan ==")[0]
    names = (line.lstrip(" :+-*()0123456789").split(" ", 1)[0] for line in final.splitlines())
    return Counter(name for name in names if name and name != "==")


def compared(args: argparse.Namespace, folder: Path, session: Any) -> dict[str, Any]:  # noqa: ANN401
    """Run both ways in and hold their rows against the CPU's.

    Raises
    ------
    SystemExit
        With 1 if rows differ, or a GPU did not do what it was asked for.
    """
    from spark_plugin.dataframe import replay  # noqa: PLC0415 - once the environment is set
    from spark_plugin.executor import SparkExecutor  # noqa: PLC0415 - the same

    device = "cpu" if args.dry else "gpu"
    given = {"window": WINDOW, "memory": "10%", "policy": args.policy, "lanes": args.lanes}
    begun = time.perf_counter()
    ref, report = replayed(folder, folder / "ref", ThreadExecutor(), device="cpu", **given)
    found: dict[str, Any] = {
        "rows": args.rows, "lanes": args.lanes, "policy": args.policy, "outputs": ref.num_rows,
        "exact_outputs": report["exact"]["outputs"], "seconds": {},
    }  # fmt: skip
    found["seconds"]["local engine on the CPU"] = time.perf_counter() - begun
    for turn in ("first", "second"):
        begun = time.perf_counter()
        out = folder / f"spark-{turn}"
        rows, report = replayed(folder, out, SparkExecutor(session), device=device, **given)
        found["seconds"][f"archives, {turn}"] = time.perf_counter() - begun
        found["device"] = report["device"]
        check(rows.equals(ref), "archives: rows differ from the CPU's")
        check(args.dry or report["device"]["used"] == "gpu", f"not on a GPU: {report['device']}")
    left, right = (session.read.parquet(str(folder / f"{s}.parquet")) for s in ("left", "right"))
    for turn in ("first", "second"):
        begun = time.perf_counter()
        kept = replay(left, right, device=device, **(ROLES | given))
        rows = kept.toArrow().sort_by(ORDER)
        found["seconds"][f"DataFrames, {turn}"] = time.perf_counter() - begun
        check(
            rows.select(ref.column_names).equals(ref.cast(rows.schema)), "DataFrames: rows differ"
        )
    found["operators"] = dict(operators(kept))
    on_gpu = sum(count for name, count in found["operators"].items() if name.startswith("Gpu"))
    check(args.dry or on_gpu > 0, f"no operator ran on the GPU: {found['operators']}")
    return found


def check(good: object, words: str) -> None:
    """Stop with `words` and status 1 unless `good`."""
    if not good:
        print(f"FAILED: {words}")
        raise SystemExit(1)


def main() -> None:
    """Run it, print what was found, and write it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--parts", type=Path, required=True, help="made by gpu_spark_parts.sh")
    parser.add_argument("--dry", action="store_true", help="without a GPU; RAPIDS only explains")
    parser.add_argument("--rows", type=int, help="a stream (4,000,000; 20,000 dry)")
    parser.add_argument("--lanes", type=int, help="512; 8 dry")
    parser.add_argument("--tasks", type=int, help="at once: 8; 2 dry")
    parser.add_argument("--memory-mib", type=int, default=16_384, help="of the executor's JVM")
    parser.add_argument("--policy", default="dimpprob")
    parser.add_argument("--commit", help="default: $WINNOW_COMMIT, or what git says")
    parser.add_argument("--json", type=Path, help="default: $OUT or benchmarks/results; none dry")
    args = parser.parse_args()
    args.rows = args.rows or (20_000 if args.dry else 4_000_000)
    args.lanes = args.lanes or (8 if args.dry else 512)
    args.tasks = args.tasks or (2 if args.dry else 8)
    about = {"commit": commit(args.commit)} if args.dry else surroundings(args.commit)
    with tempfile.TemporaryDirectory(prefix="winnow-gpu-spark-") as name:
        work = Path(name)
        os.environ["PYSPARK_SUBMIT_ARGS"] = submit_arguments(args, work)
        for seed, side in enumerate(("left", "right")):
            write_archive(work / f"{side}.parquet", args.rows, seed)
        from spark_plugin.session import get_session  # noqa: PLC0415 - reads the environment

        session = get_session("winnow on a GPU")
        try:
            found = compared(args, work, session)
            found["spark"] = session.version
            found["jars"] = [jar.name for jar in sorted((args.parts / "jars").glob("*.jar"))]
        finally:
            session.stop()
    content = {"about": about, "dry": args.dry, "found": found}
    print(json.dumps(content, indent=1))
    results = Path(os.environ.get("OUT") or Path(__file__).resolve().parent / "results")
    out = args.json or (None if args.dry else results / "gpu_spark.json")
    if out is not None:
        write(out, content)


if __name__ == "__main__":
    main()
