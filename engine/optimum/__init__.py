"""The offline optimum: state graph, min-cost flow, dual and certificate (contract, section 4).

It imports `exact`, `facts` and what lies below. A newcomer starts with `bound.py`.
"""
