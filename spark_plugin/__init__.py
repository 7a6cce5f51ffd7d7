"""winnow on Spark: archives and DataFrames."""
