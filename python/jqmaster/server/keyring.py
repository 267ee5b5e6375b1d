"""The keys of the HTTP API, as a server knows them: kept in memory for half a second, and read at once where this
server created or revoked one. While Redis is away the last known keys hold.

With them comes the secret that sessions are sealed with, the same for all servers of a namespace. It is made when
there are keys.
"""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import glob
import hmac
import logging
import math
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

import redis.exceptions

from jqmaster.engine import secret
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Document
from jqmaster.engine.rights import SEAL
from jqmaster.errors import JQError
from jqmaster.manifest.contract import Role

log = logging.getLogger("jqmaster.keys")

KNOWN_S = 0.5
TOUCH_EVERY_S = 60.0  # `used_ms` is exact to this


@dataclass(slots=True, eq=False)
class Identity:
    """Who asks, with which key, and how many requests that may make now, which grows by `rate` a second.

    `name` stands in the trail. `queues`: names and patterns to which it is bound; None: to none. `key_id` is "" where
    no key was shown."""

    name: str
    roles: frozenset[Role]
    queues: tuple[str, ...] | None = None
    key_id: str = ""
    digest: str = field(default="", repr=False)
    expires_ms: float = math.inf
    rate: float | None = None
    room: float = 1.0
    at: float = 0.0
    touched: float = -TOUCH_EVERY_S

    def may_use(self, queue: str) -> bool:
        """Whether a queue, or all that fit a pattern, are among those it is bound to."""
        return self.queues is None or any(covers(pattern, queue) for pattern in self.queues)

    def wait_s(self) -> float:
        """Take room for a request; when there is none, how long until there is."""
        if self.rate is None:
            return 0.0
        now = time.monotonic()
        self.room = min(max(1.0, self.rate), self.room + (now - self.at) * self.rate)
        self.at = now
        if self.room < 1:
            return (1 - self.room) / self.rate
        self.room -= 1
        return 0.0


ANONYMOUS = Identity("anonymous", frozenset(("admin",)))
"""Where no keys are asked for."""


def covers(pattern: str, text: str) -> bool:
    """Whether `text` fits: in `pattern` a `*` stands for any run of characters. Where `text` is a pattern itself,
    whether all that fits it fits `pattern` too: a `*` in it fits nothing but a `*`."""
    return fnmatch.fnmatchcase(text, glob.escape(pattern).replace("[*]", "*"))


class Keyring:
    """`is_required` never goes back while a server runs: who revokes the last key must not open it to everybody."""

    def __init__(self, engine: Engine, *, required: bool = False) -> None:
        self.is_required = required
        self._engine = engine
        self._seal = b""
        self._keys: dict[str, Identity] = {}
        self._looking = asyncio.Lock()  # one after the other: what was read last holds
        self._looked = -KNOWN_S

    def find(self, text: str) -> Identity | None:
        """Who shows this key; None when there is no such key, or not any more."""
        key_id, shown = secret.split(text)
        who = self.identity(key_id)
        return who if who is not None and hmac.compare_digest(secret.digest_of(shown), who.digest) else None

    def identity(self, key_id: str) -> Identity | None:
        """Who has a key; None when it is not good any more."""
        who = self._keys.get(key_id)
        return who if who is not None and time.time() * 1000 < who.expires_ms else None

    def seal_of(self, who: Identity) -> bytes:
        """With what sessions of a key are sealed."""
        return self._seal + who.digest.encode()

    async def note_use(self, who: Identity) -> None:
        """Have Redis note that a key is used."""
        if who.key_id and time.monotonic() - who.touched > TOUCH_EVERY_S:
            who.touched = time.monotonic()
            with contextlib.suppress(JQError):
                await self._engine.touch([who.key_id])

    async def of_worker(self, key_id: str) -> Identity | None:
        """Who has a key that a worker was registered with; None when it is not good any more. One that is not known
        may be new: it is looked for. Raises JQError."""
        await self.refresh()
        if key_id not in self._keys:
            await self.look()
        return self.identity(key_id)

    async def refresh(self) -> None:
        """See to it that what is known is no older than `KNOWN_S`, if Redis answers so soon."""
        if time.monotonic() - self._looked < KNOWN_S:
            return
        try:
            async with asyncio.timeout(KNOWN_S):
                await self.look(KNOWN_S)
        except (JQError, redis.exceptions.RedisError, OSError) as error:
            if time.monotonic() - self._looked >= KNOWN_S:  # or another request has said so
                log.warning("cannot read the keys, the last known ones hold: %s", str(error) or "it takes too long")
                self._looked = time.monotonic()

    async def look(self, known_s: float = 0.0) -> None:
        """Read the keys as they are from now on, or as they were so long ago. Raises JQError, and redis' errors."""
        async with self._looking:
            if time.monotonic() - self._looked < known_s:
                return
            keys = self._engine.each("keys", count=1000, digests=True)
            found = {key["id"]: _identity_of(key) async for key in keys}
            if found and not self._seal:
                mine, place = secrets.token_bytes(32), f"{self._engine.namespace}{SEAL}"
                before: Any = await self._engine.redis.set(place, mine, nx=True, get=True)
                self._seal = before or mine
            for key_id in found.keys() & self._keys.keys():
                who, known = found[key_id], self._keys[key_id]
                who.room, who.at, who.touched = known.room, known.at, known.touched
            self._keys, self._looked = found, time.monotonic()
        if self._keys and not self.is_required:
            self.is_required = True
            log.info("the namespace has keys: from now on requests need one")


def _identity_of(key: Document) -> Identity:
    queues = key.get("queues")
    return Identity(
        key["name"], frozenset(key["roles"]), None if queues is None else tuple(queues), key["id"],
        digest=key["digest"], expires_ms=key.get("expires_ms", math.inf), rate=key.get("rate"),
    )  # fmt: skip
