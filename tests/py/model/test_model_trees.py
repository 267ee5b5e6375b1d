"""The reference model and the engine where several things happen in one sweep to jobs that wait for others."""

import pytest

from driving.playing import advance, blocked, finish, pick, push


@pytest.mark.parametrize("settings", [{}, {"events_max": 100}, {"events_max": 100, "error_max": 0}], ids=str)
@pytest.mark.parametrize("delay", [0, 5])
def test_what_is_free_and_expires_in_the_same_sweep(driver, settings, delay):
    driver.run(["config", {"set": settings}, 0])
    first = push(driver, [None])
    pick(driver)
    blocked(driver, *first, expires_in=1, delay=delay, track=True)
    finish(driver, first)
    advance(driver, 2)
    assert pick(driver)[1:] == []
    driver.run(["check", {}, 0])


KEPT = [{}, {"cancelled_max": 0}, {"error_max": 0}, {"cancelled_max": 0, "error_max": 0, "events_max": 100}]


@pytest.mark.parametrize("settings", KEPT, ids=str)
def test_what_is_to_be_cancelled_and_fails_in_the_same_sweep(driver, settings):
    driver.run(["config", {"set": settings}, 0])
    late = push(driver, [None], expires_in=1)
    advance(driver, 1)
    first = push(driver, [None])
    second = blocked(driver, *first)
    last = blocked(driver, *second, *late, if_failed="fail")
    driver.run(["cancel", {"ids": first, "dependents": "cancel"}, 0])
    assert pick(driver)[1:] == []
    driver.run(["get", {"ids": last}, 0])
    driver.run(["check", {}, 0])


def test_what_expires_behind_one_that_came_too_late_to_be_cancelled(driver):
    driver.run(["config", {"set": {"cancelled_max": 1, "error_max": 0}}, 0])
    first = push(driver, [None])
    driver.run(["cancel", {"ids": first, "dependents": "cancel"}, 0])
    second = blocked(driver, *first)
    last = blocked(driver, *second, expires_in=1)
    advance(driver, 2)
    assert pick(driver)[1:] == []
    assert driver.run(["get", {"ids": last}, 0]) == [None]
    driver.run(["check", {}, 0])


def test_what_is_taken_out_of_a_cancelled_tree_and_fails_in_the_same_sweep(driver):
    lost, first = push(driver, [None]), push(driver, [None], queue="other")
    pick(driver, queues="many")
    finish(driver, lost, type="failure", should_retry=False)
    last = blocked(driver, *first)
    failing = blocked(driver, *lost, if_failed="fail")
    driver.run(["cancel", {"ids": first, "dependents": "cancel"}, 0])
    driver.run(["depend", {"id": last[0], "add": failing, "remove": first, "if_failed": "fail"}, 0])
    assert pick(driver)[1:] == []
    [doc] = driver.run(["get", {"ids": last}, 0])
    assert (doc["status"], doc["reason"]) == ("error", "dependency")
    driver.run(["check", {}, 0])


def test_what_is_cancelled_with_a_tree_stays_so_when_nothing_is_taken_out(driver):
    driver.run(["config", {"set": {"cancelled_ttl": 0, "error_max": 0}}, 0])
    first = push(driver, [None])
    last = blocked(driver, *first, if_failed="fail")
    driver.run(["cancel", {"ids": first, "dependents": "cancel"}, 0])
    driver.run(["depend", {"id": last[0]}, 0])
    driver.run(["tick", {}, 0])
    [counts] = driver.run(["stats", {"by": "day", "series": True}, 0])
    assert (counts["cancelled"], counts["error"]) == (2, 0)


def test_what_may_be_cancelled_and_fails_with_another_in_the_same_sweep(driver):
    lost, first = push(driver, [None]), push(driver, [None])
    pick(driver)
    last = blocked(driver, *first)
    failing = blocked(driver, *lost, if_failed="fail")
    driver.run(["depend", {"id": last[0], "add": failing, "if_failed": "fail"}, 0])
    finish(driver, first)
    finish(driver, lost, type="failure", should_retry=False)
    driver.run(["cancel", {"ids": first, "dependents": "cancel"}, 0])
    assert pick(driver)[1:] == []
    driver.run(["get", {"ids": last}, 0])
    driver.run(["check", {}, 0])
