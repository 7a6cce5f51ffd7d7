"""The parameter by which tuples have sizes."""

from __future__ import annotations

from engine.policies.base import Parameter

SIZE = Parameter(
    "size",
    "size of a tuple: tuples of the other stream that have its key (matches), the same times its "
    "importance (weighted), or 1 (equal)",
    default="matches",
    choices=("matches", "weighted", "equal"),
    kind="word",
)
