"""How tuples find their matches in what a setting reads: by walks, indexes, ranks and tiles."""
