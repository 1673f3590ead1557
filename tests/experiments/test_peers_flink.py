"""Flink, where it is installed: the same results as Jettison and native Spark, from files and from Kafka, and live."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jettison.errors import StartError
from jettison.experiments.harness import save
from jettison.experiments.kafka.broker import Broker
from jettison.experiments.peers.comparison import Scale, compare
from jettison.experiments.peers.flink.home import flink_home, is_installed
from jettison.experiments.peers.overload import Length

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

_SMALL = Scale((60_000, 4, 20.0), (40_000, 4, 20.0), 1, Length(1000.0, 2.0, 4.0, 6.0), rows_per_s=20_000)


@pytest.mark.skipif(not is_installed(), reason="`jettison experiment run peers` installs Flink, and has not run here")
def test_flink_has_the_same_results(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    result = compare(_SMALL, lambda _: None, broker)
    assert result.checks["parquet: all engines have the same results"]
    assert result.checks["kafka: all engines have the same results"]
    assert result.checks["flink: live windows have all of their trips"]
    assert {"vs_spark", "vs_flink", "worth_vs_spark", "worth_vs_flink"} <= set(result.metrics)
    assert {row["engine"] for row in result.rows if row["part"] == "overload"} == {"jettison", "spark", "flink"}
    assert [path.suffix for path in save(result, tmp_path)] == [".csv", ".png"]


def test_without_a_package_index_the_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("JETTISON_CACHE", str(tmp_path)), ("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", "")):
        monkeypatch.setenv(name, value)
    with pytest.raises(StartError, match="pip cannot install apache-flink"):
        flink_home(lambda _: None)
    assert not is_installed()
