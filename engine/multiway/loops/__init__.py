"""The exact multi-way window joins of P3: nested loops over lists and hash buckets."""
