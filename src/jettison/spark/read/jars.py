"""Java libraries from Maven Central, fetched once into the user's cache by the resolver that PySpark brings (Ivy).

The Kafka connector is part of Spark, yet not of PySpark. Its version must be PySpark's own; where Maven Central does
not have that one, the newest before it is taken, and said.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

from jettison.errors import StartError

_log = logging.getLogger("jettison")

CONNECTOR = "spark-sql-kafka-0-10_2.13"
_TOKENS = "spark-token-provider-kafka-0-10_2.13"
_AVRO = "spark-avro_2.13"
_IN_PYSPARK = (
    "org.apache.hadoop",
    "org.slf4j",
    "org.lz4",
    "at.yawk.lz4",
    "org.xerial.snappy",
    "com.github.luben",
    "com.google.code.findbugs",
    "org.spark-project.spark",
    "org.scala-lang",
    "org.tukaani",
    "spark-tags_2.13",
)
_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Jar:
    """A library with all that it needs, but for organisations and modules in `without`."""

    organisation: str
    name: str
    version: str
    without: tuple[str, ...] = ()


def kafka_connector() -> list[Path]:
    """The jars that let this PySpark read and write Kafka; fetched the first time."""
    return _spark_package("kafka-connector", (CONNECTOR, _TOKENS))


def avro() -> list[Path]:
    """The jars that let this PySpark read Avro; fetched the first time."""
    return _spark_package("avro", (_AVRO,))


def coordinates() -> str:
    """What a user of spark-submit says after --packages: Spark's rule. See `kafka_connector` for what is fetched."""
    return f"org.apache.spark:{CONNECTOR}:{pyspark.__version__}"


def _spark_package(label: str, names: Sequence[str]) -> list[Path]:
    """Parts of Spark: each by itself, so that one that lacks a version does not hold up another."""
    version = pyspark.__version__
    folder = f"{label}-{version}"

    def wanted(revision: str) -> list[Jar]:
        apart = {name: tuple(other for other in names if other != name) for name in names}
        return [Jar("org.apache.spark", name, revision, (*_IN_PYSPARK, *apart[name])) for name in names]

    try:
        return fetch(folder, wanted(version))
    except StartError:
        major = version.partition(".")[0]
        jars = fetch(folder, wanted(f"[{major}.0.0,{version}]"))
        found = ", ".join(sorted(jar.stem for jar in jars if jar.name.startswith("spark-")))
        _log.warning("Maven Central has no %s of version %s; using %s", names[0], version, found)
        return jars


def fetch(folder: str, jars: Sequence[Jar]) -> list[Path]:
    """The files of these libraries and all that they need, in the cache under `folder`."""
    target = cache() / folder
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with (cache() / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # Ivy's own cache is not made for two at a time
            if not target.is_dir():
                with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{folder}-") as name:
                    made = Path(name) / "jars"
                    _resolve(folder, jars, Path(name) / "ivy.xml", made)
                    with contextlib.suppress(FileExistsError, OSError):  # where locks do not work
                        made.rename(target)
    return sorted(target.glob("*.jar"))


def from_pyspark(*prefixes: str) -> list[Path]:
    """Jars that PySpark itself brings, by the beginnings of their names."""
    folder = Path(pyspark.__file__).parent / "jars"
    return sorted(path for prefix in prefixes for path in folder.glob(f"{prefix}*.jar"))


def cache() -> Path:
    """Where jars are kept: $JETTISON_CACHE, else the user's cache folder."""
    given = os.environ.get("JETTISON_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(home) / "jettison"


def java() -> str:
    """The Java that Spark itself would start."""
    home = os.environ.get("JAVA_HOME")
    found = f"{home}/bin/java" if home else shutil.which("java")
    if not found or not Path(found).exists():
        raise StartError("there is no Java: install Java 17 or newer, or set JAVA_HOME.")
    return found


def _resolve(label: str, jars: Sequence[Jar], description: Path, target: Path) -> None:
    ivy = next(iter(Path(pyspark.__file__).parent.glob("jars/ivy-*.jar")), None)
    if ivy is None:
        raise StartError("this PySpark has no jars folder with Ivy in it: install pyspark with pip.")
    print(f"jettison: fetching {label} from Maven Central, once", file=sys.stderr, flush=True)
    description.write_text(_ivy_xml(jars))
    command = [java(), "-jar", str(ivy), "-ivy", str(description), "-cache", str(cache() / "ivy"), "-confs", "default"]
    command += ["-types", "jar", "bundle", "-retrieve", f"{target}/[artifact]-[revision].[ext]"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise StartError(f"{label}: Maven Central did not answer within {_TIMEOUT_S:.0f} s.") from error
    if done.returncode != 0 or "UNRESOLVED DEPENDENCIES" in done.stdout or not list(target.glob("*.jar")):
        missing = [line.strip(" :\t") for line in done.stdout.splitlines() if ": not found" in line]
        reason = "; ".join(dict.fromkeys(missing)) or "no network?"
        raise StartError(
            f"{label}: Maven Central gave no such jars ({reason}). They are needed once and kept in {str(cache())!r}."
        )


def _ivy_xml(jars: Sequence[Jar]) -> str:
    parts = []
    for jar in jars:
        excluded = "".join(
            f'<exclude {"org" if "." in each and "_2" not in each else "module"}="{each}"/>' for each in jar.without
        )
        where = f'org="{jar.organisation}" name="{jar.name}" rev="{jar.version}"'
        parts.append(f'<dependency {where} conf="default->default">{excluded}</dependency>')
    return (
        '<ivy-module version="2.0"><info organisation="jettison" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(parts)}</dependencies></ivy-module>"
    )
