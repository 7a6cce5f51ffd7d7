"""Whether `winnow estimate` covers as it says, and what it costs beside the exact join.

Coverage: joins of real archives and of generated ones are written in small row groups, joined
exactly once, and estimated with many seeds: of a fixed share of bytes, and within a target. A total
over all of the archive counts apart from what goes by time.

Cost against error: estimates, samples and exact joins of two generated archives, in a plot.
``estimate_cost.py`` has the cost of large ones.

    python benchmarks/estimate.py [--seeds 200] [--only NAME ...] [--json FILE]

WINNOW_DATA is the folder of the real archives, shared/data by default.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import real_joins
from estimate_cost import PLACE, measured, written
from estimate_draws import Remembering, estimates
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from reproduce.record import write

import winnow
from engine.jobs.estimate import plan
from engine.report.envelope import versions

DATA = Path(os.environ.get("WINNOW_DATA", "shared/data"))
PLOT = Path(__file__).parent.parent / "docs" / "estimate.png"
HIDDEN = "hidden hot keys"
SECOND_US, DAY = 1_000_000, 86400


class Join(NamedTuple):
    """A join to estimate."""

    name: str
    left: pa.Table
    right: pa.Table
    window: int
    group: int
    """Rows of a row group."""
    value: str
    """Column of the left stream that is averaged."""
    every: int
    """Ticks of a window of time."""
    share: str
    """Of the bytes, that may be read."""
    within: str


def _read(name: str, importance: str | None) -> pa.Table:
    table = pq.read_table(DATA / f"{name}.parquet")
    if importance is None:
        column = pa.array(np.ones(table.num_rows))
    else:
        column = table[importance].cast(pa.float64()).combine_chunks().fill_null(0.0)
        column = pa.array(np.abs(np.nan_to_num(column.to_numpy())))
    if "importance" in table.column_names:
        table = table.drop_columns(["importance"])
    return table.append_column("importance", column)


def real() -> Iterator[Join]:
    """Yield joins of five archives."""
    if not DATA.exists():
        return
    yield Join(
        "gcluster", _read("gcluster/submit", "priority"), _read("gcluster/schedule", "priority"),
        60 * SECOND_US, 500, "cpu", 17_500 * SECOND_US, "40%", "10%",
    )  # fmt: skip
    yield Join(
        "hflights", _read("hflights/departures", "importance"),
        _read("hflights/arrivals", "importance"),
        DAY // 2, 200, "dep_delay", 182 * DAY, "40%", "2%",
    )  # fmt: skip
    yield Join(
        "building", _read("building/co2", "value"), _read("building/humidity", "value"),
        300, 500, "value", 4 * DAY, "20%", "5%",
    )  # fmt: skip
    yield Join(
        "taq", _read("taq/quotes", None), _read("taq/trades", "importance"),
        10 * SECOND_US, 100, "mid", 72_000 * SECOND_US, "40%", "10%",
    )  # fmt: skip
    left, right = (_read(f"beijing/{name}", "pm25") for name in ("aotizhongxin", "dongsi"))
    yield Join(  # of one key, as no attribute of two stations is the same
        "beijing", left.set_column(1, "key", pa.array(np.zeros(left.num_rows, np.int8))),
        right.set_column(1, "key", pa.array(np.zeros(right.num_rows, np.int8))),
        3 * DAY, 50, "temp", 730 * DAY, "40%", "5%",
    )  # fmt: skip


def untuned() -> Iterator[Join]:
    """Yield joins of real archives to which nothing was tuned, of those that have 150 windows."""
    if not DATA.exists():
        return
    for name, own in {**real_joins.NATURAL, **real_joins.OTHER}.items():
        columns = real_joins.columns_in(own)
        span = max(int(ts[-1]) for ts, *_ in columns) - min(int(ts[0]) for ts, *_ in columns)
        if span < 150 * own.window:
            continue
        rng, tables = np.random.default_rng(3), []
        for ts, key, value in columns:
            noise = rng.normal(0, 1, ts.size)
            tables.append(pa.table({
                "ts": ts, "key": key, "importance": np.abs(value), "value": value + noise,
            }))  # fmt: skip
        group = max(20, max(table.num_rows for table in tables) // 1500)
        yield Join(name, *tables, own.window, group, "value", span // 4 + 1, "30%", "10%")


def _arrivals(rng: np.random.Generator, rate: np.ndarray, rows: int) -> pa.Table:
    """Return a stream whose rate changes in equal parts of its time."""
    part = np.sort(rng.choice(rate.size, rows, p=rate / rate.sum()))
    ts = part * (rows // rate.size) + rng.integers(0, rows // rate.size, rows)
    frequency = 1 / np.arange(1, 201) ** 0.8
    return pa.table(
        {
            "ts": np.sort(ts),
            "key": rng.choice(200, rows, p=frequency / frequency.sum()),
            "importance": rng.pareto(3, rows) + 1,
            "value": rng.normal(10, 3, rows),
        }
    )


def generated(rows: int = 400_000) -> Iterator[Join]:
    """Yield joins whose rate is steady, drifts, comes in bursts or has a period."""
    at, parts = np.arange(2000), 2000
    for name in ("steady", "drifting", "bursty", "periodic", HIDDEN):
        rng = np.random.default_rng(5)
        rate = np.ones(parts)
        if name == "drifting":
            rate = 1 + 9 * at / parts
        elif name == "bursty":  # half of all candidate pairs in 1 % of the time
            rate[rng.choice(parts, parts // 100, replace=False)] = 10.0
        elif name == "periodic":
            rate = 1 + 0.9 * np.sin(2 * np.pi * at / 50)
        left, right = (_arrivals(rng, rate, rows) for _ in range(2))
        if name == HIDDEN:
            left, right = (_hot(rng, own, rows) for own in (left, right))
        yield Join(name, left, right, 50, 200, "value", rows // 4, "20%", "3%")


def _hot(rng: np.random.Generator, table: pa.Table, rows: int) -> pa.Table:
    """Give one key to most tuples of a few stretches: no row more, ten times the outputs."""
    key, ts = table["key"].to_numpy().copy(), table["ts"].to_numpy()
    hot = np.zeros(2000, bool)
    hot[np.random.default_rng(9).choice(2000, 12, replace=False)] = True
    those = hot[np.minimum(ts // (rows // 2000), 1999)] & (rng.random(rows) < 0.7)
    key[those] = 0
    return table.set_column(1, "key", pa.array(key))


def texts(join: Join) -> list[str]:
    """Return the aggregates of a join."""
    return [
        "count", "sum(importance)", f"avg(left.{join.value})", f"count every {join.every}",
    ]  # fmt: skip


class Tally:
    """How often intervals of one kind cover."""

    def __init__(self) -> None:
        self.all = self.some = self.covered = self.together = 0
        self.widths: list[float] = []

    def add(self, own: pa.Table, exact: pa.Table) -> None:
        """Count the intervals of one estimate."""
        hits = []
        true = {line["window_begin"]: line["estimate"] for line in exact.to_pylist()}
        for line in own.to_pylist():
            truth = true[line["window_begin"]]
            if not truth:
                continue
            self.all += 1
            if line["low"] is None:
                continue
            slack = 1e-9 * abs(truth)
            hits.append(line["low"] - slack <= truth <= line["high"] + slack)
            self.widths.append((line["high"] - line["low"]) / 2 / abs(truth))
        self.some += len(hits)
        self.covered += sum(hits)
        self.together += all(hits)

    def found(self, seeds: int, exact: int) -> dict[str, float | None]:
        """Return shares: of intervals that cover, of seeds that are right, of none.

        A seed is right if all of its intervals cover, or if everything was joined.
        """
        return {
            "covered": self.covered / self.some if self.some else None,
            "right": (self.together + exact) / seeds,
            "none": 1 - self.some / self.all if self.all else None,
            "width": float(np.median(self.widths)) if self.widths else None,
        }


def coverage(join: Join, seeds: int, folder: Path) -> dict[str, Any]:
    """Estimate a join with many seeds."""
    for side, table in (("left", join.left), ("right", join.right)):
        pq.write_table(table, folder / f"{side}.parquet", row_group_size=join.group)
    given: dict[str, Any] = {
        "left": folder / "left.parquet", "right": folder / "right.parquet", "on": "key",
        "time": "ts", "importance": "importance", "window": join.window,
    }  # fmt: skip
    asked = texts(join)
    truth = winnow.estimate(**given, aggregates=asked, within=1e-9)
    outputs = truth.aggregates["count"]["estimate"][0].as_py()
    found: dict[str, Any] = {"outputs": outputs, "seeds": seeds}
    kinds: dict[str, tuple[list[str], dict[str, Any]]] = {
        f"read {join.share}": (asked, {"read": join.share}),
        f"within {join.within}": (asked[:1], {"within": join.within}),
    }
    if join.name == HIDDEN:
        for sizes in ("keys", "auto"):
            kinds[f"read 40%, sizes {sizes}"] = asked, {"read": "40%", "sizes": sizes}
            kinds[f"within 5%, sizes {sizes}"] = asked[:1], {"within": "5%", "sizes": sizes}
    plan.SMALL = 0  # also of what is joined sooner than a sample of it
    for kind, (names, how) in kinds.items():
        executor = Remembering()
        tallies = {name: Tally() for name in names}
        shares, exact = [], 0
        for own in estimates({**given, "aggregates": names, **how}, seeds, executor):
            shares.append(own.share)
            exact += own.whole
            if own.whole:
                continue
            for name, tally in tallies.items():
                tally.add(own.tables[name], truth.aggregates[name])
        found[kind] = {
            "share_read": float(np.median(shares)),
            "joined_exactly": exact / seeds,
            **{name: tally.found(seeds, exact) for name, tally in tallies.items()},
        }
        print(join.name, kind, json.dumps(found[kind], default=str), flush=True)
    return found


def compared(rows: int, folder: Path) -> dict[str, Any]:
    """Return what the count costs, and its error: by estimates, samples, and exact joins.

    In processor seconds, which other work on the machine hardly changes.
    """
    given = {**written("even", rows, 1000, folder), "window": 200}
    winnow.estimate(**given, read="2%")  # compiles
    took, own = measured(lambda: winnow.estimate(**given, within=1e-9))
    truth = own.aggregates["count(*)"]["estimate"][0].as_py()
    found: dict[str, Any] = {"rows": rows, "exact by winnow estimate": [took["processor"], 0.0]}

    def repeated(name: str, run: Callable[[int, Path], float], seeds: int) -> None:
        runs = []
        for seed in range(seeds):
            with tempfile.TemporaryDirectory() as cache:
                took, value = measured(lambda seed=seed, cache=cache: run(seed, Path(cache)))
                runs.append((took["processor"], abs(value - truth) / truth))
        found[name] = np.median(runs, axis=0).tolist()
        print(name, found[name], flush=True)

    def estimated(seed: int, read: str) -> float:
        table = winnow.estimate(**given, read=read, seed=seed).aggregates["count(*)"]
        return float(table["estimate"][0].as_py())

    def sampled(seed: int, memory: str, cache: Path) -> float:
        report = winnow.sample(
            count_only=True, **given, memory=memory, seed=seed, cache=cache
        ).report
        return float(report["estimates"]["outputs"]["estimate"])

    for read in ("2%", "5%", "10%", "20%", "40%"):
        repeated(f"estimate {read}", lambda seed, _, read=read: estimated(seed, read), 15)
    sampled(0, "5%", folder / "cache")  # compiles
    for memory in ("5%", "20%", "50%"):
        repeated(f"sample {memory}", lambda seed, at, memory=memory: sampled(seed, memory, at), 3)

    def exact(_: int, cache: Path) -> float:
        report = winnow.replay(count_only=True, **given, cache=cache).report
        return float(report["exact"]["outputs"])

    repeated("exact by winnow replay", exact, 1)
    return found


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw cost against error."""
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axis = figure.subplots()
    looks = (("estimate", "#0072B2", "read"), ("sample", "#D55E00", "memory"))
    for kind, colour, what in looks:
        points = {name: own for name, own in found.items() if name.startswith(f"{kind} ")}
        seconds, errors = np.array([*points.values()]).T
        label = f"winnow {kind} ({what})"
        axis.loglog(seconds, 100 * errors, "o-", color=colour, label=label)
        for name, (x, y) in points.items():
            place = (x, 100 * y)
            axis.annotate(name.split(" ")[1], place, (4, 4), textcoords="offset points", fontsize=8)
    for name, line in (("exact by winnow estimate", ":"), ("exact by winnow replay", "--")):
        axis.axvline(found[name][0], color="#222222", linestyle=line, label=name)
    for own in (axis.xaxis, axis.yaxis):
        own.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        own.set_major_formatter("{x:g}")
        own.set_minor_formatter("")
    axis.margins(x=0.1)
    axis.set_xlabel("processor seconds, from Parquet to the answer")
    axis.set_ylabel("median error of the count (%)")
    axis.grid(visible=True, color="#DDDDDD", linewidth=0.6)
    axis.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--only", nargs="*", help="names of joins, compared or untuned")
    parser.add_argument("--json", type=Path, default=PLACE)
    given = parser.parse_args()
    found: dict[str, Any] = {"versions": versions()}
    if given.only and given.json.exists():
        found = json.loads(given.json.read_text()) | found
    joins = found.setdefault("coverage", {})
    for join in (*real(), *generated()):
        if not given.only or join.name in given.only:
            with tempfile.TemporaryDirectory() as folder:
                joins[join.name] = coverage(join, given.seeds, Path(folder))
    if not given.only or "untuned" in given.only:
        others = found.setdefault("untuned", {})
        for join in untuned():
            with tempfile.TemporaryDirectory() as folder:
                others[join.name] = coverage(join, given.seeds, Path(folder))
    if not given.only or "compared" in given.only:
        with tempfile.TemporaryDirectory() as folder:
            found["compared"] = compared(2_000_000, Path(folder))
        draw(found["compared"], PLOT)
    write(given.json, found)


if __name__ == "__main__":
    main()
