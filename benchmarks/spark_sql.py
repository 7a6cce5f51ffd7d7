"""Against Spark SQL's exact interval join: the same session, cores and Parquet files, in turn.

Both compute the number of outputs and the sum of their importance, the lesser of the members'. SQL
has four formulations: equal keys and times at most W apart, as a sort-merge join and as a shuffled
hash join; and the same with time divided into bins, where each tuple of one side is copied into the
bins that its window overlaps and the join is on key and bin. All run once, and their answers must
equal winnow's exact count; the two fastest then run in turn with winnow. winnow counts the exact
join, joins within 10 % of the memory, or does both at once, for a report of what was lost. It
prepares its lanes (`cold`), finds them prepared (`prepared`), or has replayed them with the same
windows before (`warm`): the lane cache then has the profile, the values of the tuples and the exact
count of that replay. An exact join by itself is still counted. Ratios are against the faster of the
two. Before every run the JVM's garbage is collected, written data is flushed to disk and the
archives are read, so that no run pays for its predecessor; a small replay restarts Spark's Python
workers if they have ended.

    python benchmarks/spark_sql.py [--rows 4000000] [--workload sparse] [--repeats 3] [--json FILE]
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from reproduce.record import about, write
from scale import (
    RESULTS,
    WORKLOADS,
    Spent,
    Workload,
    job,
    local_session,
    median,
    settle,
    timed,
    write_archive,
)

from engine.jobs.replay.run import run_replay
from spark_plugin.executor import SparkExecutor

_TIMED = 2
_LANES = 16
_SMALL = 100_000
_PAIRS = 1_000_000_000
"""Pairs of equal keys beyond which the plain joins are left out: they take minutes, then hours."""
Answer = tuple[int, float]


class Contender(NamedTuple):
    """What is timed, what makes it ready, which is not, and whether all outputs are to come."""

    ask: Callable[[], Answer]
    ready: Callable[[], object] = lambda: None
    exact: bool = True


class Kind(NamedTuple):
    """What winnow is asked for: a memory, and whether to compare with the exact join."""

    memory: str | None = None
    reference: str = "exact"


KINDS = {
    "exact": Kind(),
    "10 %": Kind("10%", "none"),
    "10 % and exact": Kind("10%"),
}


def plain(work: Workload, hint: str) -> str:
    """Return the join as anybody would write it."""
    return (
        f"SELECT {hint} count(*), sum(least(l.importance, r.importance)) FROM l JOIN r "  # noqa: S608
        f"ON l.key = r.key AND r.ts BETWEEN l.ts - {work.window} AND l.ts + {work.window}"
    )


def binned(work: Workload, hint: str, copied: str) -> str:
    """Return the join by key and bin of time; bins of 2 W + 1 ticks make two copies a tuple."""
    w, width = work.window, 2 * work.window + 1
    other = "r" if copied == "l" else "l"
    return (
        f"SELECT {hint} count(*), sum(least(a.importance, b.importance)) FROM "  # noqa: S608
        f"(SELECT key, ts, importance, explode(sequence((ts - {w}) DIV {width}, "
        f"(ts + {w}) DIV {width})) bin FROM {copied}) a JOIN "
        f"(SELECT key, ts, importance, ts DIV {width} bin FROM {other}) b "
        f"ON a.key = b.key AND a.bin = b.bin AND b.ts BETWEEN a.ts - {w} AND a.ts + {w}"
    )


def formulations(work: Workload, rows: int) -> dict[str, str]:
    """Return SQL by name; without the plain joins where they would compare too many pairs."""
    joins = {
        "plain, sort-merge": plain(work, "/*+ MERGE(r) */"),
        "plain, hash": plain(work, "/*+ SHUFFLE_HASH(r) */"),
    }
    return (joins if rows * rows // work.domain <= _PAIRS else {}) | {
        "bins, left copied, hash": binned(work, "/*+ SHUFFLE_HASH(b) */", "l"),
        "bins, left copied, sort-merge": binned(work, "/*+ MERGE(b) */", "l"),
    }


def contenders(
    session: Any,  # noqa: ANN401 - pyspark has no types here
    folder: Path,
    work: Workload,
    rows: int,
) -> dict[str, Contender]:
    """Return SQL's formulations."""
    for side in ("left", "right"):
        session.read.parquet(str(folder / f"{side}.parquet")).createOrReplaceTempView(side[0])

    def ask(query: str) -> Answer:
        outputs, importance = session.sql(query).collect()[0]
        return int(outputs), float(importance or 0.0)

    asked = formulations(work, rows).items()
    return {f"SQL {name}": Contender(partial(ask, query)) for name, query in asked}


