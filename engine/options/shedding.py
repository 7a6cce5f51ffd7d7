"""How a harvested join sheds load, and what profiles it begins with, as options say it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.multiway.fractions.greedy import WAYS
from engine.multiway.harvest.settings import HarvestSettings
from engine.options.command import Given
from engine.runtime.errors import SpecError

MEASURED = "auto"
"""In place of a capacity: what this machine makes."""
HARVEST_TIMES = ("basic_window", "adapt_every")
"""Of the harvest's settings, those that are ticks or durations."""
_HARVEST = tuple(
    name for name in HarvestSettings.__dataclass_fields__ if name not in ("seed", "buckets")
)


def profiles_of(given: Mapping[str, Any]) -> tuple[tuple[str, str, Path], ...]:
    """Return files of profiles by the names of both streams."""
    found = []
    for names, file in given.items():
        left, comma, right = (part.strip() for part in str(names).partition(","))
        if not (left and comma and right) or left == right:
            raise SpecError(
                f"a profile is given for {names!r}; write LEFT,RIGHT=FILE with two of the streams, "
                "such as trades,quotes=profile.json"
            )
        found.append((left, right, Path(file)))
    return tuple(found)


def harvest_of(given: Given) -> dict[str, Any] | None:
    """Return the settings of a harvest, times as text; None if nothing is shed.

    Raises
    ------
    SpecError
        If one is missing, or given where nothing is shed or where it has no effect.
    """
    found = given.chosen(*_HARVEST)
    if "capacity" in found or "throttle" in found or found.get("clock") == "wall":
        _check_no_memory(given, found)
        for name in HARVEST_TIMES:
            if name not in found:
                flag = given.options[name].written
                raise SpecError(
                    f"{flag} is missing: a harvested join needs it, in ticks or as a duration"
                )
        _check_idle(given)
        return found
    for name in found:
        raise SpecError(
            f"{given.options[name].written} is of joins that shed load, and this one sheds none: "
            "give --capacity, --throttle or --clock wall"
        )
    return None


def _check_idle(given: Given) -> None:
    """Raise `SpecError` if an option is given that the others leave nothing to do."""
    timed = "capacity" in given or given["clock"] == "wall"
    ways, optimiser = ", ".join(WAYS), given["optimiser"]
    dropping = (
        given["shedding"] == "random-drop"
        and "--shedding random-drop reads whole windows, and "
        "learns and chooses nothing: leave that out"
    )
    reasons = {
        **dict.fromkeys(
            ("shred", "forget", "scores", "admission", "optimiser", "profiles"), dropping
        ),
        "buffer": not timed
        and "no tuple waits, as comparisons take no time without --capacity: give one",
        "boost": "throttle" in given and "--throttle fixes z, which it raises: leave that out",
        "throttle": "capacity" in given and dropping,
        "metric": optimiser not in WAYS
        and f"it is of {ways}, and --optimiser is {optimiser}: name one of these",
    }
    for name, reason in reasons.items():
        if name in given and reason:
            flag = given.options[name].written
            raise SpecError(f"{flag} has no effect, since {reason}, or leave {flag} out")


def _check_no_memory(given: Given, found: dict[str, Any]) -> None:
    """Raise `SpecError` if a join that is to shed load has a memory too."""
    if given.get("memory") is None:
        return
    flags = [given.options[name].written for name in ("capacity", "throttle") if name in found]
    raise SpecError(
        f"{flags[0] if flags else '--clock wall'} is of joins that shed load, and with --memory a "
        "policy decides what stays: leave one of them out"
    )
