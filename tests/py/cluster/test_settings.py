"""What is set in a cluster, in all partitions; limits, and listings over them."""

from __future__ import annotations

import contextlib
import signal
from typing import Any

import pytest

from jqmaster.cli.doctor import differences
from jqmaster.cluster.cluster import Cluster
from jqmaster.cluster.names import home_of
from jqmaster.engine.calling import pack
from jqmaster.errors import Invalid, NotFound, Unavailable
from jqmaster.server.http_error import from_engine
from parts import audit_all, eventually
from test_jobs import NIL, add, places
from topologies import Cluster as RedisCluster


async def start(jq: Cluster, most: int = 100, queue: str = "a") -> list[str]:
    """Ids of jobs that start, until none does."""
    found: list[str] = []
    while len(found) < most and (jobs := (await jq.pick("w", queue, 100)).jobs):
        found += [job.id for job in jobs]
    return found


async def each(jq: Cluster, kind: str, one: str) -> list[Any]:
    """The document of the same thing in each partition."""
    pages = [await getattr(engine, kind)([one]) for engine in jq.engines]
    return [document for page in pages for document in page.documents]


# -- settings --------------------------------------------------------------------------------------------------------


async def test_settings_are_the_same_everywhere(jq: Cluster) -> None:
    await jq.config(set={"retry_base": 7})
    assert (await jq.config())["retry_base"] == 7
    assert [(await engine.config())["retry_base"] for engine in jq.engines] == [7] * 6
    assert (await jq.queue("a", paused=True, max_waiting=5))["paused"]
    assert [document["max_waiting"] for document in await each(jq, "queues", "a")] == [5] * 6
    assert (await jq.queue("a", paused=False))["paused"] is False
    key = await jq.grant("k", ["viewer"])
    assert [len((await engine.keys()).documents) for engine in jq.engines] == [1] * 6
    await jq.revoke(key["id"])
    assert (await jq.keys()).documents == []


@pytest.mark.faults
async def test_a_partition_that_does_not_answer_is_named_and_the_call_may_be_repeated(
    nodes: RedisCluster, name: str
) -> None:
    jq = Cluster(f"{nodes.url}?socket_timeout=1.5", name)
    await jq.config(set={"retry_base": 1})
    frozen = nodes.owner(jq.engines[2].namespace).process
    assert frozen is not None
    frozen.send_signal(signal.SIGSTOP)
    with pytest.raises(Unavailable, match=r"partition {.*:2~.*}: .*127.*did not answer") as caught:
        await jq.config(set={"retry_base": 9})
    assert from_engine(caught.value, None).message.startswith("partition {")
    # By then the other nodes may have given up the frozen one.
    queue = next(f"q{number}" for number in range(200) if home_of(f"q{number}", 6) == 2)
    for asked in (jq.pick("w", "a"), jq.enqueue([({"name": queue}, NIL)])):  # the latter for the queue's route
        with pytest.raises(Unavailable, match=r"^UNAVAILABLE partition {"):
            await asked
    frozen.send_signal(signal.SIGCONT)

    async def is_set() -> bool:
        with contextlib.suppress(Unavailable):  # the other nodes may have given up the frozen one
            return bool((await jq.config(set={"retry_base": 9}))["retry_base"] == 9)
        return False

    await eventually(is_set)
    assert await differences(jq) == []
    await jq.close()


async def test_differences_are_found_in_all_that_is_set(jq: Cluster) -> None:
    await jq.queue("a", set={"route": "queue"})
    await jq.constrain("c", {"name": "a"}, concurrency=60)
    key = await jq.grant("k", ["viewer"])
    await jq.engines[1].queue("a", paused=True)
    await jq.engines[2].unconstrain("c")
    await jq.engines[3].revoke(key["id"])
    await add(jq, {})
    assert [problem.partition(" what ")[0] for problem in await differences(jq)] == [
        "queue a is not in partition 1", "constraint c is not in partition 2", f"key {key['id']} is not in partition 3",
    ]  # fmt: skip


# -- limits ----------------------------------------------------------------------------------------------------------


async def test_a_limit_is_divided_and_told_whole(jq: Cluster) -> None:
    shown = await jq.constrain("c", {"name": "a"}, concurrency=8)
    assert (shown["concurrency"], shown["shared"], shown["running"]) == (8, True, 0)
    for _ in range(100):
        await add(jq, {})
    started = await start(jq)
    assert len(started) == 8
    [shown] = (await jq.constraints(["c"])).documents
    assert (shown["concurrency"], shown["running"], shown["held"]) == (8, 8, 92)


async def test_a_limit_too_small_to_divide_is_refused_with_what_to_do(jq: Cluster) -> None:
    with pytest.raises(Invalid, match="expected at least 6, one for each partition; or have match name queues"):
        await jq.constrain("c", {"name": "a"}, concurrency=5)
    with pytest.raises(Invalid) as refused:
        await jq.constrain("c", {"name": "a"}, rate={"limit": 5, "period": 1})
    assert refused.value.path == "rate.limit"
    assert await differences(jq) == []


