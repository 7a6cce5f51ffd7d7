"""Lists of names as text: commas between, and double quotes around what commas would not keep."""

from __future__ import annotations

import re
from collections.abc import Iterable

_QUOTED = r'"((?:[^"]|"")*)"'
_FIELD = re.compile(rf"\s*((?:\w+\s*=\s*)?{_QUOTED}|[^,]*?)\s*(?:,|\Z)")


def fields(text: str) -> list[str]:
    """Return what stands between commas outside quotes, quotes included, without what is empty.

    Examples
    --------
    >>> fields('a, "b,c" ,, left="d,e"')
    ['a', '"b,c"', 'left="d,e"']
    """
    return [found[1] for found in _FIELD.finditer(text) if found[1]]


def names_of(text: str) -> tuple[str, ...]:
    """Return the names in a text.

    Examples
    --------
    >>> names_of('a, "b,c"," d"')
    ('a', 'b,c', ' d')
    """
    quoted = [(own, re.fullmatch(_QUOTED, own)) for own in fields(text)]
    return tuple(found[1].replace('""', '"') if found else own for own, found in quoted)


def text_of(names: Iterable[str]) -> str:
    """Return names as `names_of` reads them, quoted where they need it.

    Examples
    --------
    >>> text_of(["a", "b,c", " d", 'e"f'])
    'a,"b,c"," d","e""f"'
    """
    return ",".join(
        own if names_of(own) == (own,) and '"' not in own else '"' + own.replace('"', '""') + '"'
        for own in names
    )
