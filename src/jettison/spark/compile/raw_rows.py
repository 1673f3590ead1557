"""A source's raw rows: what identifies them, the drop at the input, and the payload, parsed behind it.

What a drop judges by is parsed alone, where that can be done: of a record that goes nothing else is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, Observation

from jettison.errors import PlanError
from jettison.network.columns.schema import literal, quoted
from jettison.network.operators import Source
from jettison.plan.drops.window import Window
from jettison.plan.plan import Plan
from jettison.spark.compile.drops import (
    ALL,
    IDENTITY,
    JUDGED,
    LOOK,
    RECORD,
    TIME,
    identity_of,
    is_fresh,
    is_needed,
    keeps,
    placeable,
)
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.compile.value_samples import value_metrics

CORRUPT = "_jt_corrupt"
BODY = "_jt_body"


def identified(
    source: Source, raw: DataFrame, columns: Sequence[str], known: ExpressionCache, also: Sequence[str] = ()
) -> DataFrame:
    """Raw rows with their identity: of the declared columns, parsed alone where they are in the payload; else Kafka's
    (topic, partition, offset), else of the payload, else of the whole row. `also` are other columns to be added.
    """
    return known.select(raw, ["*", _identity(source, columns), *also])


def _identity(source: Source, columns: Sequence[str]) -> str:
    """What identifies a source's rows, in SQL, as a column."""
    if source.id and set(source.id) <= set(columns):
        return identity_of(source.id)
    if source.id and source.payload == "json":
        parts = [quoted(name) if name in columns else _alone(source, name) for name in source.id]
        return f"xxhash64({', '.join(parts)}) AS {IDENTITY}"
    if set(RECORD) <= set(columns):
        return identity_of(RECORD)
    return identity_of((source.payload_column,) if source.payload else columns)


def typed(source: Source, raw: DataFrame, columns: Sequence[str], known: ExpressionCache) -> DataFrame:
    """Rows of a source without a payload: exactly the declared columns, the time and the identity."""
    chosen = [f"`{name}`" for name, _ in source.schema]
    if source.event_time is not None:
        chosen.append(_time(f"`{source.event_time}`"))
    return known.select(raw, [*chosen, _identity(source, columns)])


def passing(source: Source, frame: DataFrame, columns: Sequence[str], plan: Plan, known: ExpressionCache) -> DataFrame:
    """Rows of a source without a payload that pass the input's drop."""
    conditions, _, _ = _conditions(source, columns, plan)
    return _passing(frame, conditions, False, known)


def _time(moment: str) -> str:
    """A row's event time, in SQL, as a column; null where it cannot be placed."""
    return f"IF({placeable(moment)}, {moment}, NULL) AS {TIME}"


