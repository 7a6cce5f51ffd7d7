"""Sessions with the RAPIDS Accelerator: settings before and after Spark's JVM starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark import SparkConf
from pyspark.sql import SparkSession
from pyspark.sql.conf import RuntimeConfig

from engine.runtime.errors import SpecError
from spark_plugin.configured import defaults
from spark_plugin.rapids.files import fetched_jar
from spark_plugin.rapids.options import PLUGIN, RapidsOptions
from spark_plugin.rapids.settings import settings_of

_CLASSPATH = "SPARK_DIST_CLASSPATH"


def uses_rapids(session: SparkSession) -> bool:
    """Return whether the RAPIDS Accelerator plans this session's queries."""
    plugins = session.conf.get("spark.plugins", "") or ""
    return PLUGIN in plugins and session.conf.get("spark.rapids.sql.enabled", "true") == "true"


def has_plugin(conf: SparkConf | RuntimeConfig) -> bool:
    """Return whether a configuration names the RAPIDS Accelerator."""
    return PLUGIN in (conf.get("spark.plugins", "") or "")


def require_plugin(conf: SparkConf | RuntimeConfig) -> None:
    """Raise `SpecError` if a Spark that already runs was started without the RAPIDS Accelerator."""
    if not has_plugin(conf):
        plugins = conf.get("spark.plugins", "") or ""
        raise SpecError(
            "the Spark that runs was started without the RAPIDS Accelerator (spark.plugins is "
            f"{plugins!r}), and --rapids cannot add it: start it with what "
            "`winnow spark-conf` prints, as in spark-submit $(winnow spark-conf --format flags) ..."
        )


@contextmanager
def jar_on_classpath(options: RapidsOptions) -> Iterator[RapidsOptions]:
    """Put the jar on the class path of a JVM that starts inside the block; yield its place.

    It is the system class path, because the plugin is loaded with the session. If the user's own
    configuration names the plugin, it also names its jar, and this changes nothing.
    """
    if _configured():
        yield options
        return
    jar = options.jar or str(fetched_jar(options.classifier))
    before = os.environ.get(_CLASSPATH)
    os.environ[_CLASSPATH] = os.pathsep.join(filter(None, (before, jar)))
    try:
        yield replace(options, jar=jar)
    finally:
        if before is None:
            del os.environ[_CLASSPATH]
        else:
            os.environ[_CLASSPATH] = before


def _configured() -> bool:
    """Return whether Spark's start-up configuration names the plugin."""
    return any(PLUGIN in text for text in (os.environ.get("PYSPARK_SUBMIT_ARGS", ""), defaults()))


def configure(conf: SparkConf, options: RapidsOptions) -> None:
    """Add the settings to a configuration whose master is known; what is set already stays."""
    master = conf.get("spark.master") or "local[*]"
    if has_plugin(conf):
        return
    for name, value, _ in settings_of(replace(options, master=master)):
        if name == "spark.jars" and conf.get(name):
            conf.set(name, f"{conf.get(name)},{value}")
        else:
            conf.setIfMissing(name, value)
