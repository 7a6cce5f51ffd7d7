"""What a harvested join takes on the wall clock, over what the exact join takes.

    python benchmarks/harvest_cost.py [--tuples 100000] [--kinds band equi]

Three streams, 100 tuples a second each, windows of 20 s, matches 0, 5 and 15 s behind the first
stream's; band, equality and cosine predicates, of vectors 64 wide a quarter as many tuples; and
half as many vectors 128 wide in windows of 200 s, which are 20,000 tuples. Bands of even values
have their matches everywhere, the others most of them where a harvest looks first. Both joins make
their outputs in memory, on all cores, warm; the harvested one learns and adapts every 5 s, with a
fixed throttle fraction and with a capacity of that fraction of what the whole join costs. Every
output of it is one of the exact join's. Times, by the clock and on the CPU of all cores, are
medians of five alternating runs, of long windows three.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from reproduce.record import about, write

from engine.exact.checks import thread_count
from engine.multiway.exact.join import ExactJoin
from engine.multiway.harvest.operator import GrubJoin
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, no_attributes, windows_of
from engine.runtime.jit import Ints

RESULTS = Path(__file__).resolve().parent / "results" / "harvest_cost.json"
LAGS, DEVIATIONS = (0, 5_000, 15_000), (2, 2, 50)
WINDOW, BASIC, ADAPT = 20_000, 2_000, 5_000
"""Ticks of a millisecond."""
THROTTLES = (0.1, 0.25, 0.5)
ASKED = {0.1: 0.4, 0.25: 0.5, 0.5: 0.75}
ASKED_OF_VECTORS = {0.1: 0.2, 0.25: 0.35, 0.5: 0.6}
"""`ASKED`, `ASKED_OF_VECTORS`: The most time, over the exact join's."""
NEAR = 0.1
"""Of vectors, how many lie near the one that drifts."""


class Work(NamedTuple):
    """A join, and how much of it is measured."""

    predicate: Predicate
    width: int = 0
    """Of vectors."""
    window: int = WINDOW
    part: int = 1
    """Of the tuples asked for, one in so many."""
    repeats: int = 5
    drifts: bool = True
    """Whether values follow the time, so that those who match are some time behind."""


WORKS = {
    "band": Work(Predicate("band", ("v",), 1.0)),
    "band, even": Work(Predicate("band", ("v",), 2.0), drifts=False),
    "equi": Work(Predicate("equi", ("k",))),
    "vectors": Work(Predicate("cosine", ("v",), 0.8), 64, part=4),
    "vectors, long windows": Work(
        Predicate("cosine", ("v",), 0.8), 128, 10 * WINDOW, part=2, repeats=3
    ),
}
ORDERS = [[1, 2], [0, 2], [0, 1]]


