"""The command line as a Spark application, where winnow is not installed.

``spark-submit --py-files winnowjoin.zip spark_plugin/submit.py replay --left ... --right ...``
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

_OURS = "engine", "spark_plugin", "gpu_kernels"


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``winnow`` with the engine ``spark`` registered; return its exit status."""
    try:
        from engine.commands import main as command_line  # noqa: PLC0415 - its absence is told
        from spark_plugin import command  # noqa: PLC0415 - so too
        from spark_plugin.rapids import command as spark_conf  # noqa: PLC0415 - so too
        from spark_plugin.shipping import command as package  # noqa: PLC0415 - so too

        commands = {"package": package, "spark-conf": spark_conf}
        return command_line(argv, engines={"spark": command.spark_executor}, commands=commands)
    except ModuleNotFoundError as missing:
        remedy = (
            "give --py-files with the zip that winnow package --out wrote"
            if missing.name in _OURS
            else "unpack the environment of winnow package where spark-submit starts, in a folder "
            "env, and give --conf spark.pyspark.driver.python=./env/bin/python"
        )
        print(  # noqa: T201 - nothing that shows errors could be imported
            f"winnow: error: the driver's Python, {sys.executable}, has no package {missing.name}: "
            f"{remedy}",
            file=sys.stderr,
        )
        return 2


if __name__ == "__main__":
    sys.exit(main())
