"""Multi-way joins on a GPU, equal to the CPU's bit for bit: tuples probed, settings searched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeVar

from engine.device.together import JoinsTogether
from engine.device.walks import GpuProber
from engine.exact.checks import thread_count
from engine.multiway.fractions.exhaustive import BestSetting, search_all, settings_of
from engine.multiway.fractions.profile import JoinProfile
from engine.multiway.harvest.layout import Admitted, HarvestRules, ProbeBatch, Probed, ReadPlan
from engine.multiway.harvest.probing.cpu_prober import CpuProber
from engine.multiway.harvest.probing.prober import MakeProber, OutputBatch, Prober
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams
from engine.runtime.device_choice import ON_CPU, ON_GPU, Wanted, attempt, combined_choice
from engine.runtime.jit import Ints
from gpu_kernels.devices import Choice, Device, open_device

T = TypeVar("T")
SEARCHED = 1 << 26
"""Harvest settings of a join from which on auto searches them on a GPU: an estimate."""


class ChosenProber:
    """Probes on the GPU if that was chosen, and on the CPU from where it fails.

    Both find the same, so that nothing is done again but the call that failed.

    Parameters
    ----------
    wanted : Wanted
    opened : callable
        Gives the device.
    report : dict
        Kept up to date: what a report says, "used" and "reason".
    beside : (JoinsTogether, int) or None
        Joins that are probed together, and which of them it is; None: it is alone.
    streams, rules, predicate, whole
        As `MakeProber` has them.

    Raises
    ------
    DeviceError
        If the GPU was demanded and cannot do it; from every call.
    """

    def __init__(
        self, wanted: Wanted, opened: Callable[[], Device], report: dict[str, str],
        beside: tuple[JoinsTogether, int] | None, streams: MultiStreams, rules: HarvestRules,
        predicate: Predicate, whole: ReadPlan,
    ) -> None:  # fmt: skip
        self._wanted, self._report = wanted, report
        self._cpu = CpuProber(streams, rules, predicate, whole, thread_count(None))
        self._worked: list[Choice] = []

        def made(device: Device) -> tuple[Prober, Device]:
            if beside is not None:
                joins, own = beside
                return joins.prober(own, device, rules, predicate, whole), device
            return GpuProber.alone(streams, rules, predicate, whole, device), device

        self._gpu, choice = attempt(wanted, made, opened)
        self._note(choice)

    def _note(self, choice: Choice) -> None:
        used, reason = combined_choice([*self._worked, choice], choice)
        self._report.update(used=used, reason=reason)

    def _tried(self, on_gpu: Callable[[Prober], T]) -> T | None:
        """Return what the GPU gives; None if it fails, and from then on."""
        if self._gpu is None:
            return None
        prober, device = self._gpu
        found, choice = attempt(self._wanted, lambda _: on_gpu(prober), lambda: device)
        self._note(choice)
        if choice.device == ON_GPU:
            self._worked = [choice]
        else:
            self._gpu = None
        return found

    def count(self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch) -> Probed:
        """Return what the walks of a batch come to. O(comparisons)."""
        probed = self._tried(lambda gpu: gpu.count(admitted, plan, batch))
        return self._cpu.count(admitted, plan, batch) if probed is None else probed

    def outputs(
        self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch, wanted: Ints
    ) -> Iterator[OutputBatch]:
        """Yield the outputs of the wanted tuples of a batch, in their order."""
        given = 0
        if self._gpu is not None:
            parts = self._gpu[0].outputs(admitted, plan, batch, wanted)
            while (part := self._tried(lambda _: next(parts, None))) is not None:
                given += part.importance.size
                yield part
        if self._gpu is None:
            yield from _behind(self._cpu.outputs(admitted, plan, batch, wanted), given)


def _behind(parts: Iterator[OutputBatch], given: int) -> Iterator[OutputBatch]:
    """Yield outputs but for the first, which were given already."""
    for part in parts:
        own = OutputBatch(part.members[given:], part.importance[given:])
        given = max(0, given - part.importance.size)
        if own.importance.size:
            yield own


def prober_on(
    wanted: Wanted,
    opened: Callable[[], Device] = open_device,
    beside: tuple[JoinsTogether, int] | None = None,
) -> tuple[MakeProber | None, dict[str, str]]:
    """Return what makes the prober of a join on the device wanted, and what a report says of it.

    Parameters
    ----------
    wanted : Wanted
    opened : callable
        Gives the device.
    beside : (JoinsTogether, int), optional
        Joins that are probed together, and which of them it is.

    Returns
    -------
    callable or None
        For `engine.multiway.harvest.operator.GrubJoin`; None of the CPU.
    dict
        "used" and "reason"; of the device that was chosen until a prober is made, then of that
        which the work was done on so far.

    Examples
    --------
    >>> from engine.runtime.device_choice import ASKED_FOR_CPU
    >>> prober_on(ASKED_FOR_CPU)[1]
    {'used': 'cpu', 'reason': 'asked for'}
    """
    report = {"used": wanted.choice.device, "reason": wanted.choice.reason}
    if wanted.choice.device != ON_GPU:
        return None, report
    return partial(ChosenProber, wanted, opened, report, beside), report


class ChosenSearch:
    """Tries all harvest settings of a join (P4 4.4), on the GPU if that was chosen and is faster.

    Both find the same setting. From where the GPU fails, the CPU does the work.

    Parameters
    ----------
    wanted : Wanted

    Raises
    ------
    DeviceError
        If the GPU was demanded and cannot do it; from every call.
    """

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._worked: list[Choice] = []

    def __call__(self, join: JoinProfile, limit: float) -> BestSetting:
        """Return the best setting of cost `limit` or less."""
        wanted, number = self._wanted, settings_of(join)
        if wanted.choice.device == ON_GPU and not wanted.demanded and number < SEARCHED:
            why = f"{number} harvest settings are too few to be searched faster on a GPU"
            wanted = Wanted(Choice(ON_CPU, why))
        found, choice = attempt(wanted, lambda device: search_all(join, limit, device))
        if wanted.choice.device == ON_GPU and choice.device == ON_CPU:
            self._wanted = Wanted(choice)
        self._worked.append(choice)
        return search_all(join, limit) if found is None else found

    def device_report(self, probes: Mapping[str, str]) -> dict[str, str]:
        """Return what a report says of the device, given what it says of the probes alone."""
        if not self._worked:
            return dict(probes)
        used, reason = combined_choice(self._worked, self._worked[0])
        if reason == probes["reason"]:
            return dict(probes)
        if used != probes["used"]:
            used = f"{ON_GPU}, {ON_CPU}"
        return {"used": used, "reason": f"probes: {probes['reason']}; settings: {reason}"}