def streams_of(work: Work, tuples: int, seed: int) -> MultiStreams:
    """Return three streams whose attributes drift in the same way, each some time behind."""
    rng = np.random.default_rng(seed)
    span = 10 * tuples
    ts = np.concatenate([np.sort(rng.integers(0, span, tuples)) for _ in LAGS])
    lag, deviation = np.repeat(LAGS, tuples), np.repeat(DEVIATIONS, tuples)
    at = (ts - lag) / 1000.0
    own = no_attributes(ts.size)
    if not work.drifts:
        own = own._replace(value=rng.uniform(0.0, 1000.0, (ts.size, 1)))
    elif work.predicate.kind == "band":
        value = (20.0 * at) % 1000.0 + deviation * rng.standard_normal(ts.size)
        own = own._replace(value=value[:, None] % 1000.0)
    elif work.width:
        value = rng.standard_normal((ts.size, work.width))
        some = rng.random(ts.size) < NEAR
        drifting = rng.standard_normal((span // 1000 + 1, work.width))
        value[some] = 0.3 * value[some] + drifting[np.maximum(at[some], 0).astype(np.int64)]
        own = own._replace(value=value)
    else:
        drifting = np.floor(at).astype(np.int64) % 500
        code = np.where(rng.random(ts.size) < 0.3, drifting, rng.integers(0, 500, ts.size))
        own = own._replace(code=code)
    row = np.tile(np.arange(tuples), len(LAGS))
    first = np.arange(len(LAGS) + 1) * tuples
    return MultiStreams(first, ts, row, np.ones(ts.size), own)


def places(parts: Any) -> Ints:  # noqa: ANN401 - outputs of either join
    """Return the members of all outputs, (n, m), sorted."""
    members = np.concatenate([part.members for part in parts])
    return members[np.lexsort(members.T)]


def is_part(some: Ints, whole: Ints) -> bool:
    """Return whether every row is among others."""
    kind = np.dtype((np.void, 8 * some.shape[1]))
    one, other = (np.ascontiguousarray(own).view(kind).ravel() for own in (some, whole))
    return bool(np.isin(one, other).all())


def compared(kind: str, tuples: int, seed: int) -> list[dict[str, Any]]:
    """Return the times of both joins by throttle fraction."""
    work = WORKS[kind]
    streams = streams_of(work, tuples // work.part, seed)
    windows, predicate = windows_of([work.window] * len(LAGS)), work.predicate
    asked = ASKED_OF_VECTORS if work.width else ASKED

    def exact() -> Any:  # noqa: ANN401
        return ExactJoin(streams, windows, predicate, threads=thread_count(None)).outputs()

    def harvested(**given: Any) -> GrubJoin:  # noqa: ANN401
        settings = HarvestSettings(BASIC, adapt_every=ADAPT, per_second=1000.0, **given)
        return GrubJoin(streams, windows, predicate, settings, ORDERS)

    whole, full = places(exact()), harvested(throttle=1.0)
    for _ in full.run():
        pass
    rate = full.comparisons / ((streams.ts.max() - streams.ts.min()) / 1000.0)
    lines = []
    for throttle in THROTTLES:
        ways: dict[str, dict[str, Any]] = {
            "throttle": {"throttle": throttle}, "capacity": {"capacity": throttle * rate}
        }  # fmt: skip
        outputs = {"exact": len(whole)}
        for way, given in ways.items():
            found = places(harvested(**given).run())
            outputs[way] = len(found)
            if not is_part(found[:: max(1, len(found) // 100_000)], whole):
                raise AssertionError(f"{kind}: an output with {given} is none of the exact's")
        seconds: dict[str, list[float]] = {name: [] for name in outputs}
        worked: dict[str, list[float]] = {name: [] for name in outputs}
        for _ in range(work.repeats):
            for name, number in outputs.items():
                join = exact() if name == "exact" else harvested(**ways[name]).run()
                begun, spent = time.perf_counter(), time.process_time()
                made = sum(part.importance.size for part in join)
                seconds[name].append(time.perf_counter() - begun)
                worked[name].append(time.process_time() - spent)
                if made != number:
                    raise AssertionError(f"{kind}: {name} has {made} outputs now")
        taken = {name: statistics.median(own) for name, own in seconds.items()}
        cpu = {name: statistics.median(own) for name, own in worked.items()}
        for way in ways:
            lines.append({
                "predicate": predicate.text, "width": work.width, "window": work.window // 1000,
                "by": way, "throttle": throttle, "exact": taken["exact"], "harvested": taken[way],
                "ratio": taken[way] / taken["exact"], "asked": asked[throttle],
                "outputs": len(whole), "recall": outputs[way] / len(whole),
                "cpu_seconds": {"exact": cpu["exact"], "harvested": cpu[way]},
            })  # fmt: skip
            print(
                f"{kind:10s} {way} {throttle:4}: exact {taken['exact']:.3f} s, harvested "
                f"{taken[way]:.3f} s, ratio {taken[way] / taken['exact']:.2f} (asked "
                f"{asked[throttle]}), recall {100 * outputs[way] / len(whole):.1f} %, on the CPU "
                f"{cpu['exact']:.3f} and {cpu[way]:.3f} s",
                flush=True,
            )
    return lines


def main() -> None:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tuples", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", default=list(WORKS), choices=WORKS)
    given = parser.parse_args()
    lines = [line for kind in given.kinds for line in compared(kind, given.tuples, given.seed)]
    if given.tuples >= 100_000 and given.kinds == list(WORKS):
        write(RESULTS, {"about": about(), "tuples": given.tuples, "lines": lines})


if __name__ == "__main__":
    main()
