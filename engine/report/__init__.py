"""Reports: what every one holds, how it is written, printed and plotted.

It imports `options` and what lies below, and runs nothing. A newcomer starts with `envelope.py`.
"""
