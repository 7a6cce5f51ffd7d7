"""Models of streams: age curves, key frequencies, memory, and the profile that holds them (P5).

It imports `lanes` and what lies below. A newcomer starts with `rate_curve.py` and `frequency.py`.
"""
