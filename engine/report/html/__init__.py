"""A report as one HTML file: `page.py` puts it together from what is shown of any report.

Commands give data (`engine.report.shown`, `engine.report.charts`); markup is made here alone.
"""
