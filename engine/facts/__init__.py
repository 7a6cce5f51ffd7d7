"""The fact relation F of a star-streaming join (P2), and the links between keys that it makes.

It imports `archives` and what lies below. A newcomer starts with `relation.py` and `key_links.py`.
"""
