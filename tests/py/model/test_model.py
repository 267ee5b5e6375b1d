"""Random sequences of operations: engine and reference model must agree on every reply, document and count.

make model ARGS="--steps 1000000 --seed 7"     runs long
make model ARGS="--replay failing.txt"         runs a printed sequence again
make model ARGS="--form scripts"               calls all by EVALSHA
"""

import os
import sys

import pytest

from driving.driver import Driver
from driving.playing import MANY, advance, enqueue, finish, pick, pick_until_all_is_done
from driving.run import main, run
from heads import unnamed
from servers import RedisServer


@pytest.mark.timeout(3600)
def test_engine_and_model_agree(driver):
    # A seed that stays, so that a build tells of the change that is built; long runs take others.
    seed = os.environ.get("JQ_MODEL_SEED", "6")
    print("JQ_MODEL_SEED =", seed)
    run(driver, seed, int(os.environ.get("JQ_MODEL_STEPS", "6000")))
    assert len(driver.refused) > 10
    assert unnamed(driver.refused) == []


def test_engine_and_model_agree_by_scripts_alone():
    with RedisServer() as server:
        driver = Driver(server.socket, "scripts")
        run(driver, "scripts", 1500)
        driver.close()


@pytest.mark.parametrize("queues", ["many", "*", ["*y", "other"]], ids=str)
class TestMoreThanAHundredDueAtOnce:
    """A pick does up to 100 steps of what is due, says 0, and the next goes on."""

    def test_delayed_jobs(self, driver, queues):
        enqueue(driver, MANY, delay=1)
        advance(driver, 2)
        came, calls = pick_until_all_is_done(driver, queues)
        assert came == MANY and calls > 2

    def test_expired_jobs(self, driver, queues):
        enqueue(driver, MANY, expires_in=1)
        enqueue(driver, 1, priority=1)
        advance(driver, 2)
        came, calls = pick_until_all_is_done(driver, queues)
        assert came == 1 and calls > 1

    def test_expired_jobs_before_the_one_that_is_asked_for(self, driver, queues):
        enqueue(driver, MANY, expires_in=1)
        enqueue(driver, 1, priority=1)
        advance(driver, 2)
        came, calls = pick_until_all_is_done(driver, queues, count=1)
        assert came == 1 and calls > 1

    def test_lapsed_leases(self, driver, queues):
        enqueue(driver, MANY, retry_base=0)
        pick(driver)
        advance(driver, 31)
        came, calls = pick_until_all_is_done(driver, queues)
        assert came == MANY and calls > 2

    def test_jobs_of_a_dead_worker(self, driver, queues):
        driver.run(["register", {"name": "w", "queues": "*", "url": "http://w/"}, "dead"])
        enqueue(driver, MANY, retry_base=0, timeout=1000)
        pick(driver, worker="worker:dead")
        advance(driver, 31)
        came, calls = pick_until_all_is_done(driver, queues)
        assert came == MANY and calls > 2

    def test_results_and_records(self, driver, queues):
        driver.run(["config", {"set": {"result_ttl": 10, "done_max": 7}}, 0])
        jobs = enqueue(driver, MANY, keep_result=True)
        pick(driver)
        finish(driver, jobs)
        advance(driver, 11)
        came, calls = pick_until_all_is_done(driver, queues)
        assert came == 0 and calls > 1
        assert len(driver.model.jobs) == 7


def test_a_repeated_pick_gives_no_job_that_ran_for_max_runtime(driver):
    enqueue(driver, 2, timeout=10, max_runtime=12)
    asked = ["pick", {"worker": "w", "queues": "*", "count": 2, "request": "r"}, 0]
    assert len(driver.run(asked)) == 3
    advance(driver, 12)
    assert driver.run(asked) == [0]
    driver.run(["check", {}, 0])
    assert len(pick(driver)) == 3


def test_an_assignment_whose_search_was_cut_short_says_so(driver):
    argument = b"\x82\xa1n\x03\xa1c\xf9"
    enqueue_one = {"options": None, "jobs": [[{"name": "a", "queue": "b"}, argument]]}
    for number, (script, fields) in enumerate([
        ("enqueue", enqueue_one),
        ("register", {"name": "w1", "queues": "*", "url": "http://w1/"}),
        ("pick", {"worker": "w3", "queues": "mail.*", "wait": {"on": "mail", "ms": 1000}}),
        ("register", {"name": "w2", "queues": ["a"], "url": "http://w2/"}),
        ("queue", {"name": "b", "fair": {"by": "argument.c"}}),
        ("wake", {"on": "mail", "pick": {"worker": "w3", "queues": "mail.*"}}),
        ("constrain", {"id": "k2", "rate": {"limit": 7, "period": 1}, "match": {"argument": 5}}),
        ("enqueue", {"options": None, "jobs": [[{"name": "a"}, argument]]}),
        ("assign", {"master": "m2"}),
    ]):  # fmt: skip
        driver.run([script, fields, number])


def test_a_pattern_sees_the_queue_of_a_key_that_opens_while_much_else_is_due(driver):
    one, none = b"\x81\xa1c\x81\xa1k\x01", b"\x81\xa1c\xc0"

    def jobs(*specs):
        return "enqueue", {"options": {}, "jobs": [[{"name": "mail.de", **spec}, argument] for spec, argument in specs]}

    for number, (script, fields) in enumerate([
        ("schedule", {"id": "s2", "every": 1, "job": {"name": "mail.de"}, "argument": one}),
        ("clock", {"delta_ms": 86399998}),
        jobs(({}, one), ({}, one), ({"queue": "a"}, none)),
        ("constrain", {"id": "k1", "rate": {"limit": 1, "period": 20}, "by": "argument.c", "match": {"name": "*"}}),
        ("pick", {"worker": "w1", "queues": ["*"]}),
        jobs(({"expires_in": 100}, one), ({"expires_in": 0.001}, none)),
        jobs(({"priority": -2147483648, "queue": "a"}, one)),
        ("clock", {"delta_ms": 6000}),
        jobs(({"delay": 4000}, none), ({}, one), ({"delay": 4000}, none), ({}, one)),
        jobs(({"expires_in": 100}, one), ({"expires_in": 10, "notify": "http://127.0.0.1:9/in"}, one)),
        jobs(({}, one)),
        ("pick", {"worker": "w2", "queues": "*"}),
        ("queue", {"name": "mail.de", "fair": {"by": "argument.c"}}),
        ("tick", {}),
        ("clock", {"delta_ms": 90000000}),
        ("pick", {"worker": "w3", "queues": "*"}),
    ]):  # fmt: skip
        driver.run([script, fields, number])


if __name__ == "__main__":
    sys.exit(main(__doc__))
