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


if __name__ == "__main__":
    sys.exit(main(__doc__))
