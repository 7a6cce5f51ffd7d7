"""``python -m winnow``: the command line where no script is installed."""

import sys

from engine.commands import main

sys.exit(main())
