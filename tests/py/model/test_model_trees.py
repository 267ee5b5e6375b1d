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


def test_what_may_be_cancelled_and_fails_with_another_in_the_same_sweep(driver):
    lost, first = push(driver, [None]), push(driver, [None])
    pick(driver)
    failing = blocked(driver, *lost, if_failed="fail")
    last = blocked(driver, *first, *failing, if_failed="fail")
    finish(driver, first)
    finish(driver, lost, type="failure", should_retry=False)
    driver.run(["cancel", {"ids": first, "dependents": "cancel"}, 0])
    assert pick(driver)[1:] == []
    driver.run(["get", {"ids": last}, 0])
    driver.run(["check", {}, 0])
