"""The probe on devices with little memory, on bad input, and as the engine calls it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from places import BENCHMARKS
from probe_cases import DEVICE, Apart, Join, Narrow, check, drawn

from engine.device.exact import ExactRows, match_lanes
from engine.exact import COMBINES, ExactStream, emit_pairs
from engine.exact.counted import CountedStream
from engine.replay.settings import ReplaySettings
from engine.runtime.streams import StreamBatch
from gpu_kernels import probe
from gpu_kernels.devices import TooLargeError
from gpu_kernels.probe import composite, pairs, walk
from gpu_kernels.probe.streams import Stream


def test_little_memory_splits_and_changes_nothing() -> None:
    join = drawn(5, 60, 2, 60, 2, 6)
    device = Narrow(7_000)
    check(join, device, start=-20)
    assert device.pieces > 20
    assert device.largest * 2 < device.free


@pytest.mark.parametrize("free", [2**30, 6_000])
def test_host_and_device_memory_are_kept_apart(free: int) -> None:
    check(drawn(2, 40, 2, 30, 2, 4), Apart(free))
    late = [(2**62 * t, k, 0, 1.0) for t in (-1, 0, 1) for k in (-(2**62), 5)]
    check(Join(late, late, ([2**62], [3])), Apart(free))


@pytest.mark.parametrize("free", [2**30, 6_000])
def test_streams_may_be_in_device_memory(free: int) -> None:
    join = drawn(3, 50, 2, 40, 3, 6)
    device = Apart(free)
    streams = [
        Stream(*(column if column is None else device.upload(column) for column in stream))
        for stream in join.streams()
    ]
    found = probe.count_pairs(device, *streams, *join.windows)
    assert found.tolist() == probe.count_pairs(DEVICE, *join.streams(), *join.windows).tolist()
    chunks = probe.emit_pairs(device, *streams, *join.windows, to_host=False)
    assert sum(len(left) for left, _ in chunks) == found.sum() > 0


class Taken(Narrow):
    """A device whose memory is not as free as it says."""

    def empty(self, shape: Any, dtype: Any) -> Any:
        """Return an array that is not too large."""
        if np.prod(shape) > 30:
            raise MemoryError
        return super().empty(shape, dtype)


def test_memory_that_is_gone_after_all_splits() -> None:
    join = drawn(8, 60, 2, 60, 2, 3)
    assert max(len(join.left), len(join.right)) > 30
    check(join, Taken(2**30), chunk=25)
    with pytest.raises(MemoryError):  # some of the piece is with the caller already
        list(probe.emit_pairs(Changing(2**30), *join.streams(), *join.windows, chunk=1))


class Changing(Narrow):
    """A device whose memory another takes in between."""

    def launch(self, kernel: Any, *arguments: Any, **options: Any) -> None:
        """Fail at the second chunk."""
        if kernel is walk.emit and arguments[2][5]:
            raise MemoryError
        super().launch(kernel, *arguments, **options)


def test_the_benchmark_compares_counts() -> None:
    path = BENCHMARKS / "gpu_probe.py"
    spec = importlib.util.spec_from_file_location("gpu_probe", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    result = module.measure_count(DEVICE, 400, 300, repeat=1)
    assert result["peer_rows"] == 300
    assert result["outputs"] > 400
    moved = module.bytes_moved(400, 400, result["code_bits"])
    assert result["bytes_moved"] == moved == 800 * (24 + 4 + 4 + 2 * 4 * 2 + 4)
    with pytest.raises(AssertionError, match=r"GPU counts .* the CPU"):
        module._peers(DEVICE, module.workload(DEVICE, 100), -1, 1.0)  # noqa: SLF001


def test_pieces_hold_the_whole_window_around_them() -> None:
    """A tuple a tick on both sides: every cut has pairs that only just reach across it."""
    rows = [(t, 0, 0, 1.0) for t in range(-9, 9)]
    device = Narrow(5_000)
    check(Join(rows, rows, ([2], [3])), device)
    assert device.pieces >= 20


def test_lanes_are_split_before_time() -> None:
    join = drawn(1, 60, 2, 6, 6, 500)
    check(join, Narrow(7_000))


def test_an_instant_that_does_not_fit_is_an_error() -> None:
    rows = [(t, 0, 0, 1.0) for t in range(100)]
    join = Join(rows, rows, ([100], [100]))
    with pytest.raises(TooLargeError, match=r"lane 0 at tick 0 needs .* 5000 free; use a"):
        probe.count_pairs(Narrow(5_000), *join.streams(), *join.windows)


def test_codes_too_wide_for_one_piece_split_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        composite.Layout, "fits", property(lambda self: self.lane_bits == 0 and sum(self) < 9)
    )
    check(drawn(9, 30, 3, 16, 2, 6))


def test_one_side_is_empty() -> None:
    rows = [(0, 0, 0, 1.0)]
    for join in (Join(rows, [], ([1], [1])), Join([], rows, ([1], [1])), Join([], [], ([1], [1]))):
        check(join)
        check(join, Narrow(1))


ONE = Stream(np.array([0, 1]), np.array([1, 1]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: probe.count_pairs(DEVICE, ONE, ONE, -1, 0), "window -1 of stream left"),
        (lambda: probe.count_pairs(DEVICE, ONE, ONE, 1, [1, 2]), "1 windows of stream left and 2"),
        (lambda: probe.match_arrivals(DEVICE, ONE, ONE, 1, 1), "left has no importance"),
        (lambda: probe.match_arrivals(DEVICE, ONE, ONE, 1, 1, "most"), "combine 'most' must be"),
        (lambda: probe.emit_pairs(DEVICE, ONE, ONE, 1, 1, chunk=0), "chunk 0"),
        (
            lambda: probe.count_pairs(DEVICE, ONE._replace(key=ONE.key[:1]), ONE, 1, 1),
            "2 ts and 1 values of key",
        ),
        (
            lambda: probe.count_pairs(DEVICE, ONE, ONE._replace(lane=np.array([0, 2])), 1, 1),
            "lane 2 of stream right must be",
        ),
        (
            lambda: probe.count_pairs(
                Narrow(200), ONE._replace(lane=np.array([-1, 0])), ONE, [1, 1], [1, 1]
            ),
            "lane -1 of stream left must be",
        ),
    ],
)
def test_what_means_nothing_is_refused(call: Any, message: str) -> None:
    with pytest.raises(probe.ProbeError, match=message):
        call()


def test_chunks_shrink_where_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(0, 0, 0, 1.0)] * 6
    join = Join(rows, rows, ([0], [0]))
    monkeypatch.setattr(pairs, "BYTES_A_PAIR", 800)
    chunks = list(probe.emit_pairs(Narrow(4000), *join.streams(), *join.windows))
    assert [len(left) for left, _ in chunks] == [5] * 7 + [1]


def batch(seed: int, size: int) -> StreamBatch:
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.integers(-20, 40, size))
    return StreamBatch(ts, np.arange(size), rng.integers(0, 3, size) * 10**15, rng.random(size))


@pytest.mark.parametrize("start", [None, 7])
@pytest.mark.parametrize("windows", [(4, 9), (0, 0)])
@pytest.mark.parametrize("sizes", [(80, 50), (0, 9)])
def test_the_engine_gets_the_rows_of_its_own_join(
    sizes: tuple[int, int], windows: tuple[int, int], start: int | None
) -> None:
    left, right = batch(1, sizes[0]), batch(2, sizes[1])
    expected = list(emit_pairs(left, right, *windows, start_ts=start))
    settings = ReplaySettings(*windows, combine="mean", start_ts=start)
    rows = ExactRows(Narrow(12_000), settings, chunk=11)
    found = [out for own in batches(left, right, 9) for out in rows.push(*own)]
    assert all(0 < len(out.ts) <= 11 for out in found)
    none = np.zeros((2, 0), np.int64)
    i, j = np.concatenate([none, *expected], axis=1)
    seen = [np.concatenate([[], *(out[at] for out in found)]).tolist() for at in range(6)]
    later, mean = (
        np.maximum(left.ts[i], right.ts[j]),
        0.5 * (left.importance[i] + right.importance[j]),
    )
    both = left.row[i], right.row[j], i, j, later, mean
    assert seen == [column.tolist() for column in both]


def batches(left: StreamBatch, right: StreamBatch, size: int) -> Iterator[tuple[Any, Any]]:
    """Cut two streams between instants, into batches of about `size` ticks."""
    for begin in range(-20, 40, size):
        cuts = (np.searchsorted(side.ts, [begin, begin + size]) for side in (left, right))
        parts = [slice(*cut.tolist()) for cut in cuts]
        own = [
            StreamBatch(*(column[part] for column in side))
            for side, part in zip((left, right), parts, strict=True)
        ]
        if any(len(side.ts) for side in own):
            yield own[0], own[1]


@pytest.mark.parametrize("combine", COMBINES)
def test_every_figure_of_the_exact_join_is_the_cpu_s_to_the_last_digit(combine: str) -> None:
    lanes = [(batch(1, 80), batch(2, 50)), (batch(3, 0), batch(4, 9)), (batch(5, 70), batch(6, 90))]
    settings, edges = ReplaySettings(4, 9, combine=combine), np.array([-5, 0, 12])
    found = match_lanes(Narrow(12_000), lanes, settings)
    for (left, right), matches in zip(lanes, found, strict=True):
        for start in (None, 7):
            joins = [
                CountedStream(matches, 4, 9, start, edges),
                ExactStream(4, 9, combine, start, edges),
            ]
            figures: list[Any] = []
            for join in joins:
                outputs, importance = np.zeros(3, np.int64), np.zeros(3)
                for own in batches(left, right, 9):
                    ids = [side.key // 10**15 for side in own]
                    join.push(own[0], ids[0], own[1], ids[1], outputs, importance)
                bins = join.outputs_by_bin.tolist(), join.importance_by_bin.tolist()
                live = join.live_ids(3, 44).tolist()
                by_key = outputs.tolist(), importance.tolist()
                figures.append((join.outputs, join.importance, *bins, *by_key, live))
            assert figures[0] == figures[1]
            assert figures[0][0] or not len(left.ts)


def test_no_lanes_match_nothing() -> None:
    assert match_lanes(DEVICE, [], ReplaySettings(1, 1)) == []
