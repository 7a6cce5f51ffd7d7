"""A replay from end to end: archives in, output tuples and a report out."""
