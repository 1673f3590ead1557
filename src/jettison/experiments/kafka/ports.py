"""Ports on loopback for servers that are started here."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

HOST = "127.0.0.1"

# Below what systems hand out to connections (Linux from 32768): while a server is down nobody is given its port.
_PORTS = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses now, all different."""
    with ExitStack() as held:
        found: list[int] = []
        for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
            if len(found) == count:
                return found
            probe = held.enter_context(socket.socket())
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            found.append(port)
    raise OSError(f"no {count} free ports among {_PORTS.start} to {_PORTS.stop - 1} on {HOST}.")


def is_free(port: int) -> bool:
    """Whether a server could listen there (a connection that has just been closed does not count)."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
