"""Which device a replay runs on, and why."""

from __future__ import annotations

from typing import NamedTuple


class Choice(NamedTuple):
    """The device chosen and the reason, for the report."""

    device: str
    reason: str


class NoGpuError(RuntimeError):
    """A GPU was asked for and cannot be had."""


def gpu_seen() -> tuple[bool, str]:
    """Tell whether CuPy sees a CUDA device, and what it saw.

    Returns
    -------
    (bool, str)
        Never raises: a missing driver or package is a reason, not an error.
    """
    try:
        import cupy  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        return False, "CuPy is not installed"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except RuntimeError as error:
        return False, f"CuPy sees no CUDA device ({error})"
    return count > 0, f"CuPy sees {count} CUDA device(s)"


def choose_device(wanted: str) -> Choice:
    """Return the device for a replay.

    Parameters
    ----------
    wanted : {"auto", "cpu", "gpu"}

    Raises
    ------
    NoGpuError
        If a GPU is demanded: this version replays on the CPU.

    Examples
    --------
    >>> choose_device("cpu")
    Choice(device='cpu', reason='asked for')
    """
    if wanted == "cpu":
        return Choice("cpu", "asked for")
    seen, why = gpu_seen()
    if wanted == "gpu":
        raise NoGpuError(
            f"--device gpu: {why}, and this version has no GPU replay; use --device auto or cpu"
        )
    reason = "this version has no GPU replay" if seen else why
    return Choice("cpu", reason)
