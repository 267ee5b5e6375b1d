"""A namespace is copied, record by record, and lives on: of the copy, engine and reference model agree as before."""

from __future__ import annotations

import io
from typing import Any

import msgpack
import pytest
from redis.asyncio import Redis

from driving.driver import NAMESPACE, Driver
from jqmaster.bundle.build import builtin
from jqmaster.cli import copying
from jqmaster.engine.engine import Engine
from jqmaster.errors import Conflict, Invalid
from parts import audit_all, export_records
from refusal_table import SCHEMA
from servers import RedisServer
from settable import SettableEngine

pack = msgpack.packb


def exported(driver: Driver, count: int) -> list[bytes]:
    cursor, records = b"", []
    while True:
        cursor, *page = driver.send("export", pack({"cursor": cursor.decode(), "count": count}))
        assert len(page) <= count
        records += page
        if not cursor:
            return records


def move(driver: Driver, count: int) -> None:
    """All goes out, so much at a time, and comes back onto a server that is empty."""
    records = exported(driver, count)
    assert not [record for record in records if NAMESPACE.encode() in record]
    driver.redis.send("FLUSHALL")
    driver.set_clock(driver.model.now)
    for first in range(0, len(records), count):
        driver.send("import", *records[first : first + count])
    # What is not copied: who sleeps, the stream of events.
    model = driver.model
    model.sleepers.channels, model.sleepers.left = {}, {}
    driver.heard = []


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_a_random_life_goes_on_in_the_copy(fresh_server: RedisServer, count: int) -> None:
    driver = Driver(fresh_server.socket)
    for number in range(4):
        driver.fresh()
        generator = driver.generator(f"copy {count} {number}")
        driver.run(generator.first())
        for _ in range(4):
            for _ in range(60):
                driver.run(generator.next())
            move(driver, count)
            driver.run(["check", {}, 0])
    driver.close()


async def export(engine: Engine, count: int = 200) -> list[bytes]:
    return [record async for record in export_records(engine, count)]


async def contents(engine: Engine) -> dict[bytes, Any]:
    """What is stored but for meta, without the namespace's name."""
    client, prefix = engine.redis, f"{engine.namespace}:".encode()
    names = {key.removeprefix(prefix): key for key in await client.keys(prefix.decode() + "*")}
    apart = (b"meta", b"manifest", b"clock", b"import", b"scripts")
    return {name: await client.dump(key) for name, key in names.items() if name not in apart}


@pytest.fixture
async def source(settable: SettableEngine) -> SettableEngine:
    """A namespace with jobs and their tags."""
    await settable.enqueue([({"name": "still", "tags": ["t", "ü"]}, pack(number)) for number in range(100)])
    return settable


@pytest.fixture
async def target(redis: Redis, settable: SettableEngine) -> SettableEngine:
    """A namespace that is not set up, at the same time."""
    namespace = settable.namespace.replace("}", ".copy}")
    target = SettableEngine(redis, namespace, scripts=builtin("settable"))
    await target.set_clock(settable.now_ms)
    for script in target.scripts.values():
        await redis.script_load(script.source)
    return target


class TestPages:
    async def test_what_does_not_move_meanwhile_is_copied_whole(
        self, source: SettableEngine, target: SettableEngine
    ) -> None:
        await source.enqueue([({"name": "a"}, b"\xc0")] * 100)
        cursor, *records = await source.raw("export", pack({"count": 50}))
        while cursor:  # pages count all keys of this Redis, so there may be more of them than jobs of `a`
            for job in (await source.pick("w", "a")).jobs:
                await source.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, b"\xc0")])
            await source.enqueue([({"name": "b"}, b"\xc0")])
            cursor, *more = await source.raw("export", pack({"cursor": cursor.decode(), "count": 50}))
            records += more
        await target.raw("import", *records)
        picked = (await target.pick("w", "still", 1000)).jobs
        assert [job.argument for job in picked] == [pack(number) for number in range(100)]

    async def test_large_arguments_come_one_by_one(self, settable: SettableEngine, target: SettableEngine) -> None:
        await settable.enqueue([({"name": "a"}, pack(b"\xff" * (3 << 20)))] * 5)
        cursor = b""
        while True:
            cursor, *records = await settable.raw("export", pack({"cursor": cursor.decode(), "count": 1000}))
            assert sum(map(len, records)) < 5 << 20
            await target.raw("import", *records)
            if not cursor:
                break
        assert await contents(target) == await contents(settable)

    async def test_keys_of_every_type_in_several_pages(self, settable: SettableEngine, target: SettableEngine) -> None:
        """Larger than any of ours usually are."""
        client, name = settable.redis, settable.namespace
        numbers = [f"{number:05}" for number in range(1234)]
        await client.hset(f"{name}:weights:a", mapping=dict.fromkeys(numbers, "x"))
        await client.sadd(f"{name}:sent:a", *numbers)
        await client.zadd(f"{name}:turns:a", {text: int(text) / 7 for text in numbers})
        *records, end = await export(settable)
        for part in (records, records[3:]):  # some once more, which changes nothing
            for first in range(0, len(part), 5):
                await target.raw("import", *part[first : first + 5])
        await target.raw("import", end)
        assert len(await export(target)) == len(records) + 1
        for key, read in {"weights": client.hgetall, "sent": client.smembers}.items():
            assert await read(f"{target.namespace}:{key}:a") == await read(f"{name}:{key}:a")
        read = client.zrange
        assert await read(f"{target.namespace}:turns:a", 0, -1) == await read(f"{name}:turns:a", 0, -1)


