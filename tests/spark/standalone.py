"""A real Spark standalone cluster on loopback: one master and some workers, each a process that a test can kill.

    with standalone_cluster(workers=2) as cluster:
        subprocess.run([sys.executable, "driver.py", cluster.url], env=cluster.driver_env(), check=True)

A process has one SparkContext at a time and the test session's `spark` fixture holds it, so a driver for this cluster
runs in a process of its own, with `driver_env()` as its environment and `DRIVER_CONF` in its session's settings.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPResponse
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.conftest import QUICK_START

from jettison.experiments.kafka.ports import free_ports

LOOPBACK = "127.0.0.1"
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 10.0
TAIL_LINES = 30

# What a session on the cluster must set: executors call the driver back, and everything stays on loopback.
DRIVER_CONF = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.executor.extraJavaOptions": QUICK_START,
}


class ClusterError(RuntimeError):
    """The cluster did not come up, or a process of it died; the message ends with the tail of its log."""


@dataclass
class Daemon:
    """A master or worker. It leads a process group of its own, which its executors (its children) belong to."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        return "\n".join([f"--- the last lines of {self.log}", *lines])

    def signal(self, number: signal.Signals) -> None:
        # The group outlives its leader for as long as a child of the leader is running.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def stop(self) -> None:
        self.signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_TIMEOUT_S)
        self.signal(signal.SIGKILL)  # also executors that did not follow their worker
        self.process.wait()


@dataclass
class StandaloneCluster:
    """A running cluster. `url` is the master's address; `folder` holds logs and work folders."""

    url: str
    web_url: str
    folder: Path
    master: Daemon
    workers: list[Daemon] = field(default_factory=list)

    def driver_env(self) -> dict[str, str]:
        """This process's environment for a driver whose executors run this very interpreter, on loopback."""
        pythons = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        return _environment() | pythons | {"SPARK_SUBMIT_OPTS": QUICK_START}

    def kill_worker(self, index: int) -> None:
        """SIGKILL the worker and its executors, as when a machine loses power."""
        worker = self.workers[index]
        worker.signal(signal.SIGKILL)
        worker.process.wait()

    def alive_workers(self) -> int:
        """How many workers the master counts as alive (it notices a killed one within moments)."""
        return sum(worker["state"] == "ALIVE" for worker in self._state()["workers"])

    def _state(self) -> dict[str, Any]:
        with _open(f"{self.web_url}/json/") as answer:
            return json.load(answer)


@contextlib.contextmanager
def standalone_cluster(workers: int = 2, cores: int = 1, memory: str = "1g") -> Iterator[StandaloneCluster]:
    """Start a master and `workers` workers of `cores` and `memory` each; stop them, and only them, at exit."""
    folder = Path(tempfile.mkdtemp(prefix="jettison-cluster-"))
    daemons: list[Daemon] = []
    try:
        port, web_port = free_ports(2)
        master = _start(
            "master",
            folder,
            "org.apache.spark.deploy.master.Master",
            *("--host", LOOPBACK, "--port", str(port), "--webui-port", str(web_port)),
        )
        daemons.append(master)
        cluster = StandaloneCluster(f"spark://{LOOPBACK}:{port}", f"http://{LOOPBACK}:{web_port}", folder, master)
        # A port taken by someone else in the meantime would make the master move to the next one.
        _wait_for(lambda: cluster._state()["url"] == cluster.url, f"the master to listen at {cluster.url}", [master])

        for index in range(workers):
            worker = _start(
                f"worker-{index}",
                folder,
                "org.apache.spark.deploy.worker.Worker",
                *("--host", LOOPBACK, "--port", "0", "--webui-port", "0"),
                *("--cores", str(cores), "--memory", memory, "--work-dir", str(folder / f"worker-{index}" / "work")),
                cluster.url,
            )
            daemons.append(worker)
            cluster.workers.append(worker)
        _wait_for(lambda: cluster.alive_workers() == workers, f"{workers} workers to register", daemons)
        yield cluster
    finally:
        for daemon in reversed(daemons):
            daemon.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _spark_home() -> Path:
    # Looked up, not imported: this file is also read where no engine may be loaded.
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ClusterError("pyspark is not installed in this environment")
    return Path(spec.origin).parent


def _environment() -> dict[str, str]:
    # Spark's own settings of this machine (SPARK_CONF_DIR, SPARK_WORKER_OPTS, ...) must not reach the test cluster.
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    return ours | {"SPARK_HOME": str(_spark_home()), "SPARK_LOCAL_IP": LOOPBACK}


def _start(name: str, folder: Path, main_class: str, *arguments: str) -> Daemon:
    home = folder / name
    (home / "conf").mkdir(parents=True)
    environment = _environment() | {
        "SPARK_CONF_DIR": str(home / "conf"),
        "SPARK_LOCAL_DIRS": str(home / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        # The master's REST server would listen on a fixed port, where two clusters collide.
        "SPARK_DAEMON_JAVA_OPTS": f"-Djava.net.preferIPv4Stack=true -Dspark.master.rest.enabled=false {QUICK_START}",
        "PYSPARK_PYTHON": sys.executable,
    }
    log = home / "log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [str(_spark_home() / "bin" / "spark-class"), main_class, *arguments],
            env=environment,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Daemon(name, process, log)


def _wait_for(condition: Callable[[], bool], what: str, daemons: list[Daemon]) -> None:
    """Ask until the condition holds; an unreachable web page counts as not yet."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError, json.JSONDecodeError):
            if condition():
                return
        for daemon in daemons:
            if (code := daemon.process.poll()) is not None:
                raise ClusterError(f"{daemon.name} ended with code {code} on the way up\n{daemon.tail()}")
        if time.monotonic() > deadline:
            tails = "\n".join(daemon.tail() for daemon in daemons)
            raise ClusterError(f"waited {START_TIMEOUT_S:.0f} s for {what}\n{tails}")
        time.sleep(0.1)


def _open(url: str) -> HTTPResponse:
    # No proxy, whatever the environment says: the address is on loopback.
    return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5)
