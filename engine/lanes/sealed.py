"""JSON with a digest at its end, by which edits and damage are told."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_DIGEST = ',"digest":'


def sealed(content: dict[str, Any]) -> str:
    """Return an object as JSON, with a digest of all that it says; not empty.

    Examples
    --------
    >>> unsealed(sealed({"rows": 3}).encode())
    ({'rows': 3}, True)
    >>> unsealed(sealed({"rows": 3}).replace("3", "4", 1).encode())
    ({'rows': 4}, False)
    """
    text = json.dumps(content, separators=(",", ":"), default=vars)
    return text[:-1] + _DIGEST + json.dumps(_digest(text)) + "}"


def unsealed(data: bytes) -> tuple[dict[str, Any], bool]:
    """Return what `sealed` was given, and whether its digest is right.

    Raises
    ------
    ValueError, LookupError, TypeError, AttributeError
        If it is no JSON, or no object with a digest.
    """
    content = json.loads(data)
    digest = content.pop("digest", None)
    return content, digest == _digest(data.decode().rpartition(_DIGEST)[0] + "}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
