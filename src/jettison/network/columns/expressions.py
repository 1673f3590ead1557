"""SQL expressions, read without Spark: which columns they use and what they are called.

Spark checks them again, with types, when a run starts; this finds a misspelt column while the network is declared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from sqlglot import Dialect, Token, TokenType
from sqlglot import expressions as sql
from sqlglot.errors import SqlglotError

from jettison.errors import NetworkError

Expression = Any
"""A SQL string, or a PySpark Column, which only Spark can look into."""

_STATEMENT_WORDS = frozenset(
    {
        *("ALTER", "CREATE", "DROP", "FETCH", "GRANT", "INSERT", "INTO"),
        *("QUALIFY", "RETURNING", "REVOKE", "ROLLBACK", "UNCACHE", "VALUES"),
    }
)
"""Words that begin statements and clauses: inside an expression they can only be names."""
_NEVER_BOOLEAN = (
    *(sql.Add, sql.Sub, sql.Mul, sql.Div, sql.IntDiv, sql.Mod, sql.Neg, sql.DPipe, sql.Literal, sql.Interval),
    *(sql.BitwiseAnd, sql.BitwiseOr, sql.BitwiseXor, sql.BitwiseNot, sql.BitwiseLeftShift, sql.BitwiseRightShift),
)
"""Operators and literals that give numbers, texts or times."""
_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_GENERATOR = re.compile(r"\b((pos)?explode|inline|stack)(_outer)?\s*\(", re.IGNORECASE)


@lru_cache(maxsize=4096)
def parsed(text: str) -> sql.Expression | None:
    """The expression's tree; None for what sqlglot cannot read, which is left to Spark."""
    spark = Dialect.get_or_raise("spark")
    try:
        # As an item of a SELECT, and not its first: else a column called `load`, `set` or `all` reads as a statement.
        query = f"SELECT 0, {text}"
        (tree,) = spark.parser().parse([_as_name(token) for token in spark.tokenize(query)], query)
    except (SqlglotError, ValueError, RecursionError):
        return None
    if not isinstance(tree, sql.Select) or len(tree.expressions) != 2:
        return None
    if any(value for part, value in tree.args.items() if part != "expressions"):
        return None
    item: sql.Expression = tree.expressions[1]
    return item


def _as_name(token: Token) -> Token:
    if token.token_type.name not in _STATEMENT_WORDS:
        return token
    return Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments)


def syntax_fault(expression: Expression) -> str | None:
    """Why a SQL string cannot be read without Spark; None where it can, or is a Column.

    What is new in Spark's SQL may be read wrongly here. So networks are declared without it, and files are checked.

    >>> syntax_fault("fare > 0"), syntax_fault("fare > 0, zone")
    (None, 'it is more than one expression')
    >>> syntax_fault("(fare > 0")
    'Expecting )'
    >>> syntax_fault("fare >> > 0")
    'an operand is missing'
    """
    if not isinstance(expression, str) or parsed(expression) is not None:
        return None
    query = f"SELECT 0, {expression}"
    try:
        trees = Dialect.get_or_raise("spark").parse(query)
    except SqlglotError as error:
        message = str(error).splitlines()[0].partition(". Line")[0]
        return "an operand is missing" if "Required keyword" in message or "<class" in message else message
    except (ValueError, RecursionError) as error:
        return "it is nested too deeply" if isinstance(error, RecursionError) else str(error).splitlines()[0]
    several = len(trees) == 1 and isinstance(trees[0], sql.Select) and len(trees[0].expressions) > 2
    return "it is more than one expression" if several else "it is no expression"


def aggregates_in(expression: Expression) -> list[str]:
    """Aggregate functions of many rows in an expression, outside of OVER.

    >>> aggregates_in("sum(fare) > 5"), aggregates_in("size(filter(tags, t -> t > 1)) > 5")
    (['sum'], [])
    """
    tree = parsed(expression) if isinstance(expression, str) else None
    found = [] if tree is None or tree.find(sql.Query) else list(tree.find_all(sql.AggFunc))
    return [each.sql_name().lower() for each in found if each.find_ancestor(sql.Window) is None]


def used_columns(expression: Expression) -> frozenset[str]:
    """Names of the columns that a SQL string reads; nothing for what cannot be known without Spark.

    >>> sorted(used_columns("fare > 2 * tip AND zone.borough = 'Queens'"))
    ['fare', 'tip', 'zone']
    """
    return _used_columns(expression) if isinstance(expression, str) else frozenset()


@lru_cache(maxsize=4096)
def _used_columns(text: str) -> frozenset[str]:
    tree = parsed(text)
    if tree is None or tree.find(sql.Query):
        return frozenset()
    first_parts = ((column, column.parts[0]) for column in tree.find_all(sql.Column))
    return frozenset(
        part.name for column, part in first_parts if not isinstance(part, sql.Star) and not _is_bound(column, part.name)
    )


def _is_bound(column: sql.Column, name: str) -> bool:
    """Whether a name is an argument of a lambda around it; case is ignored, as Spark does."""
    around = column.find_ancestor(sql.Lambda)
    while around is not None:
        if name.lower() in (argument.name.lower() for argument in around.expressions):
            return True
        around = around.find_ancestor(sql.Lambda)
    return False


