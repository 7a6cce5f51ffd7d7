"""Where things lie: the repository, its tests and the real archives."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
SUPPORT = TESTS / "support"
ORACLE = TESTS / "oracle"
SIMULATOR = TESTS / "gpu" / "simulator"
BENCHMARKS = ROOT / "benchmarks"
PYTHONPATH = os.pathsep.join(map(str, (ROOT, SUPPORT, ORACLE)))
"""For processes that import winnow and what tests share."""
DATA = Path(os.environ.get("WINNOW_DATA", ROOT.parent / "shared" / "data"))
