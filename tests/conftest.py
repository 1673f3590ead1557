"""What all tests share: one Spark session, Hypothesis's profile, and the markers that tests need not spell out."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jettison.experiments.kafka.broker import Broker

ROOT = Path(__file__).resolve().parent.parent
SPARK_MODULES = ROOT / "src" / "jettison" / "spark"

# No deadline: a garbage collection or a busy machine is not a fault. In CI every run draws the same examples.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# Tests run every piece of Spark's code a few times: what the JVM's second compiler would gain it never earns back.
# With one compiler the JVM keeps 48 MB for compiled code. When that is full, after three minutes, it compiles no more.
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_START)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session of the whole run, local[2], started by the first test that asks for it.

    Doctests cannot ask (pytest looks for their fixtures beside src/, not here): those of jettison.spark do without.
    """
    from jettison.spark.run.session import local_session

    # Python workers run this very interpreter, and find functions that test modules define by `tests.<module>`.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with_kafka = _has_connector()
    session = local_session("jettison-tests", cores=2, kafka=with_kafka, avro=with_kafka)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def log_as_it_was() -> Iterator[None]:
    """What a command sets up to be logged on the screen is not there in the next test."""
    log = logging.getLogger("jettison")
    handlers, level = list(log.handlers), log.level
    yield
    log.handlers, log.level = handlers, level


SKIPS_KAFKA = os.environ.get("JETTISON_SKIP_KAFKA") == "1"
needs_kafka = pytest.mark.skipif(SKIPS_KAFKA, reason="JETTISON_SKIP_KAFKA=1")


def _has_connector() -> bool:
    """Without it the tests that need Kafka fail, each with the reason; the others go on."""
    from jettison.errors import StartError
    from jettison.spark.read.jars import avro, kafka_connector

    try:
        return not SKIPS_KAFKA and bool(kafka_connector()) and bool(avro())
    except StartError:
        return False


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real Kafka broker on loopback, started by the first test that asks for it."""
    if SKIPS_KAFKA:
        pytest.skip("JETTISON_SKIP_KAFKA=1")
    from jettison.errors import StartError
    from jettison.experiments.kafka.broker import Broker
    from jettison.spark.read.jars import avro, kafka_connector

    try:
        kafka_connector()
        avro()
        started = Broker(tmp_path_factory.mktemp("kafka"))
        started.start()
    except StartError as error:
        pytest.fail(str(error), pytrace=False)
    yield started
    started.stop()


def pytest_configure(config: pytest.Config) -> None:
    """`pytest -m core` looks for no doctests in jettison.spark: that would import pyspark only to deselect them."""
    if config.option.markexpr in ("core", "core and not long"):
        # An option, not the hook pytest_ignore_collect: in this file that hook is asked about tests/ alone.
        config.option.ignore = [*(config.option.ignore or []), str(SPARK_MODULES)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses the fixtures `spark` and `broker`, doctests of jettison.spark `spark`, others `core`."""
    for item in items:
        doctest = isinstance(item, pytest.DoctestItem)
        if "spark" in getattr(item, "fixturenames", ()) or (doctest and item.path.is_relative_to(SPARK_MODULES)):
            item.add_marker(pytest.mark.spark)
        if "broker" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.kafka)
        if doctest and not item.path.is_relative_to(SPARK_MODULES):
            item.add_marker(pytest.mark.core)
