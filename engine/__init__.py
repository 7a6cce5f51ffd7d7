"""Approximate sliding-window joins of archived streams: model, policies and CPU drivers.

`replay_tables` joins Arrow tables (it is `engine.api.replay`; ``engine.replay`` is the subpackage)
and `replay_archives` joins files. Both are loaded when first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.api import ReplayResult, replay_archives
    from engine.api import replay as replay_tables

__all__ = ["ReplayResult", "replay_archives", "replay_tables"]

_NAMES = {
    "ReplayResult": "ReplayResult",
    "replay_archives": "replay_archives",
    "replay_tables": "replay",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever is asked for
    if name in _NAMES:
        from engine import api  # noqa: PLC0415 - numba and pyarrow take a second

        return getattr(api, _NAMES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
