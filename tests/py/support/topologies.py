"""Redis with replicas, under Sentinels, in a cluster, and behind a proxy: real processes on private ports."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import redis
from redis.crc import key_slot

from servers import SERVER, RedisServer

SLOTS = 16384
START_S = 60.0


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            one = stack.enter_context(socket.socket())
            one.bind(("127.0.0.1", 0))
            found.append(int(one.getsockname()[1]))
        return found


def until(fact: Callable[[], Any], timeout_s: float = START_S) -> Any:
    """The value of `fact` as soon as it is true; no answer is none."""
    deadline = time.monotonic() + timeout_s
    while True:
        with contextlib.suppress(redis.exceptions.RedisError):
            if value := fact():
                return value
        assert time.monotonic() < deadline, fact
        time.sleep(0.02)


class Node(RedisServer):
    """A server with a port."""

    def __init__(self, port: int, *arguments: str) -> None:
        super().__init__("--port", str(port), "--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0", *arguments)
        self.port = port
        self.bus = int(arguments[arguments.index("--cluster-port") + 1]) if "--cluster-port" in arguments else 0

    def do(self, *command: Any) -> Any:
        """One command."""
        with self.client() as client:
            return client.execute_command(*command)

    def follow(self, other: Node | None) -> None:
        """Be the replica of another one, or a primary."""
        self.do("REPLICAOF", *(("NO", "ONE") if other is None else ("127.0.0.1", other.port)))

    def is_primary(self) -> bool:
        """Whether it takes itself for one."""
        return bool(self.do("ROLE")[0] == b"master")

    def offset(self) -> int:
        """How far its data set has come."""
        with self.client() as client:
            said: Any = client.info("replication")
        return int(said["master_repl_offset"])

    def has_caught_up(self) -> bool:
        """Whether it is a replica that has all there is."""
        with self.client() as client:
            said: Any = client.info("replication")
        return said["role"] == "slave" and said["master_link_status"] == "up"


@contextlib.contextmanager
def nodes(count: int, *arguments: str) -> Iterator[list[Node]]:
    """So many servers, of which nobody follows anybody yet."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Node(port, *arguments)) for port in free_ports(count)]


class Sentinels:
    """Sentinels that watch the service `jobs`."""

    def __init__(self, primary: Node, count: int = 3, down_after_ms: int = 700) -> None:
        self.directory = primary.directory
        self.ports = free_ports(count)
        self._processes = [self._start(port, primary.port, count, down_after_ms) for port in self.ports]
        for port in self.ports:
            until(lambda port=port: self._facts(port)["num-other-sentinels"] == count - 1)

    def _start(self, port: int, primary: int, count: int, down_after_ms: int) -> subprocess.Popen[bytes]:
        path = Path(self.directory) / f"sentinel-{port}.conf"
        folder = Path(self.directory) / f"sentinel-{port}"
        folder.mkdir()
        path.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {folder}\n"
            f"sentinel monitor jobs 127.0.0.1 {primary} {count // 2 + 1}\n"
            f"sentinel down-after-milliseconds jobs {down_after_ms}\n"
            "sentinel failover-timeout jobs 5000\n"
        )
        with open(folder / "log", "ab") as log:
            return subprocess.Popen([SERVER, str(path), "--sentinel"], stdout=log, stderr=log)

    def _facts(self, port: int) -> Any:
        with redis.Redis(port=port) as client:
            return client.sentinel_master("jobs")

    @property
    def url(self) -> str:
        return f"redis+sentinel://{','.join(f'127.0.0.1:{port}' for port in self.ports)}/jobs"

    def all_name(self, server: Node) -> bool:
        """Whether they agree that this is the primary."""
        return all(self._facts(port)["port"] == server.port for port in self.ports)

    def failover(self) -> None:
        """A planned one."""
        with redis.Redis(port=self.ports[0]) as client:
            until(lambda: client.sentinel_master("jobs")["num-slaves"])
            until(lambda: client.execute_command("SENTINEL", "FAILOVER", "jobs"))

    def __enter__(self) -> Sentinels:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


