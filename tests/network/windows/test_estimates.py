"""What `on_loss` says, which aggregates can be estimated, and what is refused."""

from __future__ import annotations

import pytest

import jettison as jt
from jettison.errors import NetworkError
from jettison.spec.as_yaml import to_yaml
from jettison.spec.network_file import from_yaml

pytestmark = pytest.mark.core

ESTIMATE = jt.QoS(on_loss="estimate")


def trips(net: jt.Network, name: str = "trips") -> jt.Stream:
    return net.source(name, "trip long, at timestamp, zone int, fare double", event_time="at", id=["trip"])


def busy(net: jt.Network, **aggregates: str) -> jt.Stream:
    return trips(net).window("10 seconds", by="zone").agg(aggregates or {"n": "count(*)"}, name="busy")


def test_results_have_two_more_columns_per_aggregate() -> None:
    net = jt.Network("taxi")
    stream = busy(net, n="count(*)", mean="avg(fare)")
    assert stream.columns == ("zone", "window_start", "window_end", "n", "mean")
    stream.output("table", qos=ESTIMATE)
    assert net.graph.columns["table"][3:] == ("n", "mean", "n_low", "n_high", "mean_low", "mean_high")


def test_it_is_written_and_read_as_yaml() -> None:
    net = jt.Network("taxi")
    busy(net).where("n_low > 5", name="many").output("table", qos=ESTIMATE)
    text = to_yaml(net.graph)
    assert "on_loss: estimate" in text
    assert from_yaml(text).graph() == net.graph


def test_the_ends_of_an_interval_can_be_asked_for_before_the_output_is_declared() -> None:
    net = jt.Network("taxi")
    many = busy(net).where("n_low > 5").select("zone", "n", "n_high - n_low AS width")
    many.output("table", qos=ESTIMATE)
    assert net.graph.columns["table"] == ("zone", "n", "width")
    other = jt.Network("other")
    stream = busy(other).where("n_low > 5", name="many")
    with pytest.raises(NetworkError, match=r"where 'many': unknown column 'n_low'"):
        stream.output("table")


def test_a_word_that_is_not_known_is_told_with_its_output() -> None:
    net = jt.Network("taxi")
    busy(net).output("table", qos=ESTIMATE)
    text = to_yaml(net.graph).replace("on_loss: estimate", "on_loss: guess")
    with pytest.raises(NetworkError, match=r"output 'table': QoS on_loss is 'guess'"):
        from_yaml(text).graph()


@pytest.mark.parametrize("word", ["subset", "ignore"])
def test_the_other_words_leave_results_as_they_are(word: str) -> None:
    net = jt.Network("taxi")
    busy(net, best="max(fare)").output("table", qos=jt.QoS(on_loss=word))
    assert net.graph.columns["table"] == ("zone", "window_start", "window_end", "best")


@pytest.mark.parametrize(
    "call", ["max(fare)", "count(DISTINCT zone)", "percentile_approx(fare, 0.5)", "first(fare)", "stddev(fare)"]
)
def test_what_cannot_be_estimated_is_refused_with_what_can_be(call: str) -> None:
    net = jt.Network("taxi")
    stream = busy(net, n="count(*)", odd=call)
    with pytest.raises(NetworkError, match=r"aggregate 'busy'.*'odd'.*use count, count_if, sum, avg, mean"):
        stream.output("table", qos=ESTIMATE)


def test_a_function_of_the_users_own_is_refused() -> None:
    net = jt.Network("taxi")
    own = jt.aggregate(
        init=float, incr=lambda sum_, fare: sum_ + fare, merge=float.__add__, final=float, columns="fare", type="double"
    )
    stream = trips(net).window("10 seconds").agg(odd=own, name="busy")
    with pytest.raises(NetworkError, match="a function of your own, which cannot be estimated"):
        stream.output("table", qos=ESTIMATE)


def test_an_estimate_of_estimates_is_refused() -> None:
    net = jt.Network("taxi")
    stream = busy(net).window("1 minute").agg(n="sum(n)", name="minutes")
    with pytest.raises(NetworkError, match=r"'minutes' is made of results of aggregate 'busy'.*estimate of estimates"):
        stream.output("table", qos=ESTIMATE)
    other = jt.Network("other")
    busy(other).output("table", qos=ESTIMATE)
    with pytest.raises(NetworkError, match="estimate of estimates"):
        other.stream("busy").window("1 minute").agg(n="sum(n)", name="minutes")


