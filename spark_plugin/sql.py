"""`winnow_replay` and `winnow_lookup` in SQL: table functions of two tables, in any session.

A table function in Python has one table, in rows of Python's, and one task where it orders them
(Spark 3.5 to 4.2; two tables are multiplied first). So calls are found in the text, and replaced by
the DataFrames that the same calls from Python return. Nothing but the call is interpreted here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it

from engine.options.command import Command
from engine.runtime.errors import SpecError, WinnowError, did_you_mean
from spark_plugin import dataframe, door, lookup

_FUNCTIONS: Mapping[str, tuple[Callable[..., door.InSpark], Command, tuple[str, str]]] = {
    "winnow_replay": (door.replay, dataframe.FRAMES, ("left", "right")),
    "winnow_lookup": (door.lookup, lookup.FRAMES, ("stream", "fact")),
}
"""What each calls, its options, and the names of its tables."""
_TOKEN = re.compile(
    r"""(?P<space>\s+|--(?:\\\n|[^\n])*|/\*.*?\*/)
    |(?P<text>[rR]'[^']*'|[rR]"[^"]*"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:``|[^`])*`)
    |(?P<word>\w+)
    |(?P<sign>=>|.)""",
    re.DOTALL | re.VERBOSE,
)
_HELD = re.compile(r"\{(\w+)\}")
_NAME = re.compile(r"(?:\w+|`(?:``|[^`])+`)(?:\s*\.\s*(?:\w+|`(?:``|[^`])+`))*")
_KEYWORD = re.compile(r"(?<= )(\w+)='")
"""An argument as messages have it for callers of Python."""
_KEPT = re.compile(
    r"cache\b|(?:create|alter)(?: or replace)?(?: global)?(?: temp| temporary)? view\b"
)
"""How statements begin whose query Spark plans again, later."""
_WITH = re.compile(r"(?:\bwith(?: recursive)?|,) (\w+) (?:\( [^()]* \) )?as \(")
_READ = re.compile(r"\b(?:from|join) (\w+)(?= |$)(?! \.)")
_OWN = "_winnow_{}"
_DEPTH = {"(": 1, ")": -1, "[": 1, "]": -1}
_Runs: TypeAlias = Callable[..., DataFrame]


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


class _Call(NamedTuple):
    """A call of one of the functions in a text."""

    function: str
    arguments: list[list[_Token]]
    start: int
    end: int


def sql(session: SparkSession, query: str, **frames: Any) -> DataFrame:  # noqa: ANN401 - as Spark's
    """Return what ``session.sql`` does of a query that may call ``winnow_replay``.

    Parameters
    ----------
    session : SparkSession
        Of Spark 3.5 or newer; of Spark Connect 4.0 or newer.
    query : str
        With calls such as ``winnow_replay(TABLE(bids), TABLE(asks), on => 'symbol', time => 'at',
        window => '10 min', memory => '10%')`` where a table may stand. A table is a name, or a
        query in parentheses after ``TABLE``. All else is as `spark_plugin.dataframe.replay` has it,
        each a constant by its name. ``winnow_lookup`` is `spark_plugin.lookup.lookup` likewise.
    **frames
        DataFrames and values that the query names, as in ``TABLE({bids})``.

    Returns
    -------
    DataFrame
        Lazy, as a call from Python is. Times have the type of the left table's.

    Raises
    ------
    WinnowError
        If a call is invalid.

    Examples
    --------
    >>> sql(spark, "SELECT count(*) FROM winnow_replay(TABLE(bids), TABLE(asks), on => 'symbol', "
    ...     "time => 'at', window => '10 min', memory => '10%')")  # doctest: +SKIP
    """
    return _answered(session.sql, query, frames)


def register(session: SparkSession) -> None:
    """Make ``session.sql`` understand ``winnow_replay`` and ``winnow_lookup``, as `sql` does.

    Other queries go to Spark as they are. The session's own method is replaced: the functions are
    not known to Spark's JVM, so not to views, JDBC or other sessions.

    Parameters
    ----------
    session : SparkSession
        Registering it again changes nothing.
    """
    before = session.sql
    if getattr(before, "winnow", False):
        return

    def own(query: str, args: Any = None, **frames: Any) -> DataFrame:  # noqa: ANN401 - as Spark's
        if next(_calls(query), None) is None:
            return before(query, **({} if args is None else {"args": args}), **frames)
        if args is not None:
            raise SpecError("args are for queries without winnow_replay: write values as constants")
        return _answered(before, query, frames)

    own.__doc__, own.winnow = before.__doc__, True  # type: ignore[attr-defined]
    session.sql = own


def _answered(run: _Runs, query: str, frames: Mapping[str, Any]) -> DataFrame:
    """Return a query's DataFrame, its calls first; `run` is Spark's own ``sql``."""
    parts: list[str] = []
    known, done = dict(frames), 0
    for call in _calls(query):
        _check_not_kept(call.function, query[: call.start])
        name = _OWN.format(len(parts))
        known[name] = _called(run, query, call, frames)
        parts += [_formatted(query[done : call.start], frames), f"{{{name}}}"]
        done = call.end
    if not parts:
        return run(query, **frames)
    return run("".join([*parts, _formatted(query[done:], frames)]), **known)


def _check_not_kept(function: str, before: str) -> None:
    """Raise `SpecError` for a call in a statement that begins so, if Spark plans it later."""
    found = _KEPT.match(_spoken(before))
    if found:
        raise SpecError(
            f"{found[0].upper()} keeps a query for later, when Spark knows no {function}: run the "
            "query alone, and of its DataFrame call cache() or createOrReplaceTempView('name')"
        )


def _formatted(text: str, frames: Mapping[str, Any]) -> str:
    """Return text in which braces stand for DataFrames, as they do only where there are some."""
    return text if frames else text.replace("{", "{{").replace("}", "}}")


def _calls(query: str) -> Iterator[_Call]:
    """Yield the outermost calls of a text; names in quotes and comments are none."""
    found = (_Token(str(m.lastgroup), m[0], *m.span()) for m in _TOKEN.finditer(query))
    tokens = [token for token in found if token.kind != "space"]
    at = 0
    while at < len(tokens) - 1:
        name = tokens[at].text.lower()
        called = tokens[at].kind == "word" and name in _FUNCTIONS and tokens[at + 1].text == "("
        if called and (at == 0 or tokens[at - 1].text != "."):
            end = _closing(tokens, at + 1, name)
            inside = tokens[at + 2 : end]
            yield _Call(name, _split(inside), tokens[at].start, tokens[end].end)
            at = end
        at += 1


def _closing(tokens: Sequence[_Token], at: int, what: str) -> int:
    """Return the place of the parenthesis that closes the one at a place."""
    depth = 0
    for place in range(at, len(tokens)):
        depth += _DEPTH.get(tokens[place].text, 0)
        if depth == 0:
            return place
    raise SpecError(f"the parenthesis of {what} is not closed: write one more )")


def _split(tokens: Sequence[_Token]) -> list[list[_Token]]:
    """Return the tokens of each argument."""
    found: list[list[_Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += _DEPTH.get(token.text, 0)
        if token.text == "," and depth == 0:
            found.append([])
        else:
            found[-1].append(token)
    return found if tokens else []


def _called(run: _Runs, query: str, call: _Call, frames: Mapping[str, Any]) -> DataFrame:
    """Return the outputs of a call."""
    function, command, names = _FUNCTIONS[call.function]
    tables: dict[str, DataFrame] = {}
    texts: dict[str, str] = {}
    for argument in call.arguments:
        name, tokens = None, argument
        if len(argument) > 2 and argument[1].text == "=>":
            name, tokens = argument[0].text.lower(), argument[2:]
        text = query[tokens[0].start : tokens[-1].end] if tokens else ""
        table = _table(call.function, query, tokens)
        if name is None and table is not None:
            name = next((own for own in names if own not in tables), None)
        if name is None:
            raise SpecError(
                f"{call.function} has an argument {text!r} without a name: give "
                f"{', '.join(f'TABLE({own})' for own in names)} and then options, name => value"
            )
        if name in tables or name in texts:
            raise SpecError(f"{call.function} is given {name} twice: leave one out")
        if table is None:
            texts[name] = text
        else:
            _check_not_of_with(call.function, query[: call.start], table)
            held = _HELD.fullmatch(table)
            if held and held[1] not in frames:
                raise SpecError(f"TABLE({table}) names no DataFrame: give one, {held[1]}=...")
            tables[name] = frames[held[1]] if held else _answered(run, table, frames)
    missing = [own for own in names if own not in tables]
    if missing:
        raise SpecError(
            f"{call.function} lacks the table {missing[0]}: give "
            f"{', '.join(f'TABLE({own})' for own in names)}, each a name or a query"
        )
    _check_options(call.function, command, texts)
    try:
        given = _constants(run, call.function, texts, frames)
        if isinstance(start := given.get("start_ts"), Row):
            time = given.get("left_time") or given.get("time")
            zoned = (time, "timestamp") in tables[names[0]].dtypes
            given["start_ts"] = str(start.instant) if zoned else start.shown
        return function(**tables, **given).frame
    except WinnowError as error:
        raise type(error)(_KEYWORD.sub(r"\1 => '", str(error))) from None


def _check_options(function: str, command: Command, given: Iterable[str]) -> None:
    """Raise `SpecError` for an option that a function does not have."""
    for name in given:
        if name not in command.options:
            instead, hint = command.instead.get(name), did_you_mean(name, command.options)
            lists = f": it has {', '.join(command.options)}"
            remedy = f": {instead}" if instead else f".{hint}" if hint else lists
            raise SpecError(f"{function} has no option {name}{remedy}")


def _table(function: str, query: str, tokens: Sequence[_Token]) -> str | None:
    """Return the query of a table's rows, None of an argument that is no table."""
    if len(tokens) < 2 or tokens[0].text.lower() != "table" or tokens[0].kind != "word":
        return None
    first, last = 1, len(tokens) - 1
    if tokens[1].text == "(":
        first, close = 2, _closing(tokens, 1, "TABLE")
        if close < last:
            rest = query[tokens[close + 1].start : tokens[-1].end]
            raise SpecError(
                f"{rest!r} does not go with a table of {function}, whose order and partitions are "
                "its own: leave it out, or give partition_by => 'column'"
            )
        last = close - 1
    text = query[tokens[first].start : tokens[last].end] if first <= last else ""
    named = _NAME.fullmatch(text)
    return f"SELECT * FROM {text}" if named else text  # noqa: S608 - the query is the user's