class Cluster:
    """`primaries` servers that share the slots, each with `replicas`."""

    def __init__(self, servers: Sequence[Node], primaries: int) -> None:
        self.servers = servers
        self.primaries = list(servers[:primaries])
        first, rest = servers[0], servers[1:]
        for index, server in enumerate(servers):
            server.do("CLUSTER", "SET-CONFIG-EPOCH", index + 1)
        share = -(-SLOTS // primaries)
        for index, server in enumerate(self.primaries):
            last = min(SLOTS, (index + 1) * share) - 1
            server.do("CLUSTER", "ADDSLOTSRANGE", index * share, last)
        for server in rest:
            server.do("CLUSTER", "MEET", "127.0.0.1", first.port, first.bus)
        for server in servers:
            until(lambda server=server: len(self._known(server)) == len(servers))
        for index, server in enumerate(servers[primaries:]):
            server.do("CLUSTER", "REPLICATE", self.id_of(self.primaries[index % primaries]))
            until(server.has_caught_up)
        for server in servers:
            until(lambda server=server: "cluster_state:ok" in self._said(server, "CLUSTER INFO"))

    def _known(self, server: Node) -> list[str]:
        return [line for line in self._said(server, "CLUSTER NODES").splitlines() if "handshake" not in line]

    def _said(self, server: Node, command: str) -> str:
        with server.client() as client:
            client.set_response_callback(command, lambda reply, **_: reply)  # as it came
            return bytes(client.execute_command(command)).decode()

    @property
    def url(self) -> str:
        return f"redis+cluster://{','.join(f'127.0.0.1:{server.port}' for server in self.servers)}"

    def id_of(self, server: Node) -> str:
        said = server.do("CLUSTER", "MYID")
        return said.decode() if isinstance(said, bytes) else str(said)

    def owner(self, namespace: str) -> Node:
        """The server that has the slot of a namespace, as it says itself."""
        slot = key_slot(namespace.encode())

        def find() -> Node | None:
            for server in self.servers:
                if server.process is None:
                    continue
                for line in self._known(server):
                    words = line.split()
                    is_own = "myself,master" in words[2]
                    ranges = (one.partition("-") for one in words[8:] if one[0] != "[")
                    if is_own and any(int(low) <= slot <= int(high or low) for low, _, high in ranges):
                        return server
            return None

        found: Node = until(find)
        return found

    def replica_of(self, primary: Node) -> Node:
        """A replica that has all its primary has, and that its primary knows of: else it cannot take over."""
        identity = self.id_of(primary)

        def find() -> Node | None:
            its = {line.split()[0] for line in self._known(primary) if identity in line.split()[3]}
            for server in self.servers:
                is_its = any("myself" in line and identity in line.split()[3] for line in self._known(server))
                if is_its and self.id_of(server) in its and server.has_caught_up():
                    return server
            return None

        found: Node = until(find)
        return found

    def move(self, namespace: str, target: Node, pause_s: float = 0.0) -> None:
        """Migrate the slot of a namespace, key by key, with a pause after each stage."""
        slot, source = key_slot(namespace.encode()), self.owner(namespace)
        target.do("CLUSTER", "SETSLOT", slot, "IMPORTING", self.id_of(source))
        time.sleep(pause_s)
        source.do("CLUSTER", "SETSLOT", slot, "MIGRATING", self.id_of(target))
        time.sleep(pause_s)
        half = source.do("CLUSTER", "COUNTKEYSINSLOT", slot) // 2
        while keys := source.do("CLUSTER", "GETKEYSINSLOT", slot, max(1, half)):
            source.do("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
            time.sleep(pause_s)
        others = [one for one in self.servers if one.process is not None and one not in (source, target)]
        for server in (target, source, *(one for one in others if one.is_primary())):
            server.do("CLUSTER", "SETSLOT", slot, "NODE", self.id_of(target))


@contextlib.contextmanager
def cluster(primaries: int = 3, replicas: int = 0, timeout_ms: int = 1500, *arguments: str) -> Iterator[Cluster]:
    count = primaries * (1 + replicas)
    with contextlib.ExitStack() as stack:
        buses = free_ports(2 * count)
        servers = [
            stack.enter_context(Node(
                port, "--cluster-enabled", "yes", "--cluster-node-timeout", str(timeout_ms),
                "--cluster-port", str(bus), "--cluster-replica-validity-factor", "0", *arguments,
            ))
            for port, bus in zip(buses[::2], buses[1::2], strict=True)
        ]  # fmt: skip
        yield Cluster(servers, primaries)


class Proxy:
    """A TCP proxy in this event loop. What it carries can be lost without a word."""

    def __init__(self, target: RedisServer | int) -> None:
        """`target`: a Redis, or a port of this machine."""
        self.target = target
        self.url = ""
        self.loses: Callable[[], bool] = lambda: False  # whether to cut a connection in place of a reply
        self.lost = 0
        self._is_silent = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server
        self._dead: set[asyncio.StreamWriter] = set()
        self._alive: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._alive | self._dead:
            writer.close()

    def silence(self) -> None:
        """Connections stay open, and nothing comes through any more; neither through new ones."""
        self._is_silent = True
        self._dead |= self._alive
        self._alive.clear()

    def heal(self) -> None:
        """New connections work. The old ones stay dead, as after a restart of what had kept them."""
        self._is_silent = False

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.create_task(self._carry(reader, writer)))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_silent:
            self._dead.add(writer)
            return
        if isinstance(self.target, int):
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.target)
        else:
            to_reader, to_writer = await asyncio.open_unix_connection(str(self.target.socket))
        self._alive |= {writer, to_writer}
        await asyncio.gather(self._copy(reader, to_writer), self._copy(to_reader, writer, is_reply=True))

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_reply: bool = False
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if is_reply and self.loses():
                    self.lost += 1
                    break
                if writer in self._dead:
                    continue
                writer.write(data)
                await writer.drain()
        if writer not in self._dead:
            writer.close()
