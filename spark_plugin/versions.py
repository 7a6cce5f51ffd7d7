"""What differs between the versions of Spark that winnow runs on: 3.5, 4.0, 4.1 and 4.2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyspark
from pyspark import InheritableThread
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import DataType, StructField, StructType

from engine.runtime.errors import SpecError

SPARK = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
"""Major and minor version."""
BY_NUMBER = SPARK >= (4, 1)
"""Whether DataFrames have ``repartitionById``."""


def require_streams() -> None:
    """Raise `SpecError` if Spark's Python sources cannot read archives as a stream."""
    if SPARK < (4, 2):
        raise SpecError(
            f"Spark {pyspark.__version__} does not tell a source in Python where a micro-batch "
            "begins and how much it may read (Spark 4.2 does): read archives as a stream with "
            "Spark 4.2, or replay them whole with spark_plugin.dataframe.replay or winnow.replay"
        )


def refuse_connect() -> None:
    """Raise `SpecError` if this Spark's Connect lacks what winnow needs."""
    if SPARK < (4, 0):
        raise SpecError(
            f"Spark Connect of Spark {pyspark.__version__} makes no DataFrames of Arrow tables "
            "(Spark 4.0 does): use Spark 4.0 or newer, or a session without Connect "
            "(SparkSession.builder.master)"
        )


def arrow_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type of a Spark type; zoned timestamps are in UTC."""
    return to_arrow_type(kind, timezone="UTC") if SPARK >= (4, 2) else to_arrow_type(kind)


def collected(frame: DataFrame) -> pa.Table:
    """Return the rows of a DataFrame on the driver."""
    if SPARK >= (4, 0):
        return frame.toArrow()
    kinds = pa.schema([(field.name, arrow_type(field.dataType)) for field in frame.schema])
    batches: Any = frame._collect_as_arrow()  # noqa: SLF001 - the only way in Spark 3.5
    return pa.Table.from_batches(batches).cast(kinds) if batches else kinds.empty_table()


def file_column(frame: DataFrame, field: str) -> Column:
    """Return what Spark knows of each row's file, though a column of the rows is ``_metadata``."""
    if SPARK >= (4, 0):
        return frame.metadataColumn("_metadata").getField(field)
    whole = frame._jdf.metadataColumn("_metadata")  # noqa: SLF001 - the only way in Spark 3.5
    return Column(whole).getField(field)


def frame_of(session: SparkSession, table: pa.Table, schema: StructType | None = None) -> DataFrame:
    """Return a table as a DataFrame; `schema` has the Spark types, if not those of its types."""
    schema = schema or StructType(
        [StructField(field.name, from_arrow_type(field.type)) for field in table.schema]
    )
    if SPARK >= (4, 0) or not table.num_rows:
        rows: Any = table if SPARK >= (4, 0) else []
        return session.createDataFrame(rows, schema=schema)
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer  # noqa: PLC0415 - in Spark 3.5

    context, java = session._sc, session._jvm  # noqa: SLF001 - as Spark 3.5 does it from pandas
    ready = context._serialize_to_jvm(  # noqa: SLF001 - the same
        table.combine_chunks().to_batches(-(-table.num_rows // context.defaultParallelism)),
        ArrowStreamSerializer(),
        java.PythonSQLUtils.readArrowStreamFromFile,
        java.ArrowIteratorServer,
    )
    own = session._jsparkSession  # noqa: SLF001 - the same
    return DataFrame(java.PythonSQLUtils.toDataFrame(ready, schema.json(), own), session)


def arrow_function(
    function: Callable[..., pa.Array], kinds: Sequence[pa.DataType], result: str
) -> Callable[..., Column]:
    """Return a function of arrays of `kinds` as a function of columns.

    Spark before 4.1 passes columns as pandas does; nulls stay nulls, and digits what they are.
    """
    made: Callable[..., Column]
    if SPARK >= (4, 1):
        made = F.arrow_udf(function, result)
        return made
    import pandas as pd  # noqa: PLC0415 - before Spark 4.1 alone

    def through_pandas(*columns: pd.Series) -> pd.Series:
        given = [
            pa.Array.from_pandas(column, type=kind)
            for column, kind in zip(columns, kinds, strict=True)
        ]
        return function(*given).to_pandas(
            types_mapper={pa.int64(): pd.Int64Dtype(), pa.float64(): pd.Float64Dtype()}.get
        )

    through_pandas.__annotations__ = {"columns": pd.Series, "return": pd.Series}
    made = F.pandas_udf(through_pandas, result)
    return made


def inheriting(target: Callable[[], None], session: SparkSession) -> InheritableThread:
    """Return a thread with the properties of the caller's, such as its job group."""
    own = {"session": session} if SPARK >= (4, 0) else {}
    return InheritableThread(target=target, daemon=True, **own)
