"""The multi-way probe in the simulator against the CPU's: equal bit for bit, call by call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import lockstep
import numpy as np
import pytest
from multiway_cases import PREDICATES, random_streams

from engine.device.multiway import prober_on
from engine.device.walks import GpuProber
from engine.multiway.harvest import speculation
from engine.multiway.harvest.layout import Admitted, ProbeBatch, Probed, ReadPlan
from engine.multiway.harvest.operator import GrubJoin
from engine.multiway.harvest.probing.cpu_prober import CpuProber
from engine.multiway.harvest.probing.prober import OutputBatch
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.streams import windows_of
from engine.runtime.device_choice import ASKED_FOR_CPU, Wanted
from engine.runtime.errors import DeviceError
from engine.runtime.jit import Ints
from gpu_kernels.combine import COMBINES
from gpu_kernels.devices import Choice, SimulatedDevice
from gpu_kernels.multiway import on_device

DEVICE = SimulatedDevice()
SIZES = {2: (22, 24), 3: (13, 14, 12), 4: (8, 9, 8, 9)}
THROTTLED: dict[str, Any] = {"throttle": 0.5, "basic_window": 3, "shred": 0.4, "adapt_every": 9}
CLOCKED: dict[str, Any] = {
    "capacity": 30.0, "basic_window": 4, "buffer": 2, "shred": 0.5, "adapt_every": 6,
    "admission": "conserve",
}  # fmt: skip


def bits(array: Any) -> Any:
    return np.asarray(array, np.float64).view(np.int64).tolist()


def gathered(parts: Iterator[OutputBatch]) -> OutputBatch:
    found = [OutputBatch(np.zeros((0, 0), np.int64), np.zeros(0)), *parts]
    members = np.concatenate([part.members for part in found[1:]] or [found[0].members])
    return OutputBatch(members, np.concatenate([part.importance for part in found]))


def on_cpu(streams: Any, rules: Any, predicate: Any, whole: Any) -> CpuProber:
    return CpuProber(streams, rules, predicate, whole, 1)


def on_gpu(streams: Any, rules: Any, predicate: Any, whole: Any) -> GpuProber:
    return GpuProber.alone(streams, rules, predicate, whole, DEVICE)


class Compared:
    """Probes in both ways and holds every answer equal."""

    def __init__(self, *join: Any) -> None:
        self.cpu, self.gpu = on_cpu(*join), on_gpu(*join)
        self.calls = np.zeros(2, np.int64)

    def count(self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch) -> Probed:
        """Return the CPU's counts."""
        cpu, gpu = (own.count(admitted, plan, batch) for own in (self.cpu, self.gpu))
        for ours, theirs in zip(gpu[:3], cpu[:3], strict=True):
            assert ours.tolist() == theirs.tolist()
        assert bits(gpu.importance) == bits(cpu.importance)
        self.calls[0] += 1
        return cpu

    def outputs(
        self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch, wanted: Ints
    ) -> Iterator[OutputBatch]:
        """Yield the CPU's outputs."""
        cpu, gpu = (
            gathered(own.outputs(admitted, plan, batch, wanted)) for own in (self.cpu, self.gpu)
        )
        assert gpu.members.tolist() == cpu.members.tolist()
        assert bits(gpu.importance) == bits(cpu.importance)
        self.calls[1] += 1
        yield cpu


class Found:
    """A join that has run."""

    def __init__(
        self, make: Callable[..., Any], kind: str, sizes: tuple[int, ...], seed: int = 3, *,
        window: int = 12, span: int = 30, distinct: int = 4, graph: str = "clique",
        combine: str = "sum", start: int | None = None, **given: Any,
    ) -> None:  # fmt: skip
        streams = random_streams(seed, sizes, kind, span=span, distinct=distinct)
        rng = np.random.default_rng(seed)
        m = len(sizes)
        orders = [rng.permutation([j for j in range(m) if j != i]).tolist() for i in range(m)]
        windows = windows_of(rng.integers(window - 5, window + 6, m).tolist())
        settings = HarvestSettings(forget=0.9, buckets=2, **given)
        made: list[Any] = []

        def made_once(*own: Any) -> Any:
            made.append(make(*own))
            return made[0]

        self.join = GrubJoin(
            streams, windows, PREDICATES[kind], settings, orders, graph=graph, combine=combine,
            start_ts=start, prober=made_once,
        )  # fmt: skip
        self.rows = gathered(self.join.run())
        self.prober = made[0]

    def check(self, other: Found) -> None:
        """Hold this equal to another."""
        assert self.rows.members.tolist() == other.rows.members.tolist()
        assert bits(self.rows.importance) == bits(other.rows.importance)
        for name in ("outputs", "comparisons", "importance", "steps", "peak"):
            assert getattr(self.join, name) == getattr(other.join, name), name
        ours, theirs = self.join._learner.learnt, other.join._learner.learnt  # noqa: SLF001
        for name in ("histograms", "comparisons", "passes", "rates", "ages"):
            assert bits(getattr(ours, name)) == bits(getattr(theirs, name)), name


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("graph", ["clique", "star"])
@pytest.mark.parametrize("kind", list(PREDICATES))
def test_every_call_is_answered_alike(kind: str, graph: str, m: int) -> None:
    combine = COMBINES[(list(PREDICATES).index(kind) + m) % 5]
    rare = kind in ("equi", "inner", "keyed")
    dense: dict[str, Any] = {"span": 10, "distinct": 2} if rare else {}
    outputs = 0
    for given in (THROTTLED, CLOCKED):
        found = Found(Compared, kind, SIZES[m], graph=graph, combine=combine, **dense, **given)
        assert found.prober.calls[0]
        outputs += found.join.outputs
    assert outputs


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("combine", COMBINES)
def test_whole_windows_and_every_importance(
    combine: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lockstep, "SEED", seed)
    found = Found(
        Compared, "band", SIZES[3], seed, combine=combine, basic_window=3, adapt_every=9, start=8
    )
    assert found.join.outputs


