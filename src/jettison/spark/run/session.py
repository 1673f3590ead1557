"""A local Spark session with settings that suit Jettison. On a cluster use your own: nothing here is needed."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from jettison.errors import StartError
from jettison.network.calls import checked_call
from jettison.spark.read.jars import avro as avro_reader
from jettison.spark.read.jars import kafka_connector

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    "spark.sql.codegen.cache.maxEntries": "2000",
    "spark.sql.dataFrameQueryContext.enabled": "false",  # it asks for the caller's line with every column: slow
    # Spark remembers what ran, for its UI, whether it has one or not: by default a thousand of each, for ever
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "50",
    # the default one forks a process for every rename on a local disk: 100 ms a batch
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


@checked_call("jt.local_session", StartError)
def local_session(
    name: str = "jettison",
    cores: int | None = None,
    extra: Mapping[str, str] | None = None,
    *,
    kafka: bool = False,
    avro: bool = False,
) -> SparkSession:
    """A session on this machine, on all cores unless `cores` says fewer. Python workers use this interpreter.

    With `kafka` it can read and write Kafka, with `avro` decode Avro; the first time, jars come from Maven Central.
    """
    if not isinstance(name, str) or not name:
        raise StartError(f"local_session: name is {name!r}: give a text, such as 'jettison'.")
    if cores is not None and (isinstance(cores, bool) or not isinstance(cores, int) or cores < 1):
        raise StartError(f"local_session: cores is {cores!r}: give a whole number of at least 1, or leave it out.")
    if extra is not None and not isinstance(extra, Mapping):
        raise StartError(f"local_session: extra is {extra!r}: give a mapping of Spark's settings.")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    jars = (kafka_connector() if kafka else []) + (avro_reader() if avro else [])
    settings = {"spark.jars": ",".join(map(str, jars))} if jars else {}
    count = cores or os.cpu_count() or 2
    builder = SparkSession.builder.master(f"local[{count}]").appName(name)
    quiet = f"-Xss16m -Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"
    builder = builder.config("spark.driver.extraJavaOptions", quiet)
    for key, value in {**_SETTINGS, "spark.sql.shuffle.partitions": str(count), **settings, **(extra or {})}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    if kafka and not has_kafka(session):
        raise StartError(
            "Spark runs in this process already, without the Kafka connector, which it takes only when it starts: "
            "make the first session with kafka=True."
        )
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # PySpark's own copy of every exception
    session.sparkContext.setLogLevel("FATAL")  # failures reach the user as exceptions that name the element
    return session


def has_kafka(session: SparkSession) -> bool:
    """Whether the session can read and write Kafka."""
    jvm: Any = session._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        jvm.java.lang.Class.forName("org.apache.spark.sql.kafka010.KafkaSourceProvider", False, loader)
        return True
    except Py4JJavaError:
        return False
