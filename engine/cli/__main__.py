"""``python -m engine.cli``: the command line where no script is installed."""

import sys

from engine.cli import main

sys.exit(main())
