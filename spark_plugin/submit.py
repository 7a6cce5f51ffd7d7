"""The command line as a Spark application, where winnow is not installed.

``spark-submit --py-files winnowjoin.zip spark_plugin/submit.py replay --left ... --right ...``
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from engine.commands import main as command_line
from spark_plugin import command
from spark_plugin.rapids import command as spark_conf
from spark_plugin.shipping import command as package


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``winnow`` with the engine ``spark`` registered; return its exit status."""
    commands = {"package": package, "spark-conf": spark_conf}
    return command_line(argv, engines={"spark": command.spark_executor}, commands=commands)


if __name__ == "__main__":
    sys.exit(main())
