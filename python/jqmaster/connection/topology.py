"""Finding the server of a namespace: the primary that Sentinels name, or the one that has its slot.

redis-py's own clients find one as well, but ask one node after the other, and believe the first that answers.
Here all are asked at once: a dead node costs no time, one that was cut off from the others is outvoted.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from redis.crc import key_slot
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from jqmaster.connection import plainly
from jqmaster.connection.endpoint import Endpoint, Login
from jqmaster.connection.url import Address
from jqmaster.errors import Unavailable

ANSWER_S = 2.0
REST_S = 0.1  # for those behind the majority
MOST_NODES = 30


class Sentinels:
    """`service` as those at `hosts` know it; the word of the latest failover counts."""

    def __init__(self, hosts: Sequence[Address], service: str, login: Login) -> None:
        self._hosts, self._service, self._login = hosts, service, login

    def __str__(self) -> str:
        return f"{self._service} of the Sentinels {_listed(self._hosts)}"

    def serve(self, _namespace: str) -> None: ...

    async def find(self) -> Address:
        """Where it is now. Raises RedisError when nobody says."""
        commands = [("SENTINEL", what, self._service) for what in ("GET-MASTER-ADDR-BY-NAME", "MASTER")]
        answers: list[tuple[int, Address]] = []
        for _, (address, facts) in await _ask(self._hosts, self._login, commands):
            if isinstance(address, list) and isinstance(facts, list):
                known = dict(zip(facts[::2], facts[1::2], strict=False))
                answers.append((int(known.get(b"config-epoch", 0)), (_text(address[0]), int(address[1]))))
        if not answers:
            raise RedisConnectionError(f"no Sentinel of {_listed(self._hosts)} knows {self._service}")
        return max(answers)[1]


class ClusterNodes:
    """The primary that has a namespace's slot, as most of the nodes say."""

    def __init__(self, hosts: Sequence[Address], login: Login) -> None:
        self._hosts = self._known = tuple(hosts)
        self._login = login
        self._slot: int | None = None

    def __str__(self) -> str:
        return f"the cluster of {_listed(self._hosts)}"

    def serve(self, namespace: str) -> None:
        slot = key_slot(namespace.encode())
        if self._slot not in (None, slot):
            raise Unavailable(f"a client of a cluster serves one namespace; {namespace} is in another slot")
        self._slot = slot

    async def find(self) -> Address:
        owners: Counter[Address] = Counter()
        nodes: dict[Address, None] = dict.fromkeys(self._hosts)
        answers = await _ask(self._known, self._login, [("CLUSTER", "SLOTS")])
        for asked, [ranges] in answers:
            for first, last, *servers in ranges if isinstance(ranges, list) else ():
                # A node that does not know its own name says nothing: it is the one that was asked.
                addresses = [(_text(server[0] or b"") or asked[0], int(server[1])) for server in servers]
                nodes |= dict.fromkeys(addresses)
                if first <= (self._slot or 0) <= last:
                    owners[addresses[0]] += 1
        if not owners:
            raise RedisConnectionError(f"nobody of {_listed(self._known)} knows who has slot {self._slot or 0}")
        self._known = tuple(nodes)[:MOST_NODES]
        return owners.most_common(1)[0][0]


async def _ask(hosts: Sequence[Address], *how: Any) -> list[tuple[Address, list[Any]]]:
    """The answers of those who answer in time."""
    if not plainly.is_plain():
        return await _ask_all(hosts, *how)
    with ThreadPoolExecutor(1) as threads:  # this one may have a loop
        return threads.submit(asyncio.run, _ask_all(hosts, *how)).result()


async def _ask_all(
    hosts: Sequence[Address], login: Login, commands: Sequence[tuple[str, ...]]
) -> list[tuple[Address, list[Any]]]:
    """A majority does not wait for the rest."""
    asked = {asyncio.create_task(_ask_one(host, login, commands)): host for host in hosts}
    pending, answers = set(asked), list[tuple[Address, list[Any]]]()
    until = time.monotonic() + ANSWER_S
    try:
        while pending and (wait_s := until - time.monotonic()) > 0:
            done, pending = await asyncio.wait(pending, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            answers += [(asked[task], task.result()) for task in done if task.exception() is None]
            if len(answers) * 2 > len(hosts):
                until = min(until, time.monotonic() + REST_S)
    finally:
        for task in pending:
            task.cancel()
    return answers


async def _ask_one(host: Address, login: Login, commands: Sequence[tuple[str, ...]]) -> list[Any]:
    answers: list[Any] = []
    async with Endpoint(host, login).line() as line:
        for command in commands:
            await line.send_command(*command)
            try:
                answers.append(await line.read_response())
            except ResponseError as problem:
                answers.append(problem)
    return answers


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _listed(hosts: Sequence[Address]) -> str:
    return ", ".join(f"{host}:{port}" for host, port in hosts)
