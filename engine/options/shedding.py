"""How a harvested join sheds load, and what profiles it begins with, as options say it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
        If one is missing, or given where nothing is shed.
    """
    found = given.chosen(*_HARVEST)
    if "capacity" in found or "throttle" in found or found.get("clock") == "wall":
        for name in HARVEST_TIMES:
            if name not in found:
                flag = given.options[name].written
                raise SpecError(
                    f"{flag} is missing: a harvested join needs it, in ticks or as a duration"
                )
        return found
    for name in found:
        raise SpecError(
            f"{given.options[name].written} is of joins that shed load, and this one sheds none: "
            "give --capacity, --throttle or --clock wall"
        )
    return None
