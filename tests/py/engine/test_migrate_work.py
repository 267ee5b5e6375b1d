"""Work goes on while a namespace is migrated."""

from __future__ import annotations

import random
from collections import Counter

import msgpack
import pytest

from jqmaster.engine.copying import export_records
from migrated import (  # noqa: F401
    Before,
    before,
    check_indexes_now,
    documents,
    engine,
    index,
    is_under_way,
    migrate,
    one_move,
    redis,
    tick,
)
from rich import Space, pack
from settable import SettableEngine


class TestWorkGoesOn:
    async def test_running_jobs_are_finished_and_failed_ones_retried(
        self, engine: SettableEngine, before: Before
    ) -> None:
        await migrate(engine)
        space = Space(engine)
        for id_ in before.ids("running"):
            document = before.documents[id_]
            assert await space.finish(id_, document["attempt"]) == "done"
        [retrying] = before.ids("retrying")
        await engine.advance(20)
        await engine.tick()
        [document] = (await documents(engine, [retrying])).values()
        assert document["status"] == "queued"
        assert await engine.audit_all() == []

    async def test_constraints_hold(self, engine: SettableEngine) -> None:
        await migrate(engine)
        space = Space(engine)
        await space.add("one more", {"customer": "a"}, name="limited")
        page = msgpack.unpackb((await space.call("constraints", ids=["per customer"]))[1])
        assert page["running"] == 2
        assert await space.pick("limited", count=1000) == []
        assert await space.pick("strict", count=1000) == []

    async def test_everything_can_be_worked_off(self, engine: SettableEngine, before: Before) -> None:
        await migrate(engine)
        space = Space(engine)
        await space.call("queue", name="paused", paused=False)
        for constraint in ("rate", "smooth"):
            await space.call("unconstrain", id=constraint)
        await space.call("hold", id="per customer", by="c", seconds=0)
        await engine.set_clock(2_000_000_001_000)
        left = set(before.documents) - set(before.ids("done") + before.ids("error") + before.ids("cancelled"))
        for _ in range(60):
            await engine.tick(1000)
            for job in await space.pick("*", worker="w", count=100):
                assert await space.finish(job) == "done"
                left.discard(job)
            await engine.advance(11)
        # Those that may be tried no more, or whose time to start by was over.
        ended = await engine.get(*left) if left else []
        assert {document["status"] for document in ended if document} <= {"error"}
        assert await engine.audit_all() == []

    @pytest.mark.parametrize("limit", [1, 2, 5])
    async def test_jobs_that_move_meanwhile_come_out_right(
        self, engine: SettableEngine, before: Before, limit: int
    ) -> None:
        await engine.call("migrate")
        space = Space(engine)
        [retrying] = before.ids("retrying")
        running = [id_ for id_ in before.ids("running") if "tags" in before.documents[id_]]
        queued = [id_ for id_ in before.ids("queued") if "tags" in before.documents[id_]]
        moves = [
            space.add("new", name="mail", tags=["bulk", "new"]),
            space.pick("mail", count=2),
            space.finish(running[0], before.documents[running[0]]["attempt"]),
            space.fail(running[-1], before.documents[running[-1]]["attempt"], should_retry=False),
            space.call("cancel", ids=[retrying, queued[-1]]),
            space.call("tick"),
            space.pick(["limited", "mail"], count=5),
        ]
        for move in moves:
            await tick(engine, limit)
            await move
            assert await engine.audit_all() == []
        while await is_under_way(engine):
            await tick(engine, limit)
        await check_indexes_now(engine)

    @pytest.mark.parametrize("steps", range(0, 120, 10))
    async def test_jobs_that_go_back_to_where_was_looked_already_are_not_forgotten(
        self, engine: SettableEngine, before: Before, steps: int
    ) -> None:
        await engine.call("migrate")
        for _ in range(steps):
            await tick(engine, 1)
        for id_ in before.ids("running"):
            token = f"{before.documents[id_]['attempt']}-"
            await engine.call("release", pack({"worker": "w", "jobs": [[id_, token]]}))
        for id_ in before.ids("queued"):
            await engine.call("change", pack({"id": id_, "priority": -200}), b"")
        for id_ in before.ids("scheduled") + before.ids("retrying"):
            await engine.call("change", pack({"id": id_, "delay": 5}), b"")
        while await is_under_way(engine):
            await tick(engine, 1)
        await check_indexes_now(engine)

    async def test_nor_are_those_that_come_to_stand_before_that_place(
        self, engine: SettableEngine, before: Before
    ) -> None:
        sooner, later = sorted(before.ids("scheduled"), key=lambda id_: before.documents[id_]["due_ms"])
        await engine.call("migrate")
        at = {}
        while at.get(b"i") != sooner.encode():
            await tick(engine, 1)
            at = msgpack.unpackb(await engine.redis.get(f"{engine.namespace}:migration"), raw=True)
        await engine.call("change", pack({"id": later, "delay": 5}), b"")
        while await is_under_way(engine):
            await tick(engine, 1)
        await check_indexes_now(engine)

    @pytest.mark.parametrize("seed", range(3))
    async def test_whatever_happens_meanwhile(self, engine: SettableEngine, before: Before, seed: int) -> None:
        rng = random.Random(seed)
        space = Space(engine)
        ids = list(before.documents)
        queues = [queue["name"] for queue in before.queues]
        await engine.call("migrate")
        while await is_under_way(engine):
            await tick(engine, 1)
            for _ in range(rng.randrange(3)):
                await one_move(space, rng, ids, queues)
        await check_indexes_now(engine)

    async def test_a_namespace_can_be_copied_half_way(self, engine: SettableEngine) -> None:
        await engine.call("migrate")
        for _ in range(20):
            await tick(engine, 2)
        copy = SettableEngine(engine.redis, "{copy}", scripts=engine.scripts)
        async for record in export_records(engine):
            await copy.call("import", record)
        await copy.set_clock(engine.now_ms)
        while await is_under_way(copy):
            await tick(copy, 10)
        await check_indexes_now(copy)

    async def test_records_that_go_leave_the_indexes(self, engine: SettableEngine, before: Before) -> None:
        await engine.call("migrate")
        await tick(engine, 2)
        await engine.config({"done_max": 0, "error_max": 0, "cancelled_max": 0})
        await migrate(engine)
        for _ in range(10):
            await engine.tick(1000)
            await engine.advance(1)
        assert await index(engine, "failed") == Counter()
        there = [document for document in await engine.get(*before.documents) if document]
        assert len(there) < len(before.documents)
        assert await index(engine, "tagged") == Counter(tag for document in there for tag in document.get("tags", ()))
        assert await engine.audit_all() == []