def dropped_raw(
    source: Source,
    raw: DataFrame,
    columns: Sequence[str],
    plan: Plan,
    known: ExpressionCache,
    *,
    shed: bool = False,
    newest: Observation | None = None,
    at_once: bool = False,
    before: Observation | None = None,
    mask: int = 0,
) -> DataFrame:
    """Raw rows that pass the input's drop, with their identity and, parsed behind the drop, the payload in a struct.

    With `shed`, the rows that do not pass. A value that the drop judges by is parsed alone, where that can be done.
    `newest` observes how far event times have got before a drop by window, which looks at them anyway; `at_once`, for
    sources without a payload, also all that is counted behind the drop: every observation looks at every row.
    `before` observes the values that a drop by value judges by, of rows whose identity has none of the bits of `mask`.
    """
    early, late, looks = _conditions(source, columns, plan)
    if newest is not None and at_once:
        frame = identified(source, raw, columns, known, [f"{' AND '.join(early)} AS {JUDGED}"])
        metrics = [*source_metrics(source, columns, passed=JUDGED), newest_metric(quoted(source.event_time or ""))]
        return frame.observe(newest, *map(known.expression, metrics)).where(known.expression(JUDGED))
    frame = identified(source, raw, columns, known)
    if looks:
        frame = known.select(frame, ["*", *(f"{sql} AS {name}" for sql, name in looks.items())])
    moment = raw_time(source, columns)
    if newest is not None and moment is not None:
        frame = frame.observe(newest, known.expression(newest_metric(looks.get(moment, moment))))
    drop = plan.drops.get(source.name)
    by_value = drop is not None and drop.judges == "value"
    value = judged_value(source, columns, drop.reads[0], looks) if drop is not None and by_value else ""
    parsed_first = value.startswith(BODY)
    if before is not None and value and not parsed_first:
        frame = frame.observe(before, *map(known.expression, value_metrics(0, value, mask)))
    if shed and not late:
        return _passing(frame, early, shed, known)
    if not shed:
        frame = _passing(frame, early, shed, known)
    if source.payload == "avro":
        frame = known.select(frame, ["*", f"{_decoded(source)} AS {BODY}"])
    elif source.payload is not None:
        frame = known.select(frame, ["*", f"{_body(source, columns)} AS {BODY}"])
    if newest is not None and moment is None:
        frame = frame.observe(newest, known.expression(newest_metric(f"{BODY}.{quoted(source.event_time or '')}")))
    if before is not None and parsed_first:
        frame = frame.observe(before, *map(known.expression, value_metrics(0, value, mask)))
    return _passing(frame, [*early, *late] if shed else late, shed, known)


def _conditions(source: Source, columns: Sequence[str], plan: Plan) -> tuple[list[str], list[str], dict[str, str]]:
    """What a plan asks of a source's rows, in SQL: before parsing and behind it.

    What is inside of a JSON payload and asked for is parsed alone, before: those expressions, by their hidden name.
    """
    looks: dict[str, str] = {}

    def look(name: str) -> str:
        declared = as_declared(name)
        if declared in columns or source.payload is None:
            return quoted(declared)
        if source.payload != "json":
            return f"{BODY}.{quoted(declared)}"
        return looks.setdefault(_alone(source, declared), f"{LOOK}{len(looks)}")

    def as_declared(name: str) -> str:
        found = next((each for each, _ in source.schema if each.lower() == name.lower()), None)
        if found is None:
            given = ", ".join(each for each, _ in source.schema)
            raise PlanError(f"the drop on source {source.name!r} is by {name!r}, which it has not. It has: {given}.")
        return found

    early: list[str] = []
    late: list[str] = []
    since_s, drop = plan.stale.get(source.name), plan.drops.get(source.name)
    asked: list[tuple[tuple[str, ...], str]] = []
    if since_s is not None and source.event_time is not None:
        asked.append(((source.event_time,), is_fresh(since_s, look(source.event_time))))
    if isinstance(drop, Window) and source.event_time is not None:
        asked.append(((source.event_time, *drop.reads), is_needed(drop, look(source.event_time), look)))
    elif drop is not None:
        asked.append((drop.reads, keeps(source.name, drop, look)))
    for names, condition in asked:
        inside = not {as_declared(name) for name in names} <= set(columns)
        parsed_first = source.payload not in (None, "json") and inside
        (late if parsed_first else early).append(condition)
    return early, late, looks


def judged_value(source: Source, columns: Sequence[str], column: str, looks: Mapping[str, str]) -> str:
    """The value that a drop at a source judges by, in SQL; what was parsed alone for that by its hidden name."""
    name = next(name for name, _ in source.schema if name.lower() == column.lower())
    if name in columns or source.payload is None:
        return quoted(name)
    return looks.get(_alone(source, name), "") if source.payload == "json" else f"{BODY}.{quoted(name)}"


def newest_metric(time: str) -> str:
    """The largest event time, in microseconds, in SQL."""
    return f"max(IF({placeable(time)}, unix_micros(CAST({time} AS timestamp)), NULL)) AS newest"


def _passing(frame: DataFrame, conditions: Sequence[str], shed: bool, known: ExpressionCache) -> DataFrame:
    """Rows that meet all conditions, or with `shed` those that do not."""
    if not conditions:
        return frame
    together = " AND ".join(conditions)
    return frame.where(known.expression(f"NOT ({together})" if shed else together))


