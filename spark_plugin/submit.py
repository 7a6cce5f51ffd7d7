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
    try:
        return command_line(argv, engines={"spark": command.spark_executor}, commands=commands)
    except ModuleNotFoundError as missing:
        print(  # noqa: T201 - nothing that shows errors could be imported
            f"winnow: error: the driver's Python, {sys.executable}, has no package {missing.name}: "
            "unpack the environment of winnow package where spark-submit starts, in a folder env, "
            "and give --conf spark.pyspark.driver.python=./env/bin/python",
            file=sys.stderr,
        )
        return 2


if __name__ == "__main__":
    sys.exit(main())
