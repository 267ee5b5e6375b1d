"""The engine's Python face: shapes of its calls, errors, and how it heals lost scripts and namespaces."""

from __future__ import annotations

import signal

import msgpack
import pytest

import jqmaster
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.replies import document
from jqmaster.errors import Unavailable
from servers import RedisServer

NIL = b"\xc0"


class TestCalls:
    def test_documents_keep_their_blobs_as_bytes(self) -> None:
        blob = [b"\xff", {b"a": 1}]
        fields = [b"message", b"\xff", b"argument", blob, b"list", [b"a", {b"b": b"c"}], b"n", 1.5]
        pack_raw = msgpack.Packer(use_bin_type=False).pack
        packed = b"\xde\x00\x04" + b"".join(map(pack_raw, fields))
        expected = {"message": "\ufffd", "argument": pack_raw(blob), "list": ["a", {"b": "c"}], "n": 1.5}
        assert document(packed) == expected

    async def test_a_blob_that_is_no_value_spoils_only_its_own_document(self, engine: Engine) -> None:
        jobs = await engine.enqueue([({"name": "a"}, b"\x93"), ({"name": "a"}, NIL)])
        [broken, whole] = await engine.get([job.id for job in jobs])
        assert broken is not None and broken["status"] == "queued" and broken["argument"].startswith(b"\x93")
        assert whole is not None and whole["argument"] == NIL
        assert [job.argument for job in (await engine.pick("w", "a", 2)).jobs] == [b"\x93", NIL]


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
            with pytest.raises(Unavailable, match="did not answer in time"):
                await engine.raw("get", "0" * 14)
        finally:
            fresh_server.process.send_signal(signal.SIGCONT)
        engine = Engine(client)
        assert await engine.get(["0" * 14]) == [None]


async def test_a_queues_count_of_failed_jobs_is_a_number(engine: Engine) -> None:
    """``error`` is a blob in a job's document and a count in a queue's."""
    await engine.enqueue([({"name": "x", "max_retry": 0}, NIL)])
    [job] = (await engine.pick("w", "x")).jobs
    await engine.finish("w", [({"id": job.id, "token": job.token, "type": "failure"}, NIL)])
    assert (await engine.queues(["x"])).documents[0]["error"] == 1
    assert (await engine.queue("x"))["error"] == 1
