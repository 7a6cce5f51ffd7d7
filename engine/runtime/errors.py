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


class NoStretchesError(InputError):
    """Stretches of time of an archive cannot be told apart by footers.

    Parameters
    ----------
    message : str
    short : str
        The same in a few words.
    """

    def __init__(self, message: str, short: str = "") -> None:
        super().__init__(message)
        self.short = short

    def __reduce__(self) -> tuple[type[NoStretchesError], tuple[str, str]]:
        """Return what it is made of, as other processes need it."""
        return type(self), (str(self), self.short)


class OutputError(WinnowError, OSError):
    """An output place that cannot be written."""


class DeviceError(WinnowError, RuntimeError):
    """A device that was asked for and is not there."""


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant: one that begins so, or the closest.

    Examples
    --------
    >>> closest("imp", ["importance", "on"]), closest("key", ["Keys", "Key"])
    ('importance', 'Key')
    """
    names = {own.lower(): own for own in known}
    begun = [own for own in names if len(name) > 1 and own.startswith(name.lower())]
    close = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6) or begun[:1]
    return names[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest known name, or an empty string.

    Examples
    --------
    >>> did_you_mean("simprob", ["simp", "simpprob", "dgl"])
    " Did you mean 'simpprob'?"
    >>> did_you_mean("zzz", ["simp"])
    ''
    """
    close = closest(name, known)
    return f" Did you mean '{close}'?" if close else ""


def alike(name: str) -> str:
    """Return a name as it is compared: in any case, and with - for _.

    Examples
    --------
    >>> alike("Bottom_K")
    'bottom-k'
    """
    return name.lower().replace("_", "-")


def chosen(option: str, value: str, known: Sequence[str]) -> str:
    """Return that of the known values that is meant, in any case and with - for _.

    Raises
    ------
    SpecError
        If it is none of them.
    """
    for own in known:
        if value == own or alike(str(value)) == alike(own):
            return own
    raise SpecError(
        f"{option} is {value!r}; choose one of {', '.join(known)}." + did_you_mean(value, known)
    )
