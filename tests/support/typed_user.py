"""A user's script, which is checked with pyright and not run."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import pyarrow as pa

import winnow

left = pd.DataFrame({"ts": [1, 2], "key": [1, 1]})
found = winnow.replay(
    left, "right.parquet", on="key", time="ts", window=dt.timedelta(minutes=10), memory="10%"
)
table: pa.Table = found.outputs
frame: pd.DataFrame = found.to_pandas()
outputs: int = found.report.exact.outputs
recall: float = found.report["recall"]["outputs"]
figure = found.plot()
figure.savefig("losses.png")
cells = winnow.sweep(left, left, on="key", time="ts", windows="1:10:3", policies="all")
best = winnow.bound(left, left, on="key", time="ts", window=3, memory=10)
asked = winnow.estimate("a.parquet", "b.parquet", on="key", time="ts", window=3, within="1%")
drawn = winnow.sample(left, left, on=["key"], time="ts", window=3, memory=10)
shape = winnow.profile(left, left, on="key", time="ts", window=3)
joined = winnow.multijoin({"a": left, "b": left}, predicate="equi:key", time="ts", window=3)
linked = winnow.replay_streams({"a": left, "b": left}, left, on="key", time="ts", window=3)
version: str = winnow.__version__
