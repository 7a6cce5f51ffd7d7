"""Numbers of DataFrames as float64: the nearest to each, as of archives."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import DecimalType, StructField, StructType

from spark_plugin.hashing import as_double
from spark_plugin.versions import collected


@pytest.mark.parametrize(("precision", "scale"), [(6, 1), (15, 15), (18, 4), (38, 20)])
def test_decimals_become_the_nearest(spark: Any, precision: int, scale: int) -> None:
    draw, kind = np.random.default_rng(scale), DecimalType(precision, scale)
    most = (10 ** int(digits) for digits in draw.integers(1, precision + 1, 300))
    whole = [int.from_bytes(draw.bytes(20)) % own for own in most]
    cells = [None, *(Decimal(own).scaleb(-scale) for own in whole)]
    schema = StructType([StructField("v", kind)])
    frame = spark.createDataFrame([(cell,) for cell in cells], schema)
    found: pa.Table = collected(frame.select(as_double(frame["v"], kind).alias("v")))
    assert found["v"].to_pylist() == [None if cell is None else float(cell) for cell in cells]
