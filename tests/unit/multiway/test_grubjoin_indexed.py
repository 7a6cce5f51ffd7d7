"""Harvested joins by indexes: the oracle's rows, and comparisons counted by brute force."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from grubjoin_cases import check, rows_of
from indexed_cases import both
from multiway_cases import PREDICATES, random_streams

from engine.multiway.harvest import speculation
from engine.multiway.harvest.layout import admitted_none
from engine.multiway.harvest.operator import GrubJoin
from engine.multiway.harvest.probing.indexes import INDEXED, Indexes
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, no_attributes, windows_of


def test_random_drop() -> None:
    done = both(
        0, "band", (20, 22, 24), capacity=15.0, basic_window=4, adapt_every=6, shred=0.5,
        shedding="random-drop", keep=[0.5, 0.8, 0.3],
    )  # fmt: skip
    check(*done)
    assert done[0].shed.all()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["band", "inner"])
def test_results_do_not_depend_on_threads_and_how_far_ahead(
    threads: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speculation, "_LEAST", 1 if threads == 1 else 200)
    monkeypatch.setattr("engine.multiway.harvest.probing.prober._SLICE", 2)
    done = both(
        5, kind, (60, 70, 65), capacity=90.0, basic_window=4, buffer=3, shred=0.5, adapt_every=6,
        threads=threads,
    )  # fmt: skip
    check(*done)
    assert done[0].drops.any()
    assert len(done[0].steps) > 3


def test_gaps_and_empty_streams() -> None:
    check(*both(3, "band", (12, 14), span=4000, capacity=9.0, basic_window=4, adapt_every=2))
    check(*both(3, "inner", (12, 0, 9), capacity=9.0, basic_window=4, adapt_every=2))
    check(*both(3, "equi", (0, 0), capacity=9.0, basic_window=4, adapt_every=2))


def test_an_output_that_no_chunk_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.multiway.harvest.probing.prober.CHUNK", 3)
    check(*both(1, "equi", (20, 21, 19), throttle=0.6, basic_window=3, adapt_every=9, shred=0.5))


def test_bounds_that_rounding_moves() -> None:
    """0.3 - 0.1 is more than 0.2, and 0.1 + 0.2 more than 0.3: the predicate's rounding decides."""
    values = np.array([0.1, 0.3, 0.2, 0.30000000000000004, 0.1 + 1e-17, -0.0, 0.5, 0.7])
    n = values.size
    first = np.array([0, n, 2 * n])
    ts = np.concatenate([np.arange(n), np.arange(n)])
    value = np.concatenate([values, values[::-1]]).reshape(-1, 1)
    for kind in ("band", "distance"):
        predicate = Predicate(kind, ("v",), 0.2)
        streams = MultiStreams(
            first, ts, ts, np.ones(2 * n), no_attributes(2 * n)._replace(value=value)
        )
        found = [
            rows_of(
                GrubJoin(
                    streams, windows_of([9, 9]), predicate,
                    HarvestSettings(basic_window=5, probe=probe), [[1], [0]],
                ),
                streams,
            )
            for probe in ("scan", "index")
        ]  # fmt: skip
        assert found[0] == found[1]
        assert 0 < len(found[0]) < n * n


def test_theta_is_scanned() -> None:
    streams = random_streams(2, (20, 20), "theta")
    scan, index = (
        GrubJoin(
            streams, windows_of([12, 9]), PREDICATES["theta"],
            HarvestSettings(basic_window=3, throttle=0.4, shred=0.3, probe=probe), [[1], [0]],
        )
        for probe in ("scan", "index")
    )  # fmt: skip
    assert rows_of(scan, streams) == rows_of(index, streams)
    assert scan.comparisons == index.comparisons


@pytest.mark.parametrize("kind", INDEXED)
def test_the_index_is_used(kind: str) -> None:
    """Few attributes agree: comparisons are far fewer than a scan's, and rows the same."""
    streams = random_streams(7, (1200, 1300), kind, span=900, distinct=400)
    found = []
    for probe in ("scan", "index"):
        join = GrubJoin(
            streams, windows_of([200, 250]), PREDICATES[kind],
            HarvestSettings(basic_window=50, probe=probe), [[1], [0]],
        )  # fmt: skip
        found.append((rows_of(join, streams), join.comparisons))
    assert found[0][0] == found[1][0]
    assert found[0][0] or kind == "inner"
    assert 5 * found[1][1] < found[0][1]


def index_checked(index: Any, admitted: Any, b: int, keys: Sequence[Any]) -> None:
    """Hold an index to what it should have: each window's entries sorted, its tuples' all."""
    for stream in range(admitted.number.size):
        low = int(admitted.first[stream])
        high = low + int(admitted.number[stream])
        for window in np.unique(admitted.ts[low:high] // b):
            here = [a for a in range(low, high) if admitted.ts[a] // b == window]
            assert {int(index.begin[a]) for a in here} == {here[0]}
            assert {int(index.end[a]) for a in here} == {here[-1] + 1}
            wanted = sorted((key, a) for a in here for key in keys[admitted.place[a]])
            part = slice(index.lists[here[0]], index.lists[here[-1] + 1])
            own = index.value if index.value.size else index.code
            assert list(zip(own[part], index.position[part], strict=True)) == wanted


@pytest.mark.parametrize("kind", ["band", "equi", "inner"])
@pytest.mark.parametrize("seed", range(3))
def test_an_index_whose_end_is_taken_back(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    streams = random_streams(seed, (40, 30), kind)
    streams.ts[:] = np.concatenate([np.sort(rng.integers(0, 30, size)) for size in (40, 30)])
    streams.ts[0] = 0
    own = streams.attributes
    if kind == "inner":
        keys = [own.item[own.first[k] : own.first[k + 1]].tolist() for k in range(70)]
    else:
        keys = [[k] for k in (own.code if kind == "equi" else own.value[:, 0]).tolist()]
    indexes, admitted = Indexes(streams, PREDICATES[kind], 7), admitted_none(streams)
    for _ in range(60):
        for stream in range(2):
            first, size = int(streams.first[stream]), int(np.diff(streams.first)[stream])
            stay = int(rng.integers(0, admitted.number[stream] + 1))
            after = int(admitted.place[first + stay - 1]) + 1 if stay else first
            coming = np.arange(after, first + size)
            coming = coming[rng.random(coming.size) < 0.6][: int(rng.integers(0, 25))]
            admitted.place[first + stay : first + stay + coming.size] = coming
            admitted.ts[first + stay : first + stay + coming.size] = streams.ts[coming]
            admitted.number[stream] = stay + coming.size
            indexes.update(admitted, stream, first + stay)
            index_checked(indexes.index, admitted, 7, keys)
