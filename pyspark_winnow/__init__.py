"""Lets Spark find ``readStream.format("winnow")`` by itself, through this package's name.

Spark imports it whenever it looks for Python data sources, so it loads nothing of winnow before the
source is used.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from spark_plugin.streaming.source import Source


class DefaultSource(DataSource):  # type: ignore[misc] # Spark has no types
    """Two archives as one stream (docs/streaming.md)."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._source: Source | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "winnow"

    def schema(self) -> StructType:
        """Return the columns of the stream."""
        return self._opened().schema()

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """Return the reader of micro-batches."""
        return self._opened().streamReader(schema)

    def _opened(self) -> Source:
        from spark_plugin.streaming.source import Source  # noqa: PLC0415 - see above

        if self._source is None:
            self._source = Source(self.options)
        return self._source