@pytest.mark.parametrize("width", [1, 2, 32])
def test_the_number_of_threads_changes_nothing(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(on_device._SIMULATED, "width", width)  # noqa: SLF001
    found = Found(Compared, "distance", (20, 23), window=20, **THROTTLED)
    assert found.join.outputs


@pytest.mark.parametrize("given", [THROTTLED, CLOCKED], ids=["fixed throttle", "virtual clock"])
def test_a_join_is_the_same(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speculation, "_LEAST", 8)
    cpu, gpu = (Found(make, "theta", (16, 15, 17), **given) for make in (on_cpu, on_gpu))
    gpu.check(cpu)
    assert cpu.join.outputs
    if given is CLOCKED:
        assert cpu.join.drops.any()
        assert cpu.join._admitted.gone.any()  # noqa: SLF001


@pytest.mark.parametrize("chunk", [1, 3, 7])
def test_outputs_that_no_chunk_holds(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_device, "CHUNK", chunk)
    found = Found(Compared, "theta", (14, 15, 13), **THROTTLED)
    assert found.join.outputs > 10 * chunk


def test_a_batch_goes_in_parts_where_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = Found(on_cpu, "band", (14, 15, 13), **THROTTLED)
    launched: list[str] = []
    launch = SimulatedDevice.launch

    def noted(self: Any, kernel: Any, *given: Any, **named: Any) -> None:
        launched.append(kernel.function.__name__)
        launch(self, kernel, *given, **named)

    monkeypatch.setattr(SimulatedDevice, "launch", noted)
    whole = Found(on_gpu, "band", (14, 15, 13), **THROTTLED)
    before = launched.count("count")
    monkeypatch.setattr(SimulatedDevice, "free_bytes", lambda _: 4000)
    parts = Found(on_gpu, "band", (14, 15, 13), **THROTTLED)
    assert launched.count("count") - before > 2 * before
    whole.check(cpu)
    parts.check(cpu)


def test_gaps_and_empty_streams() -> None:
    for sizes, span in [((12, 14), 4000), ((12, 0, 9), 30), ((0, 0), 30)]:
        given: dict[str, Any] = {"basic_window": 4, "adapt_every": 500, "capacity": 90.0}
        cpu, gpu = (Found(make, "inner", sizes, span=span, **given) for make in (on_cpu, on_gpu))
        gpu.check(cpu)


def test_streams_that_do_not_fit_are_refused_before_anything_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SimulatedDevice, "free_bytes", lambda _: 500)
    monkeypatch.setattr(SimulatedDevice, "upload", lambda *_: pytest.fail("taken"))
    wanted = Wanted(Choice("gpu", "asked for"), demanded=True)
    message = r"does not fit on the GPU \(30 tuples of 2 streams need .* has 500 free"
    with pytest.raises(DeviceError, match=message):
        Found(prober_on(wanted)[0], "band", (15, 15), **THROTTLED)


def test_a_walk_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedDevice, "free_bytes", lambda _: 1900)
    wanted = Wanted(Choice("gpu", "asked for"), demanded=True)
    with pytest.raises(DeviceError, match="the walk of a tuple needs 72 bytes"):
        Found(prober_on(wanted)[0], "band", (15, 15), basic_window=3)


class Lost:
    """Launches that fail from the given one of a kernel on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kernel: str, allowed: int) -> None:
        launch = SimulatedDevice.launch

        def limited(device: Any, own: Any, *given: Any, **named: Any) -> None:
            self.left -= own.function.__name__ == kernel
            if self.left < 0:
                raise RuntimeError("CUDA_ERROR_LAUNCH_FAILED")
            launch(device, own, *given, **named)

        self.left = allowed
        monkeypatch.setattr(SimulatedDevice, "launch", limited)


@pytest.mark.parametrize(
    ("kernel", "allowed", "used"),
    [("find", 0, "cpu"), ("count", 2, "gpu, cpu"), ("write", 5, "gpu, cpu")],
)
def test_what_fails_in_the_middle_goes_on_on_the_cpu(
    kernel: str, allowed: int, used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_device, "CHUNK", 3)
    monkeypatch.setattr("engine.multiway.harvest.probing.prober.CHUNK", 2)
    cpu = Found(on_cpu, "theta", (16, 15, 17), **CLOCKED)
    Lost(monkeypatch, kernel, allowed)
    make, told = prober_on(Wanted(Choice("gpu", "there is one")), SimulatedDevice)
    assert told == {"used": "gpu", "reason": "there is one"}
    found = Found(make, "theta", (16, 15, 17), **CLOCKED)
    found.check(cpu)
    assert told["used"] == used
    assert "CUDA_ERROR_LAUNCH_FAILED" in told["reason"]


def test_the_report_says_what_probed() -> None:
    make, told = prober_on(Wanted(Choice("gpu", "there is one")), SimulatedDevice)
    cpu, gpu = (Found(own, "band", (16, 15), **CLOCKED) for own in (on_cpu, make))
    gpu.check(cpu)
    assert told == {"used": "gpu", "reason": "there is one: CUDA simulator"}
    make, told = prober_on(ASKED_FOR_CPU)
    assert make is None
    assert told == {"used": "cpu", "reason": "asked for"}
