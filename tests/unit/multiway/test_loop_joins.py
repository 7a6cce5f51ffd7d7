"""All algorithms of P3 beside the oracle: outputs and every counter."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

import naive_multijoin as naive
import numpy as np
import pytest
from multiway_cases import MEETS, PREDICATES, LoopsResult, random_streams, run_method, values

from engine.multiway.loops.method import METHODS, LoopsSettings
from engine.multiway.loops.run import LoopsRun
from engine.multiway.streams import MultiStreams, Windows, windows_of
from engine.runtime.jit import FOREVER

HASHED = {name for name, method in METHODS.items() if method.hashed != "none"}
COUNTERS = ("comparisons", "visits", "insertions", "expirations", "accesses", "peak")


def ref(
    streams: MultiStreams, windows: Windows, kind: str, *, graph: str, **options: Any
) -> naive.Run:
    """Return what the oracle says."""
    given = []
    for stream, attributes in enumerate(values(streams, kind)):
        part = streams.part(stream)
        columns = (streams.ts[part], streams.row[part], attributes, streams.importance[part])
        lines = zip(*(c if isinstance(c, list) else c.tolist() for c in columns), strict=True)
        given.append([naive.Tuple(*line) for line in lines])
    flags = zip(windows.size.tolist(), windows.by_rows.tolist(), strict=True)
    sizes = [("rows" if rows else "ticks", size) for size, rows in flags]
    options.setdefault("order", list(range(streams.number)))
    equal = kind == "equi"
    return naive.run(
        options.pop("method"), given, sizes, MEETS[kind], graph, transitive=equal, **options
    )


def comp(streams: MultiStreams, windows: Windows, kind: str, **options: Any) -> LoopsResult:
    """Return what ours says."""
    return run_method(streams, windows, PREDICATES[kind], **options)


def assert_same(streams: MultiStreams, expected: naive.Run, found: LoopsResult) -> None:
    """Hold rows, times, importance and every counter equal."""
    rows = found.members - streams.first[:-1]
    ours = sorted(
        zip(found.ts.tolist(), map(tuple, rows.tolist()), found.importance.tolist(), strict=True)
    )
    assert ours == [(ts, members, importance) for members, ts, importance in expected.outputs]
    counters = found.counters
    assert counters.outputs == len(expected.outputs)
    assert counters.importance == math.fsum(importance for _, _, importance in expected.outputs)
    for name in COUNTERS:
        assert getattr(counters, name) == getattr(expected, name), name
    delays = expected.delays
    assert counters.mean_delay == (sum(delays) / len(delays) if delays else 0.0)
    assert counters.max_delay == max(delays, default=0)


def both(streams: MultiStreams, windows: Windows, kind: str, **options: Any) -> int:
    """Compare; return how many outputs there are."""
    expected = ref(streams, windows, kind, **options)
    assert_same(streams, expected, comp(streams, windows, kind, **options))
    return len(expected.outputs)


def options_of(rng: np.random.Generator, method: str, streams: int) -> dict[str, Any]:
    """Return random options that fit a method."""
    options: dict[str, Any] = {"method": method}
    if method == "general-lazy-nlj":
        if rng.integers(4):
            options["orders"] = [rng.permutation(streams).tolist() for _ in range(streams)]
    elif rng.integers(4):
        options["order"] = rng.permutation(streams).tolist()
    if METHODS[method].lazy:
        options["tau"] = int(rng.integers(1, 20))
        options["expire_every"] = int(rng.choice([0, 1, 2, 3])) * options["tau"]
        if options["expire_every"]:
            options["expire_every"] += int(rng.integers(0, 4))
    else:
        options["expire_every"] = int(rng.choice([0, 0, 1, 7, 25]))
    if method in HASHED:
        options["buckets"] = rng.integers(1, 6, streams).tolist()
        if method == "hybrid":
            options["buckets"][int(rng.integers(streams))] = None
    if rng.integers(2):
        options["start_ts"] = int(rng.integers(0, 40))
    options["combine"] = str(rng.choice(naive.COMBINES))
    return options


def random_windows(rng: np.random.Generator, streams: int) -> Windows:
    """Return windows of ticks and of rows, from nothing to more than there is."""
    by_rows = rng.integers(0, 3, streams) == 0
    ticks, rows = rng.choice([0, 3, 12, 100], streams), rng.choice([0, 1, 3, 50], streams)
    return windows_of(np.where(by_rows, rows, ticks).tolist(), by_rows.tolist())


CASES = [
    (name, kind) for name in METHODS for kind in PREDICATES if name not in HASHED or kind == "equi"
]


@pytest.mark.parametrize(("method", "kind"), CASES)
def test_equals_oracle(method: str, kind: str) -> None:
    outputs = 0
    for seed in range(24):
        rng = np.random.default_rng([seed, CASES.index((method, kind))])
        number = 2 + seed % 4
        most = {2: 40, 3: 16, 4: 9, 5: 6}[number]
        sizes = rng.integers(0 if seed % 5 == 0 else most // 2, most + 1, number).tolist()
        streams = random_streams(seed, sizes, kind, span=int(rng.choice([5, 40, 90])), distinct=3)
        options = options_of(rng, method, number)
        graph = "star" if seed % 3 == 0 else "clique"
        outputs += both(streams, random_windows(rng, number), kind, graph=graph, **options)
    assert outputs > 20


@pytest.mark.parametrize("method", METHODS)
def test_streams_without_tuples(method: str) -> None:
    options = options_of(np.random.default_rng(3), method, 3) | {"start_ts": None}
    for sizes in ([0, 0, 0], [9, 0, 4], [0, 0, 5], [0, 6, 5]):
        streams = random_streams(1, sizes, "equi", span=20, distinct=1)
        assert both(streams, windows_of([9, 9, 9]), "equi", graph="clique", **options) == 0


@pytest.mark.parametrize("method", METHODS)
def test_all_at_one_time(method: str) -> None:
    streams = random_streams(7, [5, 4, 6], "equi", span=0, distinct=1)
    for sizes, rows in (([0, 0, 0], [False] * 3), ([2, 0, 3], [True, False, True])):
        options = options_of(np.random.default_rng(5), method, 3) | {"start_ts": None}
        assert both(streams, windows_of(sizes, rows), "equi", graph="clique", **options) > 20


@pytest.mark.parametrize("method", METHODS)
def test_windows_without_end_and_times_and_codes_below_zero(method: str) -> None:
    streams = random_streams(2, [9, 8, 7], "equi", distinct=6)
    ts = streams.ts - 10**15
    codes = streams.attributes.code - 3
    streams = streams._replace(ts=ts, attributes=streams.attributes._replace(code=codes))
    windows = windows_of([2**62, 2**62, 2**62], [False, False, True])
    options = options_of(np.random.default_rng(6), method, 3) | {"start_ts": None}
    assert both(streams, windows, "equi", graph="clique", **options) > 5


@pytest.mark.parametrize(
    ("hashed", "scanned"), [("eager-hash", "eager-nlj"), ("lazy-hash", "lazy-nlj")]
)
def test_one_bucket_is_a_scan(hashed: str, scanned: str) -> None:
    streams, windows = random_streams(4, [60, 50, 40], "equi"), windows_of([12, 9, 5])
    tau = 4 if METHODS[hashed].lazy else None
    one = comp(streams, windows, "equi", method=hashed, tau=tau, buckets=1)
    other = comp(streams, windows, "equi", method=scanned, tau=tau)
    assert one.counters == other.counters
    assert one.members.tolist() == other.members.tolist()


def test_new_tuples_first_are_an_order_of_the_general_loops() -> None:
    streams, windows = random_streams(4, [60, 50, 40], "band"), windows_of([12, 9, 5])
    one = comp(streams, windows, "band", method="lazy-nlj", tau=4)
    other = comp(streams, windows, "band", method="general-lazy-nlj", tau=4)
    new = int(streams.ts.size)
    assert one.members.tolist() == other.members.tolist()
    assert one.counters == other.counters._replace(visits=other.counters.visits - new)


@pytest.mark.parametrize("method", METHODS)
def test_parts_are_the_whole(method: str) -> None:
    streams, windows = random_streams(9, [30, 20, 25], "equi"), windows_of([20, 9, 15])
    options = options_of(np.random.default_rng(9), method, 3)
    whole = comp(streams, windows, "equi", **options)
    assert whole.ts.size > 100
    combine, start_ts = options.pop("combine"), options.pop("start_ts", None)
    settings = LoopsSettings(**options)
    for rows in (1, 7, whole.ts.size, 10_000):
        run = LoopsRun(
            streams, windows, PREDICATES["equi"], settings, combine=combine, start_ts=start_ts
        )
        parts = [part.members.tolist() for part in run.parts(rows)]
        assert max(map(len, parts)) <= rows
        assert list(chain.from_iterable(parts)) == whole.members.tolist()
        assert run.counters == whole.counters
    run = LoopsRun(
        streams, windows, PREDICATES["equi"], settings, combine=combine, start_ts=start_ts
    )
    ends = [*range(0, 70, 7), FOREVER]
    parts = [part.members.tolist() for end in ends for part in run.parts(5, end)]
    assert list(chain.from_iterable(parts)) == whole.members.tolist()
    assert run.counters == whole.counters
    counted = comp(
        streams, windows, "equi", emit=False, combine=combine, start_ts=start_ts, **options
    )
    assert counted.members.shape == (0, 3)
    assert counted.counters == whole.counters
