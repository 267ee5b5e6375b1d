"""The keys of the HTTP API, as a master knows them: kept in memory, and read anew whenever one is created or revoked.

Redis says so on the shard channel `<namespace>:api-keys`. When the connection was cut, and now and then, they are
read as well. While Redis is away the last known keys hold.

With them comes the secret that sessions are sealed with, the same for all masters of a namespace. It is made when
there are keys.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import re
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import redis.asyncio as redis_asyncio
import redis.exceptions

from jqmaster.connection.subscriptions import listened
from jqmaster.connection.wake import backoff_s, end
from jqmaster.engine import secret
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Document
from jqmaster.engine.rights import SEAL
from jqmaster.errors import JQError
from jqmaster.manifest.contract import Role

log = logging.getLogger("jqmaster.keys")

LOOK_EVERY_S = 30.0  # also behind a connection that died without a word
TOUCH_EVERY_S = 60.0  # `used_ms` is exact to this
STOP_TIMEOUT_S = 1.0
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
    first, *rest = map(re.escape, pattern.split("*"))
    if not rest:
        return text == pattern
    # Each part is taken where it comes first, and that stands: otherwise many parts could take very long.
    between = "".join(f"(?>.*?{part})" for part in rest[:-1])
    return re.fullmatch(f"{first}{between}.*{rest[-1]}", text, re.DOTALL) is not None


@dataclass(slots=True)
class _Key:
    """A key, and how many requests it may make now, which grows by `rate` a second."""

    identity: Identity
    digest: str = field(repr=False)
    expires_ms: float
    rate: float | None
    room: float = field(default=1.0, compare=False)
    at: float = field(default=0.0, compare=False)

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
    """`start`, then `stop`. `is_required` never goes back while a master runs: who revokes the last key must not
    open it to everybody."""

    def __init__(self, engine: Engine, redis: redis_asyncio.Redis, *, required: bool = False) -> None:
        self.is_required = required
        self._engine = engine
        self._channel = f"{engine.namespace}:api-keys"
        self._redis = redis
        self._seal_key = f"{engine.namespace}{SEAL}"
        self._seal = secrets.token_bytes(SEAL_BYTES)  # until that of all masters is known
        self._says_seal = True
        self._keys: dict[str, _Key] = {}
        self._looking = asyncio.Lock()  # one after the other: what was read last holds
        self._used: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def count(self) -> int:
        """How many keys there are, expired ones included."""
        return len(self._keys)

    async def start(self) -> None:
        """Read the keys, and go on doing so. Raises JQError when they cannot be read now."""
        await self.look()
        self._tasks = [
            asyncio.create_task(self._follow(), name="keys"),
            asyncio.create_task(self._touch_now_and_then(), name="uses of keys"),
        ]

    async def stop(self) -> None:
        """Note what was used, and stop; bounded."""
        await end(self._tasks, STOP_TIMEOUT_S)
        if self._tasks:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_TIMEOUT_S):
                    await self._touch()

    def find(self, text: str) -> Identity | None:
        """Who shows this key; None when there is no such key, or not any more."""
        key_id, shown = secret.split(text)
        key = self._good(key_id)
        return self.identity(key_id) if key is not None and secret.fits(shown, key.digest) else None

    def seal_of(self, key_id: str) -> bytes | None:
        """With what sessions of a key are sealed; None when there is no such key."""
        key = self._keys.get(key_id)
        return self._seal + key.digest.encode() if key else None

    def identity(self, key_id: str) -> Identity | None:
        """Who has a key, which is used now; None when it is not good any more."""
        key = self._good(key_id)
        if key is None:
            return None
        self._used.add(key_id)
        return key.identity

    def wait_s(self, identity: Identity) -> float:
        """Count a request; how many seconds too early it is, 0 when it is not."""
        key = self._keys.get(identity.key_id)
        return 0.0 if key is None else key.wait_s()

    async def of_worker(self, key_id: str) -> Identity | None:
        """Who has a key that a worker was registered with; None when it is not good any more. One that is not known
        may be new: it is looked for. Raises JQError."""
        if key_id not in self._keys:
            await self.look()
        return self.identity(key_id)

    async def look(self) -> None:
        """Read the keys as they are from now on. Raises JQError."""
        async with self._looking:
            cursor: str | None = None
            documents: list[Document] = []
            while cursor != "":
                page = await self._engine.keys(cursor=cursor, count=1000, digests=True)
                cursor, documents = page.cursor, documents + page.documents
            if documents:
                await self._look_for_seal()
            self._take(documents)

    # -- parts ------------------------------------------------------------------------------------

    def _good(self, key_id: str) -> _Key | None:
        key = self._keys.get(key_id)
        return key if key is not None and time.time() * 1000 < key.expires_ms else None

    async def _follow(self) -> None:
        changes = listened(self._redis, self._channel, quiet_s=LOOK_EVERY_S)
        async with contextlib.aclosing(changes):
            async for _ in changes:
                for failures in itertools.count():
                    try:
                        await self.look()
                        break
                    except (JQError, redis.exceptions.RedisError, OSError) as error:
                        if not failures:
                            log.warning("cannot read the keys, the last known ones hold: %s", error)
                    await asyncio.sleep(backoff_s(failures))

    async def _look_for_seal(self) -> None:
        try:
            seal: Any = await self._redis.set(self._seal_key, self._seal, nx=True, get=True)
            self._seal = seal or self._seal
        except redis.exceptions.RedisError as error:
            # Keys matter more. Without it sessions hold at this master alone.
            level, self._says_seal = logging.WARNING if self._says_seal else logging.DEBUG, False
            log.log(level, "cannot read or make %s, which seals sessions for all masters: %s", self._seal_key, error)

    def _take(self, documents: Iterable[Document]) -> None:
        before, self._keys = self._keys, {}
        for document in documents:
            known = before.get(document["id"])
            key = _key_of(document)
            # One that is still the same goes on counting its requests.
            self._keys[document["id"]] = known if known == key else key
        if self._keys and not self.is_required:
            self.is_required = True
            log.info("the namespace has keys: from now on requests need one")

    async def _touch_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(TOUCH_EVERY_S)
            await self._touch()

    async def _touch(self) -> None:
        ids, self._used = sorted(self._used), set()
        if not ids:
            return
        try:
            await self._engine.touch(ids)
        except (JQError, redis.exceptions.RedisError, OSError) as error:
            self._used.update(ids)
            log.info("cannot note which keys were used: %s", error)


def _key_of(document: Document) -> _Key:
    queues = document.get("queues")
    identity = Identity(
        document["name"], frozenset(document["roles"]), None if queues is None else tuple(queues), document["id"]
    )
    return _Key(identity, document["digest"], document.get("expires_ms", float("inf")), document.get("rate"))
