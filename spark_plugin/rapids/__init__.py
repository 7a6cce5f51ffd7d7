"""The RAPIDS Accelerator for Apache Spark: its configuration, its jar, and sessions that use it."""
