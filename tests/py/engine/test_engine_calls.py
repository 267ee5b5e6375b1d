"""Typed methods of the engine: one for every script, and what they make of the replies."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

import msgpack
import pytest

import jqmaster
from jqmaster.bundle.built import builtin
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Beat, Enqueued, Job, Note
from jqmaster.errors import Conflict, Invalid, NotFound

NIL = b"\xc0"
UNKNOWN = "0" * 14


LOST = "1-0123456789ab"


def success(job: Job, **more: object) -> dict[str, object]:
    return {"id": job.id, "token": job.token, "type": "success", **more}


def test_every_script_has_a_method() -> None:
    package = Path(jqmaster.__file__).parent
    source = "".join(path.read_text() for path in package.glob("engine/*.py"))
    assert set(re.findall(r'self\.(?:call|_ask|_page|_document)\("(\w+)"', source)) == set(builtin())


async def test_heartbeats_carry_notes(engine: Engine) -> None:
    await engine.enqueue([({"name": "a"}, NIL)] * 2)
    one, two = (await engine.pick("w", "a", 2)).jobs
    notes = {two.held: Note(0.5, "half", msgpack.packb([1])), one.held: Note(argument=msgpack.packb([2]))}
    answers = await engine.heartbeat("w", [one.held, two.held, (UNKNOWN, LOST)], notes=notes)
    assert answers == [30000, 30000, "LOST"]
    first, second = await engine.get([one.id, two.id])
    assert first is not None and second is not None
    assert (first["argument"], second["argument"]) == (msgpack.packb([2]), msgpack.packb([1]))
    assert (second["progress"], second["progress_message"]) == (0.5, "half")


async def test_a_beat_tells_what_is_asked(engine: Engine) -> None:
    worker = await engine.register("w", "a")
    assert await engine.beat(worker) == Beat([], "")
    await engine.worker(worker, "quiet")
    assert await engine.beat(worker, [(UNKNOWN, LOST)]) == Beat(["LOST"], "quiet")
    with pytest.raises(NotFound):
        await engine.worker("w" + UNKNOWN, "stop")


async def test_what_follows_an_outcome(engine: Engine) -> None:
    await engine.enqueue([({"name": "a"}, NIL)] * 2)
    one, two = (await engine.pick("w", "a", 2)).jobs
    follow = [({"name": "b"}, NIL), ({"name": "c", "depends": [0]}, NIL)]
    finished = await engine.finish(
        "w",
        [(success(one, move={"name": "b"}), NIL), (success(two), NIL, follow)],
        pick={"queues": "b", "count": 2},
    )
    assert finished.states == ["queued", "done"]
    assert list(finished.enqueued) == [1]
    assert [type(one) for one in finished.enqueued[1]] == [Enqueued, Enqueued]
    assert finished.picked is not None and len(finished.picked.jobs) == 2
    with pytest.raises(Invalid, match=r"outcomes\[0\]\.enqueue\[0\]\.priority"):
        wrong = [({"name": "a", "priority": "x"}, NIL)]
        await engine.finish("w", [(success(finished.picked.jobs[0]), NIL, wrong)])


async def test_a_picked_job_tells_where_it_comes_from(engine: Engine) -> None:
    [first] = await engine.enqueue([({"name": "a", "max_runtime": 9}, NIL)])
    await engine.enqueue([({"name": "b", "depends": [first.id]}, NIL)])
    [job] = (await engine.pick("w", "a")).jobs
    assert (job.max_runtime, job.depends, job.schedule) == (9, (), None)
    await engine.finish("w", [(success(job), NIL)])
    [job] = (await engine.pick("w", "b")).jobs
    assert (job.depends, job.max_runtime) == ((first.id,), None)


async def test_changing_and_finding(engine: Engine) -> None:
    [one, two] = [job.id for job in await engine.enqueue([({"name": "a", "tags": ["t"]}, NIL)] * 2)]
    assert await engine.change([({"id": one, "delay": 50}, b""), ({"id": two}, msgpack.packb(1))]) == [
        "scheduled",
        "queued",
    ]
    assert [job["id"] for job in (await engine.jobs({"status": "scheduled"}, brief=True)).documents] == [one]
    assert await engine.tags() == ("", [("t", 2)]) == await engine.tags(top=5)
    assert await engine.depend(two, add=[one]) == "blocked"
    with pytest.raises(Conflict):
        await engine.cancel([one], dependents="refuse")
    assert await engine.cancel(where={"tag": "t"}) == ("", 2)
    assert await engine.retry(where={"status": "cancelled"}) == ("", 2)
    await engine.pick("w", "a")
    assert await engine.kick(queue="a") == (1, False)
    assert await engine.kick([one, UNKNOWN]) == ["CONFLICT", "NOTFOUND"]
    assert await engine.track([one, UNKNOWN]) == ["queued", None]
    assert (await engine.history(one))["events"][0]["event"] == "enqueued"
    assert await engine.discard([UNKNOWN]) == ["NOTFOUND"]
    assert await engine.discard(where={}) == ("", 2)
    await engine.forget("a")
    assert (await engine.queues()).documents == []


async def test_constraints(engine: Engine) -> None:
    made = await engine.constrain("c", {"name": "a"}, by=["argument.x", "name"], concurrency=1)
    assert made["match"] == {"name": "a"}
    assert (await engine.constraints(["c"])).documents == [made] == (await engine.constraints()).documents
    until_ms = await engine.hold("c", 100, by=[1, "a"])
    [job] = await engine.enqueue([({"name": "a"}, msgpack.packb({"x": 1}))])
    await engine.pick("w", "a")
    [key] = (await engine.usage("c")).documents
    assert (key["by"], key["opens_ms"]) == ([1, "a"], until_ms)
    assert (await engine.explain(job.id))["held"] is True
    await engine.unconstrain("c")
    await engine.constrain("c", msgpack.packb({"name": "a"}), by="argument", concurrency=1)
    assert await engine.hold("c", 1, by=None) > 0
    with pytest.raises(Invalid, match="by"):
        await engine.hold("c", 1)


async def test_webhooks(engine: Engine) -> None:
    secret = "whsec_" + "A" * 32
    made = await engine.subscribe("w", "http://h/", msgpack.packb({"name": "a"}), secrets=[secret])
    assert made["on"] == ["cancelled", "done", "error", "skipped"] and made["secrets"] == 1
    assert await engine.webhooks() == [made]
    assert await engine.webhooks(secrets=True) == [made | {"secrets": [secret]}]
    await engine.unsubscribe("w")
    assert await engine.webhooks() == []


async def test_schedules_and_statistics(engine: Engine) -> None:
    made = await engine.schedule("s", {"name": "a"}, msgpack.packb([1]), every=0.1, limit=1)
    assert made["argument"] == msgpack.packb([1])
    [shown] = (await engine.schedules(next=5)).documents
    assert len(shown["next"]) == 1
    await engine.unschedule("s")
    await engine.enqueue([({"name": "a"}, NIL)])
    await engine.pick("w", "a")
    [minute] = await engine.stats("minute")
    assert minute["enqueued"] >= 1
    assert (await engine.stats("day", series=True, name="a")).documents[0]["queue"] == "a"
    assert (await engine.queue("a", set={"done_max": 1}))["settings"] == {"done_max": 1}
    assert (await engine.queue("a", unset=["done_max"], fair=[{"by": "argument"}]))["fair"] == [{"by": "argument"}]
    assert {one["name"] for one in await engine.config(describe=True)} == set(await engine.config())


async def test_a_copy(engine: Engine) -> None:
    ids = [job.id for job in await engine.enqueue([({"name": "a"}, NIL)] * 100)]
    copy = Engine(engine.redis, "{t" + secrets.token_hex(6) + "}")
    cursor = ""
    while True:
        cursor, records = await engine.export(cursor, 50)
        if records:
            await copy.import_records(records)
        if not cursor:
            break
    assert None not in await copy.get(*ids)
    assert await copy.setup() == await engine.setup()
