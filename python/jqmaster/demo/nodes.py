"""A Redis Cluster for the demo: primaries with a replica each, on free ports of this machine."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import redis

from jqmaster.demo.processes import DidNotStart, Processes

SLOTS = 16384
NODE_TIMEOUT_MS = 1000
_PATIENCE_S = 30.0


class Nodes:
    """`count` primaries, which share the slots, and as many replicas."""

    def __init__(self, directory: Path, processes: Processes, count: int = 3) -> None:
        free = _free_ports(4 * count)
        self.ports, buses = free[: 2 * count], free[2 * count :]
        self.count = count
        self._processes = processes
        self._buses = dict(zip(self.ports, buses, strict=True))
        self._directory = directory
        for port in self.ports:
            self.start(port)
        self._join()

    def start(self, port: int) -> None:
        """Also again, with what it knows of the others: it follows whoever has taken over then."""
        home = self._directory / f"node-{port}"
        home.mkdir(exist_ok=True)
        options = {
            "port": port, "bind": "127.0.0.1", "dir": home, "save": "", "maxmemory-policy": "noeviction",
            "cluster-enabled": "yes", "cluster-port": self._buses[port], "cluster-node-timeout": NODE_TIMEOUT_MS,
            "cluster-replica-validity-factor": 0, "cluster-require-full-coverage": "no",
            "repl-diskless-sync-delay": 0,
        }  # fmt: skip
        arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        self._processes.start_program(f"redis {port}", ["redis-server", *arguments], ready="Ready to accept")

    @property
    def url(self) -> str:
        """Of all of them: any may tell where the others are."""
        return f"redis+cluster://{','.join(f'127.0.0.1:{port}' for port in self.ports)}"

    def kill(self, port: int) -> int:
        """kill -9; the process id it had."""
        return self._processes.kill(f"redis {port}")

    def _join(self) -> None:
        share = -(-SLOTS // self.count)
        for index, port in enumerate(self.ports[: self.count]):
            self._ask(port, "CLUSTER", "ADDSLOTSRANGE", index * share, min(SLOTS, (index + 1) * share) - 1)
        for number, port in enumerate(self.ports, 1):
            self._ask(port, "CLUSTER", "SET-CONFIG-EPOCH", number)
        for port in self.ports[1:]:
            self._ask(port, "CLUSTER", "MEET", "127.0.0.1", self.ports[0], self._buses[self.ports[0]])
        _until(lambda: all(self._known(port) == len(self.ports) for port in self.ports))
        for primary, replica in zip(self.ports, self.ports[self.count :], strict=False):
            self._ask(replica, "CLUSTER", "REPLICATE", self._ask(primary, "CLUSTER", "MYID"))
        _until(lambda: all("cluster_state:ok" in self._ask(port, "CLUSTER", "INFO") for port in self.ports))
        replicas = self.ports[self.count :]
        _until(lambda: all("master_link_status:up" in self._ask(port, "INFO", "replication") for port in replicas))

    def _known(self, port: int) -> int:
        return sum("handshake" not in line for line in self._ask(port, "CLUSTER", "NODES").splitlines())

    def _ask(self, port: int, *command: Any) -> str:
        with redis.Redis(port=port, decode_responses=True) as client:
            client.response_callbacks.clear()  # as it came
            return str(client.execute_command(*command))


def _until(fact: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not fact():
        if time.monotonic() > deadline:
            raise DidNotStart("the nodes did not become a cluster")
        time.sleep(0.05)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
