"""The reference model and the engine where constraints and fair queues decide who runs."""

import random

import pytest

from driving.playing import LANES, advance, constrain, enqueue, finish, pick, pick_all, push, values
from model.matcher import decode


class TestLanes:
    """Jobs of one queue under the same keys are held or free together. Here are more such groups than a pick
    looks at in one call."""

    @pytest.mark.parametrize(("all", "own"), [("a", "b"), ("b", "a")])
    def test_room_that_one_cannot_use_is_passed_on(self, driver, all, own):
        constrain(driver, all, concurrency=1)
        constrain(driver, own, by="argument.c", concurrency=1)
        first = push(driver, [{"c": "first"}])
        assert pick_all(driver)[0] == ["first"]
        push(driver, values(LANES))
        assert pick_all(driver)[0] == []
        for value in range(LANES - 1):
            driver.run(["hold", {"id": own, "by": value, "seconds": 1000}, 0])
        finish(driver, first)
        assert pick_all(driver)[0] == [LANES - 1]

    def test_a_better_job_brings_those_behind_it_up(self, driver):
        constrain(driver, "a", concurrency=1)
        constrain(driver, "b", by="argument.c", concurrency=1)
        first = push(driver, [{"c": "first"}])
        pick_all(driver)
        push(driver, values(LANES))
        assert pick_all(driver)[0] == []
        better = push(driver, [{"c": 200}], priority=-1)
        assert pick_all(driver)[0] == []
        finish(driver, first)
        assert pick_all(driver)[0] == [200]
        best = push(driver, [{"c": 240}], priority=-2)
        driver.run(["cancel", {"ids": better}, 0])
        assert pick_all(driver)[0] == [240]
        driver.run(["release", {"worker": "w", "jobs": [[best[0], 1]], "delay": 5}, 0])
        assert pick_all(driver)[0] == [0]

    @pytest.mark.parametrize("change", [
        {"by": None}, {"by": "argument.d"}, {"by": ["argument.c", "argument.d"]},
        {"match": {"argument.d": 1}}, {"match": {"name": "other"}}, {"concurrency": 2},
        {"rate": {"limit": 1, "period": 5}}, None,
    ], ids=str)  # fmt: skip
    def test_a_change_applies_to_all_that_wait(self, driver, change):
        constrain(driver, by="argument.c", concurrency=1)
        push(driver, values(LANES, d=0))
        assert len(pick_all(driver)[0]) == LANES
        push(driver, [{"c": n, "d": n % 2} for n in range(LANES) for _ in range(2)])
        assert pick_all(driver)[0] == []
        if change is None:
            driver.run(["unconstrain", {"id": "k"}, 0])
        else:
            new = {"by": "argument.c", "concurrency": 1} | change
            constrain(driver, **{field: value for field, value in new.items() if value is not None})
        pick_all(driver)
        advance(driver, 5)
        pick_all(driver)
        running = [job.id for job in driver.model.jobs.values() if job.status == "running"][:LANES]
        driver.run(["cancel", {"ids": running[:1]}, 0])
        driver.run(["cancel", {"ids": running[1:]}, 0])
        pick_all(driver)
        driver.run(["check", {}, 0])

    def test_room_of_a_rate_comes_back_for_all_at_once(self, driver):
        constrain(driver, by="argument.c", rate={"limit": 1, "period": 10})
        push(driver, values(LANES) * 3)
        assert len(pick_all(driver)[0]) == LANES
        driver.run(["clock", {"delta_ms": 9999}, 0])
        assert pick_all(driver)[0] == []
        driver.run(["clock", {"delta_ms": 1}, 0])
        assert pick_all(driver)[0] == list(range(LANES))


def released(driver, jobs, **fields):
    driver.run(["release", {"worker": "worker:w", "jobs": [[job, 1] for job in jobs], **fields}, 0])


