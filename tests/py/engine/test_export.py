"""A namespace is copied, record by record: into another name, into another Redis, and works on there."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgpack
import pytest
from redis.asyncio import Redis

from bad_copying import RECORDS, SCHEMA
from bad_copying import pack as pack_record
from jqmaster.bundle.built import builtin
from jqmaster.engine import copying
from jqmaster.engine.engine import Engine, connect
from jqmaster.errors import Conflict, Invalid, JQError, Version
from keyspace import read_keys
from rich_namespace import Space, fill, fill_newer
from servers import RedisServer
from settable import SettableEngine

LEFT_OUT = (b"wake:", b"asleep:", b"sleepers", b"import", b"events")
PULSE = 30 + 17 * 8  # where in meta it stands, behind header and settings


async def export(engine: Engine, count: int = 200) -> list[bytes]:
    return [record async for record in copying.export_records(engine, count)]


async def import_(engine: Engine, records: list[bytes], count: int = 100) -> int:
    """Through the script itself, a few records in a call."""
    written = 0
    for first in range(0, len(records), count):
        written += await engine.raw("import", *records[first : first + count])
    return written


async def target_of(client: Redis, source: SettableEngine, namespace: str) -> SettableEngine:
    """An engine on a namespace that is not set up, at the same time as another."""
    target = SettableEngine(client, namespace, scripts=builtin("settable"))
    await target.set_clock(source.now_ms)
    for script in target.scripts.values():
        await client.script_load(script.source)
    return target


@pytest.fixture
async def source(settable: SettableEngine) -> SettableEngine:
    await fill_newer(await fill(settable))
    return settable


@pytest.fixture
async def target(redis: Redis, settable: SettableEngine) -> SettableEngine:
    return await target_of(redis, settable, settable.namespace.replace("}", ".copy}"))


async def contents(engine: Engine) -> dict[bytes, Any]:
    """What is stored, with the namespace's name taken out, and what is not copied left out."""
    found = {}
    for suffix, kind, ttl_ms, content in await read_keys(engine.redis, engine.namespace):
        if not suffix.startswith(LEFT_OUT):
            plain = suffix.replace(engine.namespace.encode(), b"")
            found[plain] = [kind, ttl_ms > 0, content]
    # Sleepers are not copied, nor when calls came; and the copy looks at everything that is due.
    meta = found[b"meta"][2]
    found[b"meta"][2] = meta[:2] + meta[4:5] + meta[13:PULSE]
    return found


async def check_copy(source: Engine, target: Engine) -> None:
    assert await contents(target) == await contents(source)
    ids = [key[2:].decode() for key in await contents(source) if key.startswith(b"j:")]
    for first in range(0, len(ids), 1000):
        some = ids[first : first + 1000]
        assert await target.raw("get", *some) == await source.raw("get", *some)
    assert await target.config() == await source.config()
    assert (await target.queues(count=1000)).documents == (await source.queues(count=1000)).documents
    assert await target.audit_all() == []


async def work_off(engine: SettableEngine) -> int:
    """Take and finish what can be had; how many jobs that was."""
    space = Space(engine)
    done = 0
    for _ in range(10):
        for job in await space.pick("*", worker="w", count=1000):
            assert await space.finish(job) == "done"
            done += 1
        await engine.advance(60)
    return done


class TestCopy:
    async def test_into_another_namespace(self, source: SettableEngine, target: SettableEngine) -> None:
        records = await export(source)
        assert await import_(target, records) == len({msgpack.unpackb(r, raw=True)[1] for r in records[1:-1]})
        await check_copy(source, target)

    async def test_into_another_redis(self, source: SettableEngine, fresh_server: RedisServer) -> None:
        async with connect(fresh_server.url) as client:
            target = await target_of(client, source, source.namespace)
            await import_(target, await export(source))
            await check_copy(source, target)

    async def test_the_copy_works_on_like_the_original(self, source: SettableEngine, target: SettableEngine) -> None:
        await import_(target, await export(source))
        done = await work_off(target)
        assert done == await work_off(source) > 20
        assert await target.audit_all() == [] == await source.audit_all()

    async def test_nothing_that_is_copied_has_the_namespaces_name_in_it(self, source: SettableEngine) -> None:
        assert [record for record in await export(source) if source.namespace.encode() in record] == []

    async def test_keys_go_when_they_would_have_gone(self, source: SettableEngine, target: SettableEngine) -> None:
        await import_(target, await export(source))
        [was, is_] = [await engine.redis.pttl(f"{engine.namespace}:request:e:token") for engine in (source, target)]
        assert 0 < is_ <= was + 1000

    async def test_what_does_not_move_meanwhile_is_copied_whole(
        self, settable: SettableEngine, target: SettableEngine
    ) -> None:
        space = Space(settable)
        for number in range(100):
            await space.add(f"{number}", number, name="a", tags=["t"])
            await space.add(f"still {number}", number, name="still", tags=["t"])
        cursor, *records = await settable.raw("export", msgpack.packb({"count": 50}))
        while cursor:  # pages count all keys of this Redis, so there may be more of them than jobs of `a`
            for job in await space.pick("a"):
                await space.finish(job)
            await space.add("more", name="b")
            spec = {"cursor": cursor.decode(), "count": 50}
            cursor, *more = await settable.raw("export", msgpack.packb(spec))
            records += more
        await import_(target, records)
        picked = await Space(target).pick("still", count=1000)
        assert picked == [space.jobs[f"still {number}"] for number in range(100)]


