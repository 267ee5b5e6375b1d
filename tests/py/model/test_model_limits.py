"""The reference model and the engine where constraints and fair queues decide who runs."""

import pytest

from driving.playing import MANY, advance, constrain, enqueue, pick, pick_all, push


@pytest.mark.parametrize("change", [
    {"by": None}, {"by": "argument.d"}, {"by": ["argument.c", "argument.d"]},
    {"match": {"argument.d": 1}}, {"match": {"name": "other"}}, {"concurrency": 2},
    {"rate": {"limit": 1, "period": 5}}, None,
], ids=str)  # fmt: skip
def test_a_change_applies_to_all_that_wait(driver, change):
    constrain(driver, by="argument.c", concurrency=1)
    push(driver, [{"c": n, "d": 0} for n in range(MANY)])
    assert len(pick_all(driver)[0]) == MANY
    push(driver, [{"c": n, "d": n % 2} for n in range(MANY) for _ in range(2)])
    assert pick_all(driver)[0] == []
    if change is None:
        driver.run(["unconstrain", {"id": "k"}, 0])
    else:
        new = {"by": "argument.c", "concurrency": 1} | change
        constrain(driver, **{field: value for field, value in new.items() if value is not None})
    pick_all(driver)
    advance(driver, 5)
    pick_all(driver)
    running = [job.id for job in driver.model.jobs.values() if job.status == "running"][:MANY]
    driver.run(["cancel", {"ids": running[:1]}, 0])
    driver.run(["cancel", {"ids": running[1:]}, 0])
    pick_all(driver)
    driver.run(["check", {}, 0])


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
