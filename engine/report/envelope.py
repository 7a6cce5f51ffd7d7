"""What reports share: their JSON file, and the parts that several commands write."""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from engine.lanes.manifest import Prepared
from engine.options.budget import Amounts
from engine.policies import Value
from engine.replay.settings import UNLIMITED
from engine.runtime.errors import OutputError
from engine.runtime.storage.places import is_stream, is_there, save_text, try_to_put
from engine.runtime.storage.uris import Place, Uri
from engine.runtime.streams import SIDES
from engine.runtime.time_units import instant_text, span_text
from gpu_kernels.devices import Choice

TIME_BINS = 50


def check_place(
    path: Place, what: str = "report", *, new: bool = False, begins: bytes = b"{"
) -> None:
    """Find out before the work whether a report, or another file, could be written.

    One that must be `new` is not to replace another, and none replaces what is not of its kind. An
    object store is asked by an object that is put and removed, a disk by a file without a name.

    Parameters
    ----------
    begins : bytes
        With which files of its kind begin.

    Raises
    ------
    OutputError
        If not.
    """
    if isinstance(path, Uri):
        if new and is_there(path):
            raise OutputError(f"{what} {path} exists: remove it or name another file")
        try_to_put(path.parent)
        return
    if is_stream(path):
        return
    if path.is_dir():
        raise OutputError(f"{what} {path} is a folder: name a file in it")
    if path.exists():
        if new:
            raise OutputError(f"{what} {path} exists: remove it or name another file")
        if not _begins_so(path, begins):
            raise OutputError(
                f"{what} {path} would replace a file that is none: remove that or name another"
            )
    above = next(folder for folder in Path(os.path.realpath(path)).parents if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=above):
            pass
    except OSError as error:
        raise OutputError(
            f"{what} {path} cannot be written: {above} is no folder to write to ({error.strerror})"
        ) from None


def _begins_so(path: Path, begins: bytes) -> bool:
    """Return whether a file has nothing, or begins so; one that cannot be read may."""
    try:
        with path.open("rb") as file:
            found = file.read(len(begins))
    except OSError:
        return True
    return found in (b"", begins)


class Report(NamedTuple):
    """A report, as JSON holds it."""

    content: dict[str, Any]
    """See docs/report.md for every field."""

    def save(self, path: Place) -> None:
        """Write the report as JSON, whole or not at all.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        save_text(path, json.dumps(with_times(self.content), indent=2, allow_nan=False) + "\n")


def envelope(
    seconds: Mapping[str, float],
    *,
    rate: Mapping[str, float] | None = None,
    device: Choice | None = None,
    seed: int | None = None,
    **places: Place | None,
) -> dict[str, Any]:
    """Return what ends every report: how long the job took, where it ran, and what made it.

    Parameters
    ----------
    seconds : mapping
        By stage.
    rate : mapping, optional
        By name, as `per_second` returns them.
    **places : Path or None
        Where outputs were written, by option.
    """
    found: dict[str, Any] = {"seconds": rounded(seconds), **(rate or {})}
    if device is not None:
        found["device"] = {"used": device.device, "reason": device.reason}
    found["versions"] = versions()
    if seed is not None:
        found["seed"] = seed
    return found | {name: None if at is None else str(at) for name, at in places.items()}


def rounded(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of each stage to a microsecond."""
    return {name: round(spent, 6) for name, spent in seconds.items()}


def per_second(tuples: int, seconds: float) -> dict[str, float]:
    """Return the rate of a job that went through so many tuples, 0 where no time was taken."""
    return {"tuples_per_second": tuples / seconds if seconds else 0.0}


