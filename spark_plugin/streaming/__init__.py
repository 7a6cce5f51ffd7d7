"""Archives as streams of Spark: paced by event time, and joined with state kept in a checkpoint.

Raises `SpecError` when it is imported with a Spark that has no such streams.
"""

from spark_plugin.versions import require_streams

require_streams()

from spark_plugin.streaming.replay import replay  # noqa: E402 - Spark may lack what it imports
from spark_plugin.streaming.source import register  # noqa: E402 - the same

__all__ = ["register", "replay"]
