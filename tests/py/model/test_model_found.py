"""What long runs of the model test came upon, as short as it gets: engine and model must agree."""

import pytest

from driving.playing import advance, bring, constrain, enqueue, finish, pick, run


def failed_and_running(driver):
    """`job:first.0` failed for good, `job:first.1` runs."""
    bring(driver, "first", {}, {})
    pick(driver, count=2)
    failure = {"id": "job:first.0", "token": 1, "type": "failure", "should_retry": False}
    run(driver, "finish", worker="w", outcomes=[[failure, b"\xc0"]])


def finish_with(driver, *specs):
    """`job:first.1` is done, jobs follow it, and a pick sweeps in the same call."""
    success = {"id": "job:first.1", "token": 1, "type": "success"}
    follow = [[{"name": "many"} | spec, b"\xc0"] for spec in specs]
    outcomes = [[success, b"\xc0", follow]]
    return run(driver, "finish", "next", worker="w", outcomes=outcomes, pick={"queues": "*"})


FAILING = {"depends": ["job:first.0"], "if_failed": "fail"}


def test_a_dependency_that_failed_fails_a_job_in_the_sweep_so_the_next_of_its_key_meets_it(driver):
    failed_and_running(driver)
    reply = finish_with(driver, FAILING | {"unique": "u"}, {"unique": "u", "if_exists": "latest"})
    [(_, first, second)] = reply[0]
    assert first[1] == 1 and list(second) == [first[0], 0]
    [doc] = run(driver, "get", ids=["job:next.0"])
    assert (doc["status"], doc["reason"]) == ("error", "dependency")
    run(driver, "check")


def test_what_is_needed_as_another_failed_is_told_so_by_the_sweep_of_its_own_call(driver):
    [lost, *_] = bring(driver, "first", {}, {})
    run(driver, "cancel", ids=[lost])
    pick(driver)
    only = {"name": "many", "depends": ["job:first.1", lost], "if_failed": "only"}
    success = {"id": "job:first.1", "token": 1, "type": "success", "resume": {"depends": [1]}}
    follow = [[only, b"\xc0"], [{"name": "many"}, b"\xc0"]]
    run(driver, "finish", "next", worker="w", outcomes=[[success, b"\xc0", follow]], pick={"queues": "*"})
    run(driver, "check")


def test_who_was_woken_goes_on_with_another_request(driver):
    wait = {"on": "all", "ms": 60000}
    bring(driver, "first", {})
    pick(driver, request="r")
    run(driver, "cancel", ids=["job:first.0"], force=True)
    run(driver, "pick", worker="other", queues="*", wait=wait)
    bring(driver, "second", {})
    run(driver, "wake", on="all", pick={"worker": "other", "queues": "*", "wait": wait, "request": "r"})
    assert [job.status for job in driver.model.jobs.values()] == ["cancelled", "running"]


def test_a_key_is_kept_for_the_job_that_ended_last_though_it_came_first(driver):
    bring(driver, "first", {"unique": "u", "unique_for": 60, "max_lapses": 0})
    pick(driver)
    bring(driver, "next", {"unique": "u", "if_exists": "latest", "expires_in": 10})
    run(driver, "clock", delta_ms=90_000_000)
    run(driver, "tick")
    bring(driver, "last", {"unique": "u"})
    run(driver, "check")


# ---- several things in one sweep, to jobs that wait for others ----


@pytest.mark.parametrize("settings", [{}, {"events_max": 100}, {"events_max": 100, "error_max": 0}], ids=str)
@pytest.mark.parametrize("delay", [0, 5])
def test_what_is_free_and_expires_in_the_same_sweep(driver, settings, delay):
    run(driver, "config", set=settings)
    first = enqueue(driver, 1)
    pick(driver)
    enqueue(driver, 1, depends=[*first], expires_in=1, delay=delay, track=True)
    finish(driver, first)
    advance(driver, 2)
    assert pick(driver)[1:] == []
    run(driver, "check")


KEPT = [{}, {"cancelled_max": 0}, {"error_max": 0}, {"cancelled_max": 0, "error_max": 0, "events_max": 100}]


