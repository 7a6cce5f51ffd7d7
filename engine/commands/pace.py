"""How fast a stage goes, as its progress bar shows it."""

from __future__ import annotations

from collections import deque

SOON, LONG = 0.5, 30.0
"""Seconds of work before which a rate says nothing, and those over which it is taken at most."""


class Pace:
    """A stage's rate: since it began, or since kernels were last compiled, but of `LONG` at most.

    Parameters
    ----------
    now : float
        When the stage begins, in seconds of any clock.

    Attributes
    ----------
    compiling : bool
        Whether kernels are being compiled, so that nothing is known of the rate.

    Examples
    --------
    >>> pace = Pace(10.0)
    >>> pace.at(10.2, 500, compiling=False), pace.at(12.0, 1000, compiling=False)
    (None, 500.0)
    >>> pace.at(20.0, 1000, compiling=True), pace.at(26.0, 1000, compiling=False)
    (None, None)
    >>> pace.at(28.0, 2000, compiling=False)
    500.0
    """

    def __init__(self, now: float) -> None:
        self.compiling = False
        self._seen = deque([(now, 0.0)])

    def at(self, now: float, done: float, *, compiling: bool) -> float | None:
        """Return what is done in a second, None if that cannot be told, as of now."""
        self.compiling = compiling
        if compiling:
            self._seen.clear()
            return None
        self._seen.append((now, done))
        while len(self._seen) > 2 and self._seen[0][0] < now - LONG:
            self._seen.popleft()
        begun, before = self._seen[0]
        return (done - before) / (now - begun) if now - begun >= SOON else None
