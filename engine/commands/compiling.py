"""Whether kernels are being compiled in this process, for its progress bars."""

from __future__ import annotations

from typing import Any


class Compiling:
    """Hears from numba when it compiles; loads nothing until it does.

    Attributes
    ----------
    depth : int
        Functions that are being compiled, each for the one before; 0: none is.
    """

    def __init__(self) -> None:
        self.depth = 0
        self._hears = False

    def begun(self) -> None:
        """Take that the first kernel is being compiled, and hear of all others from now on."""
        if self._hears:
            return
        from numba.core import event  # noqa: PLC0415 - loaded by who compiles

        own, self.depth, self._hears = self, 1, True

        class _Ear(event.Listener):  # type: ignore[misc]
            def on_start(self, event: Any) -> None:  # noqa: ANN401 - numba's
                del event
                own.depth += 1

            def on_end(self, event: Any) -> None:  # noqa: ANN401 - numba's
                del event
                own.depth -= 1

        event.register("numba:compile", _Ear())


COMPILING = Compiling()
"""Of this process."""
