"""Every policy on one archive, within 10 % of the memory that the exact join needs: `make demo`.

The archive is P1's online set-up (P1 5.2) made larger: one tuple an instant on each side, keys
Zipf(1.0) on the left and uniform on the right, few tuples of high importance; counting starts after
two windows. Everything is stored in ./demo: the archive, its lanes, compiled code, a report for
each policy, comparison.txt and comparison.svg.

    python benchmarks/demo.py [--rows N] [--engine spark|local]
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HOME = Path("demo")
os.environ.setdefault("WINNOW_CACHE", str((HOME / "cache").resolve()))  # read by engine.runtime.jit
os.environ.setdefault("WINNOW_COMPILE", "always")  # by engine.runtime.compilation.compilations

from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from engine import commands as cli  # noqa: E402
from engine.archives.roles import Roles  # noqa: E402
from engine.commands.bars import progress_bars  # noqa: E402
from engine.commands.running import executor_of  # noqa: E402
from engine.jobs.replay.run import run_replay  # noqa: E402
from engine.options.budget import parse_amounts  # noqa: E402
from engine.options.replay import JobOptions  # noqa: E402
from engine.policies import POLICIES  # noqa: E402
from engine.report.charts import Bars, Series  # noqa: E402
from engine.report.figure_files import save_figure  # noqa: E402
from engine.report.figures import figure_of  # noqa: E402

WINDOW, DOMAIN, MEMORY = 9_999, 1_000, "10%"
START = 2 * (WINDOW + 1)
COMPARED = [name for name in POLICIES if name != "custom"]
Content = dict[str, Any]


def generate(rows: int, folder: Path) -> None:
    """Write the archive, unless it is there."""
    line = ["generate", "zipf", "--rows", rows, "--domain", DOMAIN, "--importance", "rare-high",
            "--seed", 1, "--out", folder]  # fmt: skip
    command = [str(word) for word in line]
    print(f"$ winnow {shlex.join(command)}")
    if (folder / "right.parquet").exists():
        print(f"{folder} is there already")
    elif cli.main(command) != 0:
        sys.exit(1)


def job(folder: Path, policy: str, start: int = START) -> JobOptions:
    """Return one policy's replay, whose outputs count from `start` on."""
    roles = Roles(on=("key",), time="ts", importance="importance")
    return JobOptions(
        left=str(folder / "left.parquet"),
        right=str(folder / "right.parquet"),
        left_roles=roles,
        right_roles=roles,
        window_left=str(WINDOW),
        window_right=str(WINDOW),
        memory=parse_amounts(MEMORY, None, None),
        policy=policy,
        start_ts=str(start),
        cache=HOME / "lanes",
    )


def command_line(folder: Path, policy: str) -> str:
    """Return the command that does the same as `job`."""
    return (
        f"winnow replay --left {folder}/left.parquet --right {folder}/right.parquet \\\n"
        f"    --on key --time ts --importance importance --window {WINDOW} --memory {MEMORY} \\\n"
        f"    --policy {policy} --start-ts {START} --cache {HOME}/lanes"
    )


def compare(rows: int, engine: str) -> list[Content]:
    """Replay the archive under every policy, on one engine, and return the reports."""
    folder, small = HOME / f"zipf-{rows}", HOME / "zipf-1000"
    generate(rows, folder)
    generate(1000, small)

    begun = time.perf_counter()
    executor = executor_of({}, engine)
    started = time.perf_counter()
    print(f"engine {engine} is up after {started - begun:.1f} s")
    print("compiling, the first time alone ...", flush=True)
    policies = sorted(COMPARED, key=lambda policy: policy != "yield")  # its kernels take longest
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        jobs = [job(small, policy, start=0) for policy in policies]
        for one in [threads.submit(run_replay, each, executor) for each in jobs]:
            one.result()
    spent = time.perf_counter() - started
    print(f"compiled code is there after {spent:.1f} s (in {os.environ['WINNOW_CACHE']})")
    reports: list[Content] = []
    with progress_bars() as progress:
        for done, policy in enumerate(COMPARED):
            progress("policies", done, len(COMPARED))
            report = run_replay(job(folder, policy), executor)
            report.save(HOME / "reports" / f"{policy}.json")
            reports.append(report.content)
    return sorted(reports, key=lambda content: -content["importance_recall"])


def table(reports: list[Content]) -> Table:
    """Return the comparison."""
    exact = reports[0]["exact"]
    most = max(content["importance_recall"] for content in reports)
    columns = Table(
        title=f"exact join: {exact['outputs']:,} outputs of importance "
        f"{exact['importance']:,.0f}; memory: {MEMORY} of what it needs at its peak",
        title_justify="left",
    )
    names = ("policy", "outputs", "recall", "importance recall", "", "seconds", "peak tuples")
    for name in names:
        columns.add_column(name, justify="left" if name in {"policy", ""} else "right")
    for content in reports:
        share = content["importance_recall"]
        columns.add_row(
            content["policy"]["name"],
            f"{content['result']['outputs']:,}",
            f"{content['recall']:.2%}",
            f"{share:.2%}",
            "█" * round(12 * share / most),
            f"{content['seconds']['replay']:.2f}",
            f"{content['peak_memory']['both']:,}",
        )
    return columns


def draw(reports: list[Content]) -> None:
    """Draw the recalls as bars."""
    series = [
        Series(field.replace("_", " "), [100 * content[field] for content in reports])
        for field in ("importance_recall", "recall")
    ]
    names = [content["policy"]["name"] for content in reports]
    title = f"Found within {MEMORY} of the exact join's memory"
    chart = Bars(title, "% of the exact join", names, series)
    save_figure(figure_of([chart]), HOME / "comparison.svg")


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="tuples of each stream")
    parser.add_argument("--engine", default="spark", help="spark (default) or local")
    options = parser.parse_args()
    if options.rows <= START:
        parser.error(f"--rows {options.rows} must be more than {START}, where counting starts")
    begun = time.perf_counter()
    reports = compare(options.rows, options.engine)
    with (HOME / "comparison.txt").open("w") as file:
        for console in (Console(width=100), Console(width=100, file=file)):
            console.print(table(reports))
    draw(reports)
    print("\nOne of these replays, from the command line:\n"
          f"{command_line(HOME / f'zipf-{options.rows}', reports[0]['policy']['name'])}\n\n"
          f"Saved: {HOME}/comparison.txt, {HOME}/comparison.svg, {HOME}/reports/*.json\n"
          f"{time.perf_counter() - begun:.0f} s in all")  # fmt: skip


if __name__ == "__main__":
    main()
