"""What the words of a report mean, for readers who meet them there first."""

from __future__ import annotations

import re

TERMS = {
    "exact join": "The join without a memory limit. What a result lacks of it is lost.",
    "recall": "The part of the exact join's outputs that was found.",
    "importance": "What an output is worth: a column of the streams, or 1 each.",
    "importance recall": "The part of the exact join's importance that was found.",
    "output": "A pair, or a combination, of tuples that join.",
    "tuple": "A row of a stream, with a time and a key.",
    "window": "How long after its arrival a tuple may still join with later ones.",
    "memory": "How many tuples may be held to join with later ones, in tuples or in percent of "
    "what the exact join needs at its peak.",
    "peak": "The most tuples held at once.",
    "policy": "The rule that says which tuples are held when memory is short.",
    "pooled": "One memory for which the tuples of both streams compete.",
    "split": "How the memory is divided between the streams.",
    "estimator": "Where a policy counts the matches of a key.",
    "lane": "A part of the join with keys and memory of its own.",
    "best possible": "The most that any choice of tuples could reach in this memory, knowing the "
    "future.",
    "gap": "How far the proven bounds are apart, relative to the upper one.",
    "plan": "Until when each tuple is held in the best result found.",
    "null key": "A row without a join attribute, which joins with nothing.",
    "rejected": "A row that was set aside, because its importance or time is invalid.",
    "tick": "The unit of time of the streams.",
    "fact": "A row of the relation through which streams join.",
    "estimate": "A total found from a part of the outputs, with an interval for what is true.",
    "relative error": "How far an estimate is from what is true, relative to that.",
    "stretch": "A part of time that was read and joined to estimate the whole.",
    "throttle fraction": "The part of a full join's work that was done; 1 is all of it.",
    "basic window": "A part of a window, which is read or left out as a whole.",
    "age curve": "How many matches a tuple finds at each age.",
    "k_opt": "How long a tuple is best held while memory is short.",
    "Zipf exponent": "How unequal the keys' frequencies are; 0 is equal.",
    "ALLOC": "The division of memory under which the worst join does as well as it can.",
    "PROP": "The division of memory in proportion to what the exact joins need.",
    "comparisons": "Pairs of tuples that a join looks at: its cost.",
    "join order": "The order in which a new tuple probes the windows of the other streams.",
    "target": "A share that the advised setting has to reach with the least memory.",
}


def terms_in(text: str) -> dict[str, str]:
    """Return the terms that a text uses, in their order.

    Examples
    --------
    >>> list(terms_in("Tuples in windows"))
    ['tuple', 'window']
    """
    lower = text.lower()
    return {
        term: meaning
        for term, meaning in TERMS.items()
        if re.search(rf"\b{re.escape(term.lower())}(?:s|es)?\b", lower)
    }
