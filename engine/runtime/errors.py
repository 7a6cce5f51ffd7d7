"""Errors that state the fact, the value and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class WinnowError(Exception):
    """Anything the user can put right: bad input, bad options, a missing device."""


class SpecError(WinnowError, ValueError):
    """An invalid option, or an invalid combination of options."""


class InputError(WinnowError, ValueError):
    """An archive that cannot be read as a stream."""


class OutputError(WinnowError, OSError):
    """An output place that cannot be written."""


class DeviceError(WinnowError, RuntimeError):
    """A device that was asked for and is not there."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest known name, or an empty string.

    Examples
    --------
    >>> did_you_mean("simprob", ["simp", "simpprob", "dgl"])
    " Did you mean 'simpprob'?"
    >>> did_you_mean("zzz", ["simp"])
    ''
    """
    close = difflib.get_close_matches(name.lower(), {k.lower(): k for k in known}, n=1, cutoff=0.6)
    return f" Did you mean '{close[0]}'?" if close else ""


def chosen(option: str, value: str, known: Sequence[str]) -> str:
    """Return a value if it is one of those known, else raise `SpecError`."""
    if value not in known:
        raise SpecError(
            f"{option} is {value!r}; choose one of {', '.join(known)}." + did_you_mean(value, known)
        )
    return value