class TestPages:
    @pytest.mark.parametrize("count", [1, 7, 1000])
    async def test_the_size_of_pages_makes_no_difference(
        self, source: SettableEngine, target: SettableEngine, count: int
    ) -> None:
        cursor, records = "", []
        while True:
            spec = msgpack.packb({"cursor": cursor, "count": count})
            reply = await source.raw("export", spec)
            assert len(reply) <= count + 1
            cursor = reply[0].decode()
            records += reply[1:]
            if not cursor:
                break
        await import_(target, records, count)
        await check_copy(source, target)

    async def test_large_arguments_come_one_by_one(self, settable: SettableEngine, target: SettableEngine) -> None:
        argument = msgpack.packb(b"\xff" * (3 << 20))
        for _ in range(5):
            await settable.enqueue([({"name": "a"}, argument)])
        cursor, records = "", []
        while True:
            reply = await settable.raw("export", msgpack.packb({"cursor": cursor, "count": 1000}))
            assert sum(map(len, reply[1:])) < 5 << 20
            cursor = reply[0].decode()
            records += reply[1:]
            if not cursor:
                break
        await import_(target, records, 3)
        await check_copy(settable, target)

    async def test_keys_of_every_type_in_several_pages(self, settable: SettableEngine, target: SettableEngine) -> None:
        """Larger than any of ours usually are."""
        client, name = settable.redis, settable.namespace
        numbers = [f"{number:05}" for number in range(1234)]
        await client.hset(f"{name}:weights:a", mapping=dict.fromkeys(numbers, "x"))
        await client.sadd(f"{name}:sent:a", *numbers)
        await client.rpush(f"{name}:starts:a", *numbers)
        await client.zadd(f"{name}:turns:a", {text: int(text) / 7 for text in numbers})
        records = await export(settable)
        for part in (records, records[3:-1]):  # some once more, which changes nothing
            for first in range(0, len(part) - 1, 5):
                await target.raw("import", *part[first : min(first + 5, len(part) - 1)])
        await target.raw("import", records[-1])
        assert await contents(target) == await contents(settable)


class TestImport:
    async def test_it_repeats_safely(self, source: SettableEngine, target: SettableEngine) -> None:
        records = await export(source)
        for record in records:
            assert await target.raw("import", record) == await target.raw("import", record)
        await import_(target, records[-1:])
        await check_copy(source, target)

    async def test_one_that_broke_off_cannot_be_used_and_can_be_completed(
        self, source: SettableEngine, target: SettableEngine
    ) -> None:
        records = await export(source)
        await import_(target, records[:100], 10)
        with pytest.raises(Conflict, match=r"an import into namespace .* has begun"):
            await target.raw("tick", msgpack.packb({}))
        await import_(target, records, 10)
        await check_copy(source, target)

    async def test_only_into_a_namespace_that_is_not_set_up(
        self, source: SettableEngine, target: SettableEngine
    ) -> None:
        records = await export(source)
        with pytest.raises(Conflict, match="is set up"):
            await import_(source, records)
        await import_(target, records)
        with pytest.raises(Conflict, match="is set up"):
            await import_(target, records)

    async def test_not_beside_what_is_there_already(self, source: SettableEngine, target: SettableEngine) -> None:
        records = await export(source)
        await source.redis.zadd(f"{target.namespace}:due", {"x": 1})
        with pytest.raises(Conflict, match="holds keys"):
            await import_(target, records)
        await source.redis.delete(f"{target.namespace}:due")
        await import_(target, records[:20])
        await source.advance(1)
        with pytest.raises(Conflict, match="another import"):
            await import_(target, await export(source))

    async def test_another_schema_is_refused(self, source: SettableEngine, target: SettableEngine) -> None:
        _, schema, copy = msgpack.unpackb((await export(source))[0])
        assert schema == SCHEMA
        for other in (schema - 1, schema + 1):
            with pytest.raises(Version, match=f"schema {other}"):
                await target.raw("import", msgpack.packb(["begin", other, copy]))
        assert await read_keys(target.redis, target.namespace) == []


