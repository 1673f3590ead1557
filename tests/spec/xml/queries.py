"""Queries for tests: DISSP's average, whole and with parts changed, and random ones."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

from hypothesis import strategies as st

AVERAGE = """<?xml version="1.0" encoding="UTF-8"?>
<query name="average">
  <schema name="simpleSchemaONE">
    <field type="long" name="ts" />
    <field type="double" name="idx" />
    <field type="double" name="cpu" />
  </schema>
  <operator name="MyInput" type="Input">
    <next name="MyWindow"/>
    <parameter name="tuple" value="simpleSchemaONE"/>
    <parameter name="event_time" value="ts"/>
  </operator>
  <operator name="MyWindow" type="Window">
    <next name="MyAvgCpu"/>
    <parameter name="size" value="10 seconds"/>
  </operator>
  <operator name="MyAvgCpu" type="Average">
    <next name="MyOutput"/>
    <parameter name="tuple" value="simpleSchemaONE" />
    <parameter name="field" value="cpu"/>
    <parameter name="groupby" value="idx"/>
  </operator>
  <operator name="MyOutput" type="Output"/>
</query>
"""
"""Listings 4.1 and 4.2 of DISSP, and what a whole query needs around them."""


def average(before: str, after: str) -> str:
    """The query with one part in the place of another."""
    assert AVERAGE.count(before) >= 1, before
    return AVERAGE.replace(before, after, 1)


def operator(name: str, kind: str, heads: list[str], **parameters: str) -> str:
    """An operator as a file has it; `as_` is parameter `as`."""
    inside = [f"<next name={quoteattr(head)}/>" for head in heads]
    inside += [f"<parameter name={quoteattr(k.rstrip('_'))} value={quoteattr(v)}/>" for k, v in parameters.items()]
    return f"<operator name={quoteattr(name)} type={quoteattr(kind)}>{''.join(inside)}</operator>"


_NAMES = ("a", "on", "no", "null", "123", "1e3", "-", "end", "true", "_", "größe", "a-b", "Off", "b-window", "b", "c")
_WHERE = ("cpu > 3", "cpu < 3 AND idx >= 2", "`my id` = 'a, \"b\" & <c>'", "cpu > 1\n  OR\tidx = 1", "idx IN (1, 2)")
_SELECT = ("*", "*, cpu < 3 AS cold, 'x, y' AS note", "ts, idx, cpu, `my id`")
_SCHEMA = (
    '<schema name="s"><field type="long" name="ts"/><field type="int" name="idx"/><field type="double" name="cpu"/>'
    '<field type="map&lt;string, int&gt;" name="my id"/></schema>'
)
_QOS = ("{priority: 2}", "{loss: [[100, 1], [50, 0.8], [0, 0]], min_accuracy: 0.2}", "{latency_goal: 2 seconds}")


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Queries with every type of operator, in an order of the file that need not be that of the streams."""
    pick = lambda items: items[draw(st.integers(0, len(items) - 1))]  # noqa: E731
    names = iter(_NAMES)
    heads: dict[str, list[str]] = {}
    made: list[tuple[str, str, dict[str, str]]] = []
    streams: list[str] = []

    def add(kind: str, tails: list[str], **parameters: str) -> str:
        name = next(names)
        for tail in tails:
            heads[tail].append(name)
        heads[name] = []
        made.append((name, kind, parameters))
        return name

    for _ in range(draw(st.integers(1, 2))):
        given = pick(({}, {"id": "idx, `my id`"}, {"payload": "json"}))
        streams.append(add("Input", [], tuple="s", event_time="ts", **given))
    for _ in range(draw(st.integers(0, 4))):
        kind = pick(("Filter", "Project", "Union", "Join", "table", "Window"))
        tail, other = pick(streams), pick(streams)
        if kind == "Filter":
            streams.append(add("Filter", [tail], where=pick(_WHERE)))
        elif kind == "Project":
            streams.append(add("project", [tail], select=pick(_SELECT[:1] + _SELECT[2:])))
        elif kind == "table":
            add("Output", [add("Join", [tail], on="idx", table="hosts", how=pick(("inner", "left_semi")))])
        elif kind == "Union" and tail != other:
            streams.append(add("Union", [tail, other], inputs=f"{other}, {tail}"))
        elif kind == "Join" and tail != other:
            on = "idx, ts, cpu, `my id`"
            streams.append(add("Join", [tail, other], on=on, within="90 seconds", delay="1 second"))
        elif kind == "Window":
            size = pick(({"size": "10 seconds", "slide": "5 seconds", "delay": "2 seconds"}, {"size": "7 rows"}))
            window = add("Window", [tail], **size)
            call = pick(({"field": "cpu"}, {"field": "idx", "groupby": "`my id`, idx", "as": "größe: 1"}))
            add("Output", [add(pick(("Average", "Sum", "Count", "Max", "Min")), [window], **call)])
            if draw(st.booleans()):
                add("Output", [add("Count", [window])])
    for stream in streams:
        if not heads[stream]:
            given = {"qos": pick(_QOS)} if draw(st.booleans()) else {}
            add("Output", [stream], quality=pick(("true", "false")), **given)
    made = draw(st.permutations(made))
    inside = "".join(operator(name, kind, heads[name], **parameters) for name, kind, parameters in made)
    return f"<query name={quoteattr(pick(('q', '7', 'a: b', 'off')))}>{_SCHEMA}{inside}</query>"
