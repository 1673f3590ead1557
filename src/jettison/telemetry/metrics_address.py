"""Where metrics are served: an address in words, and one server for all runs of a process that share it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from jettison.errors import StartError

LOOPBACK = "127.0.0.1"
_EXAMPLE = "such as metrics='0.0.0.0:9100', ':9100' or 9100 for this machine alone"


def parse_address(given: str | int) -> tuple[str, int]:
    """Host and port; without a host, this machine alone can ask. Port 0 takes any that is free.

    >>> parse_address("0.0.0.0:9100"), parse_address(":9100"), parse_address(9100), parse_address("[::]:9100")
    (('0.0.0.0', 9100), ('127.0.0.1', 9100), ('127.0.0.1', 9100), ('::', 9100))
    """
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise StartError(f"metrics is {given!r}: give an address, {_EXAMPLE}.")
    host, _, port = str(given).strip().rpartition(":")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise StartError(f"metrics is {given!r}: write an IPv6 host in brackets, such as '[::1]:9100'.")
    if not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise StartError(f"metrics is {given!r}: the port must be a number up to 65535, {_EXAMPLE}.")
    return host.strip("[]") or LOOPBACK, int(port)


class _Together(Collector):
    """The metrics of several runs as one page: each family once, with the series of all of them."""

    def __init__(self) -> None:
        self.networks: dict[str, CollectorRegistry] = {}

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for registry in list(self.networks.values()):
            for family in registry.collect():
                found = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                found.samples += [each for each in family.samples if not each.name.endswith("_created")]
        yield from families.values()


@dataclass
class Served:
    """A server, and what it shows."""

    host: str
    port: int
    page: _Together
    _server: object
    _asked_port: int

    def leave(self, network: str) -> None:
        """Take a network off the page; the last one closes the server."""
        with _LOCK:
            self.page.networks.pop(network, None)
            if not self.page.networks and _SERVERS.pop((self.host, self._asked_port), None) is not None:
                self._server.shutdown()  # type: ignore[attr-defined]
                self._server.server_close()  # type: ignore[attr-defined]


_SERVERS: dict[tuple[str, int], Served] = {}
_LOCK = threading.Lock()


def serve(address: str | int, network: str, registry: CollectorRegistry) -> Served:
    """Show a registry at an address. Runs of several networks in one process may share it."""
    host, port = parse_address(address)
    with _LOCK:
        served = _SERVERS.get((host, port)) if port else None
        if served is None:
            page = _Together()
            shown = CollectorRegistry()
            try:
                shown.register(page)
                server, _ = start_http_server(port, addr=host, registry=shown)
            except OSError as error:
                raise StartError(
                    f"metrics {host}:{port}: cannot listen there: {error.strerror or error}. Choose another address."
                ) from error
            served = Served(host, server.server_port, page, server, port or server.server_port)
            _SERVERS[host, served._asked_port] = served
        elif network in served.page.networks:
            raise StartError(
                f"metrics {host}:{port}: a run of network {network!r} in this process shows its metrics there already: "
                f"give this one another port."
            )
        served.page.networks[network] = registry
    return served