@pytest.mark.parametrize(
    ("routes", "match", "by", "is_exact"),
    [
        ({"a": "queue"}, {"queue": "a"}, None, True),
        ({"a": "queue", "b": "queue"}, {"queue": ["a", "b"]}, None, False),
        ({"a": "argument.x", "b": "argument.x"}, {"queue": {"in": ["a", "b"]}}, "argument.x", True),
        ({"a": "argument.x", "b": "argument.y"}, {"queue": ["a", "b"]}, ["argument.x", "argument.y"], False),
        ({"a": "argument.x"}, {"queue": "a*"}, "argument.x", False),
        ({"a": "argument.x"}, {"name": "a"}, "argument.x", False),
    ],
)
async def test_which_limits_are_exact(jq: Cluster, routes: dict[str, str], match: Any, by: Any, is_exact: bool) -> None:
    for queue, route in routes.items():
        await jq.queue(queue, set={"route": route})
    shown = await jq.constrain("c", match, concurrency=60, **({"by": by} if by else {}))
    assert ("shared" not in shown) == is_exact


async def test_a_limit_is_held_lifted_and_listed_everywhere(jq: Cluster) -> None:
    await jq.constrain("c", {"name": "a"}, concurrency=60, by="argument.x")
    for number in range(12):
        await add(jq, {}, argument={"x": number % 2})
    await jq.hold("c", 60, by=0)
    assert len(await start(jq)) == 6
    keys, cursor = [], ""
    while True:
        page = await jq.usage("c", cursor=cursor)
        keys, cursor = keys + [(key["by"], key["running"]) for key in page.documents], page.cursor
        if not cursor:
            break
    assert sum(running for by, running in keys if by == 1) == 6
    await jq.unconstrain("c")
    assert len(await start(jq)) == 6


# -- schedules -------------------------------------------------------------------------------------------------------


async def test_a_schedule_is_in_one_partition(jq: Cluster) -> None:
    await jq.schedule("s", job={"name": "a"}, every=3600)
    assert [len((await engine.schedules()).documents) for engine in jq.engines].index(1) == home_of("s", 6)
    job, created = await jq.raw("schedule", pack({"id": "s", "run": True}))
    assert created
    assert places([job.decode()]) == {home_of("s", 6)}
    assert [document["id"] for document in (await jq.schedules(["s"])).documents] == ["s"]
    await jq.unschedule("s")
    with pytest.raises(NotFound):
        await jq.unschedule("s")
    with pytest.raises(NotFound):
        await jq.raw("schedule", pack({"id": "s", "run": True}))


# -- listings --------------------------------------------------------------------------------------------------------


async def test_queues_are_listed_once_each_in_order_with_sums(jq: Cluster) -> None:
    names = [f"q{number:02}" for number in range(25)]
    for name in names:
        for _ in range(4):
            await add(jq, {"name": name})
    seen, cursor = [], ""
    while True:
        page = await jq.queues(cursor=cursor, count=7)
        seen, cursor = seen + page.documents, page.cursor
        if not cursor:
            break
    assert [queue["name"] for queue in seen] == names
    assert {queue["queued"] for queue in seen} == {4}
    assert [queue["name"] for queue in (await jq.queues(["q07", "none", "q03"], minutes=1)).documents] == ["q07", "q03"]


@pytest.mark.parametrize("how", [{}, {"newest": True}])
async def test_jobs_are_listed_once_each_in_order(jq: Cluster, how: dict[str, Any]) -> None:
    ids = [job for _ in range(40) for job in await add(jq, {"tags": ["t"]})]
    for count in (4, 20, 100):
        seen, cursor = [], ""
        while True:
            page = await jq.jobs({"queue": "a"}, cursor=cursor, count=count, **how)
            assert len(page.documents) <= count
            numbers = [int(job["id"][:14], 16) for job in page.documents]
            assert numbers == sorted(numbers, reverse="newest" in how)
            seen, cursor = seen + [job["id"] for job in page.documents], page.cursor
            if not cursor:
                break
        assert sorted(seen) == sorted(ids)
    with pytest.raises(Invalid) as refused:
        await jq.jobs(cursor="none")
    assert refused.value.path == "cursor"


async def test_tags_and_failures_and_counts_add_up(jq: Cluster) -> None:
    for number in range(30):
        await add(jq, {"tags": ["all", f"t{number % 3}"], "max_retry": 0})
    assert (await jq.tags())[1] == [("all", 30), ("t0", 10), ("t1", 10), ("t2", 10)]
    while jobs := (await jq.pick("w", "a", 100)).jobs:
        for job in jobs:
            outcome = {"id": job.id, "token": job.token, "type": "failure", "group": "g", "message": "no"}
            await jq.finish("w", [(outcome, NIL)])
    [group] = (await jq.failures()).documents
    assert (group["group"], group["count"]) == ("g", 30)
    [minute] = (await jq.stats("day"))[-1:]
    assert (minute["enqueued"], minute["error"], minute["wait"]["count"]) == (30, 30, 30)
    [series] = (await jq.stats("day", series=True)).documents
    assert (series["queue"], series["enqueued"]) == ("a", 30)
    assert "histogram" not in (await jq.stats("day", brief=True))[-1]["run"]


async def test_the_trail_tells_once_what_is_set_everywhere(jq: Cluster) -> None:
    await jq.queue("a", paused=True)
    [job] = await add(jq, {})
    await jq.cancel([job])
    assert [entry["what"] for entry in (await jq.trail()).documents] == ["cancel", "queue"]


async def test_the_audit_goes_through_all_partitions(jq: Cluster) -> None:
    for _ in range(12):
        await add(jq, {})
    assert await audit_all(jq) == []
    engine = jq.engines[3]
    await engine.redis.zadd(f"{engine.namespace}:q:a", {"00000000000001" + "03": 0})
    assert all(problem.startswith("partition 3: ") for problem in await audit_all(jq))
    assert await audit_all(jq)
