"""Jobs of a cluster: where they are, and what is asked of many of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from jqmaster import JQ
from jqmaster.cluster.cluster import Cluster
from jqmaster.cluster.names import home_of, number_of
from jqmaster.engine.calling import contract_of, pack
from jqmaster.errors import Conflict, Invalid, NotFound
from jqmaster.server.http import within
from jqmaster.server.keyring import Identity
from topologies import Cluster as RedisCluster

NIL = b"\xc0"


async def add(jq: Cluster, *specs: dict[str, Any], argument: Any = None) -> list[str]:
    """Ids of jobs that one call enqueues, of the queue `a` unless they say otherwise."""
    jobs = [({"name": "a", **spec}, NIL if argument is None else pack(argument)) for spec in specs]
    return [enqueued.id for enqueued in await jq.enqueue(jobs)]


def places(ids: list[str]) -> set[int]:
    return {number_of(one, 6) for one in ids}


async def test_jobs_of_one_call_stay_together_and_those_of_many_spread(jq: Cluster) -> None:
    assert len(places(await add(jq, *[{}] * 50))) == 1
    assert places([job for _ in range(150) for job in await add(jq, {})]) == set(range(6))


async def test_the_queues_route_comes_first(jq: Cluster) -> None:
    await jq.queue("a", set={"route": "argument.customer.id"})
    for customer in ("acme", "x", 7):
        [job] = await add(jq, {"unique": f"u{customer}"}, argument={"customer": {"id": customer}})
        assert places([job]) == {home_of(str(customer), 6)}
    assert places(await add(jq, {}, argument={"customer": 1})) == {home_of("", 6)}


async def test_then_comes_the_unique_key(jq: Cluster) -> None:
    [job] = await add(jq, {"unique": "k"})
    assert places([job]) == {home_of("k", 6)}
    [again] = await jq.enqueue([({"name": "a", "unique": "k"}, NIL)])
    assert again == (job, False)


async def test_jobs_of_a_call_of_which_some_are_linked_stay_together(jq: Cluster) -> None:
    keys = {home_of(f"k{number}", 6): f"k{number}" for number in range(100)}
    with pytest.raises(Invalid, match="linked and in several partitions; give all the same route"):
        await add(jq, {}, {"unique": keys[3]}, {"depends": [0]}, {"unique": keys[2]})
    assert places(await add(jq, {}, {"unique": keys[3]}, {"depends": [0, 1]}, {})) == {3}
    [parent] = await add(jq, {"unique": keys[5]})
    assert places(await add(jq, {}, {"depends": [0, parent]})) == {5}
    assert len(places(await add(jq, {}, {"depends": [0]}))) == 1


async def test_a_job_of_another_partition_is_not_waited_for(jq: Cluster) -> None:
    keys = {home_of(f"k{number}", 6): f"k{number}" for number in range(100)}
    [there] = await add(jq, {"unique": keys[1]})
    with pytest.raises(Invalid, match="in another partition; give both the same route") as refused:
        await add(jq, {"unique": keys[0]}, {"unique": keys[3], "depends": [there]})
    assert refused.value.path == "jobs[1].depends[0]"


async def test_jobs_are_asked_for_wherever_they_are(jq: Cluster) -> None:
    ids = [job for number in range(20) for job in await add(jq, {"priority": number})]
    unknown = "00000000000001"
    assert len(places(ids)) > 2
    shown = await jq.get([*ids, unknown])
    assert [document["id"] if document else None for document in shown] == [*ids, None]
    assert (await jq.history(ids[3]))["id"] == ids[3]
    assert (await jq.explain(ids[3]))["id"] == ids[3]
    with pytest.raises(NotFound):
        await jq.explain(unknown)
    states = await jq.change([({"id": job, "priority": 7}, b"") for job in ids])
    assert states == ["queued"] * 20
    assert await jq.cancel([*ids[:3], unknown]) == ["queued"] * 3 + ["NOTFOUND"]
    assert await jq.retry(ids[:3]) == ["queued"] * 3
    assert await jq.discard(ids[:3]) == ["queued"] * 3
    with pytest.raises(Invalid) as refused:
        await jq.cancel([*ids[:3], "no id"])
    assert refused.value.path == "ids[3]"
    with pytest.raises(Invalid, match="several partitions"):
        await jq.cancel(ids, atomic=True)


async def test_all_that_fit_are_done_in_all_partitions(jq: Cluster) -> None:
    for _ in range(30):
        await add(jq, {})
    changed, cursor = 0, ""
    while True:
        cursor, count = await jq.raw("cancel", pack({"where": {"queue": "a"}, "cursor": cursor}))
        changed, cursor = changed + count, cursor if isinstance(cursor, str) else cursor.decode()
        if not cursor:
            break
    assert changed == 30
    with pytest.raises(Invalid) as refused:
        await jq.raw("cancel", pack({"where": {"queue": "a"}, "cursor": "9:"}))
    assert refused.value.path == "cursor"


async def test_jobs_run_once_each_and_their_states_are_told_in_order(jq: Cluster) -> None:
    ids = {job for _ in range(40) for job in await add(jq, {})}
    started: Counter[str] = Counter()
    while jobs := (await jq.pick("w", "a", 7)).jobs:
        started.update(job.id for job in jobs)
        beat = await jq.beat("w", [job.held for job in jobs])
        assert all(isinstance(answer, int) for answer in beat.answers)
        outcomes = [({"id": job.id, "token": job.token, "type": "success"}, NIL) for job in jobs]
        stale = {"id": jobs[0].id, "token": "1-000000000000", "type": "success"}
        finished = await jq.finish("w", [*outcomes, (stale, NIL)])
        assert finished.states == ["done"] * len(jobs) + ["LOST"]
    assert started == dict.fromkeys(ids, 1)


async def test_the_next_job_comes_with_the_report_from_the_same_partition(jq: Cluster) -> None:
    ids = [job for _ in range(60) for job in await add(jq, {})]
    picked = await jq.pick("w", "a")
    seen, brought = [], 0
    while picked.jobs:
        [job] = picked.jobs
        seen.append(number_of(job.id, 6))
        outcome = {"id": job.id, "token": job.token, "type": "success"}
        finished = await jq.finish("w", [(outcome, NIL)], pick={"queues": "a", "count": 1})
        assert finished.picked is not None
        assert finished.picked.next_ms == 0
        brought += len(finished.picked.jobs)
        picked = finished.picked if finished.picked.jobs else await jq.pick("w", "a")
    assert len(seen) == len(ids)
    assert brought > 20


async def test_plain_calls_pick_as_well(nodes: RedisCluster, name: str) -> None:
    def work() -> None:
        jq = JQ(nodes.url, namespace=name)
        ids = {jq.enqueue("a").id for _ in range(5)}
        [job] = jq.call("pick", worker="w", queues="a").jobs
        outcomes = [({"id": job.id, "token": job.token, "type": "success"}, NIL)]
        finished = jq.call("finish", worker="w", outcomes=outcomes, pick={"queues": "a"})
        again = jq.call("pick", worker="w", queues="a", count=5)
        assert {job.id, *(job.id for job in (*finished.picked.jobs, *again.jobs))} <= ids
        assert again.jobs
        jq.close()

    await asyncio.to_thread(work)


async def test_what_follows_a_job_is_where_it_was(jq: Cluster) -> None:
    [job_id] = await add(jq, {"unique": "k"})
    [job] = (await jq.pick("w", "a")).jobs
    follow = [({"name": "b", "unique": "other"}, NIL), ({"name": "b", "depends": [0]}, NIL)]
    finished = await jq.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, NIL, follow)])
    assert places([enqueued.id for enqueued in finished.enqueued[0]]) == places([job_id])


async def test_a_call_that_goes_to_no_cluster_is_refused_as_everywhere(jq: Cluster) -> None:
    schedule = pack({"id": "s", "job": {"name": "a"}, "every": 60})  # without an argument
    calls: dict[str, list[bytes]] = {
        "enqueue": [], "finish": [pack({"worker": "w"})], "get": [], "change": [b"\x80"], "schedule": [schedule],
    }  # fmt: skip
    for operation, arguments in calls.items():
        with pytest.raises(Invalid):
            await jq.raw(operation, *arguments)
    with pytest.raises(Invalid, match="for each partition"):
        await jq.export()
    await add(jq, {})
    with pytest.raises(Conflict):
        await jq.forget("a")


async def test_many_large_documents(jq: Cluster) -> None:
    """Of each partition as many are told as fit into its reply, and of all those before the first that is not."""
    keys = [key for key in (f"k{number}" for number in range(200)) if home_of(key, 6) < 2][:12]
    ids = [job for key in keys for job in await add(jq, {"unique": key}, argument="x" * 1_500_000)]
    assert 0 < len(await jq.raw("get", *ids)) < 12
    assert [document and document["id"] for document in await jq.get(ids)] == ids


async def test_no_wrong_id_beside_it_lets_a_bound_key_at_a_job_of_others(jq: Cluster) -> None:
    who = Identity("somebody", frozenset(("pusher",)), ("mine",))
    [job] = await add(jq, {})
    with pytest.raises(Invalid):
        await within.check(jq, who, contract_of("cancel"), {"ids": [job, "wrong"]})
