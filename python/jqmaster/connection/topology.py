"""Finding the server of a namespace: one that is named, or the primary that Sentinels name."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from jqmaster.connection import plainly
from jqmaster.connection.redis_client import Login, RedisClient
from jqmaster.connection.url import Address
from jqmaster.connection.wake import end

ANSWER_S = 2.0


class Named:
    """One server; or some nodes of a cluster, in turn: each that is up says by MOVED who has the slot."""

    def __init__(self, *places: Address | str) -> None:
        self._places = deque(places)
        self.tries = len(places)

    def __str__(self) -> str:
        return _listed(self._places)

    async def find(self) -> Address | str:
        self._places.rotate(-1)
        return self._places[-1]


class Sentinels:
    """`service` as most of those at `hosts` know it, who are asked at once; the word of the latest failover counts.
    Only when half of them are dead this takes `ANSWER_S`."""

    tries = 1

    def __init__(self, hosts: Sequence[Address | str], service: str, login: Login) -> None:
        self._hosts, self._service, self._login = hosts, service, login

    def __str__(self) -> str:
        return f"{self._service} of the Sentinels {_listed(self._hosts)}"

    async def find(self) -> Address:
        """Where it is now. Raises RedisError when nobody says."""
        if plainly.is_plain():
            with ThreadPoolExecutor(1) as threads:  # this one may have a loop
                return threads.submit(asyncio.run, self.find()).result()
        known: list[Any] = []
        asking = [asyncio.ensure_future(self._ask(host, known)) for host in self._hosts]
        try:
            for answer in asyncio.as_completed(asking):
                await answer
                if len(known) > len(asking) / 2:
                    break
        finally:
            await end(asking)
        if not known:
            raise RedisConnectionError(f"no Sentinel of {_listed(self._hosts)} knows {self._service}")
        latest = max(known, key=lambda facts: int(facts[b"config-epoch"]))
        return latest[b"ip"].decode(), int(latest[b"port"])

    async def _ask(self, host: Address | str, known: list[Any]) -> None:
        with contextlib.suppress(RedisError, OSError):  # others may know
            async with plainly.within(ANSWER_S), RedisClient(Named(host), self._login) as sentinel:
                facts = await sentinel.call("SENTINEL", "MASTER", self._service)
                known.append(dict(zip(facts[::2], facts[1::2], strict=False)))


def _listed(places: Sequence[Address | str]) -> str:
    return ", ".join(place if isinstance(place, str) else f"{place[0]}:{place[1]}" for place in places)
