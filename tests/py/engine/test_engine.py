"""The engine's Python face: shapes of its calls, errors, and how it heals lost scripts and namespaces."""

from __future__ import annotations

import asyncio
import secrets
import signal
from pathlib import Path
from typing import Any

import msgpack
import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import OutOfMemoryError, ResponseError

import jqmaster
from jqmaster.bundle.build import make_script
from jqmaster.engine.engine import Engine, connect, pack
from jqmaster.engine.replies import document
from jqmaster.engine.scripts import builtin
from jqmaster.errors import (
    Conflict,
    Full,
    Internal,
    Invalid,
    JQError,
    Lost,
    NotFound,
    Unavailable,
    Version,
    from_redis,
    parse,
)
from servers import RedisServer
from settable import SettableEngine

NIL = b"\xc0"
ARGUMENT = msgpack.packb({"to": "a@example.org", "raw": b"\x00\xff", "time": msgpack.Timestamp(1, 2)})


def success(job: Any) -> dict[str, Any]:
    return {"id": job.id, "token": job.token, "type": "success"}


class ReplyLoser:
    """A proxy to Redis that loses the connection instead of handing over the first reply to a call."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.socket = target.with_name(f"proxy-{secrets.token_hex(4)}.sock")
        self.lost = False

    async def __aenter__(self) -> str:
        self.server = await asyncio.start_unix_server(self.serve, self.socket)
        return f"unix://{self.socket}"

    async def __aexit__(self, *_: object) -> None:
        self.server.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        redis_reader, redis_writer = await asyncio.open_unix_connection(self.target)
        while command := await reader.read(65536):
            redis_writer.write(command)
            reply = await redis_reader.read(65536)
            if (b"EVALSHA" in command or b"FCALL" in command) and not self.lost:
                self.lost = True
                break
            writer.write(reply)
        writer.close()
        redis_writer.close()


class TestCalls:
    async def test_the_life_of_a_job(self, engine: Engine) -> None:
        spec = {"name": "mail", "priority": -3, "keep_result": True, "timeout": 2.5}
        [enqueued] = await engine.enqueue([(spec, ARGUMENT)])
        assert enqueued.created and len(enqueued.id) == 14
        assert await engine.watch(enqueued.id, "0" * 14) == ["queued", None]
        picked = await engine.pick("w1", ["mail", "other*"], 5)
        [job] = picked.jobs
        assert (job.id, job.name, job.queue, job.priority) == (enqueued.id, "mail", "mail", -3)
        assert (job.attempt, job.retry_count, job.timeout) == (1, 0, 2.5)
        assert job.argument == ARGUMENT
        [left_ms] = await engine.heartbeat("w1", [(job.id, job.token)])
        assert isinstance(left_ms, int) and 0 < left_ms <= 2500
        states, picked_next, _ = await engine.finish("w1", [(success(job), ARGUMENT)])
        assert (states, picked_next) == (["done"], None)
        assert await engine.result(job.id) == ("done", ARGUMENT)
        [document, unknown] = await engine.get(job.id, "0" * 14)
        assert unknown is None and document is not None
        assert document["status"] == "done" and document["result"] == document["argument"] == ARGUMENT
        assert await engine.audit_all() == []

    async def test_finish_fetches_the_next(self, engine: Engine) -> None:
        await engine.enqueue([({"name": "a"}, NIL), ({"name": "a"}, NIL)])
        [first] = (await engine.pick("w", "a")).jobs
        finished = await engine.finish("w", [(success(first), NIL)], pick={"queues": "a"})
        assert finished.picked is not None and [job.attempt for job in finished.picked.jobs] == [1]
        assert (await engine.finish("w", pick={"queues": "a"})).states == []

    async def test_release_and_cancel(self, engine: Engine) -> None:
        [job_id, other] = [job.id for job in await engine.enqueue([({"name": "a"}, NIL)] * 2)]
        [job] = (await engine.pick("w", "a")).jobs
        held = [job.held, (other, job.token)]
        assert await engine.release("w", held, delay=5) == ["scheduled", "LOST"]
        assert await engine.cancel([job_id, other, "0" * 14], force=True) == [
            "scheduled",
            "queued",
            "NOTFOUND",
        ]

    async def test_a_failure_keeps_its_error(self, engine: Engine) -> None:
        await engine.enqueue([({"name": "a", "max_retry": 0}, NIL)])
        [job] = (await engine.pick("w", "a")).jobs
        failure = success(job) | {"type": "failure", "message": "no such address"}
        assert (await engine.finish("w", [(failure, ARGUMENT)])).states == ["error"]
        [document] = await engine.get(job.id)
        assert document is not None
        assert (document["error"], document["message"], document["reason"]) == (
            ARGUMENT,
            "no such address",
            "other",
        )

    async def test_queues(self, engine: Engine) -> None:
        assert (await engine.queue("b", paused=True, max_waiting=1))["paused"] is True
        await engine.enqueue([({"name": "b"}, NIL), ({"name": "ä"}, NIL)])
        page = await engine.queues(count=1)
        assert [queue["name"] for queue in page.documents] == ["b"] and page.documents[0]["queued"] == 1
        page = await engine.queues(cursor=page.cursor)
        assert [queue["name"] for queue in page.documents] == ["ä"] and page.cursor == ""
        assert len((await engine.queues(["b", "nothing"])).documents) == 1

    async def test_workers(self, engine: Engine) -> None:
        worker = await engine.register("w", ["a"], url="http://127.0.0.1:9/", max_jobs=2)
        await engine.enqueue([({"name": "a"}, ARGUMENT), ({"name": "a"}, NIL)])
        _, [first, second] = await engine.assign("m1", limit=10)
        assert (first.worker, first.url, first.job.argument) == (worker, "http://127.0.0.1:9/", ARGUMENT)
        assert await engine.refuse(worker, [second.job.held], "busy", retry_after=1.5) == ["queued"]
        [document] = (await engine.workers()).documents
        assert (document["id"], document["queues"], document["held"]) == (worker, ["a"], 1)
        assert await engine.heartbeat(worker) == []
        assert await engine.unregister(worker) == 1
        with pytest.raises(NotFound) as caught:
            await engine.unregister(worker)
        assert caught.value.code == "NOTFOUND"

    async def test_settings_and_set_up(self, engine: Engine) -> None:
        assert (await engine.config())["retry_cap"] == 3600
        assert (await engine.config({"retry_cap": 0.5}))["retry_cap"] == 0.5
        assert await engine.setup() == 4

    async def test_time_can_be_set(self, settable: SettableEngine) -> None:
        await settable.enqueue([({"name": "a", "delay": 60}, NIL)])
        assert await settable.pick("w", "a") == (60_000, [])
        await settable.advance(60)
        assert await settable.tick() == (-1, 1)
        assert len((await settable.pick("w", "a")).jobs) == 1

    async def test_a_request_token_makes_repeating_harmless(self, engine: Engine) -> None:
        once = await engine.enqueue([({"name": "a"}, NIL)], request="r1")
        assert await engine.enqueue([({"name": "a"}, NIL)], request="r1") == once
        picked = await engine.pick("w", "a", request="r1")
        assert (await engine.pick("w", "a", request="r1")).jobs == picked.jobs

    def test_documents_keep_their_blobs_as_bytes(self) -> None:
        fields = [
            b"message",
            b"\xff",
            b"argument",
            [b"\xff", {b"a": 1}],
            b"list",
            [b"a", {b"b": b"c"}],
            b"n",
            1.5,
        ]
        pack_raw = msgpack.Packer(use_bin_type=False).pack
        packed = b"\xde\x00\x04" + b"".join(map(pack_raw, fields))
        expected = {"message": "\ufffd", "argument": pack_raw(fields[3]), "list": ["a", {"b": "c"}], "n": 1.5}
        assert document(packed) == expected

    async def test_a_blob_that_is_no_value_spoils_only_its_own_document(self, engine: Engine) -> None:
        jobs = await engine.enqueue([({"name": "a"}, b"\x93"), ({"name": "a"}, NIL)])
        [broken, whole] = await engine.get(*(job.id for job in jobs))
        assert broken is not None and broken["status"] == "queued" and broken["argument"].startswith(b"\x93")
        assert whole is not None and whole["argument"] == NIL
        assert [job.argument for job in (await engine.pick("w", "a", 2)).jobs] == [b"\x93", NIL]


class TestErrors:
    async def test_a_refusal_names_the_field(self, engine: Engine) -> None:
        with pytest.raises(Invalid) as caught:
            await engine.enqueue([({"name": "a"}, NIL), ({"name": "a", "priority": 1.5}, NIL)])
        assert caught.value.path == "jobs[1].priority"
        assert caught.value.message.startswith("expected an integer")
        assert str(caught.value).startswith("INVALID jobs[1].priority: expected")

    async def test_a_full_queue(self, engine: Engine) -> None:
        await engine.queue("a", max_waiting=1)
        with pytest.raises(Full) as caught:
            await engine.enqueue([({"name": "a"}, NIL), ({"name": "a"}, NIL)])
        assert caught.value.path == "jobs[1].queue"

    @pytest.mark.parametrize("value", [2**70, object(), "\ud800", {1, 2}])
    async def test_what_cannot_be_packed_is_invalid(self, engine: Engine, value: object) -> None:
        with pytest.raises(Invalid) as caught:
            await engine.enqueue([({"name": "a"}, NIL), ({"name": "a", "priority": value}, NIL)])
        assert caught.value.path == "jobs[1].priority"
        with pytest.raises(Invalid) as caught:
            await engine.config({"retry_cap": value})
        assert caught.value.path == "set"

    def test_nesting_without_end_is_invalid(self) -> None:
        deep: list[Any] = []
        for _ in range(100_000):
            deep = [deep]
        with pytest.raises(Invalid):
            pack({"name": deep})

    @pytest.mark.parametrize(
        "text, kind, path, message",
        [
            ("INVALID jobs[3].priority: expected x: y", Invalid, "jobs[3].priority", "expected x: y"),
            ("NOTFOUND worker", NotFound, None, "worker"),
            ("CONFLICT request: used with other arguments", Conflict, "request", "used with other arguments"),
            ("LOST", Lost, None, ""),
            ("FULL jobs[0].queue: 3", Full, "jobs[0].queue", "3"),
            (
                "VERSION namespace {jq} is not set up: load",
                Version,
                None,
                "namespace {jq} is not set up: load",
            ),
            ("INVALID spec: line one\nline two", Invalid, "spec", "line one\nline two"),
        ],
    )
    def test_error_replies(self, text: str, kind: type[JQError], path: str | None, message: str) -> None:
        error = parse(text)
        assert type(error) is kind and (error.path, error.message) == (path, message)
        assert error.code == text.split()[0]

    @pytest.mark.parametrize("text", ["", "ERR unknown command", "INVALIDATED x", "invalid x", "WRONGTYPE x"])
    def test_other_text_is_none_of_ours(self, text: str) -> None:
        assert parse(text) is None

    def test_problems_of_redis(self) -> None:
        original = OutOfMemoryError("command not allowed when used memory > 'maxmemory'.", status_code="OOM")
        error = from_redis(original)
        assert isinstance(error, Unavailable) and error.cause is original and "OOM" in str(error)
        assert isinstance(from_redis(RedisConnectionError("refused")), Unavailable)
        lua = from_redis(ResponseError("user_script:3: attempt to index a nil value script: ab, on @user_script:3."))
        assert isinstance(lua, Internal)
        lua = from_redis(ResponseError("user_function:3: bad script: jq_1_pick, on @user_function:3."))
        assert isinstance(lua, Internal)

    async def test_memory_full(self, fresh_server: RedisServer) -> None:
        async with connect(fresh_server.url) as client:
            engine = Engine(client)
            [enqueued] = await engine.enqueue([({"name": "a"}, NIL)])
            await client.config_set("maxmemory", 1)
            with pytest.raises(Unavailable, match="OOM"):
                await engine.enqueue([({"name": "a"}, NIL)])
            [refused, picked] = await engine.pipeline(
                [("enqueue", [pack({"name": "a"}), NIL]), ("pick", [pack({"worker": "w", "queues": "*"})])]
            )
            assert isinstance(refused, Unavailable) and len(picked) == 3
            assert (await engine.get(enqueued.id))[0] is not None

    async def test_a_server_that_is_not_there(self, tmp_path: Path) -> None:
        async with connect(f"unix://{tmp_path}/none") as client:
            engine = Engine(client)
            with pytest.raises(Unavailable):
                await engine.config()
            with pytest.raises(Unavailable):
                await engine.pipeline([("config", [pack({})])])

    @pytest.mark.parametrize("retries, request_, expected", [(0, None, 1), (1, None, 2), (1, "token", 1)])
    async def test_a_lost_reply(
        self,
        engine: Engine,
        redis_server: RedisServer,
        tmp_path: Path,
        retries: int,
        request_: str | None,
        expected: int,
    ) -> None:
        """Not asked for again, unless retries are on; then a token keeps the script from doing it twice."""
        async with ReplyLoser(redis_server.socket) as url, connect(url, retries=retries) as client:
            enqueue = Engine(client, engine.namespace).enqueue([({"name": "a"}, NIL)], request=request_)
            if retries:
                await enqueue
            else:
                with pytest.raises(Unavailable):
                    await enqueue
        [document] = (await engine.queues(["a"])).documents
        assert document["queued"] == expected

    def test_a_client_that_decodes_is_refused(self, redis_url: str) -> None:
        with pytest.raises(ValueError, match="must not decode"):
            Engine(Redis.from_url(redis_url, decode_responses=True))

    def test_a_bad_namespace_is_refused(self, redis: Redis) -> None:
        with pytest.raises(ValueError, match="namespace 'jq'"):
            Engine(redis, "jq")


class TestHealing:
    async def test_scripts_lost(self, fresh_server: RedisServer) -> None:
        async with connect(fresh_server.url) as client:
            engine = Engine(client)
            await engine.enqueue([({"name": "a"}, NIL)])
            await client.script_flush()
            await engine.enqueue([({"name": "a"}, NIL)])
            assert len((await engine.pick("w", "a", 5)).jobs) == 2

    async def test_scripts_lost_for_a_pipeline(self, fresh_server: RedisServer) -> None:
        """Only what failed is sent again, in its order; what ran does not run twice."""
        async with connect(fresh_server.url) as client:
            engine = Engine(client)
            await engine.setup()
            await client.script_flush()
            await client.script_load(builtin()["pick"].source)
            pick = ("pick", [pack({"worker": "w", "queues": "a", "count": 10})])
            enqueues = [("enqueue", [pack({"name": "a", "priority": n}), NIL]) for n in range(3)]
            bad = ("enqueue", [pack({"nome": "a"}), NIL])
            replies = await engine.pipeline([pick, *enqueues, bad, ("queues", [pack({})])])
            assert len(replies[0]) == 1  # It ran before the jobs were there.
            ids = [reply[0][0] for reply in replies[1:4]]
            assert ids == sorted(ids)
            assert isinstance(replies[4], Invalid) and replies[4].path == "jobs[0].nome"
            assert msgpack.unpackb(replies[5][1])["queued"] == 3

    async def test_a_restart(self, fresh_server: RedisServer) -> None:
        fresh_server.kill()
        fresh_server.arguments = ("--appendonly", "yes", "--appendfsync", "always")
        fresh_server.start()
        async with connect(fresh_server.url) as client:
            engine = Engine(client)
            await engine.enqueue([({"name": "a"}, NIL)])
            fresh_server.kill()
            fresh_server.start()
            for _ in range(3):  # so that the event loop sees the closed connection
                await asyncio.sleep(0)
            assert len((await engine.pick("w", "a")).jobs) == 1

    async def test_a_namespace_never_set_up_or_flushed(self, fresh_server: RedisServer) -> None:
        async with connect(fresh_server.url) as client:
            engine = Engine(client, recreate=True)
            for _ in range(2):
                await engine.enqueue([({"name": "a"}, NIL)])
                assert await client.hget("{jq}:manifest", "enqueue") == builtin()["enqueue"].sha.encode()
                await client.flushall()
            replies = await engine.pipeline([("enqueue", [pack({"name": "a"}), NIL])] * 3)
            assert [len(reply) for reply in replies] == [2, 2, 2]

    async def test_setting_up_again_does_not_displace_the_current_version(self, redis: Redis, engine: Engine) -> None:
        scripts = dict(builtin()) | {"extra": make_script("extra", "#!lua\nreturn 1", "read")}
        older = Engine(redis, engine.namespace, scripts=scripts)
        await redis.delete(f"{engine.namespace}:meta")
        await older.enqueue([({"name": "a"}, NIL)])
        assert await redis.hget(f"{engine.namespace}:manifest", "extra") is None

    async def test_data_of_another_schema_is_left_alone(self, redis: Redis, engine: Engine) -> None:
        await redis.setrange(f"{engine.namespace}:meta", 0, b"\x00\x63")
        before = await redis.get(f"{engine.namespace}:meta")
        with pytest.raises(Version, match="schema"):
            await engine.enqueue([({"name": "a"}, NIL)])
        assert await redis.get(f"{engine.namespace}:meta") == before

    async def test_many_callers_at_once(self, fresh_server: RedisServer) -> None:
        async with connect(fresh_server.url, max_connections=8) as client:
            engine = Engine(client)
            calls = [engine.enqueue([({"name": "a"}, NIL)]) for _ in range(50)]
            ids = {job.id for [job] in await asyncio.gather(*calls)}
            assert len(ids) == 50

    async def test_a_script_that_keeps_vanishing_ends_in_an_error(self, redis: Redis, namespace: str) -> None:
        wrong = make_script("setup", builtin()["setup"].source, "write")
        object.__setattr__(wrong, "sha", "0" * 40)
        engine = Engine(redis, namespace, scripts=dict(builtin()) | {"setup": wrong})
        with pytest.raises(Unavailable, match="NOSCRIPT"):
            await engine.setup()
        [reply] = await engine.pipeline([("setup", [])])
        assert isinstance(reply, Unavailable)


def test_every_public_name_can_be_imported() -> None:
    for name in jqmaster.__all__:
        assert getattr(jqmaster, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = jqmaster.nothing


async def test_a_redis_that_does_not_answer_is_unavailable(fresh_server: RedisServer) -> None:
    """A frozen Redis must not freeze its callers."""
    async with connect(fresh_server.url) as client:
        engine = Engine(client, timeout_s=0.2)
        await engine.setup()
        assert fresh_server.process
        fresh_server.process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(Unavailable, match="did not answer within"):
                await engine.call("get", "0" * 14)
        finally:
            fresh_server.process.send_signal(signal.SIGCONT)
        engine = Engine(client)
        assert await engine.get("0" * 14) == [None]


async def test_a_queues_count_of_failed_jobs_is_a_number(engine: Engine) -> None:
    """``error`` is a blob in a job's document and a count in a queue's."""
    await engine.enqueue([({"name": "x", "max_retry": 0}, NIL)])
    [job] = (await engine.pick("w", "x")).jobs
    await engine.finish("w", [({"id": job.id, "token": job.token, "type": "failure"}, NIL)])
    assert (await engine.queues(["x"])).documents[0]["error"] == 1
    assert (await engine.queue("x"))["error"] == 1
