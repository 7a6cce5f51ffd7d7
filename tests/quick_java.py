"""JVM options for tests: as none lives for long, they compile for a quick start.

In half the processor time; Spark's programs take the options from `VARIABLES`, and executors from
their configuration.
"""

OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
VARIABLES = dict.fromkeys(
    ("SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS", "SPARK_LAUNCHER_OPTS"), OPTIONS
)
"""What drivers, masters and workers, and the scripts that start them, read."""
EXECUTORS = {"spark.executor.extraJavaOptions": OPTIONS}
