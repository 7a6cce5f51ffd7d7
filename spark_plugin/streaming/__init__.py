"""Archives as streams of Spark: paced by event time, and joined with state kept in a checkpoint."""

from spark_plugin.streaming.registered import register
from spark_plugin.streaming.replay import replay

__all__ = ["register", "replay"]
