"""Archives: files to rows, and the roles that columns play.

It imports `runtime`. A newcomer starts with `source.py`, which opens an archive, and `roles.py`.
"""
