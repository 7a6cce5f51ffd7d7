"""Exact joins of vectors against FAISS, NumPy by hand, and the machine's own matrix products.

R and S have N vectors each, float32, arriving in turns; pairs with a cosine of T or more match if
they are at most W arrivals of the other stream apart. A tenth of S are neighbours of vectors of R.

- *sgemm*: products of square matrices, and of the size of our tiles, with a BLAS of one thread on
  each of the threads. Our share of it counts the multiplications of pairs within the window alone.
- *faiss*: `IndexFlatIP.range_search`, batch by batch of R over the S within its windows, of several
  sizes of batch; what is outside a tuple's own window is left out afterwards.
- *numpy*: for every arrival a product with the vectors in its window, on one thread; of so many
  arrivals as take a moment, and scaled to all.

Answers are compared first: all pairs of ours and FAISS's. Medians of the runs, which take turns.

    python benchmarks/vectors.py --scale 0.1 --repeat 3 --json vectors.json
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from reproduce.record import write

from engine.multiway.exact import ExactJoin
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, Windows, no_attributes, windows_of
from engine.runtime.blas import one_blas_thread

SAMPLE = 400  # arrivals that NumPy joins


class Data(NamedTuple):
    """Vectors of length 1 of both streams, and how many of the other a window has."""

    r: np.ndarray
    s: np.ndarray
    window: int
    bound: float


def make(size: int, width: int, window: int, bound: float) -> Data:
    """Draw the streams, the same for the same sizes."""
    rng = np.random.default_rng(20240607)
    r, s = (rng.standard_normal((size, width), dtype=np.float32) for _ in range(2))
    some = rng.choice(size, size // 10, replace=False)
    s[some] = r[some] + 0.4 * s[some]
    r, s = (own / np.linalg.norm(own, axis=1, keepdims=True) for own in (r, s))
    return Data(r, s, window, bound)


def within(data: Data, begin: int, end: int) -> tuple[int, int]:
    """Return which S are in the windows of R from `begin` to `end`, or these in theirs."""
    return max(0, begin - data.window), min(len(data.s), end - 1 + data.window)


def streams_of(data: Data) -> tuple[MultiStreams, Windows]:
    """Return both streams with float64 attributes, and their windows."""
    n = len(data.r)
    ts = np.concatenate([np.arange(n) * 2, np.arange(n) * 2 + 1])  # in turns, R first
    value = np.concatenate([data.r, data.s]).astype(np.float64)
    streams = MultiStreams(
        np.array([0, n, 2 * n]), ts, np.tile(np.arange(n), 2), np.ones(2 * n),
        no_attributes(2 * n)._replace(value=value),
    )  # fmt: skip
    return streams, windows_of([2 * data.window - 1] * 2)


def ours(data: Data, threads: int) -> tuple[Callable[[], int], Callable[[], np.ndarray]]:
    """Return functions that count and list our pairs."""
    streams, windows = streams_of(data)
    predicate = Predicate("cosine", ("v",), data.bound)

    def join() -> ExactJoin:
        return ExactJoin(streams, windows, predicate, threads=threads)

    def listed() -> np.ndarray:
        return np.concatenate([*join().members(), np.zeros((0, 2), np.int64)]) - [0, len(data.r)]

    return lambda: join().count().outputs, listed


def by_faiss(data: Data, batch: int, threads: int) -> Iterator[np.ndarray]:
    """Yield the pairs of each batch of R."""
    import faiss  # noqa: PLC0415 - of the bench extra

    faiss.omp_set_num_threads(threads)
    for begin in range(0, len(data.r), batch):
        end = min(begin + batch, len(data.r))
        low, high = within(data, begin, end)
        index = faiss.IndexFlatIP(data.s.shape[1])
        index.add(data.s[low:high])
        least = np.nextafter(np.float32(data.bound), np.float32(0))  # greater is what it returns
        ends, _, other = index.range_search(data.r[begin:end], least)
        r = np.repeat(np.arange(begin, end), np.diff(ends).astype(np.int64))
        s = other + low
        good = (s >= r - data.window) & (s < r + data.window)
        yield np.stack([r[good], s[good]], axis=1)


def by_hand(data: Data) -> float:
    """Return the seconds of NumPy, a product an arrival, scaled to all arrivals of both."""
    n, w = len(data.r), data.window
    picked = np.linspace(0, n - 1, min(SAMPLE, n)).astype(np.int64).tolist()
    begin = time.perf_counter()
    for i in picked:
        for own, other, last in ((data.r, data.s, i), (data.s, data.r, i + 1)):
            first = max(0, last - w)
            np.flatnonzero(other[first:last] @ own[i] >= data.bound)
    return (time.perf_counter() - begin) * n / len(picked)


def pairs_within(data: Data) -> int:
    """Return how many pairs are within the windows."""
    row = np.arange(len(data.r))
    return int((np.minimum(row + data.window, len(row)) - np.maximum(row - data.window, 0)).sum())


def sgemm(shape: tuple[int, int, int], threads: int, seconds: float) -> float:
    """Return multiplications and additions a second of matrix products, on all threads."""
    m, n, k = shape

    def one(seed: int) -> int:
        rng = np.random.default_rng(seed)
        a, b = rng.random((m, k), np.float32), rng.random((n, k), np.float32)
        out = np.empty((m, n), np.float32)
        done, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            np.matmul(a, b.T, out=out)
            done += 1
        return done

    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        begin = time.perf_counter()
        done = sum(pool.map(one, range(threads)))
        return 2.0 * m * n * k * done / (time.perf_counter() - begin)


def timed(work: Callable[[], Any]) -> float:
    """Return the seconds of a call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Compare, measure, and return all figures."""
    size, window = int(200_000 * args.scale), int(20_000 * args.scale)
    data = make(size, args.width, window, args.bound)
    count, listed = ours(data, args.threads)

    def faiss_pairs(batch: int) -> np.ndarray:
        return np.concatenate([*by_faiss(data, batch, args.threads)])

    batches = [int(batch) for batch in args.batches.split(",")]
    batch = batches[0]
    if len(batches) > 1:
        first = {own: timed(lambda own=own: faiss_pairs(own)) for own in batches}
        batch = min(first, key=first.__getitem__)
    mine, theirs = ({*map(tuple, own.tolist())} for own in (listed(), faiss_pairs(batch)))
    if mine != theirs or count() != len(mine):
        raise SystemExit(f"{len(mine ^ theirs)} pairs differ")
    shapes = {"square": (2048, 2048, 2048), "tile": (256, 768, args.width)}
    times: dict[str, list[float]] = {"ours": [], "faiss": [], "numpy": []}
    rates: dict[str, list[float]] = {name: [] for name in shapes}
    for _ in range(args.repeat):
        for name, shape in shapes.items():
            rates[name].append(sgemm(shape, args.threads, 1.0))
        times["ours"].append(timed(count))
        times["faiss"].append(timed(lambda: faiss_pairs(batch)))
        times["numpy"].append(by_hand(data))
    middle = {name: statistics.median(own) for name, own in times.items()}
    pairs = pairs_within(data)
    rate = 2.0 * pairs * args.width / middle["ours"]
    peak = {name: statistics.median(own) for name, own in rates.items()}
    return {
        "size": size, "width": args.width, "window": window, "bound": args.bound,
        "threads": args.threads, "pairs": pairs, "outputs": len(mine), "faiss_batch": batch,
        "seconds": middle, "runs": times, "load": os.getloadavg(),
        "gflops": {"ours": rate / 1e9} | {name: own / 1e9 for name, own in peak.items()},
        "share_of_sgemm": {name: rate / own for name, own in peak.items()},
        "times_ours": {name: middle[name] / middle["ours"] for name in ("faiss", "numpy")},
    }  # fmt: skip


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--bound", type=float, default=0.8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--batches", default="1024,4096,16384", help="of R, for FAISS")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    found = run(args)
    print(f"{found['size']:,} x {found['size']:,}, {found['width']} wide", end=", ")
    print(f"window {found['window']:,}: {found['outputs']:,} of {found['pairs']:,} pairs")
    for name, seconds in found["seconds"].items():
        times = found["times_ours"].get(name, 1.0)
        print(f"{name:8} {seconds:9.3f} s  {times:6.2f} times ours")
    for name, share in found["share_of_sgemm"].items():
        print(f"sgemm {name:7} {found['gflops'][name]:7.1f} GFLOP/s; ours {share:.0%} of it")
    if args.json:
        write(args.json, found)


if __name__ == "__main__":
    main()
