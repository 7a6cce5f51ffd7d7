"""How memory is asked for."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

FAULTS = """
import resource, sys
import numpy as np
from engine.runtime.host import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
for _ in range(20):
    batch = [np.ones(1 << 18) for _ in range(16)]
    del batch
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


LARGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library does nothing")
@pytest.mark.skipif(
    LARGE.exists() and "[always]" in LARGE.read_text(), reason="all pages are large: few are made"
)
def test_memory_that_is_kept_is_not_made_anew() -> None:
    def faults(how: str) -> int:
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-c", FAULTS, how], capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    assert faults("left") - faults("kept") > 19 * 16 * 512 / 2
