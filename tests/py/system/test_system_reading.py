"""Listings and statistics of a system: each thing once, counts added up, in the order of one namespace's."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from jqmaster.errors import Invalid, NotFound
from jqmaster.system import merging, reading
from jqmaster.system.engine import SystemEngine
from systems import put, system, walked, work  # noqa: F401 (fixture)

FAIL: dict[str, Any] = {"type": "failure", "message": "it broke", "should_retry": False}


class TestStatistics:
    async def test_of_one_partition_they_are_those_of_the_sum(self, system: SystemEngine) -> None:
        """Percentiles that are made here are those that the script makes of the same histogram."""
        first, *_ = await system.partitions()
        for number in range(12):
            await put(first)
            await asyncio.sleep(0.001 * number**1.5)
        await work(first, "a", 12)
        for document in await first.stats("day"):
            for name in ("wait", "run"):
                told = document[name]
                for field in ("p50", "p90", "p95", "p99"):
                    steps = [(value, count) for value, count in told["histogram"]]
                    share = int(field[1:]) / 100
                    found = merging._percentile(steps, told["count"] * share, told["min"], told["max"])
                    assert found == told[field], (name, field)

    async def test_the_sum_of_names_is_what_the_scripts_say_of_all(self, system: SystemEngine) -> None:
        """Within one namespace, where the scripts add up the same."""
        first, *_ = await system.partitions()
        for name in ("a", "b", "c"):
            await first.enqueue([({"name": name, "queue": "q"}, b"\xc0")] * 8)
        for number in range(24):
            [job] = (await first.pick("w", "q")).jobs
            await asyncio.sleep(0.001 * (number % 5))
            await first.finish("w", [({"type": "success", "id": job.id, "token": job.token}, b"\xc0")])
        [whole] = await first.stats("day")
        merged = merging.statistics([(await first.stats("day", name=name))[0] for name in ("a", "b", "c")])
        for name in ("wait", "run"):
            for field, value in whole[name].items():
                is_sum = field == "histogram"
                assert merged[name][field] == (value if is_sum else pytest.approx(value, abs=1e-6)), (name, field)
        assert {**merged, "wait": 0, "run": 0} == {**whole, "wait": 0, "run": 0}

    async def test_counts_and_histograms_add_up_and_percentiles_come_of_the_sum(self, system: SystemEngine) -> None:
        engines = await system.partitions()
        for number, one in enumerate(engines):
            await put(one, 3 + number)
        for number, one in enumerate(engines):
            await work(one, "a", 3 + number)
            await asyncio.sleep(0.03)
        [merged] = await system.stats("day")
        each = [(await one.stats("day"))[0] for one in engines]
        assert {one["begin_ms"] for one in each} == {merged["begin_ms"]}
        assert (merged["enqueued"], merged["done"]) == (12, 12)
        assert merged["wait"]["count"] == 12
        histogram: dict[int, int] = {}
        for one in each:
            for value, count in one["wait"]["histogram"]:
                histogram[value] = histogram.get(value, 0) + count
        assert merged["wait"]["histogram"] == [list(step) for step in sorted(histogram.items())]
        assert merged["wait"]["min"] == min(one["wait"]["min"] for one in each)
        assert merged["wait"]["max"] == max(one["wait"]["max"] for one in each)
        whole = sum(one["wait"]["mean"] * one["wait"]["count"] for one in each)
        assert merged["wait"]["mean"] == pytest.approx(whole / 12)
        # Of twelve the one at 95 % is among the last partition's five, which waited longest.
        assert merged["wait"]["p95"] >= each[2]["wait"]["p50"] >= merged["wait"]["p50"]
        [brief] = await system.stats("day", brief=True)
        assert "histogram" not in brief["wait"] and brief["wait"]["p95"] == merged["wait"]["p95"]
        with pytest.raises(Invalid):
            await system.stats("week")

    async def test_pairs_are_merged_page_by_page(self, system: SystemEngine) -> None:
        for number, one in enumerate(await system.partitions()):
            for queue in ("all", f"q{number}"):
                await put(one, 2, queue=queue)
                await put(one, queue=queue, name="b")
        for count in (1, 2, 100):
            found = await walked(lambda **steps: system.series("day", brief=True, **steps), count)
            assert [(one["queue"], one["name"], one["enqueued"]) for one in found] == [
                ("all", "a", 6), ("all", "b", 3), ("q0", "a", 2), ("q0", "b", 1), ("q1", "a", 2), ("q1", "b", 1),
                ("q2", "a", 2), ("q2", "b", 1),
            ]  # fmt: skip

    async def test_queues_with_how_they_do(self, system: SystemEngine) -> None:
        engines = await system.partitions()
        for number, one in enumerate(engines):
            await put(one, 4)
            await asyncio.sleep(0.02)
            await work(one, "a", 2)
            if number:
                await one.constrain("c", {"name": "a"}, concurrency=1)
                await one.pick("w", "a", 2)
        [queue] = (await system.queues(minutes=5, held=10)).documents
        assert (queue["queued"], queue["running"]) == (4, 2)
        assert (queue["recent"]["enqueued"], queue["recent"]["done"]) == (12, 6)
        [day] = await system.stats("day", queue="a", brief=True)
        assert queue["recent"]["wait"] == pytest.approx(day["wait"])
        assert queue["recent"]["wait"]["count"] == 6
        each = [(await one.queues(minutes=5, held=10)).documents[0] for one in engines]
        assert queue["held"] == {
            "looked": sum(one["held"]["looked"] for one in each),
            "jobs": sum(one["held"]["jobs"] for one in each),
            "by": [{"id": "c", "jobs": 2}],
        }
        [ranked] = (await system.ranking())["queues"]
        assert ranked["name"] == "a"

    async def test_queues_whose_jobs_ran_in_one_partition_alone(self, system: SystemEngine) -> None:
        first, other, *_ = await system.partitions()
        await put(first)
        await put(other)
        await work(other, "a", 1)
        [queue, again] = (await system.queues(["a", "a"], minutes=5)).documents
        assert queue["recent"]["wait"]["count"] == queue["recent"]["run"]["count"] == 1
        assert queue["queued"] == 1 and queue == again


class TestListings:
    async def test_failures_of_a_group_add_up(self, system: SystemEngine) -> None:
        for number, one in enumerate(await system.partitions()):
            await put(one, 1 + number)
            await work(one, "a", 1 + number, **FAIL)
            await asyncio.sleep(0.002)
        now_ms = int(time.time() * 1000)
        [group] = (await system.failures(steps=2, from_ms=now_ms - 60_000, to_ms=now_ms + 60_000, sample=5)).documents
        assert group["count"] == 6 and sum(group["counts"]) == 6 and group["looked"] == 6
        assert group["names"] == [["a", 6]]
        assert group["id"].endswith("02") and group["first_ms"] < group["last_ms"]
        assert [one["count"] for one in (await system.failures(group=group["group"])).documents] == [6]

    async def test_tags_add_up(self, system: SystemEngine) -> None:
        for number, one in enumerate(await system.partitions()):
            await put(one, 2, tags=["all", f"t{number}"])
        wanted = [("all", 6), ("t0", 2), ("t1", 2), ("t2", 2)]
        for count in (1, 3, 100):
            cursor, found = "", []
            while True:
                cursor, tags = await system.tags(cursor=cursor, count=count)
                found += tags
                if not cursor:
                    break
            assert [tuple(one) for one in found] == wanted
        assert [tuple(one) for one in (await system.tags(top=2))[1]] == [("all", 6), ("t2", 2)]

    async def test_the_most_used_tags_are_those_of_all(
        self, system: SystemEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One that is first nowhere may be the first of all: what a reply cannot have is looked at as well."""
        monkeypatch.setattr(reading, "_MOST_TAGS", 2)
        for number, one in enumerate(await system.partitions()):
            await put(one, 4, tags=[f"own{number}", f"two{number}"])
            await put(one, 3, tags=["all"])
        assert (await system.tags(top=1))[1] == [("all", 9)]

    async def test_constraints_and_their_keys(self, system: SystemEngine) -> None:
        engines = await system.partitions()
        for one in engines[:2]:
            await one.constrain("c", {"name": "a"}, concurrency=2, by="argument")
            await put(one, 4)
            await one.pick("w", "a", 4)
        await engines[2].constrain("d", {"name": "b"}, concurrency=1)
        found = await walked(system.constraints, 1)
        assert [(one["id"], one["concurrency"], one["running"], one.get("keys")) for one in found] == [
            ("c", 2, 8, 8), ("d", 1, 0, 0)
        ]  # fmt: skip
        keys = await walked(lambda **steps: system.usage("c", **steps), 3)
        assert sorted(one["by"] for one in keys) == [0, 0, 1, 1, 2, 2, 3, 3]
        assert await walked(lambda **steps: system.usage("d", **steps), 3) == []
        with pytest.raises(NotFound):
            await system.usage("none")
        [one] = (await system.constraints(["c"], busiest=3)).documents
        assert len(one["busiest"]) == 3 and one["looked"] == 8

    async def test_workers_are_listed_once(self, system: SystemEngine) -> None:
        engines = await system.partitions()
        ids = [await one.register(f"w{number}", "a", url=f"http://h{number}/") for number, one in enumerate(engines)]
        assert [one["id"] for one in await walked(system.workers, 1)] == sorted(ids)
        assert [one["id"] for one in (await system.workers(ids[::-1])).documents] == ids[::-1]
        for one in await system.partitions():
            [job] = await put(one)
            await one.pick("host-1", "a", 1)
            await one.register("host-1", "a", announce=True, running=[job])
        [other] = await walked(lambda **steps: system.workers(others=True, **steps), 5)
        assert other["held"] == 3 and len(other["running"]) == 3 and other["state"] == "pulling"

    async def test_the_trail_is_in_order_of_time_and_tells_settings_once(self, system: SystemEngine) -> None:
        engines = await system.partitions()
        for number in range(9):
            [job] = await put(engines[number % 3])
            await engines[number % 3].cancel([job])
            await asyncio.sleep(0.002)
        await system.queue("a", paused=True)
        await asyncio.sleep(0.002)
        await system.constrain("c", {"name": "a"}, concurrency=1)
        await system.hold("c", 60)
        await system.unconstrain("c")
        whole = await walked(system.trail, 100)
        assert [one["what"] for one in whole] == ["unconstrain", "hold", "constrain", "queue", *["cancel"] * 9]
        assert [one["time_ms"] for one in whole] == sorted((one["time_ms"] for one in whole), reverse=True)
        for count in (1, 2, 4):
            assert await walked(system.trail, count) == whole
        for cursor in ("x", "9:", "0:zz"):
            with pytest.raises(Invalid):
                await system.trail(cursor=cursor)

    async def test_bulks_of_all_the_latest_first(self, system: SystemEngine) -> None:
        made = []
        for one in await system.partitions():
            made.append((await one.begin_bulk("discard", {"name": "a"}))["id"])
            await asyncio.sleep(0.002)
        assert [one["id"] for one in await system.bulks()] == made[::-1]
        assert (await system.stop_bulk(made[1]))["stopped"] is True
        assert [bool(one.get("ended_ms")) for one in await system.bulks()] == [False, True, False]

    async def test_an_audit_goes_through_all(self, system: SystemEngine) -> None:
        engines = await system.partitions()
        for one in engines:
            await put(one, 5)
        assert await system.audit_all() == []
        await engines[1].redis.zadd(f"{engines[1].namespace}:q:1:q", {"0" * 14: 1})
        await engines[2].redis.set(f"{engines[2].namespace}:odd", "1")
        problems = await system.audit_all()
        assert problems and {problem.split(":")[0] for problem in problems} <= {"partition 1", "partition 2"}
        with pytest.raises(Invalid):
            await system.audit("7:0")

    async def test_a_tick_sweeps_all(self, system: SystemEngine) -> None:
        for one in await system.partitions():
            await put(one, 2, delay=0.01)
        await asyncio.sleep(0.05)
        next_ms, moved = await system.tick()
        assert moved == 6 and next_ms >= -1
