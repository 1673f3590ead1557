"""Who runs when. A scheduler carries tuples through the network, batch by batch, under the plans of the loop."""

from __future__ import annotations

from typing import Protocol

from jettison.control.loop import Controller
from jettison.sim.account import Account
from jettison.sim.machine import Machine
from jettison.sim.result import LATENCIES, Latency, SimBatch


class Scheduler(Protocol):
    """What `simulate` asks of one."""

    machine: Machine
    controller: Controller

    def step(self) -> SimBatch | None:
        """The next batch, from its plan to what it measured; None when the time is over."""

    def queues(self) -> dict[str, float]:
        """Tuples that wait now, by arc; arcs where none do may be left out."""


def latencies(account: Account, since: dict[str, int]) -> dict[str, Latency]:
    """Quantiles of latency of what came out after `since` (see `Account.mark`), for the outputs that got anything."""
    found = {name: account.latency_ms(name, tuple(LATENCIES.values()), mark) for name, mark in since.items()}
    return {name: dict(zip(LATENCIES, late, strict=True)) for name, late in found.items() if late is not None}
