"""Exact joins of dense vectors with a device's products: the rows of the CPU, in its order."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import naive_vectors as oracle
import numpy as np
import pyarrow as pa
import pytest
from naive_multijoin import exact
from places import BENCHMARKS
from probe_cases import Apart
from vector_cases import DATA, KINDS, given, predicate_of, streams_of, tuples, with_direction

import engine.multiway.exact.tiles as tiling
import winnow
from engine.device.vectors import ChosenProposals
from engine.multiway.exact import ExactJoin
from engine.multiway.exact.compaction import scores
from engine.multiway.exact.screen import screen_of
from engine.multiway.streams import MultiStreams, windows_of
from engine.runtime.device_choice import Wanted
from engine.runtime.errors import DeviceError, SpecError
from gpu_kernels.devices import Choice, Device, SimulatedDevice
from gpu_kernels.multiway import proposals
from gpu_kernels.multiway.predicates import DISTANCE

GPU = Choice("gpu", "there is one")
PLENTY = 1 << 30


class OwnMemory(Apart):
    """A device whose arrays the host cannot use."""

    xp = SimpleNamespace(matmul=np.matmul, sort=np.sort)


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiling, "_SLICE_PAIRS", 150)
    monkeypatch.setattr(proposals, "_TILE", 70)
    monkeypatch.setattr(proposals, "_FOUND", 3)


def on(device: Device, *, demanded: bool = True) -> ChosenProposals:
    return ChosenProposals(Wanted(GPU, demanded), lambda: device)


def listed(join: ExactJoin) -> list[Any]:
    """Return all outputs, in the order in which they come."""
    return [
        row
        for chunk in join.outputs(5)
        for row in zip(chunk.members.tolist(), chunk.ts.tolist(), chunk.importance, strict=True)
    ]


def middle_bound(kind: str, streams: MultiStreams) -> float:
    """Return the very score of a pair in the middle."""
    value = streams.attributes.value
    screen = screen_of(predicate_of(kind, 0.5), value)
    first = int(streams.first[1])
    left, right = (
        own.ravel() for own in np.meshgrid(np.arange(first), np.arange(first, len(value)))
    )
    score = scores(screen.kind, screen.length, value, left, right)
    usable = np.sort(score[np.isfinite(score) & (score > 0)])
    middle = float(usable[usable.size // 2])
    found = float(np.sqrt(middle)) if screen.kind == DISTANCE else middle
    return min(found, 1.0) if kind == "cosine" else found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", DATA)
def test_rows_at_the_very_bound(kind: str, data: str) -> None:
    rng = np.random.default_rng(7)
    value = with_direction(kind, DATA[data](rng, (27, 9)))
    streams = streams_of((14, 13), value, 1)
    predicate = predicate_of(kind, middle_bound(kind, streams))
    for windows in (windows_of([9, 14]), windows_of([0, 6], [False, True])):
        propose = on(OwnMemory(PLENTY))
        cpu = listed(ExactJoin(streams, windows, predicate))
        assert listed(ExactJoin(streams, windows, predicate, propose=propose, threads=2)) == cpu
        assert propose.choice == Choice("gpu", "there is one: CUDA simulator")
        wanted = exact(
            tuples(streams), given(windows), oracle.meets(kind, predicate.bound), "clique"
        )
        assert len(cpu) == len(wanted) > 0


@pytest.mark.parametrize("graph", ["clique", "star"])
@pytest.mark.parametrize("kind", KINDS)
def test_several_streams(kind: str, graph: str) -> None:
    bound = {"cosine": 0.2, "inner": 1.0, "distance": 2.5}[kind]
    for seed, sizes in enumerate(((9, 10, 8), (14, 0, 12), (6, 5, 6, 7))):
        value = DATA["coarse"](np.random.default_rng(seed), (sum(sizes), 9))
        streams, windows = streams_of(sizes, value, seed), windows_of([8] * len(sizes))
        join = {"graph": graph, "combine": "sum", "start_ts": 6}
        given_to = streams, windows, predicate_of(kind, bound)
        with_gpu = ExactJoin(*given_to, **join, propose=on(OwnMemory(PLENTY)))
        cpu = ExactJoin(*given_to, **join)
        assert listed(with_gpu) == listed(cpu)
        edges = np.array([0, 9, 25])
        for a, b in zip(with_gpu.count(edges), cpu.count(edges), strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_best_of_each_window() -> None:
    streams = streams_of((20, 18), DATA["coarse"](np.random.default_rng(0), (38, 3)), 0)
    given_to = streams, windows_of([8, 8]), predicate_of("distance", 6.0)
    for top in (1, 3):
        cpu = listed(ExactJoin(*given_to, top=top))
        assert listed(ExactJoin(*given_to, top=top, propose=on(OwnMemory(PLENTY)))) == cpu


def test_codes_that_must_be_equal_are_left_to_the_cpu() -> None:
    streams = streams_of((9, 9), np.ones((18, 3)), 0, codes=2)
    propose = on(OwnMemory(0))
    predicate = predicate_of("cosine", 0.5, ("k",))
    assert listed(ExactJoin(streams, windows_of([8, 8]), predicate, propose=propose))


class Rounding(SimulatedDevice):
    """A device whose products are of factors of 11 bits."""

    @staticmethod
    def _multiplied(left: Any, right: Any) -> Any:
        scale = np.float32(2.0**13 + 1)
        short = [scale * own - (scale * own - own) for own in (left, right)]
        return np.matmul(*short)

    xp = SimpleNamespace(matmul=_multiplied, sort=np.sort)


def test_products_of_fewer_bits_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = streams_of((9, 9), np.ones((18, 3)), 0)
    given_to = streams, windows_of([8, 8]), predicate_of("cosine", 0.5)
    with pytest.raises(DeviceError, match=r"rounds the factors .*unset CUPY_TF32\); use --dev"):
        ExactJoin(*given_to, propose=on(Rounding())).count()
    monkeypatch.setattr("engine.runtime.device_choice.MULTIPLIED_A_CORE", 0)
    propose = on(Rounding(), demanded=False)
    count = ExactJoin(*given_to, propose=propose).count()
    assert count.outputs == ExactJoin(*given_to).count().outputs
    assert propose.choice.device == "cpu"
    assert "ReducedPrecisionError" in propose.choice.reason


def test_vectors_that_do_not_fit_are_refused() -> None:
    streams = streams_of((9, 9), np.ones((18, 3)), 0)
    given_to = streams, windows_of([8, 8]), predicate_of("cosine", 0.5)
    with pytest.raises(DeviceError, match=r"18 vectors need 360 bytes.*has 500 free; use --device"):
        ExactJoin(*given_to, propose=on(OwnMemory(500))).count()


@pytest.mark.parametrize("demanded", [False, True])
def test_a_gpu_that_fails_in_the_middle(monkeypatch: pytest.MonkeyPatch, demanded: bool) -> None:
    monkeypatch.setattr("engine.runtime.device_choice.MULTIPLIED_A_CORE", 0)
    streams = streams_of((14, 13), DATA["plain"](np.random.default_rng(7), (27, 5)), 1)
    given_to = streams, windows_of([9, 14]), predicate_of("cosine", 0.1)
    launched = []

    class Failing(OwnMemory):
        def launch(self, *arguments: Any, **more: Any) -> None:
            launched.append(1)
            if len(launched) > 5:
                raise RuntimeError("lost")
            super().launch(*arguments, **more)

    propose = on(Failing(PLENTY), demanded=demanded)
    join = ExactJoin(*given_to, propose=propose)
    if demanded:
        with pytest.raises(DeviceError, match=r"the GPU failed \(RuntimeError: lost\)"):
            listed(join)
        return
    assert listed(join) == listed(ExactJoin(*given_to))
    assert len(launched) == 6
    assert propose.choice.device == "gpu, cpu"
    assert "lost" in propose.choice.reason


def test_little_work_is_left_to_the_cpu() -> None:
    streams = streams_of((9, 9), np.ones((18, 3)), 0)
    propose = on(OwnMemory(PLENTY), demanded=False)
    ExactJoin(streams, windows_of([8, 8]), predicate_of("cosine", 0.5), propose=propose).count()
    assert propose.choice.device == "cpu"
    assert "multiplications of vectors are too few" in propose.choice.reason


def vectors(width: int) -> dict[str, pa.Table]:
    rng = np.random.default_rng(2)
    return {
        name: pa.table({
            "t": np.sort(rng.integers(0, 30, 12)),
            "v": pa.FixedSizeListArray.from_arrays(rng.standard_normal(12 * width), width),
        })
        for name in ("a", "b")
    }  # fmt: skip


def test_rows_and_report_through_the_door() -> None:
    job: dict[str, Any] = {"predicate": "cosine:v:0.3", "time": "t", "window": 8}
    gpu, cpu = (winnow.multijoin(vectors(3), device=own, **job) for own in ("gpu", "cpu"))
    assert gpu.report["device"]["used"] == "gpu"
    assert cpu.report["device"] == {"used": "cpu", "reason": "asked for"}
    assert gpu.outputs.equals(cpu.outputs)
    assert gpu.outputs.num_rows
    unlike = {"seconds", "tuples_per_second", "device"}
    for name in cpu.report.keys() - unlike:
        assert gpu.report[name] == cpu.report[name], name


def test_few_dimensions_are_looked_up_on_the_cpu() -> None:
    with pytest.raises(SpecError, match=r"distance:v:1 of 3 numbers is looked up on the CPU"):
        winnow.multijoin(
            vectors(3), predicate="distance:v:1", time="t", window=8, device="gpu",
        )  # fmt: skip


def test_the_benchmark_compares_and_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    suite = importlib.import_module("gpu_vectors")
    small = {"size": 40, "width": 3, "window": 9, "compared": 30, "square": 8, "repeats": 1}
    found = suite.measure_vectors(SimulatedDevice(), **small)
    assert found["parity"] > 0
    assert found["times_cpu"] > 0
    true = proposals.DeviceProposals.pairs
    monkeypatch.setattr(proposals.DeviceProposals, "pairs", lambda *given: true(*given)[1:])
    with pytest.raises(suite.UnequalError, match="pairs on the device are not the CPU's"):
        suite.measure_vectors(SimulatedDevice(), **small)
