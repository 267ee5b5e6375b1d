"""Namespaces of older schemas, as they were kept, and what must hold of them while they are migrated."""

from __future__ import annotations

import gzip
import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
from redis.asyncio import Redis

from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import builtin
from keyspace import write_keys
from rich import Space, pack
from servers import RedisServer
from settable import SettableEngine

DATA = Path(__file__).parents[1] / "data"


SCHEMA = 4


NEW_SETTINGS = {"lease_grace": 0, "events_max": 0, "stats": True}


class Before:
    """The namespace as scripts of a schema left it, and what it held."""

    def __init__(self, schema: int) -> None:
        kept = msgpack.unpackb(gzip.decompress((DATA / f"schema{schema}.msgpack.gz").read_bytes()))
        self.namespace = kept["namespace"]
        self.now_ms = kept["now_ms"]
        self.keys = kept["keys"]
        self.documents = {id_: _document(raw) for id_, raw in kept["documents"].items()}
        self.queues = [msgpack.unpackb(raw) for raw in kept["queues"]]
        self.scripts = kept["scripts"]

    def ids(self, status: str) -> list[str]:
        return [id_ for id_, document in self.documents.items() if document["status"] == status]

    def tags(self) -> Counter[str]:
        return Counter(tag for document in self.documents.values() for tag in document.get("tags", ()))

    def groups(self) -> Counter[str]:
        errors = [document for document in self.documents.values() if document["status"] == "error"]
        return Counter(document["reason"] for document in errors)


def _document(raw: bytes) -> dict[str, Any]:
    return {
        name.decode(): _plain(value) for name, value in msgpack.unpackb(raw, raw=True, strict_map_key=False).items()
    }


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    return [_plain(one) for one in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def before() -> Before:
    return Before(2)


@pytest.fixture(scope="module")
def before3() -> Before:
    return Before(3)


@pytest.fixture
async def redis(fresh_server: RedisServer) -> AsyncIterator[Redis]:
    async with connect(fresh_server.url) as client:
        yield client


@pytest.fixture
async def engine(redis: Redis, before: Before) -> SettableEngine:
    """The scripts of this schema on a namespace of schema 2."""
    return await engine_on(redis, before)


@pytest.fixture
async def engine3(redis: Redis, before3: Before) -> SettableEngine:
    """And on one of schema 3."""
    return await engine_on(redis, before3)


async def engine_on(redis: Redis, before: Before) -> SettableEngine:
    await write_keys(redis, before.namespace, before.keys)
    engine = SettableEngine(redis, before.namespace, scripts=builtin("settable"))
    await engine.set_clock(before.now_ms)
    return engine


async def documents(engine: Engine, ids: list[str]) -> dict[str, dict[str, Any]]:
    return dict(zip(ids, map(_document, await engine.call("get", *ids)), strict=True))


async def tick(engine: SettableEngine, limit: int) -> None:
    await engine.tick(limit)
    await engine.advance(0.005)


async def is_under_way(engine: Engine) -> bool:
    return bool(await engine.redis.exists(f"{engine.namespace}:migration"))


async def migrate(engine: SettableEngine, limit: int = 100) -> None:
    assert await engine.call("migrate") == SCHEMA
    for _ in range(200):
        await tick(engine, limit)
        if not await is_under_way(engine):
            return
    raise AssertionError("the migration does not come to an end")


async def index(engine: Engine, kind: str) -> Counter[str]:
    """What stands in an index of jobs, by name."""
    prefix = f"{engine.namespace}:{kind}:".encode()
    found = Counter()
    async for key in engine.redis.scan_iter(match=f"{engine.namespace}:{kind}:*"):
        found[key.removeprefix(prefix).decode()] = await engine.redis.zcard(key)
    return found


async def check_indexes(engine: Engine, before: Before) -> None:
    assert await index(engine, "tagged") == before.tags()
    assert dict(await engine.redis.zrange(f"{engine.namespace}:tags", 0, -1, withscores=True)) == {
        tag.encode(): count for tag, count in before.tags().items()
    }
    assert await index(engine, "failed") == before.groups()


async def check_indexes_now(engine: Engine) -> None:
    """The indexes hold what the jobs there are now make them."""
    ids = [key.decode()[-14:] async for key in engine.redis.scan_iter(match=f"{engine.namespace}:j:*")]
    now = list((await documents(engine, ids)).values())
    assert await index(engine, "tagged") == Counter(tag for one in now for tag in one.get("tags", ()))
    failed = [one for one in now if one["status"] == "error"]
    assert await index(engine, "failed") == Counter(one.get("group", one["reason"]) for one in failed)
    assert await engine.audit_all() == []


async def one_move(space: Space, rng: random.Random, ids: list[str], queues: list[str]) -> None:
    """Something that takes a job, that has tags more often than not, to another set or another place."""
    id_ = rng.choice(ids)
    [document] = await space.engine.get(id_)
    move = rng.choice(["add", "pick", "end", "end", "cancel", "retry", "priority", "time", "tags", "discard"])
    if move == "add":
        ids.append(await space.add("new", name="mail", tags=["bulk", "new"], delay=rng.choice([0, 10])))
    elif move == "pick":
        await space.pick(rng.choice(queues), count=2)
    elif document is None:
        pass
    elif move == "end" and document["status"] == "running":
        end = rng.choice([space.finish, space.fail])
        await end(id_, document["attempt"])
    elif move == "priority":
        await space.engine.call("change", pack({"id": id_, "priority": rng.randint(-5, 5)}), b"")
    elif move == "time":
        await space.engine.call("change", pack({"id": id_, "delay": rng.choice([0, 1, 9000])}), b"")
    elif move == "tags":
        await space.engine.call("change", pack({"id": id_, "tags": rng.choice([[], ["bulk"], ["x", "y"]])}), b"")
    elif move in ("cancel", "retry", "discard"):
        await space.call(move, ids=[id_])