WAYS_OUT = {
    "success": lambda driver, jobs: finish(driver, jobs),
    "failure": lambda driver, jobs: finish(driver, jobs, type="failure"),
    "failure for good": lambda driver, jobs: finish(driver, jobs, type="failure", should_retry=False),
    "release": released,
    "release for later": lambda driver, jobs: released(driver, jobs, delay=9),
    "cancel": lambda driver, jobs: driver.run(["cancel", {"ids": jobs}, 0]),
    "lapse": lambda driver, jobs: advance(driver, 20),
    "death of the worker": lambda driver, jobs: advance(driver, 31),
    "unregister": lambda driver, jobs: driver.run(["unregister", {"worker": "worker:w"}, 0]),
    "refusal": lambda driver, jobs: driver.run(
        ["refuse", {"worker": "worker:w", "jobs": [[job, 1] for job in jobs], "why": "busy"}, 0]
    ),
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_room_comes_back_on_every_way_out(driver, way):
    constrain(driver, by="argument.c", concurrency=1)
    driver.run(["register", {"name": "w", "queues": "*"}, "w"])
    jobs = push(driver, values(LANES), timeout=20 if way == "lapse" else 1000)
    push(driver, values(LANES), priority=1)
    assert len(pick_all(driver, worker="worker:w")[0]) == LANES
    assert pick_all(driver)[0] == []
    WAYS_OUT[way](driver, jobs)
    assert len(pick_all(driver)[0]) == LANES


def test_constraints_come_and_go_while_many_jobs_wait_and_run(driver):
    jobs = push(driver, [{"c": n % 50} for n in range(2200)])
    constrain(driver, by="argument.c", concurrency=14)
    assert len(pick_all(driver)[0]) == 700
    constrain(driver, by="argument.c", concurrency=20)
    came, calls = pick_all(driver)
    assert len(came) == 300 and calls > 1
    finish(driver, jobs[:100])
    constrain(driver, by="argument.c", concurrency=17)  # 18 of each run
    assert pick_all(driver)[0] == []
    finish(driver, jobs[100:300])  # 14 of each run
    constrain(driver, "all", concurrency=50)  # those that run already are not counted
    assert len(pick_all(driver)[0]) == 50
    driver.run(["unconstrain", {"id": "all"}, 0])
    assert len(pick_all(driver)[0]) == 100
    driver.run(["unconstrain", {"id": "k"}, 0])
    assert len(pick_all(driver)[0]) == 1050
    driver.run(["check", {}, 0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("limit", "period"), [(1, 0.05), (3, 1), (10, 20)], ids=str)
def test_no_window_holds_more_than_the_limit_and_who_waits_uses_it_all(driver, limit, period, seed):
    rng = random.Random(seed)
    constrain(driver, by="argument.c", rate={"limit": limit, "period": period})
    names = push(driver, [{"c": rng.randint(1, 3)} for _ in range(200)], retry_base=0)
    started = {1: [], 2: [], 3: []}
    running = []
    next_ms = 0
    while len(running) < len(names) and next_ms != -1:
        next_ms, *jobs = pick(driver, count=rng.randint(1, 4))
        for doc, argument in jobs:
            started[dict(decode(argument))["c"]].append(driver.model.now)
            running.append(doc["id"])
        if not jobs:  # all that may start has started: on to the next opening, or not quite
            steps = [next_ms] if rng.random() < 0.5 else [next_ms - 1, 1]
            for step in filter(None, steps):
                driver.run(["clock", {"delta_ms": step}, 0])
        elif rng.random() < 0.2:  # starts of jobs that come back count as well
            release = {"worker": "w", "jobs": [[running.pop(), jobs[-1][0]["attempt"]]]}
            driver.run(["release", release, 0])
    for moments in started.values():
        gaps = {later - sooner for sooner, later in zip(moments, moments[limit:], strict=False)}
        assert gaps == {round(period * 1000)}


def test_who_was_woken_goes_on_until_all_that_waits_is_sorted(driver):
    push(driver, [{"c": n} for n in range(50)])
    wait = {"on": "push", "ms": 60000}
    for master in ("m1", "m2"):
        driver.run(["assign", {"master": master, "wait": wait}, 0])
    driver.run(["queue", {"name": "many", "fair": {"by": "argument.c"}}, 0])
    driver.run(["register", {"name": "w", "queues": "*", "url": "http://w/"}, 0])
    driver.run(["wake", {"on": "push", "assign": {"master": "m2", "wait": wait}}, 0])
    assert sum(job.status == "running" for job in driver.model.jobs.values()) == 1


def test_who_is_asked_to_go_on_is_counted_on_and_who_is_to_be_quiet_is_not(driver):
    driver.run(["register", {"name": "w", "queues": "many"}, "registered"])
    for worker, ms in (("other", 60000), ("worker:registered", 1000)):
        driver.run(["pick", {"worker": worker, "queues": "many", "wait": {"on": "all", "ms": ms}}, 0])
    for request in ("resume", "quiet"):
        driver.run(["worker", {"worker": "worker:registered", "request": request}, 0])
        enqueue(driver, 1, delay=5)
        assert (driver.marked_ms("all") is not None) == (request == "quiet")


def test_a_job_under_a_key_that_has_opened_is_for_who_is_about_to_be_up(driver):
    constrain(driver, rate={"limit": 1, "period": 1})
    wait = {"on": "all", "ms": 60000}
    driver.run(["pick", {"worker": "other", "queues": "many", "wait": wait}, 0])
    push(driver, [None, None])
    pick(driver, count=1)
    driver.run(["wake", {"on": "all", "pick": {"worker": "late", "queues": "many", "wait": wait}}, 0])
    for is_dead in (False, True):
        driver.run(["clock", {"delta_ms": 1500}, 0])
        push(driver, [None])
        assert (driver.marked_ms("all") is not None) == is_dead


def test_a_call_looks_at_so_many_conditions_for_the_jobs_that_it_brings_changes_or_retries(driver):
    argument = {f"f{number}": number for number in range(90)}
    for number in range(100):
        constrain(driver, str(number), {f"argument.f{field}": field for field in range(90)}, concurrency=1000)
    push(driver, [argument] * 34)
    assert not driver.model.jobs
    first, second = push(driver, [argument] * 33), push(driver, [argument] * 2)
    changes = [[{"id": job, "priority": 1}, b""] for job in [*first, *second]]
    assert driver.run(["change", {"jobs": changes}, 0]).path == "jobs"
    driver.run(["change", {"jobs": changes[:33]}, 0])
    driver.run(["cancel", {"ids": [*first, *second]}, 0])
    assert driver.run(["retry", {"ids": [*first, *second]}, 0]).path == "ids"
    driver.run(["retry", {"ids": first}, 0])
    driver.run(["retry", {"where": {}}, 0])
    assert all(job.status == "queued" for job in driver.model.jobs.values())
    driver.run(["check", {}, 0])


def test_there_are_at_most_a_thousand_constraints(driver):
    for number in range(1001):
        constrain(driver, str(number), {"name": f"name-{number}"}, concurrency=1)
    assert len(driver.model.limits.constraints) == 1000
    driver.run(["check", {}, 0])
