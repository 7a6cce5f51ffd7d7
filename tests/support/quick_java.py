"""JVM options for tests: as none lives for long, they start and compile quickly.

In half the processor time; Spark's programs take the options from `VARIABLES`, and executors from
their configuration. With `ARCHIVE`, which `compile_first.py` makes, they load Spark's classes as
they were laid out in memory once, in two thirds of that. A JVM of another kind does without it.
"""

import sys
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
OPTIONS = f"{QUICK} -Xlog:disable -Xlog:all=error:stderr"
if ARCHIVE.exists():
    OPTIONS += f" -XX:SharedArchiveFile={ARCHIVE}"
VARIABLES = dict.fromkeys(("SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS"), OPTIONS) | {
    "SPARK_LAUNCHER_OPTS": QUICK
}
"""What drivers, masters and workers, and the scripts that start them, read."""
EXECUTORS = {"spark.executor.extraJavaOptions": OPTIONS}


def writing(place: Path) -> dict[str, str]:
    """Return `VARIABLES` of a driver that leaves an archive when it ends."""
    return VARIABLES | {"SPARK_SUBMIT_OPTS": f"{QUICK} -XX:ArchiveClassesAtExit={place}"}