def ours(folder: Path, work: Workload, executor: SparkExecutor) -> dict[str, Contender]:
    """Return winnow's contenders; each answers with its exact count if it has one."""
    cache = folder / "cache"

    def clear_exact_cache() -> None:
        for kept in cache.glob("*/lane-*/*-*"):
            kept.unlink()

    before: dict[str, Callable[[], object]] = {
        "cold": partial(shutil.rmtree, cache, ignore_errors=True),
        "prepared": clear_exact_cache,
        "warm": lambda: None,
    }

    def answer(kind: Kind) -> Answer:
        content = replayed(folder, work, executor, kind)
        found = content.get("exact", content["result"])
        return found["outputs"], found["importance"]

    return {
        f"{name}, {state}": Contender(partial(answer, kind), ready, kind.reference == "exact")
        for name, kind in KINDS.items()
        for state, ready in before.items()
    }


def replayed(folder: Path, work: Workload, executor: SparkExecutor, kind: Kind) -> dict[str, Any]:
    """Return winnow's report."""
    asked = {**kind._asdict(), "lanes": _LANES if kind.memory else None}
    return run_replay(job(folder, work, folder / "cache", **asked), executor).content


def check(name: str, answer: Answer, expected: Answer) -> None:
    """Leave with an error if an answer is not the one expected."""
    if answer[0] != expected[0] or not math.isclose(answer[1], expected[1], rel_tol=1e-9):
        sys.exit(f"{name}: {answer}, but {expected} was expected")


def rounds(
    runs: dict[str, Contender],
    expected: dict[bool, Answer],
    repeats: int,
    before: Callable[[], object],
) -> dict[str, list[Spent]]:
    """Run all in turn, so many times, each after `before`, and compare their answers."""
    spent: dict[str, list[Spent]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            run.ready()
            before()
            answer, took = timed(run.ask)
            check(name, answer, expected[run.exact])
            spent[name].append(took)
            print(f"{name}: {took.wall:.1f} s, CPU {took.cpu:.1f} s", flush=True)
    return spent


def compared(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Generate, let all answer once, then time the fastest; return the results."""
    work = WORKLOADS[args.workload]
    session = local_session(args.cores)
    executor = SparkExecutor(session)
    write_archive(folder, args.rows, work)
    write_archive(folder / "small", _SMALL, work)
    small = ours(folder / "small", work, executor)["10 %, prepared"]

    def before() -> None:
        settle(session)
        for side in ("left", "right"):
            (folder / f"{side}.parquet").read_bytes()
        small.ask()

    mine = ours(folder, work, executor)
    theirs = contenders(session, folder, work, args.rows)
    both = replayed(folder, work, executor, KINDS["10 % and exact"])
    counts = {
        name: (both[name]["outputs"], both[name]["importance"]) for name in ("exact", "result")
    }
    expected = {True: counts["exact"], False: counts["result"]}
    check("exact, cold", mine["exact, cold"].ask(), expected[True])
    firsts = {name: own[0] for name, own in rounds(theirs, expected, 1, before).items()}
    fastest = sorted(firsts, key=lambda name: firsts[name].cpu)[:_TIMED]
    timed_in_turn = {name: theirs[name] for name in fastest} | mine
    spent = rounds(timed_in_turn, expected, args.repeats, before)
    middle = {name: median(own) for name, own in spent.items()}
    best = min(fastest, key=lambda name: middle[name].cpu)
    rows = [
        {
            "who": name,
            **own._asdict(),
            "wall_ratio": middle[best].wall / own.wall,
            "cpu_ratio": middle[best].cpu / own.cpu,
            "runs": [one._asdict() for one in spent[name]],
        }
        for name, own in middle.items()
    ]
    return {
        **counts,
        "first_runs": {name: one._asdict() for name, one in firsts.items()},
        "best": best,
        "rows": rows,
    }


def main() -> None:
    """Compare, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--workload", choices=WORKLOADS, default="sparse")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--place", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--json", type=Path, default=RESULTS / "spark_sql.json")
    args = parser.parse_args()
    os.environ.setdefault(
        "PYSPARK_SUBMIT_ARGS",
        f"--master local[{args.cores}] --driver-memory 2g "
        f"--conf spark.sql.shuffle.partitions={4 * args.cores} pyspark-shell",
    )
    with tempfile.TemporaryDirectory(prefix="sql-", dir=args.place) as name:
        found = compared(Path(name), args)
    print(f"\nagainst {found['best']}:")
    for row in found["rows"]:
        print(
            f"{row['who']:36} {row['wall']:8.1f} s  CPU {row['cpu']:8.1f} s  "
            f"{row['wall_ratio']:6.2f} x wall {row['cpu_ratio']:6.2f} x CPU"
        )
    work = WORKLOADS[args.workload]._asdict()
    described = about(rows=args.rows, workload=work, cores_used=args.cores, lanes=_LANES)
    write(args.json, {"about": described, **found})


if __name__ == "__main__":
    main()