def all_used_columns(expression: Expression) -> frozenset[str] | None:
    """Every word of a SQL string that may name a column, in lower case; None where only Spark can tell, as for a star.

    More than it reads (functions, keywords), never less: a part that is read wrongly here is still among the words.

    >>> sorted(all_used_columns("Fare * 2 AS twice")), all_used_columns("*"), all_used_columns(object())
    (['2', 'as', 'fare'], None, None)
    """
    tree = parsed(expression) if isinstance(expression, str) else None
    if tree is None or tree.find(sql.Query) or any(not _is_counted(star) for star in tree.find_all(sql.Star)):
        return None
    words = re.findall(r"\w+", expression.lower())
    before_alias = words[:-1] if isinstance(tree, sql.Alias) else words
    return frozenset(before_alias) | {name.lower() for name in used_columns(expression)}


def _is_counted(star: sql.Star) -> bool:
    return isinstance(star.parent, sql.Count)


def result_name(expression: Expression) -> str | None:
    """The column name that a select item gives, or None where only Spark knows it.

    >>> result_name("fare"), result_name("fare * 2 AS double_fare"), result_name("fare * 2")
    ('fare', 'double_fare', None)
    """
    tree = parsed(expression) if isinstance(expression, str) else None
    if isinstance(tree, sql.Alias) and isinstance(tree.args["alias"], sql.Identifier):
        return str(tree.alias)
    if isinstance(tree, sql.Column) and not isinstance(tree.this, sql.Star):
        return str(tree.name)
    return None


def passed_column(expression: Expression) -> str | None:
    """The column that a select item passes on as it is, whatever it is called then; None when it computes something.

    >>> passed_column("fare"), passed_column("fare AS price"), passed_column("fare * 2 AS fare"), passed_column("a.b")
    ('fare', 'fare', None, None)
    """
    tree = parsed(expression) if isinstance(expression, str) else None
    inner = tree.this if isinstance(tree, sql.Alias) else tree
    if isinstance(inner, sql.Column) and len(inner.parts) == 1 and not isinstance(inner.this, sql.Star):
        return str(inner.name)
    return None


def column_alone(expression: Expression) -> str | None:
    """The column that an expression is, in brackets or not; None where it is anything else.

    >>> column_alone("(fare)"), column_alone("fare > 0"), column_alone("trip.fare")
    ('fare', None, None)
    """
    tree = parsed(expression) if isinstance(expression, str) else None
    inner = None if tree is None else tree.unnest()
    alone = isinstance(inner, sql.Column) and len(inner.parts) == 1 and not isinstance(inner.this, sql.Star)
    return inner.name if alone and inner is not None else None


def is_computed_value(expression: Expression) -> bool:
    """Whether an expression is a number, a text or another value that cannot be true or false.

    >>> [is_computed_value(text) for text in ("fare + 1", "'a'", "fare::int", "fare + 1 > 2", "isnan(fare)")]
    [True, True, True, False, False]
    """
    tree = parsed(expression) if isinstance(expression, str) else None
    inner = None if tree is None else tree.unnest()
    if isinstance(inner, sql.Cast):
        return not inner.to.is_type(sql.DataType.Type.BOOLEAN, sql.DataType.Type.UNKNOWN)
    return isinstance(inner, _NEVER_BOOLEAN)


def is_whole_star(expression: Expression) -> bool:
    """Whether a select item is `*`: all columns, in their order.

    >>> is_whole_star(" * "), is_whole_star("* EXCEPT (fare)"), is_whole_star("zone.*")
    (True, False, False)
    """
    return isinstance(expression, str) and expression.strip() == "*"


def names_itself(expression: Expression) -> bool:
    """Whether a select item needs no name here: a Column, a star, several aliases, or what only Spark can read.

    >>> [names_itself(item) for item in ("zone.*", "* EXCEPT (fare)", "explode(tags) AS (key, tag)", "fare * 2")]
    [True, True, True, False]
    """
    tree = parsed(expression) if isinstance(expression, str) else None
    return tree is None or isinstance(tree, sql.Aliases) or bool(tree.is_star)


def multiplies(expression: Expression) -> bool:
    """Whether an expression makes several rows of one.

    >>> [multiplies(item) for item in ("explode(tags) AS tag", "concat(tag, ' inline (odd)') AS tag", "stack")]
    [True, False, False]
    """
    text = _TEXT.sub("''", expression) if isinstance(expression, str) else str(expression)
    return _GENERATOR.search(text) is not None


def check_columns(
    element: str, expression: Expression, available: tuple[str, ...] | None, also: Iterable[str] = ()
) -> None:
    """Raise when a SQL string uses a column that does not exist. Case is ignored, as Spark does.

    `also` holds names that a select has just given: its later items may use them.
    """
    if isinstance(expression, str) and not expression.strip():
        raise NetworkError(f"{element}: the expression is empty.")
    if available is None:
        return
    known = {name.lower() for name in (*available, *also)}
    for name in sorted(used_columns(expression)):
        if name.lower() not in known:
            raise NetworkError(
                f"{element}: unknown column {name!r} in {expression!r}. Columns here: {', '.join(available)}."
            )
