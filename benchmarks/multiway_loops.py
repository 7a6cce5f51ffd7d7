"""P3's joins by nested loops and hash buckets: its table 8 and figures 4(a) and 4(b), measured.

    python benchmarks/multiway_loops.py [--repeat 10] [--only figure_4a] [--tables docs/page.md]

Streams follow P3 6.1: one tuple a tick, from a stream drawn in proportion to its rate, with
uniform values. A time unit of P3 has as many ticks as the sum of all rates, so that a window holds
rate x time size tuples. The maximum input rate is tuples over seconds once the windows are full,
in wall time and in CPU time, which is more reliable on a busy machine; it is the median of the
repeats. Each repeat has its own streams, and within a repeat the algorithms take turns. Outputs
are written to a reused array. The work that explains the rates is counted per tuple.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from policy_order import commit, filled

from engine.multiway.loops.method import Buckets, LoopsSettings
from engine.multiway.loops.run import LoopsRun
from engine.multiway.orders.cost import cost_of
from engine.multiway.orders.problem import JoinStatistics, OrderingProblem, StreamStatistics
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, no_attributes, windows_of

RESULTS = Path(__file__).resolve().parent / "results" / "multiway_loops.json"
EQUAL = Predicate("equi", ("attr",))
RATES = ("rate", "cpu_rate")
COUNTED = ("visits", "comparisons", "accesses", "outputs")
ROWS = 4096
"""Outputs a part: they stay in the cache."""
Results = dict[str, Any]


class Setting(NamedTuple):
    """Streams of P3: tuples a time unit, time units of their windows, distinct values."""

    rate: tuple[int, ...]
    window: tuple[int, ...]
    distinct: tuple[int, ...]

    @property
    def unit(self) -> int:
        """Ticks of a time unit."""
        return sum(self.rate)


TABLE_5 = Setting((10, 1, 1, 3), (100, 100, 200, 100), (500, 50, 40, 5))
FIGURE_4A = Setting((1, 1, 1, 1), (100,) * 4, (50,) * 4)
FIGURE_4B = Setting((1, 1, 1, 50), (100,) * 4, (50,) * 4)
SLOW = 3
"""Figure 4(b): streams before the fast one."""


def generated(setting: Setting, tuples: int, seed: int) -> MultiStreams:
    """Return streams that fill their windows, and then have so many tuples."""
    rng = np.random.default_rng(seed)
    n = max(setting.window) * setting.unit + tuples
    rate = np.array(setting.rate)
    source = rng.choice(rate.size, n, p=rate / rate.sum())
    code = rng.integers(1, np.array(setting.distinct)[source] + 1)
    ts = np.argsort(source, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=rate.size))])
    attributes = no_attributes(n)._replace(code=code[ts])
    return MultiStreams(first.astype(np.int64), ts, ts, np.ones(n), attributes)


def predicted(setting: Setting, order: Sequence[int]) -> float:
    """Return the comparisons a time unit of the eager join in a global order (P3 4.2, 5.1)."""
    rows = zip("1234", setting.rate, setting.window, setting.distinct, strict=True)
    streams = tuple(StreamStatistics(*row) for row in rows)
    return cost_of(OrderingProblem(JoinStatistics(streams), "eager-nlj"), list(order))


class Case(NamedTuple):
    """An algorithm on streams, and how many tuples are timed."""

    name: tuple[str, ...]
    setting: Setting
    settings: LoopsSettings
    tuples: int


def case(
    name: tuple[str, ...], setting: Setting, tuples: int, *, method: str, tau: float | None = None,
    buckets: Buckets = None, order: Sequence[int] | None = None,
) -> Case:  # fmt: skip
    """Return a case; tau in time units, at least a tick."""
    ticks = None if tau is None else max(1, round(tau * setting.unit))
    return Case(
        name, setting, LoopsSettings(method, order=order, tau=ticks, buckets=buckets), tuples
    )


def timed(one: Case, streams: MultiStreams) -> Results:
    """Return the rates once the windows are full, and what is counted for a tuple."""
    ticks = [size * one.setting.unit for size in one.setting.window]
    run = LoopsRun(streams, windows_of(ticks), EQUAL, one.settings)
    for _ in run.parts(ROWS, until=max(ticks)):
        pass
    before = run.counters
    begun = time.perf_counter(), time.thread_time()
    for _ in run.parts(ROWS):
        pass
    spent = time.perf_counter() - begun[0], time.thread_time() - begun[1]
    found = {name: one.tuples / seconds for name, seconds in zip(RATES, spent, strict=True)}
    return found | {
        name: (getattr(run.counters, name) - getattr(before, name)) / one.tuples for name in COUNTED
    }


def measured(cases: Sequence[Case], repeat: int) -> list[Results]:
    """Return a line a case: the median rates, and the mean work for a tuple."""
    runs: list[list[Results]] = [[] for _ in cases]
    timed(cases[0], generated(cases[0].setting, 100, 0))  # compiles
    for seed in range(repeat):
        drawn: dict[tuple[Setting, int], MultiStreams] = {}
        for one, found in zip(cases, runs, strict=True):
            key = one.setting, one.tuples
            if key not in drawn:
                drawn[key] = generated(*key, seed)
            found.append(timed(one, drawn[key]))
    return [
        {"name": one.name}
        | {name: statistics.median(run[name] for run in found) for name in RATES}
        | {name: statistics.fmean(run[name] for run in found) for name in COUNTED}
        for one, found in zip(cases, runs, strict=True)
    ]


def table_8(repeat: int) -> Results:
    """Return the rates of the best and the worst order by P3's cost, of table 5's streams."""
    orders = sorted((predicted(TABLE_5, each), each) for each in itertools.permutations(range(4)))
    ends = {"best": orders[0][1], "worst": orders[-1][1]}
    algorithms: list[tuple[str, int, dict[str, Any]]] = [
        ("Eager NLJ", 6_000, {"method": "eager-nlj"}),
        *((f"Lazy NLJ, tau = {tau}", 6_000, {"method": "lazy-nlj", "tau": tau}) for tau in (5, 10)),
        ("Eager hash", 60_000, {"method": "eager-hash", "buckets": 5}),
        *(
            (f"Lazy hash, tau = {tau}", 60_000, {"method": "lazy-hash", "tau": tau, "buckets": 5})
            for tau in (5, 10)
        ),
    ]
    cases = [
        case((name, end), TABLE_5, tuples, order=order, **options)
        for name, tuples, options in algorithms
        for end, order in ends.items()
    ]
    lines = measured(cases, repeat)
    best = {line["name"][0]: line for line in lines if line["name"][1] == "best"}
    eager = {name: best[name.replace("Lazy", "Eager").split(",")[0]] for name in best}
    return {
        "orders": ends,
        "predicted": {"best": orders[0][0], "worst": orders[-1][0]},
        "lines": lines,
        "hash_over_nlj": {r: best["Eager hash"][r] / best["Eager NLJ"][r] for r in RATES},
        "eager_over_lazy": {
            name: {r: eager[name][r] / best[name][r] for r in RATES}
            for name in best
            if name.startswith("Lazy")
        },
    }


def figure_4a(repeat: int) -> Results:
    """Return the rates over tau of a scan and of 2, 10 and 30 buckets."""
    taus = (0.25, 0.5, 1, 2, 4, 8, 15, 30, 50, 100)
    algorithms: dict[str, tuple[int, dict[str, Any]]] = {
        "NLJ": (12_000, {"method": "lazy-nlj"}),
        **{
            f"HASH{b}": (tuples, {"method": "lazy-hash", "buckets": b})
            for b, tuples in ((2, 20_000), (10, 60_000), (30, 100_000))
        },
    }
    cases = [
        case((name, str(tau)), FIGURE_4A, tuples, tau=tau, **options)
        for name, (tuples, options) in algorithms.items()
        for tau in taus
    ]
    lines = measured(cases, repeat)
    optimum = {
        rate: {
            name: max((x[rate], float(x["name"][1])) for x in lines if x["name"][0] == name)[1]
            for name in algorithms
        }
        for rate in RATES
    }
    return {"lines": lines, "optimum": optimum}


def figure_4b(repeat: int) -> Results:
    """Return the rates over the average number of buckets; the fourth stream is 50 times faster."""
    cases = []
    for average in range(2, 14):
        for slow in (average, 1, 5, 10):
            fast = 4 * average - SLOW * slow
            if fast > 0 and (slow == average or fast > slow):
                name = "Equal" if slow == average else f"{slow} to slow"
                buckets = [slow] * SLOW + [fast]
                cases.append(
                    case(
                        (name, str(average)), FIGURE_4B, 15_000,
                        method="lazy-hash", tau=5, buckets=buckets,
                    )
                )  # fmt: skip
    lines = measured(cases, repeat)
    found = {tuple(line["name"]): line for line in lines}
    both = [
        average for name, average in found if name == "5 to slow" and ("Equal", average) in found
    ]
    return {
        "lines": lines,
        "five_over_equal": {
            average: {r: found["5 to slow", average][r] / found["Equal", average][r] for r in RATES}
            for average in both
        },
    }


def wide(lines: Sequence[Results], corner: str, field: str, form: str) -> str:
    """Return a table of one number: a row for each second part of the names, a column a first."""
    columns, rows = (list(dict.fromkeys(line["name"][at] for line in lines)) for at in (0, 1))
    cell = {tuple(line["name"]): format(line[field], form) for line in lines}
    text = [f"| {corner} | {' | '.join(columns)} |", "|---:|" + "---:|" * len(columns)]
    text += [f"| {r} | {' | '.join(cell.get((c, r), '') for c in columns)} |" for r in rows]
    return "\n".join(text)


def tables_of(content: Results) -> dict[str, str]:
    """Return the tables of the document."""
    tables = {}
    if "table_8" in content:
        text = [
            "| algorithm | order | tuples/s | per CPU s | visits | compared | accesses | outputs |",
            "|---|---|---:|---:|---:|---:|---:|---:|",
        ]
        text += [
            f"| {' | '.join(line['name'])} | {line['rate']:,.0f} "
            f"| {line['cpu_rate']:,.0f} | {line['visits']:,.1f} "
            f"| {line['comparisons']:,.1f} | {line['accesses']:.2f} | {line['outputs']:.1f} |"
            for line in content["table_8"]["lines"]
        ]
        tables["P3 table 8"] = "\n".join(text)
    for figure, corner in (("4a", "tau"), ("4b", "buckets, average")):
        if f"figure_{figure}" in content:
            lines = content[f"figure_{figure}"]["lines"]
            tables[f"P3 figure {figure}"] = wide(lines, corner, "rate", ",.0f")
            tables[f"P3 figure {figure}, per CPU s"] = wide(lines, corner, "cpu_rate", ",.0f")
            tables[f"P3 figure {figure}, visits"] = wide(lines, corner, "visits", ",.1f")
            tables[f"P3 figure {figure}, accesses"] = wide(lines, corner, "accesses", ",.2f")
    return tables


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write everything."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--only", action="append", help="table_8, figure_4a or figure_4b")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--tables", type=Path, help="Markdown file whose marked tables to fill")
    args = parser.parse_args(argv)
    sections = {"table_8": table_8, "figure_4a": figure_4a, "figure_4b": figure_4b}
    content: Results = json.loads(args.out.read_text()) if args.out.exists() else {}
    content |= {
        "commit": commit(), "python": platform.python_version(), "numba": numba.__version__,
        "numpy": np.__version__, "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0], "repeat": args.repeat,
    }  # fmt: skip
    for name in args.only or sections:
        begun = time.perf_counter()
        content[name] = sections[name](args.repeat)
        content[name]["seconds"] = time.perf_counter() - begun
        args.out.write_text(json.dumps(content, indent=1) + "\n")
    tables = tables_of(content)
    for name, table in tables.items():
        print(f"\n## {name}\n{table}")
    if args.tables is not None:
        args.tables.write_text(filled(args.tables.read_text(), tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())
