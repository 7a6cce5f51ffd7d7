"""Approximate sliding-window joins of archived streams: model, policies and CPU drivers.

`replay` joins Arrow tables and `replay_archives` files; both are loaded when first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.api import ReplayResult, replay, replay_archives

__all__ = ["ReplayResult", "replay", "replay_archives"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever is asked for
    if name in __all__:
        import engine.api  # noqa: PLC0415 - numba and pyarrow take a second

        return getattr(engine.api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
