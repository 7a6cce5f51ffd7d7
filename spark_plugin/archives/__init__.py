"""Archives read by Spark's own operators: the first pass of preparing lanes as queries."""
