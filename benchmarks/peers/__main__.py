"""Measure winnow beside other engines: see `peers.run`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from peers.run import main

if __name__ == "__main__":
    sys.exit(main())