def test_pairs_of_streams_are_refused() -> None:
    net = jt.Network("taxi")
    pairs = trips(net).join(trips(net, "paid").select("trip", "at AS later"), on="trip", within="1 minute", name="both")
    stream = pairs.window("10 seconds").agg(n="count(*)", name="busy")
    with pytest.raises(NetworkError, match=r"'busy'.*pairs of join 'both'"):
        stream.output("table", qos=ESTIMATE)


def test_a_source_needs_an_id_or_a_topic() -> None:
    net = jt.Network("taxi")
    schema = "trip long, at timestamp, zone int"
    stream = net.source("trips", schema, event_time="at").where("trip > 0").window("10 seconds")
    stream = stream.agg(n="count(*)", name="busy")
    with pytest.raises(NetworkError, match=r"'busy'.*source 'trips', which says no id.*such as id=\['trip'\].*Kafka"):
        stream.output("table", qos=ESTIMATE)
    stream.output("table")
    net = jt.Network("taxi")
    topic = jt.kafka("localhost:9092", "trips", value="json", schema=schema)
    busy = net.source("trips", topic, event_time="at").window("10 seconds").agg(n="count(*)", name="busy")
    busy.output("table", qos=ESTIMATE)


def test_rows_that_come_twice_are_refused() -> None:
    net = jt.Network("taxi")
    all_trips = trips(net)
    both = all_trips.where("fare > 5", name="dear").union(all_trips.where("zone = 1", name="near"), name="both")
    stream = both.window("10 seconds").agg(n="count(*)", name="busy")
    with pytest.raises(NetworkError, match=r"'busy'.*rows of source 'trips' on several ways, by union 'both'"):
        stream.output("table", qos=ESTIMATE)
    net = jt.Network("taxi")
    both = trips(net).union(trips(net, "more"), name="both")
    both.window("10 seconds").agg(n="count(*)", name="busy").output("table", qos=ESTIMATE)


@pytest.mark.parametrize(
    "made", ["explode(array(1, 2)) AS x", "posexplode_outer(array(1)) AS (at, x)", "STACK (2, 1, 2) AS x"]
)
def test_rows_that_one_row_becomes_are_refused(made: str) -> None:
    net = jt.Network("taxi")
    stream = trips(net).select("*", made, name="many").window("10 seconds").agg(n="count(*)", name="busy")
    with pytest.raises(NetworkError, match=r"'busy'.*select 'many' makes of one by .*on_loss='subset'"):
        stream.output("table", qos=ESTIMATE)


def test_one_aggregate_has_one_word() -> None:
    net = jt.Network("taxi")
    stream = busy(net)
    stream.output("table", qos=ESTIMATE)
    with pytest.raises(NetworkError, match=r"'busy'.*also leads to output 'right', which wants 'subset'"):
        stream.where("n > 5").output("right")


def test_words_that_do_not_go_together() -> None:
    with pytest.raises(NetworkError, match=r"on_loss is 'guess': say one of 'subset', 'estimate', 'ignore'"):
        jt.QoS(on_loss="guess")
    with pytest.raises(NetworkError, match="leave one of them out"):
        jt.QoS(on_loss="estimate", gap=4)
    with pytest.raises(NetworkError, match="goes by value cannot be estimated"):
        jt.QoS(on_loss="estimate", value=jt.Value("fare", [(0, 10, 0.1), (10, 50, 1.0)]))
    net = jt.Network("taxi")
    with pytest.raises(NetworkError, match=r"output 'all'.*on_loss='estimate'.*there are none on its way"):
        trips(net).output("all", qos=ESTIMATE)


def test_names_of_intervals_must_be_free() -> None:
    net = jt.Network("taxi")
    stream = busy(net, n="count(*)", n_low="sum(fare)")
    with pytest.raises(NetworkError, match="n_low"):
        stream.output("table", qos=ESTIMATE)


def test_windows_of_rows_are_not_estimated_nor_made_of_estimates() -> None:
    net = jt.Network("n")
    tens = net.source("trips", "at timestamp", event_time="at").window("10 rows").agg(n="count(*)", name="tens")
    with pytest.raises(NetworkError, match=r"'tens' counts rows.*output 'table' wants on_loss='estimate'"):
        tens.output("table", qos=jt.QoS(on_loss="estimate"))
    net = jt.Network("n")
    trips = net.source("trips", "trip long, at timestamp", event_time="at", id=["trip"])
    minutes = trips.window("1 minute").agg(n="count(*)", name="minutes")
    minutes.output("table", qos=jt.QoS(on_loss="estimate"))
    with pytest.raises(NetworkError, match=r"'tens' counts rows.*aggregate 'minutes' above it"):
        minutes.window("10 rows").agg(n="sum(n)", name="tens")
