"""Files on disks, in object stores and in HDFS: named, listed, read, and written whole."""
