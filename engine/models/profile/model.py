"""A profile of two streams: what one pass has measured, as its JSON file holds it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.models.frequency import KeyCounts
from engine.models.profile.parts import (
    AgeCurve,
    Correlation,
    Frequencies,
    StreamProfile,
    both,
    frequencies_of,
    plain,
    stream_of,
    whole,
)
from engine.runtime.errors import SpecError
from engine.runtime.jit import Floats
from engine.runtime.storage.places import save_text, text_at
from engine.runtime.storage.uris import Place, place_of
from engine.runtime.streams import SIDES

__all__ = ["AgeCurve", "ArrivalProfile", "Correlation", "Frequencies", "StreamProfile"]

KIND, VERSION = "profile", 1
_AGAIN = "winnow profile --out FILE makes one"


@dataclass(frozen=True, eq=False)
class ArrivalProfile:
    """A profile; docs/profile.md explains every field.

    Attributes
    ----------
    unit : str
        What a tick is.
    windows : (int, int)
        W_i, ticks.
    span : (int, int) or None
        First and last tick of both streams; None without rows.
    streams : (StreamProfile, StreamProfile)
        Left and right.
    exact : dict
        outputs, simultaneous, selectivity.
    frequencies : Frequencies
    correlation : Correlation
    fit, advice, online : dict
        Plain, as in the file.
    step : int
        Ticks of which all times are multiples, counted from the first; 1 in files that lack it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "p.json"
    ...     _ = file.write_text("{}")
    ...     try:
    ...         ArrivalProfile.load(file)
    ...     except SpecError as error:
    ...         print(str(error).replace(folder, "."))
    ./p.json is no profile: winnow profile --out FILE makes one
    """

    unit: str
    windows: tuple[int, int]
    span: tuple[int, int] | None
    streams: tuple[StreamProfile, StreamProfile]
    exact: dict[str, Any]
    frequencies: Frequencies
    correlation: Correlation
    fit: dict[str, Any]
    advice: dict[str, Any]
    online: dict[str, Any]
    step: int = 1

    @property
    def ticks(self) -> int:
        """T, the ticks of the span; 0 without rows."""
        return 0 if self.span is None else self.span[1] - self.span[0] + 1

    def curve(self, side: int) -> Floats:
        """Return p_i of a side, (n,) float64."""
        return np.array(self.streams[side].age.buckets, np.float64)

    def counts(self) -> KeyCounts:
        """Return the tuples of each listed key on both sides."""
        return self.frequencies.counts

    def rate(self, side: int) -> float:
        """Return r_i, tuples a tick."""
        return self.streams[side].rate

    def content(self) -> dict[str, Any]:
        """Return what the file holds."""
        own, counts = self.frequencies, self.frequencies.counts
        return {
            "winnow": KIND,
            "version": VERSION,
            "unit": self.unit,
            "windows": dict(zip(SIDES, self.windows, strict=True)),
            "span": None if self.span is None else {"first": self.span[0], "last": self.span[1]},
            "step": self.step,
            "streams": {
                side: plain(stream) for side, stream in zip(SIDES, self.streams, strict=True)
            },
            "exact": self.exact,
            "frequencies": {
                "kind": own.kind,
                "codes": counts.codes.tolist(),
                "left": counts.left.tolist(),
                "right": counts.right.tolist(),
                "rest": own.rest,
                "error": dict(zip(SIDES, own.error, strict=True)),
                "seed": own.seed,
                "keys": list(own.keys),
            },
            "correlation": {name: v.tolist() for name, v in self.correlation._asdict().items()},
            "fit": self.fit,
            "advice": self.advice,
            "online": self.online,
        }

    def save(self, path: str | os.PathLike[str] | Place) -> None:
        """Write the profile as JSON, a line a field, whole or not at all.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        lines = [
            f"  {json.dumps(name)}: {json.dumps(value, allow_nan=False)}"
            for name, value in self.content().items()
        ]
        save_text(place_of(os.fspath(path)), "{\n" + ",\n".join(lines) + "\n}\n", "profile")

    @staticmethod
    def load(path: str | os.PathLike[str] | Place) -> ArrivalProfile:
        """Read a profile.

        Raises
        ------
        SpecError
            If the file cannot be read, is no profile, is of another version or lacks a field.
        """
        try:
            content = json.loads(text_at(place_of(os.fspath(path))))
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise SpecError(f"profile {path} cannot be read ({why}): {_AGAIN}") from None
        except json.JSONDecodeError:
            raise SpecError(f"{path} is no profile: {_AGAIN}") from None
        if not isinstance(content, dict) or content.get("winnow") != KIND:
            raise SpecError(f"{path} is no profile: {_AGAIN}")
        if content.get("version") != VERSION:
            raise SpecError(
                f"profile {path} is of version {content.get('version')!r}, and this winnow reads "
                f"version {VERSION}: {_AGAIN} again"
            )
        try:
            return _parsed(content)
        except KeyError as error:
            raise SpecError(f"profile {path} lacks the field {error}: {_AGAIN} again") from None
        except (TypeError, ValueError, AttributeError, IndexError) as error:
            raise SpecError(
                f"profile {path} has a field that means nothing ({error}): {_AGAIN} again"
            ) from None


def _parsed(content: Mapping[str, Any]) -> ArrivalProfile:
    span = content["span"]
    lags = content["correlation"]
    correlation = Correlation(*(whole(lags[name]) for name in Correlation._fields))
    if correlation.edges.size != correlation.matches.size + 1:
        raise ValueError("correlation.edges are not one more than correlation.matches")
    left, right = (stream_of(content["streams"][side]) for side in SIDES)
    return ArrivalProfile(
        str(content["unit"]),
        both(content["windows"]),
        None if span is None else (int(span["first"]), int(span["last"])),
        (left, right),
        dict(content["exact"]),
        frequencies_of(content["frequencies"]),
        correlation,
        dict(content["fit"]),
        dict(content["advice"]),
        dict(content["online"]),
        max(1, int(content.get("step", 1))),
    )
