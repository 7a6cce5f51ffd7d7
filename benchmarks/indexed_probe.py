"""P4 7: harvested joins that scan their basic windows, and that probe indexes on them.

Each join runs with throttle fractions of its own cost: an index costs less, and the join spends the
rest on other basic windows. So outputs are equal only at throttle fraction 1, where this is
checked; elsewhere they are reported together with the comparisons. One thread each.

Run: python benchmarks/indexed_probe.py [--out FILE]
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from reproduce.record import commit, write

from engine.generate.lagged_gaussian import LaggedGaussianSpec, lagged_gaussian_sources
from engine.generate.source import in_memory
from engine.generate.zipf import ZipfSpec, zipf_sources
from engine.multiway.harvest.cpu_prober import CpuProber
from engine.multiway.harvest.indexed_prober import IndexedProber
from engine.multiway.harvest.layout import HarvestRules, ReadPlan
from engine.multiway.harvest.operator import GrubJoin
from engine.multiway.harvest.prober import Prober
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.predicate import Predicate
from engine.multiway.streams import Attributes, MultiStreams, no_attributes, windows_of

RESULTS = Path(__file__).resolve().parent / "results" / "indexed_probe.json"
SECOND = 10**6
RATE, LENGTH, WINDOW, BASIC, ADAPT = 300, 20, 10, 1, 2
LAGS = (0.0, 2.5, 7.5)
"""Seconds: half of P4's, as the windows are."""
ORDERS = [[1, 2], [0, 2], [0, 1]]
THROTTLES = (1.0, 0.5, 0.1)
DOMAIN = 5000
SETS_RATE, WORDS, ITEMS, SHARED = 60, 1000, 8, 2.0
Results = dict[str, Any]


def streams_of(ts: list[Any], attributes: Callable[[int], Attributes]) -> MultiStreams:
    """Return streams of unit importance from their times."""
    sizes = [own.size for own in ts]
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    row = np.concatenate([np.arange(size) for size in sizes])
    n = int(first[-1])
    return MultiStreams(first, np.concatenate(ts), row, np.ones(n), attributes(n))


def gaussian() -> tuple[MultiStreams, Predicate]:
    """Return P4 6.2's lagged streams and epsilon-join."""
    spec = LaggedGaussianSpec(LENGTH, (RATE,), lags=LAGS, arrivals="exponential", seed=1)
    tables = in_memory(lagged_gaussian_sources(spec))
    value = np.concatenate([table["value"].to_numpy() for table in tables]).reshape(-1, 1)
    streams = streams_of(
        [table["ts"].to_numpy() for table in tables],
        lambda n: no_attributes(n)._replace(value=value),
    )
    return streams, Predicate("band", ("value",), 1.0)


def regular(rate: int) -> list[Any]:
    """Return the times of three streams."""
    own = np.arange(rate * LENGTH, dtype=np.int64) * (SECOND // rate)
    return [own, own + 7, own + 13]


def zipf() -> tuple[MultiStreams, Predicate]:
    """Return a stream of Zipf-distributed keys, and two of uniform ones."""
    rows = RATE * LENGTH
    left, right = in_memory(zipf_sources(ZipfSpec(rows, DOMAIN, seed=1)))
    _, third = in_memory(zipf_sources(ZipfSpec(rows, DOMAIN, seed=2)))
    code = np.concatenate([table["key"].to_numpy() for table in (left, right, third)])
    streams = streams_of(regular(RATE), lambda n: no_attributes(n)._replace(code=code))
    return streams, Predicate("equi", ("key",))


def words() -> tuple[MultiStreams, Predicate]:
    """Return sets of words, the frequent ones as frequent as Zipf's law (0.5) has them."""
    rng = np.random.default_rng(1)
    p = np.arange(1, WORDS + 1) ** -0.5
    n = 3 * SETS_RATE * LENGTH
    sets = [np.unique(rng.choice(WORDS, ITEMS, p=p / p.sum())) for _ in range(n)]
    first = np.concatenate([[0], np.cumsum([own.size for own in sets])]).astype(np.int64)
    item = np.concatenate(sets).astype(np.int64)
    attributes = no_attributes(n)._replace(first=first, item=item, weight=np.ones(item.size))
    return streams_of(regular(SETS_RATE), lambda _: attributes), Predicate(
        "inner", ("words",), SHARED
    )


def run(streams: MultiStreams, predicate: Predicate, probe: str, throttle: float) -> Results:
    """Run a join; return its time and what it is counted."""
    settings = HarvestSettings(
        basic_window=BASIC * SECOND, throttle=throttle, per_second=SECOND,
        adapt_every=ADAPT * SECOND, probe=probe,
    )  # fmt: skip
    make = partial(_prober, settings)
    begun = time.perf_counter()
    join = GrubJoin(
        streams, windows_of([WINDOW * SECOND] * 3), predicate, settings,
        ORDERS, emit=False, prober=make,
    )  # fmt: skip
    for _ in join.run():
        pass
    return {
        "seconds": time.perf_counter() - begun,
        "comparisons": join.comparisons,
        "outputs": join.outputs,
    }


def _prober(
    settings: HarvestSettings,
    streams: MultiStreams,
    rules: HarvestRules,
    predicate: Predicate,
    whole: ReadPlan,
) -> Prober:
    if settings.probe == "index":
        return IndexedProber(streams, rules, predicate, whole, settings.basic_window, 1)
    return CpuProber(streams, rules, predicate, whole, 1)


def measured() -> Results:
    """Return the figures of all joins."""
    found: Results = {}
    for name, make in (("band", gaussian), ("equi", zipf), ("inner", words)):
        streams, predicate = make()
        found[name] = {}
        for throttle in THROTTLES:
            both = {}
            for probe in ("scan", "index"):
                if throttle == THROTTLES[0]:
                    run(streams, predicate, probe, 0.01)  # compiles
                both[probe] = run(streams, predicate, probe, throttle)
            if throttle == 1 and both["scan"]["outputs"] != both["index"]["outputs"]:
                raise AssertionError(f"{name}: outputs are not equal: {both}")
            found[name][f"{throttle:g}"] = both
    return found


def table(found: Results) -> str:
    """Return the figures as a table."""
    lines = [
        "| join | z | scan s | index s | scan comparisons | index | scan outputs | index |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, own in found.items():
        for throttle, both in own.items():
            scan, index = both["scan"], both["index"]
            cells = [name, throttle, f"{scan['seconds']:.2f}", f"{index['seconds']:.2f}"]
            for what in ("comparisons", "outputs"):
                cells += [f"{scan[what]:,}", f"{index[what]:,}"]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    found = measured()
    machine = {"cpu_count": os.cpu_count(), "machine": platform.machine()}
    versions = {"numba": numba.__version__, "python": platform.python_version()}
    result = {
        "commit": commit(), "provisional": "the machine was busy with other work",
        "environment": machine | versions, "joins": found,
    }  # fmt: skip
    write(args.out, result)
    print(table(found))


if __name__ == "__main__":
    main()