@pytest.mark.parametrize("settings", KEPT, ids=str)
def test_what_is_to_be_cancelled_and_fails_in_the_same_sweep(driver, settings):
    run(driver, "config", set=settings)
    late = enqueue(driver, 1, expires_in=1)
    advance(driver, 1)
    first = enqueue(driver, 1)
    second = enqueue(driver, 1, depends=[*first])
    last = enqueue(driver, 1, depends=[*second, *late], if_failed="fail")
    run(driver, "cancel", ids=first, dependents="cancel")
    assert pick(driver)[1:] == []
    run(driver, "get", ids=last)
    run(driver, "check")


def test_what_expires_behind_one_that_came_too_late_to_be_cancelled(driver):
    run(driver, "config", set={"cancelled_max": 1, "error_max": 0})
    first = enqueue(driver, 1)
    run(driver, "cancel", ids=first, dependents="cancel")
    second = enqueue(driver, 1, depends=[*first])
    last = enqueue(driver, 1, depends=[*second], expires_in=1)
    advance(driver, 2)
    assert pick(driver)[1:] == []
    assert run(driver, "get", ids=last) == [None]
    run(driver, "check")


def test_what_may_be_cancelled_and_fails_with_another_in_the_same_sweep(driver):
    lost, first = enqueue(driver, 1), enqueue(driver, 1)
    pick(driver)
    failing = enqueue(driver, 1, depends=[*lost], if_failed="fail")
    last = enqueue(driver, 1, depends=[*first, *failing], if_failed="fail")
    finish(driver, first)
    finish(driver, lost, type="failure", should_retry=False)
    run(driver, "cancel", ids=first, dependents="cancel")
    assert pick(driver)[1:] == []
    run(driver, "get", ids=last)
    run(driver, "check")


def test_a_needed_job_that_expired_in_the_same_sweep_is_counted_as_error_when_no_record_tells(driver):
    run(driver, "config", set={"error_ttl": 0, "cancelled_max": 0})
    bring(driver, "first", {})
    pick(driver)
    bring(driver, "needed", {"depends": ["job:first.0"], "if_failed": "only", "expires_in": 2})
    finish(driver, ["job:first.0"], type="failure", should_retry=False)
    advance(driver, 90_000)
    pick(driver)
    run(driver, "stats", by="day")


def test_a_pushed_worker_whose_heartbeat_ends_a_job_by_its_max_runtime_has_shown_that_it_is_alive(driver):
    run(driver, "register", "w", name="w", queues=["a"], url="http://worker:8080/x")
    bring(driver, "first", {"name": "a", "max_runtime": 0.001})
    run(driver, "assign", master="m")
    advance(driver, 1)
    run(driver, "heartbeat", worker="worker:w", jobs=[["job:first.0", 1]])
    run(driver, "workers")


def test_of_a_blocked_job_that_expires_with_what_it_waits_for_the_notification_tells_why_it_ended(driver):
    run(driver, "config", set={"error_max": 0})
    run(driver, "subscribe", id="w", match=b"\x81\xa4name\xa1*", url="http://127.0.0.1:9/in")
    bring(driver, "first", {"expires_in": 100})
    bring(driver, "second", {"expires_in": 100, "depends": ["job:first.0"], "if_failed": "fail"})
    advance(driver, 100)
    run(driver, "assign", master="m")


def test_a_rest_that_a_bounded_sweep_left_is_seen_when_its_worker_is_quiet_no_more(driver):
    run(driver, "register", "w", name="w", queues=["a"], url="http://worker:8080/x")
    run(driver, "refuse", worker="worker:w", why="busy", jobs=[])
    bring(driver, "first", {"queue": "b"})
    constrain(driver, "k", {"any": [{"argument.c": 1}]}, rate={"limit": 7, "period": 1})
    run(driver, "worker", worker="worker:w", request="quiet")
    bring(driver, "second", {"queue": "b"})
    advance(driver, 1)
    run(driver, "tick", limit=2)
    run(driver, "worker", worker="worker:w", request="resume")
    run(driver, "check")
