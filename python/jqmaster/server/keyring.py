"""The keys of the HTTP API, as a master knows them: kept in memory for half a second, and read at once where this
master created or revoked one. While Redis is away the last known keys hold.

With them comes the secret that sessions are sealed with, the same for all masters of a namespace. It is made when
there are keys.
"""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import glob
import logging
import secrets
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
SEAL_BYTES = 32


class Identity(NamedTuple):
    """`name` stands in the trail. `queues`: names and patterns to which it is bound; None: to none.
    `key_id` is "" where no key was shown."""

    name: str
    roles: frozenset[Role]
    queues: tuple[str, ...] | None = None
    key_id: str = ""

    def may_use(self, queue: str) -> bool:
        """Whether a queue, or all that fit a pattern, are among those it is bound to."""
        return self.queues is None or any(covers(pattern, queue) for pattern in self.queues)


ANYBODY = Identity("anonymous", frozenset(("admin",)))
"""Where no keys are asked for."""


def covers(pattern: str, text: str) -> bool:
    """Whether `text` fits: in `pattern` a `*` stands for any run of characters. Where `text` is a pattern itself,
    whether all that fits it fits `pattern` too: a `*` in it fits nothing but a `*`."""
    return fnmatch.fnmatchcase(text, glob.escape(pattern).replace("[*]", "*"))


@dataclass(slots=True)
class _Key:
    """A key, and how many requests it may make now, which grows by `rate` a second."""

    identity: Identity
    digest: str = field(repr=False)
    expires_ms: float
    rate: float | None
    room: float = field(default=1.0, compare=False)
    at: float = field(default=0.0, compare=False)
    touched: float = field(default=-TOUCH_EVERY_S, compare=False)

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


class Keyring:
    """`is_required` never goes back while a master runs: who revokes the last key must not open it to everybody."""

    def __init__(self, engine: Engine, *, required: bool = False) -> None:
        self.is_required = required
        self._engine = engine
        self._seal = b""
        self._keys: dict[str, _Key] = {}
        self._looking = asyncio.Lock()  # one after the other: what was read last holds
        self._looked = -KNOWN_S

    @property
    def count(self) -> int:
        """How many keys there are, expired ones included."""
        return len(self._keys)

    def find(self, text: str) -> Identity | None:
        """Who shows this key; None when there is no such key, or not any more."""
        key_id, shown = secret.split(text)
        key = self._keys.get(key_id)
        return self.identity(key_id) if key is not None and secret.fits(shown, key.digest) else None

    def seal_of(self, key_id: str) -> bytes | None:
        """With what sessions of a key are sealed; None when there is no such key."""
        key = self._keys.get(key_id)
        return self._seal + key.digest.encode() if key else None

    def identity(self, key_id: str) -> Identity | None:
        """Who has a key; None when it is not good any more."""
        key = self._keys.get(key_id)
        return key.identity if key is not None and time.time() * 1000 < key.expires_ms else None

    def wait_s(self, identity: Identity) -> float:
        """Count a request; how many seconds too early it is, 0 when it is not."""
        key = self._keys.get(identity.key_id)
        return 0.0 if key is None else key.wait_s()

    async def note_use(self, identity: Identity) -> None:
        """Have Redis note that a key is used."""
        key = self._keys.get(identity.key_id)
        if key is not None and time.monotonic() - key.touched > TOUCH_EVERY_S:
            key.touched = time.monotonic()
            with contextlib.suppress(JQError):
                await self._engine.touch([identity.key_id])

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
            async with asyncio.timeout(KNOWN_S), self._looking:
                if time.monotonic() - self._looked >= KNOWN_S:
                    await self._look()
        except (JQError, redis.exceptions.RedisError, OSError) as error:
            if time.monotonic() - self._looked >= KNOWN_S:  # or another request has said so
                log.warning("cannot read the keys, the last known ones hold: %s", str(error) or "it takes too long")
                self._looked = time.monotonic()

    async def look(self) -> None:
        """Read the keys as they are from now on. Raises JQError, and redis' errors."""
        async with self._looking:
            await self._look()

    async def _look(self) -> None:
        cursor: str | None = None
        found: dict[str, _Key] = {}
        while cursor != "":
            page = await self._engine.keys(cursor=cursor, count=1000, digests=True)
            cursor = page.cursor
            found |= {document["id"]: _key_of(document) for document in page.documents}
        if found and not self._seal:
            mine, place = secrets.token_bytes(SEAL_BYTES), f"{self._engine.namespace}{SEAL}"
            before: Any = await self._engine.redis.set(place, mine, nx=True, get=True)
            self._seal = before or mine
        # One that is still the same goes on counting its requests.
        same = {key_id: key for key_id, key in self._keys.items() if found.get(key_id) == key}
        self._keys, self._looked = found | same, time.monotonic()
        if found and not self.is_required:
            self.is_required = True
            log.info("the namespace has keys: from now on requests need one")


def _key_of(document: Document) -> _Key:
    queues = document.get("queues")
    identity = Identity(
        document["name"], frozenset(document["roles"]), None if queues is None else tuple(queues), document["id"]
    )
    return _Key(identity, document["digest"], document.get("expires_ms", float("inf")), document.get("rate"))
