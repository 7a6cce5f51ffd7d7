"""Joins of dense vectors by tiles: the rows of the definition, however float32 rounds."""

from __future__ import annotations

import math
from typing import Any

import naive_vectors as oracle
import numpy as np
import pytest
import threadpoolctl
from naive_multijoin import exact
from vector_cases import (
    DATA,
    KINDS,
    close,
    coarse,
    given,
    plain,
    predicate_of,
    rows_of,
    streams_of,
    tuples,
    with_direction,
)

import engine.multiway.exact.tiles as tiling
from engine.multiway.exact import ExactJoin, blocks
from engine.multiway.exact.compaction import scores
from engine.multiway.exact.screen import Screen, screen_of
from engine.multiway.streams import MultiStreams, no_attributes, windows_of
from engine.runtime.blas import one_blas_thread
from engine.runtime.errors import InputError
from engine.runtime.jit import Floats, Ints
from gpu_kernels.multiway.predicates import DISTANCE

WIDTHS = (2, 3, 17, 128, 1000)


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles and slices of a few tuples."""
    monkeypatch.setattr(blocks, "ROWS", 3)
    monkeypatch.setattr(blocks, "COLUMNS", 5)
    monkeypatch.setattr(tiling, "_SLICE_PAIRS", 60)
    monkeypatch.setattr(tiling, "_FEW", 4)


def all_pairs(streams: MultiStreams, screen: Screen) -> tuple[Ints, Ints, Floats]:
    """Return all pairs of places of two streams, and their scores."""
    first = int(streams.first[1])
    left, right = (
        own.ravel() for own in np.meshgrid(np.arange(first), np.arange(first, streams.ts.size))
    )
    return left, right, scores(screen.kind, screen.length, streams.attributes.value, left, right)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", DATA)
def test_scores_are_those_of_the_definition(kind: str, data: str) -> None:
    for width in WIDTHS[:3]:
        value = with_direction(kind, DATA[data](np.random.default_rng(width), (15, width)))
        streams = streams_of((7, 8), value, 0)
        left, right, found = all_pairs(streams, screen_of(predicate_of(kind, 0.5), value))
        vectors = [tuple(cells) for cells in value.tolist()]
        wanted = [
            oracle.SCORES[kind](vectors[a], vectors[b]) for a, b in zip(left, right, strict=True)
        ]
        np.testing.assert_array_equal(found, np.array(wanted))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("width", [*WIDTHS, 4096])
def test_proposals_keep_their_promise(kind: str, data: str, width: int) -> None:
    value = with_direction(kind, DATA[data](np.random.default_rng(width), (60, width)))
    streams = streams_of((30, 30), value, 0)
    score = all_pairs(streams, screen_of(predicate_of(kind, 0.5), value))[2]
    some = np.sqrt(score) if kind == "distance" else score
    bounds = np.unique(some[np.isfinite(some) & (some > 0)])[::97]
    bounds = np.concatenate(
        [
            own(bounds, s)
            for own, s in ((np.nextafter, -np.inf), (np.nextafter, np.inf), (np.maximum, 0))
        ]
    )
    for bound in bounds.tolist():
        if bound == 0 or (kind == "cosine" and bound > 1):
            continue
        screen = screen_of(predicate_of(kind, bound), value)
        left = screen.row[:30].copy()
        if screen.kind == DISTANCE and screen.row.shape[1] > 1:
            left[:, [-2, -1]] = left[:, [-1, -2]]
        proposal = (screen.row[30:] @ left.T).ravel()  # as all_pairs has them
        passed = score <= screen.bound if kind == "distance" else score >= bound
        size = screen.size[:30][None, :], screen.size[30:][:, None]
        sizes = (size[0] + size[1] if kind == "distance" else size[0] * size[1]).ravel()
        assert (proposal[passed] >= screen.low).all()
        assert passed[proposal >= screen.sure + screen.margin * sizes].all()


def test_float32_alone_would_be_wrong() -> None:
    """What the tests above try is hard: products in float32 are on the wrong side."""
    value = close(np.random.default_rng(1), (60, 128))
    streams = streams_of((30, 30), value, 0)
    score = all_pairs(streams, screen_of(predicate_of("cosine", 0.5), value))[2]
    row = screen_of(predicate_of("cosine", 0.5), value).row
    bound = float(np.median(score))
    wrong = ((row[30:] @ row[:30].T).ravel() >= bound) != (score >= bound)
    assert wrong.mean() > 0.1


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", DATA)
def test_rows_at_the_very_bound(kind: str, data: str) -> None:
    for seed, width in enumerate((2, 17, 40)):
        rng = np.random.default_rng([seed, width])
        value = with_direction(kind, DATA[data](rng, (42, width)))
        streams = streams_of((22, 20), value, seed)
        score = all_pairs(streams, screen_of(predicate_of(kind, 0.5), value))[2]
        usable = np.sort(score[np.isfinite(score) & (score > 0)])
        middle = float(usable[usable.size // 2])
        bound = math.sqrt(middle) if kind == "distance" else middle
        for own in {bound, math.nextafter(bound, 0), math.nextafter(bound, math.inf)}:
            if kind == "cosine" and own > 1:
                continue
            for windows in (windows_of([9, 14]), windows_of([0, 6], [False, True])):
                wanted = exact(tuples(streams), given(windows), oracle.meets(kind, own), "clique")
                join = ExactJoin(streams, windows, predicate_of(kind, own), threads=1 + seed % 2)
                assert rows_of(join, streams) == wanted


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("graph", ["clique", "star"])
@pytest.mark.parametrize("kind", KINDS)
def test_several_streams_and_keys(kind: str, graph: str) -> None:
    bounds = {"cosine": 0.2, "inner": 1.0, "distance": 2.5}
    some = 0
    shapes = ((9, 10, 8), (14, 0, 12), (6, 5, 6, 7), (30, 28), (4, 4, 4, 4, 4))
    for seed, sizes in enumerate(shapes):
        value = coarse(np.random.default_rng(seed), (sum(sizes), 9))
        windows = windows_of([8] * len(sizes), [seed == 2] * len(sizes))
        meets = oracle.meets(kind, bounds[kind])
        for codes in (0, 2, 7):
            streams = streams_of(sizes, value, seed, codes)
            predicate = predicate_of(kind, bounds[kind], ("k",) if codes else ())
            wanted = exact(
                tuples(streams), given(windows), oracle.keyed(meets) if codes else meets, graph,
                "sum", start_ts=6,
            )  # fmt: skip
            join = ExactJoin(streams, windows, predicate, graph=graph, combine="sum", start_ts=6)
            assert rows_of(join, streams) == wanted
            some += len(wanted)
    assert some > 100


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("codes", [0, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_of_each_window(kind: str, codes: int) -> None:
    bounds = {"cosine": -0.5, "inner": 0.25, "distance": 6.0}
    of_pair, sign = oracle.SCORES[kind], -1 if kind == "distance" else 1

    def score(a: Any, b: Any) -> float:
        return sign * (of_pair(a[1], b[1]) if codes else of_pair(a, b))

    for seed, sizes in enumerate(((30, 28), (25, 0), (9, 10, 8), (12, 30))):
        for make in (coarse, plain):
            value = make(np.random.default_rng(seed), (sum(sizes), 2 if seed == 3 else 9))
            streams = streams_of(sizes, value, seed, codes)
            windows = windows_of([8] * len(sizes), [seed == 3] * len(sizes))
            meets = oracle.meets(kind, bounds[kind])
            own = oracle.keyed(meets) if codes else meets
            for k in (1, 2, 5):
                wanted = oracle.top(
                    tuples(streams), given(windows), own, score, k,
                )  # fmt: skip
                join = ExactJoin(
                    streams, windows, predicate_of(kind, bounds[kind], ("k",) if codes else ()),
                    graph="star", top=k,
                )  # fmt: skip
                assert rows_of(join, streams) == wanted


def test_tiles_of_full_size_and_slices() -> None:
    """A join of more than a tile and a slice, against the scores of all pairs."""
    n, width, window = 3000, 24, 1500
    rng = np.random.default_rng(3)
    value = rng.standard_normal((2 * n, width))
    ts = np.sort(rng.integers(0, 4000, (2, n)), axis=1).ravel()
    streams = MultiStreams(
        np.array([0, n, 2 * n]), ts, np.tile(np.arange(n), 2), np.ones(2 * n),
        no_attributes(2 * n)._replace(value=value),
    )  # fmt: skip
    near = np.abs(ts[:n, None] - ts[None, n:]) <= window
    a, b = np.nonzero(near)
    for kind, bound in (("cosine", 0.5), ("inner", 12.0), ("distance", 4.5)):
        predicate = predicate_of(kind, bound)
        screen = screen_of(predicate, value)
        score = scores(screen.kind, screen.length, value, a, b + n)
        passed = score <= screen.bound if kind == "distance" else score >= bound
        wanted = {*zip(a[passed].tolist(), b[passed].tolist(), strict=True)}
        for threads in (1, 3):
            join = ExactJoin(streams, windows_of([window] * 2), predicate, threads=threads)
            members = np.concatenate([*join.members()])
            assert len(members) == len(wanted) > 100
            assert {*map(tuple, (members - [0, n]).tolist())} == wanted


def test_more_matches_than_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiling, "_MOST_MATCHES", 50)
    streams = streams_of((9, 9), np.ones((18, 4)), 0)
    join = ExactJoin(streams, windows_of([25, 25]), predicate_of("cosine", 0.5))
    with pytest.raises(InputError, match=r"more than 50 pairs of one slice.*give a stricter bound"):
        join.count()
    best = ExactJoin(streams, windows_of([25, 25]), predicate_of("cosine", 0.5), top=1)
    meets = oracle.meets("cosine", 0.5)
    wanted = oracle.top(tuples(streams), [("ticks", 25)] * 2, meets, oracle.cosine, 1)
    assert rows_of(best, streams) == wanted


def test_no_tuples() -> None:
    for kind in KINDS:
        streams = streams_of((0, 3), np.ones((3, 4)), 0)
        join = ExactJoin(streams, windows_of([5, 5]), predicate_of(kind, 0.5))
        assert join.count().outputs == 0
        assert not list(join.outputs())


def test_one_thread_of_blas_while_anyone_needs_it() -> None:
    def numbers() -> set[int]:
        return {own["num_threads"] for own in threadpoolctl.threadpool_info()
                if own["user_api"] == "blas"}  # fmt: skip

    np.ones((2, 2)) @ np.ones((2, 2))
    with threadpoolctl.threadpool_limits(3, user_api="blas"):
        with one_blas_thread():
            with one_blas_thread():
                assert numbers() == {1}
            assert numbers() == {1}
        assert numbers() == {3}
