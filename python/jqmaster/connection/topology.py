"""Finding the server of a namespace: the primary that Sentinels name, or the one that has its slot.

redis-py's own clients find one as well, but ask one node after the other, and believe the first that answers.
Here all are asked at once: dead nodes cost `ANSWER_S` together, one that was cut off from the others is outvoted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from redis.crc import key_slot
from redis.exceptions import ConnectionError as RedisConnectionError

from jqmaster.connection import plainly
from jqmaster.connection.endpoint import Endpoint, Login
from jqmaster.connection.url import Address
from jqmaster.errors import Unavailable

ANSWER_S = 2.0
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
        answers = await _ask(self._hosts, self._login, "SENTINEL", "MASTER", self._service)
        known = [dict(zip(facts[::2], facts[1::2], strict=False)) for _, facts in answers]
        if not known:
            raise RedisConnectionError(f"no Sentinel of {_listed(self._hosts)} knows {self._service}")
        latest = max(known, key=lambda facts: int(facts[b"config-epoch"]))
        return latest[b"ip"].decode(), int(latest[b"port"])


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
        for asked, ranges in await _ask(self._known, self._login, "CLUSTER", "SLOTS"):
            for first, last, *servers in ranges:
                # A node that does not know its own name says nothing: it is the one that was asked.
                addresses = [((server[0] or b"").decode() or asked[0], int(server[1])) for server in servers]
                nodes |= dict.fromkeys(addresses)
                if first <= (self._slot or 0) <= last:
                    owners[addresses[0]] += 1
        if not owners:
            raise RedisConnectionError(f"nobody of {_listed(self._known)} knows who has slot {self._slot or 0}")
        self._known = tuple(nodes)[:MOST_NODES]
        return owners.most_common(1)[0][0]


async def _ask(hosts: Sequence[Address], login: Login, *command: str) -> list[tuple[Address, Any]]:
    """The answers of those who give one in time."""
    if plainly.is_plain():
        with ThreadPoolExecutor(1) as threads:  # this one may have a loop
            return threads.submit(asyncio.run, _ask(hosts, login, *command)).result()

    async def ask(host: Address) -> Any:
        async with plainly.within(ANSWER_S), Endpoint(host, login).line() as line:
            await line.send_command(*command)
            return await line.read_response()

    answers = await asyncio.gather(*map(ask, hosts), return_exceptions=True)
    return [pair for pair in zip(hosts, answers, strict=True) if not isinstance(pair[1], BaseException)]


def _listed(hosts: Sequence[Address]) -> str:
    return ", ".join(f"{host}:{port}" for host, port in hosts)