def look_at(source: Source, column: str) -> str:
    """One value inside a source's payload as a number, in SQL: of JSON it is parsed alone, else the record is."""
    name = next(name for name, _ in source.schema if name.lower() == column.lower())
    return f"try_cast({_alone(source, name) if source.payload == 'json' else f'{BODY}.{quoted(name)}'} AS double)"


def _decoded(source: Source) -> str:
    assert source.kafka is not None
    return f"from_avro({source.payload_column}, {literal(str(source.kafka.schema))}, map('mode', 'PERMISSIVE'))"


def _body(source: Source, columns: Sequence[str]) -> str:
    """A payload's content, in SQL. What is not as declared shows in the field CORRUPT."""
    inside = [(name, kind) for name, kind in source.schema if name not in columns]
    text = f"string({source.payload_column})"
    if source.payload == "text":
        return f"named_struct({literal(inside[0][0])}, {text}, '{CORRUPT}', CAST(NULL AS string))"
    options = f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{CORRUPT}')"
    return f"from_json({text}, {_schema([*inside, (CORRUPT, 'string')])}, {options})"


def _alone(source: Source, name: str) -> str:
    """One field of a JSON payload, in SQL: that one is parsed, not the record."""
    schema = _schema([(name, dict(source.schema)[name])])
    return f"from_json(string({source.payload_column}), {schema}).{quoted(name)}"


def _schema(columns: Sequence[tuple[str, str]]) -> str:
    return literal(", ".join(f"{quoted(name)} {kind}" for name, kind in columns))


def raw_time(source: Source, columns: Sequence[str]) -> str | None:
    """A raw row's event time, in SQL: a column, or that one field of the payload, parsed alone; None without one."""
    if source.event_time is None or source.event_time in columns:
        return None if source.event_time is None else quoted(source.event_time)
    if source.payload != "json":
        return None
    return _alone(source, source.event_time)


def is_parsed(source: Source) -> str:
    """The condition, in SQL, that is true for rows whose payload is as declared.

    What is not Avro of this schema comes as a row of nulls.
    """
    if source.payload == "avro":
        inside = source.kafka.inside(source.name) if source.kafka is not None else ()
        return f"({' OR '.join(f'{BODY}.{quoted(name)} IS NOT NULL' for name, _ in inside)})"
    return f"({BODY} IS NOT NULL AND {BODY}.{CORRUPT} IS NULL)"


def parsed(source: Source, frame: DataFrame, columns: Sequence[str], known: ExpressionCache) -> DataFrame:
    """Exactly the declared columns, the identity and the time; rows that did not parse are left out."""
    declared = {name: f"`{name}`" if name in columns else f"{BODY}.`{name}`" for name, _ in source.schema}
    if source.payload is not None:
        frame = frame.where(known.expression(is_parsed(source)))
    chosen = [f"{sql} AS `{name}`" for name, sql in declared.items()]
    if source.event_time is not None:
        chosen.append(_time(declared[source.event_time]))
    return known.select(frame, [*chosen, IDENTITY])


def source_metrics(source: Source, columns: Sequence[str], passed: str = ALL) -> list[str]:
    """What is counted behind a source's drop: rows, those that do not parse, those without an event time.

    Before a drop by window it is the same, if those rows are counted that will have `passed`: those without a time do.
    """
    metrics = ["count(1) AS kept" if passed == ALL else f"count_if({passed}) AS kept"]
    if source.payload is not None:
        metrics.append(f"count_if(NOT {is_parsed(source)}) AS rejected")
    if source.event_time is not None:
        inside = source.event_time not in columns
        missing = "NOT " + placeable(f"{BODY if inside else ''}{'.' if inside else ''}`{source.event_time}`")
        metrics.append(f"count_if({missing}{f' AND {is_parsed(source)}' if inside else ''}) AS timeless")
    return metrics