def time_bins(first: int, last: int) -> tuple[int, ...]:
    """Return the left edges of the time bins of streams from one tick to another."""
    width = max(1, -(-(last - first + 1) // TIME_BINS))
    return tuple(range(first, last + 1, width))


def last_ticks(edges: Sequence[int], last: int) -> tuple[int, ...]:
    """Return the last tick of each time bin, from their left edges and that of the last one.

    Examples
    --------
    >>> last_ticks((0, 10, 20), 25)
    (9, 19, 25)
    """
    return (*(edge - 1 for edge in edges[1:]), last)


def plain(value: object) -> object:
    """Return a join attribute as JSON holds it."""
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)


def stream_report(
    prepared: Prepared, names: Sequence[str] = ("rows", "joined", "null_keys", "rejected", "sorted")
) -> dict[str, dict[str, int]]:
    """Return what was read, of the streams and of what joins them, and what became of it."""
    left, right = prepared.streams
    found: dict[str, dict[str, int]] = {
        name: {"left": getattr(left, name), "right": getattr(right, name)} for name in names
    }
    if prepared.facts is not None:
        found["fact"] = prepared.facts.report
    return found


def memory_report(
    asked: Amounts, budgets: list[tuple[int, int]], *, pooled: bool = False
) -> dict[str, Any]:
    """Return the memory over all lanes, of each side and of both, and as asked.

    None is an exact side, and either side of a pooled memory.
    """
    left, right = (None if asked[i] is None else _budget(budgets, i) for i in (0, 1))
    return {
        "left": None if pooled else left,
        "right": None if pooled else right,
        "both": None if left is None or right is None else left + right,
        "asked": {
            side: None if amount is None else str(amount)
            for side, amount in zip(SIDES, asked, strict=True)
        },
    }


def window_report(windows: tuple[int, int], unit: str, zone: str | None = None) -> dict[str, Any]:
    """Return the windows, what one tick is, and the time zone."""
    return windows_report(SIDES, windows, unit, zone)


def windows_report(
    streams: Sequence[str], windows: Sequence[int], unit: str, zone: str | None = None
) -> dict[str, Any]:
    """Return the windows of streams of these names, what one tick is, and the time zone."""
    return {**dict(zip(streams, windows, strict=True)), "tick": unit, "zone": zone}


def spans(content: Mapping[str, Any]) -> dict[str, str]:
    """Return the windows of a report as people write them, by stream."""
    windows = content["window"]
    return {
        side: span_text(own, windows["tick"]) if isinstance(own, int) else str(own)
        for side, own in ((side, windows[side]) for side in content["rows"])
    }


def instant(content: Mapping[str, Any], ticks: int) -> str:
    """Return a point in time of a report as people write it."""
    return instant_text(ticks, content["window"]["tick"], content["window"].get("zone"))


def with_times(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report with windows and points in time as people write them, beside the ticks.

    As it is where ticks are plain numbers.

    Examples
    --------
    >>> lost = {"by_time": [{"from": 0, "to": 59_999}]}
    >>> found = with_times({"rows": {"a": 1}, "window": {"a": 60_000, "tick": "ms"}, "lost": lost})
    >>> found["windows"], found["lost"]["by_time"][0]["begin"]
    ({'a': '60 s'}, '1970-01-01 00:00:00')
    """
    found, window = dict(content), content.get("window")
    if not isinstance(window, Mapping) or window.get("tick", "tick") == "tick":
        return found
    if "rows" in found:
        found["windows"] = spans(content)
    for name in ("lost", "exact_memory"):
        if found.get(name, {}).get("by_time"):
            found[name] = found[name] | {"by_time": _dated(content, found[name]["by_time"])}
    if "by_time" in found:  # of an estimate
        found["by_time"] = _dated(content, found["by_time"])
    return found


def _dated(content: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return parts of time with their ends as people write them."""
    return [
        {**own, "begin": instant(content, own["from"]), "end": instant(content, own["to"])}
        for own in parts
    ]


def plain_parameters(parameters: Mapping[str, Value]) -> dict[str, Any]:
    """Return parameters as JSON holds them: a function by its module and name."""
    return {
        name: f"{value.__module__}:{value.__name__}" if callable(value) else value
        for name, value in parameters.items()
    }


def _budget(budgets: list[tuple[int, int]], side: int) -> int | None:
    """Return a side's memory over all lanes, None where it is exact."""
    given = [pair[side] for pair in budgets]
    return None if UNLIMITED in given else sum(given)


_PACKAGES = ("winnowjoin", "numba", "numpy", "pyarrow", "pyspark")


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package and of those that results depend on."""
    return {
        "python": platform.python_version(),
        **{package: _version_of(package) for package in _PACKAGES},
    }


def _version_of(package: str) -> str:
    try:
        return _stated(package)
    except metadata.PackageNotFoundError:  # Spark brings a pyspark without metadata
        return getattr(sys.modules.get(package), "__version__", "not installed")


@cache
def _stated(package: str) -> str:
    return metadata.version(package)