# Those that do not go with what is there; what is wrong by itself is in bad_copying.
BAD = RECORDS | {
    "a place in a list behind its end": ["key", "known", "list", 0, 5, ["a"]],
    "the end of another": ["end", "0" * 16, bytes([0, SCHEMA]) + b"\0" * 200],
    "another type than before": ["key", "known", "string", 0, 0, ["1"]],
}


@pytest.mark.parametrize("what", BAD)
async def test_bad_records_change_nothing(redis: Redis, namespace: str, what: str) -> None:
    target = SettableEngine(redis, namespace, scripts=builtin("settable"))
    await redis.script_load(target.scripts["import"].source)
    begin = msgpack.packb(["begin", SCHEMA, "f" * 16])
    await target.raw("import", begin, msgpack.packb(["key", "known", "list", 0, 0, ["a"]]))
    was = await read_keys(redis, namespace)
    good = msgpack.packb(["key", "other", "string", 0, 0, ["a"]])
    with pytest.raises(Invalid, match=r"records\[1\]"):
        await target.raw("import", good, pack_record(BAD[what]))
    assert await read_keys(redis, namespace) == was


@pytest.mark.parametrize("cursor", ["x", "0", "00", "c0", "ff", "81a163a130", msgpack.packb({
    "c": "0" * 16, "s": "0", "k": {"a": 1}, "n": 0}).hex(), "A1", "9" * 1000])  # fmt: skip
async def test_cursors_that_are_none_are_refused(engine: Engine, cursor: str) -> None:
    with pytest.raises(Invalid, match="cursor"):
        await engine.raw("export", msgpack.packb({"cursor": cursor}))


@pytest.mark.parametrize("place", ["5", "5-3", "999999999999999999999999"])
@pytest.mark.parametrize("suffix", ["meta", "queue-names", "patterns", "seq", "nothing", "group:"])
async def test_cursors_that_were_made_up_do_no_harm(engine: Engine, suffix: str, place: str) -> None:
    at = {"c": "0" * 16, "s": "5", "k": [suffix], "p": place, "n": 1}
    await engine.enqueue([({"name": "a"}, b"\xc0")])
    try:
        await engine.raw("export", msgpack.packb({"cursor": msgpack.packb(at).hex()}))
    except JQError as problem:
        assert problem.code == "INVALID"


async def write_file(engine: Engine, file: io.BytesIO) -> None:
    file.write(copying.HEAD)
    async for record in copying.export_records(engine):
        copying.write_record(file, record)


class TestFiles:
    async def test_a_namespace_goes_into_a_file_and_back(self, source: SettableEngine, target: SettableEngine) -> None:
        file = io.BytesIO()
        await write_file(source, file)
        file.seek(0)
        records = copying.read_file(file)
        await copying.import_records(source.redis, target.namespace, records, target.scripts)
        await check_copy(source, target)
        assert await source.redis.hexists(f"{target.namespace}:manifest", "version")

    async def test_what_is_no_such_file_is_refused(self, source: SettableEngine) -> None:
        file = io.BytesIO()
        await write_file(source, file)
        ours, whole = "is no file that", file.getvalue()
        for content, said in ((b"", ours), (b"x" * 100, ours), (whole[:-1], "cut off"), (whole + b"\0", "cut off")):
            with pytest.raises(ValueError, match=said):
                list(copying.read_file(io.BytesIO(content)))

    async def test_commands(self, engine: Engine, redis_url: str, tmp_path: Path) -> None:
        await engine.enqueue([({"name": "a"}, b"\x05")])
        copy = Engine(engine.redis, engine.namespace.replace("}", ".copy}"))
        path = str(tmp_path / "file")
        for command, namespace in (("export", engine.namespace), ("import", copy.namespace)):
            ended = _run(command, redis_url, namespace, path)
            assert ended.returncode == 0, ended.stderr
        [job] = (await copy.pick("w", "a")).jobs
        assert job.argument == b"\x05"
        await copy.redis.delete(f"{copy.namespace}:import")  # for a minute it might be a repetition
        refused = _run("import", redis_url, copy.namespace, path)
        assert refused.returncode == 1 and "is set up" in refused.stderr
        missing = _run("import", redis_url, copy.namespace, path + "x")
        assert missing.returncode == 1 and "No such file" in missing.stderr


def _run(command: str, url: str, namespace: str, path: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "jqmaster.cli", command, "--redis", url, "--namespace", namespace, path]
    return subprocess.run(line, capture_output=True, text=True, timeout=60)
