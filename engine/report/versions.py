"""What results depend on besides the options: versions, as every report tells them."""

from __future__ import annotations

import platform
import sys
from functools import cache
from importlib import metadata

_PACKAGES = ("winnowjoin", "numba", "numpy", "pyarrow", "pyspark")


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package and of those that results depend on."""
    return {
        "python": platform.python_version(),
        **{package: _version_of(package) for package in _PACKAGES},
    }


def _version_of(package: str) -> str:
    try:
        return _stated(package)
    except metadata.PackageNotFoundError:  # Spark brings a pyspark without metadata
        return getattr(sys.modules.get(package), "__version__", "not installed")


@cache
def _stated(package: str) -> str:
    return metadata.version(package)
