"""Measure the papers' figures: see `reproduce.run`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from reproduce.run import main

if __name__ == "__main__":
    sys.exit(main())
