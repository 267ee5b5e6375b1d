"""A namespace that has something of everything: what export must carry over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgpack

from settable import SettableEngine

LONG_S = 4_000_000
Labels = dict[str, Any]


def pack(value: Any) -> bytes:
    return bytes(msgpack.packb(value))


class Space:
    """Short names for calls, and the jobs made so far, by label."""

    def __init__(self, engine: SettableEngine) -> None:
        self.engine = engine
        self.jobs: Labels = {}
        self.workers: Labels = {}
        self.tokens: dict[str, str] = {}  # of jobs that were picked, by id

    async def call(self, script: str, **fields: Any) -> Any:
        return await self.engine.raw(script, pack(fields))

    async def add(self, label: str, argument: Any = None, **fields: Any) -> str:
        [job, _] = await self.engine.raw("enqueue", pack({"timeout": LONG_S, **fields}), pack(argument))
        self.jobs[label] = job.decode()
        return str(job.decode())

    async def pick(self, queues: str | Sequence[str], worker: str = "picker", **fields: Any) -> list[str]:
        reply = await self.call("pick", worker=worker, queues=queues, **fields)
        jobs = [msgpack.unpackb(document) for document in reply[1::2]]
        self.tokens |= {job["id"]: job["token"] for job in jobs}
        return [job["id"] for job in jobs]

    async def finish(self, job: str, blob: Any = "result", **fields: Any) -> str:
        outcome = {"id": job, "token": self.tokens[job], "type": "success", **fields}
        [state] = await self.engine.raw("finish", pack({"worker": "picker"}), pack(outcome), pack(blob))
        return str(state.decode())

    async def fail(self, job: str, **fields: Any) -> str:
        outcome = {"type": "failure", "reason": "other", "message": "it broke", **fields}
        return await self.finish(job, {"trace": [1, 2]}, **outcome)


async def fill(engine: SettableEngine) -> Space:
    """Jobs in every state, constraints, fair queues, workers, pools, patterns, tokens, settings."""
    space = Space(engine)
    settings = {
        "retry_base": 10,
        "retry_jitter": 0,
        "result_ttl": 7200,
        "done_max": 5000,
        "worker_ttl": 86400,
    }
    await space.call("config", set=settings)
    await _ended(space)
    await _waiting(space)
    await _workers(space)
    await _constraints(space)
    await _fair(space)
    await _patterns_and_tokens(space)
    return space


async def _ended(space: Space) -> None:
    tags = ["urgent", "tag with blank", "ünï"]
    for label in (
        "done",
        "kept",
        "read",
        "failed",
        "failed again",
        "timed out",
        "cancelled",
        "running",
        "retrying",
    ):
        await space.add(
            label, {"n": label}, name="work", tags=tags if label != "running" else ["only:this"],
            max_retry=0 if label in ("failed", "timed out") else 1, keep_result=label in ("kept", "read"),
            timeout=5 if label == "timed out" else LONG_S,
        )  # fmt: skip
        await space.engine.advance(0.25)
    assert await space.pick("work", count=1000) == list(space.jobs.values())
    jobs = space.jobs
    assert await space.finish(jobs["done"], finished_at="2023-11-14T22:13:20+01:00") == "done"
    assert await space.finish(jobs["kept"], blob=b"\0\xff bytes") == "done"
    assert await space.finish(jobs["read"]) == "done"
    await space.engine.raw("result", jobs["read"])
    assert await space.fail(jobs["failed"], message="a long message " * 20) == "error"
    assert await space.fail(jobs["failed again"], should_retry=False, reason="timeout") == "error"
    await space.call("cancel", ids=[jobs["cancelled"]], force=True)
    assert await space.fail(jobs["retrying"]) == "retrying"
    expired = await space.add("expired", name="short", expires_in=1, tags=["urgent"])
    await space.engine.advance(6)
    await space.call("tick")
    await space.engine.raw("watch", jobs["running"], expired)
    documents = await space.engine.get([jobs["timed out"], expired])
    assert [document and document["status"] for document in documents] == ["error", "error"]


async def _waiting(space: Space) -> None:
    for number in range(3):
        await space.add(f"queued {number}", number, name="mail", priority=number - 1, tags=["bulk"])
    await space.add("delayed", name="mail", delay=3600, tags=["bulk", "urgent"], retry_base=3, retry_cap=50)
    await space.add("at", name="mail", run_at=2_000_000_000, retry_jitter=0.5, tags=["later"])
    await space.add("expiring", name="mail", expires_in=10_000, priority=5)
    await space.add("no tags", name="mail", priority=9)
    await space.add("in another queue", name="mail", queue="other mail")
    await space.add("large", "x" * 20_000, name="large")
    await space.call("queue", name="paused", paused=True)
    await space.add("paused", name="paused")
    await space.call("queue", name="bounded", max_waiting=2)
    await space.add("bounded", name="bounded")
    await space.add("tried", name="tried", timeout=5, max_retry=5)
    assert await space.pick("tried")
    assert await space.fail(space.jobs["tried"]) == "retrying"
    await space.engine.advance(11)
    assert await space.pick("tried")


async def _workers(space: Space) -> None:
    for name, fields in {
        "pushed": {"queues": ["push*", "mail"], "url": "http://a/", "max_jobs": 3},
        "other": {"queues": ["push*", "mail"], "url": "http://b/", "max_jobs": 1},
        "pulling": {"queues": "*"},
    }.items():
        space.workers[name] = (await space.call("register", name=name, **fields)).decode()
    for number in range(4):
        await space.add(f"push {number}", number, name="push.this", priority=-100)
    await space.add("push unknown", name="push.that", priority=-100)
    reply = await space.call("assign", master="m", limit=3)
    workers, started = reply[1::6], [msgpack.unpackb(document) for document in reply[5::6]]
    assert len(started) == 3
    space.tokens |= {job["id"]: job["token"] for job in started}
    for worker, job, why in zip(workers, started, ("unknown", "busy"), strict=False):
        await space.call("refuse", worker=worker.decode(), jobs=[[job["id"], job["token"]]], why=why)
    await space.pick("work*", worker=space.workers["pulling"])
    await space.add("pulled", name="pulled")
    assert await space.pick("pulled", worker=space.workers["pulling"]) == [space.jobs["pulled"]]


async def _constraints(space: Space) -> None:
    for definition, match in (
        ({"id": "per customer", "by": "argument.customer", "concurrency": 1}, {"name": "limited"}),
        ({"id": "rate", "rate": {"limit": 3, "period": 86400}, "cost": "argument.cost"}, {"tags": "rated"}),
        ({"id": "smooth", "rate": {"limit": 1, "period": 60, "smooth": True}}, {"name": "smooth"}),
        ({"id": "strict", "concurrency": 1, "order": "strict"}, {"name": "strict"}),
        ({"id": "binary", "by": ["argument.a", "name"], "concurrency": 1}, {"name": "binary"}),
    ):
        await space.engine.raw("constrain", pack(definition), pack(match))
    for number in range(6):
        customer = {"customer": "ab"[number % 2], "cost": number % 2 + 1}
        await space.add(f"limited {number}", customer, name="limited", tags=["rated"] if number % 3 else ["free"])
        await space.add(f"smooth {number}", number, name="smooth")
        await space.add(f"strict {number}", number, name="strict", priority=number % 2)
        await space.add(f"binary {number}", {"a": b"\0{b}:" + bytes([number % 2])}, name="binary")
    for queue in ("limited", "smooth", "strict", "binary"):
        started = await space.pick(queue, count=1000)
        assert 1 <= len(started) < 6
        if queue == "strict":
            assert await space.fail(started[0]) == "retrying"
    await space.call("hold", id="per customer", by="c", seconds=5000)


async def _fair(space: Space) -> None:
    levels = [{"by": "argument.customer", "weights": {"a": 3}}, {"by": "name"}]
    await space.call("queue", name="fair", fair=levels)
    for number in range(9):
        await space.add(f"fair {number}", {"customer": "abc"[number % 3]}, name=f"kind {number % 2}", queue="fair")
    await space.add("fair and limited", {"customer": "a"}, name="limited", queue="fair")
    assert len(await space.pick("fair", count=3)) == 3


async def _patterns_and_tokens(space: Space) -> None:
    for pattern in ("*", "lim*", "no such*"):
        assert len(await space.pick([pattern, "mail"], order="round_robin")) <= 1
    for _ in range(2):
        await space.engine.raw("enqueue", pack({"request": "token"}), pack({"name": "asked"}), pack(1))
    await space.pick("asked", request="pick token")
    await space.pick("nothing", worker="sleeper", wait={"on": "ch", "ms": 60000})


async def fill_newer(space: Space) -> None:
    """Unique keys, dependencies, schedules, events, settings of queues."""
    await space.call("config", set={"events_max": 1000, "lease_grace": 1})
    await space.call("queue", name="own", set={"done_max": 3, "retry_base": 7})
    await _unique(space)
    await _linked(space)
    job = {"name": "regular", "tags": ["scheduled"], "keep_result": True}
    for number, fields in enumerate(({"every": 60}, {"cron": "*/5 * * * *", "limit": 3})):
        await space.engine.raw("schedule", pack({"id": f"plan {number}", **fields, "job": job}), pack(number))
    await space.engine.advance(301)
    await space.call("tick", limit=1000)
    [scheduled] = await space.pick("regular")
    held = [scheduled, space.tokens[scheduled], {"progress": 0.5, "message": "half", "argument": 0}]
    beat = pack({"worker": "picker", "jobs": [held]})
    await space.engine.raw("heartbeat", beat, pack("checkpoint"))
    await space.call("worker", worker=space.workers["pulling"], request="quiet")
    await space.add("of a group", name="grouped", tags=["urgent"], track=True)
    await space.pick("grouped")
    await space.fail(space.jobs["of a group"], should_retry=False, group="disk full")
    await space.add("changed", name="changed", max_runtime=100)
    await space.engine.raw("change", pack({"id": space.jobs["changed"], "tags": ["after"], "priority": 3}), b"")
    await space.add("kicked", name="kicked")
    await space.pick("kicked")
    await space.call("kick", ids=[space.jobs["kicked"]])
    # Things under way: somebody who sleeps, and a change that is not carried out yet.
    await space.pick("nothing", worker="sleeper", wait={"on": "ch", "ms": 60000})
    await space.engine.raw("constrain", pack({"id": "late", "concurrency": 1}), pack({"name": "kind*"}))


async def _unique(space: Space) -> None:
    for name in ("waits", "ended"):
        await space.add(f"unique {name}", name=f"unique {name}", unique=f"key:{name}", unique_for=5000, queue="own")
    await space.pick("own", count=2)
    await space.finish(space.jobs["unique ended"])
    await space.add("latest", name="unique waits", unique="key:waits", if_exists="latest", queue="own")


async def _linked(space: Space) -> None:
    first = await space.add("first", name="step", tags=["chain"])
    second = await space.add("second", name="step", depends=[first], tags=["chain"])
    await space.add("third", name="step", depends=[first, second], if_failed="run", delay=20_000)
    after_failure = space.jobs["failed"]
    await space.add("never", name="step", depends=[after_failure], if_failed="wait")
    await space.add("moved", name="step")
    await space.pick("step", count=2)
    job = space.jobs["moved"]
    outcome = {"id": job, "token": space.tokens[job], "type": "success", "move": {"name": "step two"}}
    await space.engine.raw("finish", pack({"worker": "picker"}), pack(outcome), pack("next"))
