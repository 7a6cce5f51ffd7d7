"""Lane files: both streams of an archive pair, co-partitioned and sorted by time."""
