"""The broker that tests and experiments start: a port that somebody else takes does not stop it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.conftest import needs_kafka

from jettison.errors import StartError
from jettison.experiments.kafka.broker import Broker
from jettison.experiments.kafka.ports import HOST, free_ports, is_free


@pytest.mark.core
def test_free_ports_are_different_and_not_those_that_connections_get() -> None:
    ports = free_ports(50)
    assert len(set(ports)) == 50
    assert max(ports) < 32_768
    assert all(map(is_free, ports))


@pytest.mark.core
def test_a_port_is_in_use_while_somebody_listens_there() -> None:
    port = free_ports(1)[0]
    with socket.create_server((HOST, port)):
        assert not is_free(port)
    assert is_free(port)


@pytest.mark.kafka
@needs_kafka
def test_a_broker_takes_another_port_where_its_own_is_taken_and_keeps_it(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "kafka")
    with socket.create_server((HOST, broker.port)) as taken, broker:
        chosen = broker.port
        assert chosen != taken.getsockname()[1]
        broker.create("kept")
        broker.kill()
        broker.start()
        assert broker.port == chosen
        assert broker.ends("kept") == {"0": 0, "1": 0}


@pytest.mark.kafka
@needs_kafka
def test_a_broker_that_ends_at_once_says_why(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "kafka")
    with broker:
        pass
    with socket.create_server((HOST, broker.port)), pytest.raises(StartError, match="BindException: Address already"):
        broker.start()
