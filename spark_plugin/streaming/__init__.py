"""Archives as streams of Spark: paced by event time, and joined with state kept in a checkpoint."""

from spark_plugin.streaming.replay import replay
from spark_plugin.streaming.source import register

__all__ = ["register", "replay"]