class TestImport:
    async def test_it_repeats_safely(self, source: SettableEngine, target: SettableEngine) -> None:
        records = await export(source)
        for record in (*records, records[-1]):
            assert await target.raw("import", record) == await target.raw("import", record)
        assert await contents(target) == await contents(source)
        assert await audit_all(target) == []

    async def test_one_that_broke_off_cannot_be_used_and_can_be_completed(
        self, source: SettableEngine, target: SettableEngine
    ) -> None:
        records = await export(source)
        await target.raw("import", *records[:50])
        with pytest.raises(Conflict, match=r"an import into namespace .* has begun"):
            await target.raw("tick", pack({}))
        await target.raw("import", *records)
        assert await contents(target) == await contents(source)
        await source.advance(1)
        with pytest.raises(Conflict, match="is set up"):
            await target.raw("import", *await export(source))

    async def test_not_beside_what_is_there_already(self, source: SettableEngine, target: SettableEngine) -> None:
        records = await export(source)
        await source.redis.zadd(f"{target.namespace}:due", {"x": 1})
        with pytest.raises(Conflict, match="holds keys"):
            await target.raw("import", *records)
        await source.redis.delete(f"{target.namespace}:due")
        await target.raw("import", *records[:20])
        await source.advance(1)
        with pytest.raises(Conflict, match="another import"):
            await target.raw("import", *await export(source))

    # What is wrong by itself is in refusal_table.
    @pytest.mark.parametrize("record", [
        ["end", "0" * 16, bytes([0, SCHEMA]) + b"\0" * 252],  # of another
        ["key", "known", "string", 0, ["1"]],  # of another type than before
    ])  # fmt: skip
    async def test_what_does_not_go_with_what_is_there_changes_nothing(
        self, target: SettableEngine, record: list[Any]
    ) -> None:
        await target.raw("import", pack(["begin", SCHEMA, "f" * 16]), pack(["key", "known", "set", 0, ["a"]]))
        was = await contents(target)
        good = pack(["key", "other", "string", 0, ["a"]])
        with pytest.raises(Invalid, match=r"records\[1\]"):
            await target.raw("import", good, pack(record, use_bin_type=False))
        assert await contents(target) == was


async def write_file(engine: Engine, file: io.BytesIO) -> None:
    file.write(copying.HEAD)
    async for record in export_records(engine):
        copying.write_record(file, record)


class TestFiles:
    async def test_a_namespace_goes_into_a_file_and_back(self, source: SettableEngine, target: SettableEngine) -> None:
        file = io.BytesIO()
        await write_file(source, file)
        file.seek(0)
        records = copying.read_file(file)
        await copying.import_records(target, records)
        assert await contents(target) == await contents(source)
        assert await source.redis.hexists(f"{target.namespace}:manifest", "version")

    async def test_what_is_no_such_file_is_refused(self, source: SettableEngine) -> None:
        file = io.BytesIO()
        await write_file(source, file)
        ours, whole = "not a file written by", file.getvalue()
        for content, said in ((b"", ours), (b"x" * 100, ours), (whole[:-1], "cut off"), (whole + b"\0", "cut off")):
            with pytest.raises(ValueError, match=said):
                list(copying.read_file(io.BytesIO(content)))
