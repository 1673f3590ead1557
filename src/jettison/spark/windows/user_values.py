"""What a function of the user's own gives, as a value that Spark takes for its type; or an error that names both.

Spark takes a value outside of the function: what is wrong with it shows in the worker when it is pickled, or in the
JVM, and either ends the run. So everything is looked at before. PySpark's own verifier lets any object pass for a text
and does not count the digits of a decimal; those are looked at here, wherever they are inside of a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any, NoReturn

from pyspark.errors import PySparkNotImplementedError
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructType,
    _make_type_verifier,
)

_Take = Callable[[Any], Any]
_LONGEST_VALUE = 100


def takes_from_python(kind: DataType) -> bool:
    """Whether Spark takes values of a type from functions in Python; of some this shows only when they run.

    >>> from pyspark.sql.types import VarcharType
    >>> takes_from_python(StringType()), takes_from_python(ArrayType(VarcharType(3)))
    (True, False)
    >>> takes_from_python(DataType.fromDDL("array<interval year to month>"))
    False
    """
    try:
        kind.toInternal(None)
    except PySparkNotImplementedError:
        return False
    return re.search(r"\b((var)?char\(|interval (year|month))", kind.simpleString()) is None


def taking(kind: DataType) -> _Take:
    """How a value of Python becomes one that Spark takes for a type.

    >>> from decimal import Decimal
    >>> taking(ArrayType(DecimalType(5, 2)))([Decimal("1.005"), None])
    [Decimal('1.01'), None]
    """
    verify, take = _make_type_verifier(kind), _taking(kind)

    def taken(value: Any) -> Any:
        plain = take(_as_number(kind, _plain(value)))
        verify(plain)
        try:
            kind.toInternal(plain)  # as the worker will: a time may be out of reach
        except Exception as error:
            _refused(plain, kind, f" ({type(error).__name__}: {error})")
        return plain

    return taken


def _taking(kind: DataType) -> _Take:
    """A value with its texts and decimals checked. What is of another shape than its type is left to the verifier."""
    if isinstance(kind, StringType):
        return lambda value: None if value is None else _text(value, kind)
    if isinstance(kind, DecimalType):
        return lambda value: _digits(value, kind) if isinstance(value, Decimal) else value
    if isinstance(kind, ArrayType):
        each = _taking(kind.elementType)
        return lambda value: [each(part) for part in value] if isinstance(value, list | tuple) else value
    if isinstance(kind, MapType):
        key, held = _taking(kind.keyType), _taking(kind.valueType)
        return lambda value: {key(k): held(v) for k, v in value.items()} if isinstance(value, dict) else value
    return _taking_struct(kind) if isinstance(kind, StructType) else lambda value: value


def _taking_struct(kind: StructType) -> _Take:
    fields = [(each.name, _taking(each.dataType)) for each in kind.fields]

    def taken(value: Any) -> Any:
        if isinstance(value, list | tuple):
            fits = len(value) == len(fields)
            return tuple(take(part) for part, (_, take) in zip(value, fields, strict=True)) if fits else value
        named = value if isinstance(value, dict) else getattr(value, "__dict__", None)
        return value if named is None else tuple(take(named.get(name)) for name, take in fields)

    return taken


def _text(value: Any, kind: DataType) -> str:
    if not isinstance(value, str):
        _refused(value, kind)
    return str.__str__(value)


def _digits(value: Decimal, kind: DecimalType) -> Decimal:
    """A decimal with as many digits behind the point as its type has, rounded as Spark does."""
    if not value.is_finite():
        _refused(value, kind)
    try:
        rounding = Context(prec=kind.precision, rounding=ROUND_HALF_UP)
        return value.quantize(Decimal((0, (1,), -kind.scale)), context=rounding)
    except InvalidOperation:
        _refused(value, kind, ", which has too few digits for it")


def _refused(value: Any, kind: DataType, why: str = "") -> NoReturn:
    shown = repr(value)
    shown = shown if len(shown) <= _LONGEST_VALUE else f"{shown[:_LONGEST_VALUE]}..."
    raise TypeError(f"{shown} ({type(value).__name__}) does not go into type {kind.simpleString()!r}{why}")


def _as_number(kind: DataType, value: Any) -> Any:
    """A whole number where one with a fraction is promised."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if whole and isinstance(kind, DoubleType | FloatType) else value


def _plain(value: Any) -> Any:
    """A value of NumPy or pandas as Python's own, which Spark takes."""
    for name in ("to_pydatetime", "tolist"):
        if hasattr(value, name):
            return getattr(value, name)()
    return value