def _check_not_of_with(function: str, before: str, table: str) -> None:
    """Raise `SpecError` if a table's query names what a WITH around it has."""
    around, own = _spoken(before), _spoken(table)
    for name in set(_WITH.findall(around)) & set(_READ.findall(own)) - set(_WITH.findall(own)):
        raise SpecError(f"{function} cannot read {name}, of a WITH: write its query after TABLE")


def _spoken(text: str) -> str:
    """Return the words, names and signs of a text, in small letters, without strings."""
    found = (m[0].lower() for m in _TOKEN.finditer(text) if m.lastgroup != "space")
    return " ".join(word.strip("`") for word in found if word[-1] not in "'\"")


def _constants(
    run: _Runs, function: str, texts: Mapping[str, str], frames: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values of options as Spark reads them; those that are NULL are not given.

    Python shows a TIMESTAMP by the clock of its own zone: `start_ts` is a row of its microseconds
    and of what the session's clock shows.
    """
    if not texts:
        return {}
    wanted = [f"{text} AS `{name}`" for name, text in texts.items()]
    try:
        read = run(f"SELECT {', '.join(wanted)}", **frames)
        if ("start_ts", "timestamp") in read.dtypes:
            instant, shown = F.unix_micros("start_ts"), F.col("start_ts").cast("string")
            both = F.struct(instant.alias("instant"), shown.alias("shown"))
            read = read.withColumn("start_ts", F.when(F.col("start_ts").isNotNull(), both))
        row: Any = read.first()
    except PySparkException as error:
        if len(texts) > 1:
            for name, text in texts.items():
                _constants(run, function, {name: text}, frames)
            raise
        ((name, text),) = texts.items()
        reason = str(error).strip().partition("\n")[0]
        raise SpecError(
            f"option {name} of {function} is {text}, of which Spark makes no constant ({reason}): "
            "write a value, such as '10 min', 0.5, array('a', 'b') or map('alpha', 2)"
        ) from error
    return {name: _plain(own) for name, own in row.asDict().items() if own is not None}


def _plain(value: Any) -> Any:  # noqa: ANN401 - a cell
    """Return a cell without decimals, which options do not have."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {name: _plain(own) for name, own in value.items()}
    return [_plain(own) for own in value] if isinstance(value, list) else value
