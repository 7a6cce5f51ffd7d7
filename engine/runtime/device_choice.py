"""Runs work on the chosen device and falls back to the CPU unless a GPU was demanded."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from engine.runtime.errors import DeviceError, WinnowError
from engine.runtime.executors import Executor
from engine.runtime.work import doing
from gpu_kernels.devices import Choice, Device, NoGpuError, choose_device, open_device
from gpu_kernels.gpu_lease import GpuLease, GpuLeaseError, current_lease

T = TypeVar("T")

ON_GPU, ON_CPU = "gpu", "cpu"
LANES_A_CORE = 16
"""Replays at once, for each core of the machine, from which on auto takes a GPU: an estimate."""
COUNTED_A_CORE = 1 << 25
"""Tuples of exact joins, for each core, from which on auto counts them on a GPU: an estimate."""
MULTIPLIED_A_CORE = 1 << 38
"""Multiplications of vectors, for each core, from which on auto makes them on a GPU: an
estimate; a core takes five seconds for so many."""


_LASTING = ("TooLargeError", "FusedError", "ReducedPrecisionError", "NumbaError", "ImportError")
"""What fails in the same way wherever it is tried again; by name, as `FusedError`'s module needs
CUDA."""


class GpuFaultError(RuntimeError):
    """A GPU failed under a piece of work that will be tried again, in another process."""


class Wanted(NamedTuple):
    """The device that a job runs on."""

    choice: Choice
    demanded: bool = False
    """The GPU or nothing: no fall back to the CPU."""


ASKED_FOR_CPU = Wanted(Choice(ON_CPU, "asked for"))

_LOOKED: WeakKeyDictionary[Executor, dict[str, Wanted]] = WeakKeyDictionary()
"""What the tasks of an executor found, by option."""


def wanted_device(option: str, executor: Executor | None = None) -> Wanted:
    """Return the device for ``--device``.

    Parameters
    ----------
    option : {"auto", "cpu", "gpu"}
    executor : Executor, optional
        Whose tasks would use it: where they run elsewhere, one of them looks, once, since the
        machine that plans a job on a cluster seldom has a GPU.

    Raises
    ------
    DeviceError
        If a GPU is required and there is none.
    """
    if executor is not None and executor.slots and option != ON_CPU:
        found = _LOOKED.setdefault(executor, {})
        if option not in found:
            with doing("device"):
                found[option] = next(iter(executor.map(wanted_device, [option])))
        return found[option]
    try:
        return Wanted(choose_device(option), option == ON_GPU)
    except NoGpuError as error:
        raise DeviceError(str(error)) from None


def prefer_gpu(wanted: Wanted, lanes: int, cores: int = 0) -> Wanted:
    """Return the GPU only where enough lanes are replayed at once for it to be faster.

    One team of threads replays a lane, instant by instant, more slowly than a core does; thousands
    of lanes at once make a GPU fast.
    """
    return _preferred(wanted, f"{lanes} replays at once are", lanes, LANES_A_CORE, cores)


def prefer_gpu_count(wanted: Wanted, tuples: int, cores: int = 0) -> Wanted:
    """Return the GPU only where exact joins have enough tuples to be counted faster there."""
    return _preferred(wanted, f"{tuples} tuples to count are", tuples, COUNTED_A_CORE, cores)


def prefer_gpu_tiles(wanted: Wanted, products: int) -> Wanted:
    """Return the GPU only where there are enough products of vectors to be made faster there."""
    what = f"{products:,} multiplications of vectors are"
    return _preferred(wanted, what, products, MULTIPLIED_A_CORE)


def _preferred(wanted: Wanted, what: str, size: int, a_core: int, cores: int = 0) -> Wanted:
    """Return the GPU if it was demanded or there is enough to do for so many cores.

    Parameters
    ----------
    wanted : Wanted
    what, size, a_core : str, int, int
        The work; how much it is, and how much is enough for each core.
    cores : int
        CPU cores to compare with; 0: those of this process.
    """
    cores = cores or len(os.sched_getaffinity(0))
    if wanted.demanded or wanted.choice.device != ON_GPU or size >= a_core * cores:
        return wanted
    why = (
        f"{what} too few to be faster on a GPU than on {cores} cores; --device gpu uses it all the "
        "same"
    )
    return Wanted(Choice(ON_CPU, why))


def attempt(
    wanted: Wanted,
    on_gpu: Callable[[Device], T],
    opened: Callable[[], Device] = open_device,
) -> tuple[T | None, Choice]:
    """Do a piece of work on the GPU if that was chosen; else, or if it fails, the CPU is to do it.

    Parameters
    ----------
    wanted : Wanted
    on_gpu : callable
        ``(device) -> T``. Whatever it had done when it failed is void.
    opened : callable
        Gives the device.

    Returns
    -------
    (T or None, Choice)
        The result, None where the CPU is to do the work; and where it is done and why.

    Raises
    ------
    DeviceError
        If the GPU was demanded and cannot do it: the work does not fit, or the device failed. Also
        if its lease is invalid.
    GpuFaultError
        If the device failed under work that a scheduler will try again: that ends the process, and
        with it a CUDA context that is good for nothing any more. The last attempt ends as above.
    WinnowError
        What the work itself finds wrong.
    """
    if wanted.choice.device != ON_GPU:
        return None, wanted.choice
    device: Device | None = None
    try:
        device = opened()
        result = on_gpu(device)
    except WinnowError:
        raise
    except GpuLeaseError as error:
        raise DeviceError(str(error)) from None
    except Exception as error:  # drivers and compilers raise what they like
        why = _reason(error)
        terms = current_lease()
        if terms is not None and not _lasts(error):
            if terms.again:
                raise GpuFaultError(why) from error
            why = _often(why, terms)
        if wanted.demanded:
            raise DeviceError(f"--device gpu: {why}; use --device auto or cpu") from error
    else:
        return result, Choice(ON_GPU, f"{wanted.choice.reason}: {device.name}")
    _give_back(device)
    return None, Choice(ON_CPU, f"{why}; done on the CPU")


def _lasts(error: Exception) -> bool:
    """Tell whether trying again is of no use."""
    return any(kind.__name__ in _LASTING for kind in type(error).__mro__)


def _often(why: str, terms: GpuLease) -> str:
    return f"{why}, at attempt {terms.attempt + 1}" if terms.attempt else why


def _give_back(device: Device | None) -> None:
    """Let others have the device memory of work that failed; its arrays went with the exception."""
    if device is not None:
        with contextlib.suppress(Exception):  # a lost device has nothing to give
            device.release()


def _reason(error: Exception) -> str:
    """Return, in one line, why the GPU failed."""
    lines = str(error).strip().splitlines() or [""]
    if type(error).__name__ == "TooLargeError":
        return f"the work does not fit on the GPU ({lines[0]})"
    return f"the GPU failed ({type(error).__name__}: {lines[0]})"


def combined_choice(choices: list[Choice], otherwise: Choice) -> Choice:
    """Return what a report says of pieces of work that were done on several devices.

    Examples
    --------
    >>> combined_choice([Choice("gpu", "there is one"), Choice("cpu", "it failed")], None)
    Choice(device='gpu, cpu', reason='1 of 2 parts on the CPU: it failed')
    """
    apart = [choice for choice in choices if choice.device == ON_CPU]
    if not choices:
        return otherwise
    if not apart or len(apart) == len(choices):
        return choices[0]
    return Choice(
        f"{ON_GPU}, {ON_CPU}", f"{len(apart)} of {len(choices)} parts on the CPU: {apart[0].reason}"
    )
