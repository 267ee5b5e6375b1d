"""Random sequences of operations: engine and reference model must agree on every reply, document and count.

make model ARGS="--steps 1000000 --seed 7"     runs long
make model ARGS="--replay failing.txt"         runs a printed sequence again
make model ARGS="--form scripts"               calls all by EVALSHA
"""

import itertools
import os
import random
import sys

import pytest

from heads import unnamed
from model_driver import Driver
from model_matcher import decode
from model_matcher import pack as pack_argument
from model_run import main, run
from servers import RedisServer


@pytest.fixture(scope="module")
def driver():
    with RedisServer() as server:
        driver = Driver(server.socket)
        yield driver
        driver.close()


@pytest.mark.timeout(3600)
def test_engine_and_model_agree(driver):
    # A seed that stays, so that a build tells of the change that is built; long runs take others.
    seed = os.environ.get("JQ_MODEL_SEED", "5")
    print("JQ_MODEL_SEED =", seed)
    run(driver, seed, int(os.environ.get("JQ_MODEL_STEPS", "6000")))
    assert len(driver.refused) > 10
    assert unnamed(driver.refused) == []


def test_engine_and_model_agree_by_scripts_alone():
    with RedisServer() as server:
        driver = Driver(server.socket, "scripts")
        run(driver, "scripts", 1500)
        driver.close()


def enqueue(driver, count, **spec):
    jobs = [[{"name": "many"} | spec, b"\xc0"] for _ in range(count)]
    driver.run(["enqueue", {"options": None, "jobs": jobs}, "many"])
    return [f"job:many.{number}" for number in range(count)]


def pick(driver, count=1000, queues="*", worker="w"):
    return driver.run(["pick", {"worker": worker, "queues": queues, "count": count}, 0])


def finish(driver, jobs, **outcome):
    outcomes = [[{"id": job, "token": 1, "type": "success"} | outcome, b"\xc0"] for job in jobs]
    driver.run(["finish", {"worker": "w", "outcomes": outcomes}, 0])


def advance(driver, seconds):
    driver.run(["clock", {"delta_ms": seconds * 1000}, 0])


def pick_until_all_is_done(driver, queues, count=200):
    """Picks as long as bounded work is left; gives how many jobs came and in how many calls."""
    came, calls, next_ms = 0, 0, 0
    while next_ms == 0:
        next_ms, *jobs = pick(driver, count, queues)
        came, calls = came + len(jobs), calls + 1
        assert calls < 20
    driver.run(["settle", {}, 0])
    return came, calls


MANY = 350


@pytest.mark.parametrize("queues", ["many", "*", ["*y", "other"]], ids=str)
class TestMoreThanAHundredDueAtOnce:
    """A pick does up to 100 steps of what is due, says 0, and the next goes on."""

    def test_delayed_jobs(self, driver, queues):
        driver.fresh()
        enqueue(driver, MANY, delay=1)
        advance(driver, 2)
        came, calls = pick_until_all_is_done(driver, queues)
        assert came == MANY and calls > 3

    def test_expired_jobs(self, driver, queues):
        driver.fresh()
        enqueue(driver, MANY, expires_in=1)
        enqueue(driver, 1, priority=1)
        advance(driver, 2)
        came, calls = pick_until_all_is_done(driver, queues)
        assert came == 1 and calls > 1

    def test_expired_jobs_before_the_one_that_is_asked_for(self, driver, queues):
        driver.fresh()
        enqueue(driver, MANY, expires_in=1)
        enqueue(driver, 1, priority=1)
        advance(driver, 2)
        came, calls = pick_until_all_is_done(driver, queues, count=1)
        assert came == 1 and calls > 1

    def test_lapsed_leases(self, driver, queues):
        driver.fresh()
        enqueue(driver, MANY, retry_base=0)
        pick(driver)
        advance(driver, 31)
        came, calls = pick_until_all_is_done(driver, queues)
        assert came == MANY and calls > 3

    def test_leases_that_nobody_could_renew(self, driver, queues):
        """More than one call excuses: all run on, and end when the time they got is over."""
        driver.fresh()
        enqueue(driver, MANY, retry_base=0, timeout=100)
        pick(driver)
        for _ in range(7):
            advance(driver, 10)
            driver.run(["tick", {}, 0])
        advance(driver, 200)
        assert pick_until_all_is_done(driver, queues)[0] == 0
        assert {job.status for job in driver.model.jobs.values()} == {"running"}
        assert {job.excused_ms for job in driver.model.jobs.values()} != {None}
        advance(driver, 30)
        assert pick_until_all_is_done(driver, queues)[0] == MANY

    def test_jobs_of_a_dead_worker(self, driver, queues):
        driver.fresh()
        driver.run(["register", {"name": "w", "queues": "*"}, "dead"])
        enqueue(driver, MANY, retry_base=0, timeout=1000)
        pick(driver, worker="worker:dead")
        advance(driver, 31)
        came, calls = pick_until_all_is_done(driver, queues)
        assert came == MANY and calls > 3

    def test_results_and_records(self, driver, queues):
        driver.fresh()
        driver.run(["config", {"set": {"result_ttl": 10, "done_max": 7}}, 0])
        jobs = enqueue(driver, MANY, keep_result=True)
        pick(driver)
        finish(driver, jobs)
        advance(driver, 11)
        came, calls = pick_until_all_is_done(driver, queues)
        assert came == 0 and calls > 1
        assert len(driver.model.jobs) == 7


def test_small_ticks_come_to_an_end(driver):
    driver.fresh()
    enqueue(driver, 50, delay=1)
    advance(driver, 2)
    moved = 0
    for _ in range(100):
        next_ms, some = driver.run(["tick", {"limit": 3}, 0])
        moved += some
        if next_ms != 0:
            break
    assert (next_ms, moved) == (-1, 50)
    assert len(pick(driver)) == 51


def test_a_result_ends_to_the_millisecond_without_a_sweep(driver):
    driver.fresh()
    driver.run(["config", {"set": {"result_ttl": 10}}, 0])
    jobs = enqueue(driver, 2, keep_result=True)
    pick(driver)
    finish(driver, jobs)
    for delta_ms in (9999, 1):
        driver.run(["clock", {"delta_ms": delta_ms}, 0])
        driver.run(["get", {"ids": jobs}, 0])
        result = driver.run(["result", {"id": jobs[delta_ms == 1]}, 0])
        assert (result[0] == "EXPIRED") == (delta_ms == 1)


def test_full_jitter_spreads_over_the_whole_range(driver):
    driver.fresh()
    driver.run(["config", {"set": {"retry_base": 1000, "retry_jitter": 1}}, 0])
    jobs = enqueue(driver, 300)
    pick(driver)
    finish(driver, jobs, type="failure")
    waits = sorted(job.due_ms - driver.model.now for job in driver.model.jobs.values())
    assert 0 <= waits[0] < 50_000 and waits[-1] > 950_000 and waits[-1] <= 1_000_000
    assert 400_000 < waits[150] < 600_000


def test_the_backoff_doubles_up_to_its_cap(driver):
    driver.fresh()
    driver.run(["config", {"set": {"retry_cap": 10, "retry_jitter": 0}}, 0])
    enqueue(driver, 1)
    waits = []
    for attempt in range(1, 8):
        pick(driver)
        finish(driver, ["job:many.0"], type="failure", token=attempt)
        (job,) = driver.model.jobs.values()
        waits.append((job.due_ms - driver.model.now) / 1000)
        advance(driver, 10)
    assert waits == [1, 2, 4, 8, 10, 10, 10]


# ---- constraints ----

LANES = 350
pushed = itertools.count()


def push(driver, arguments, **spec):
    """Enqueues a job for each argument; gives their names."""
    names = []
    for first in range(0, len(arguments), 1000):
        label = f"pushed-{next(pushed)}"
        some = arguments[first : first + 1000]
        jobs = [[{"name": "many"} | spec, pack_argument(argument)] for argument in some]
        driver.run(["enqueue", {"options": None, "jobs": jobs}, label])
        names += [f"job:{label}.{number}" for number in range(len(some))]
        if len(some) >= LANES:  # ids have room for 1024 in a millisecond
            driver.run(["clock", {"delta_ms": 1}, 0])
    return names


def values(count, **more):
    return [{"c": number, **more} for number in range(count)]


def constrain(driver, id="k", match=None, **limits):
    return driver.run(["constrain", {"id": id, "match": match or {"name": "*"}, **limits}, 0])


def pick_all(driver, **fields):
    """Picks until no work is left; gives the jobs' values of `c`, and in how many calls they came."""
    found, calls, is_left = [], 0, True
    while is_left:
        next_ms, *jobs = pick(driver, **fields)
        found += [dict(decode(argument)).get("c") for _, argument in jobs]
        is_left = next_ms == 0 or len(jobs) == 1000
        calls += 1
        assert calls < 200
    return found, calls


class TestLanes:
    """Jobs of one queue under the same keys are held or free together. Here are more such groups than a pick
    looks at in one call."""

    @pytest.mark.parametrize(("all", "own"), [("a", "b"), ("b", "a")])
    def test_room_that_one_cannot_use_is_passed_on(self, driver, all, own):
        driver.fresh()
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
        driver.fresh()
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
        best = push(driver, [{"c": 300}], priority=-2)
        driver.run(["cancel", {"ids": better}, 0])
        assert pick_all(driver)[0] == [300]
        driver.run(["release", {"worker": "w", "jobs": [[best[0], 1]], "delay": 5}, 0])
        assert pick_all(driver)[0] == [0]

    def test_a_better_job_under_an_open_key_runs_at_once(self, driver):
        driver.fresh()
        constrain(driver, by="argument.c", concurrency=1)
        push(driver, values(LANES))
        assert len(pick_all(driver)[0]) == LANES
        push(driver, values(LANES))
        assert pick_all(driver)[0] == []
        push(driver, [{"c": 7}, {"c": "new"}, {"c": 8}], priority=-1)
        assert pick_all(driver)[0] == ["new"]

    @pytest.mark.parametrize("change", [
        {"by": None}, {"by": "argument.d"}, {"by": ["argument.c", "argument.d"]},
        {"match": {"argument.d": 1}}, {"match": {"name": "other"}}, {"concurrency": 2}, {"order": "strict"},
        {"rate": {"limit": 1, "period": 5}}, None,
    ], ids=str)  # fmt: skip
    def test_a_change_applies_to_all_that_wait_and_run(self, driver, change):
        driver.fresh()
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
        for job in [job for job in driver.model.jobs.values() if job.status == "running"][:LANES]:
            driver.run(["cancel", {"ids": [job.id]}, 0])
        pick_all(driver)
        driver.run(["check", {}, 0])

    def test_room_of_a_rate_comes_back_for_all_at_once(self, driver):
        driver.fresh()
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
    driver.fresh()
    constrain(driver, by="argument.c", concurrency=1)
    driver.run(["register", {"name": "w", "queues": "*"}, "w"])
    jobs = push(driver, values(LANES), timeout=20 if way == "lapse" else 1000)
    push(driver, values(LANES), priority=1)
    assert len(pick_all(driver, worker="worker:w")[0]) == LANES
    assert pick_all(driver)[0] == []
    WAYS_OUT[way](driver, jobs)
    assert len(pick_all(driver)[0]) == LANES


def test_constraints_come_and_go_while_many_jobs_wait_and_run(driver):
    driver.fresh()
    jobs = push(driver, [{"c": n % 50} for n in range(2200)])
    pick(driver, count=700)
    constrain(driver, by="argument.c", concurrency=20)  # 14 of each run
    came, calls = pick_all(driver)
    assert len(came) == 300 and calls > 1
    finish(driver, jobs[:100])
    constrain(driver, by="argument.c", concurrency=17)  # 18 of each run
    assert pick_all(driver)[0] == []
    finish(driver, jobs[100:300])  # 14 of each run
    constrain(driver, "all", concurrency=750)
    assert len(pick_all(driver)[0]) == 50
    driver.run(["unconstrain", {"id": "all"}, 0])
    assert len(pick_all(driver)[0]) == 100
    driver.run(["unconstrain", {"id": "k"}, 0])
    assert len(pick_all(driver)[0]) == 1050
    driver.run(["check", {}, 0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("limit", "period"), [(1, 0.05), (3, 1), (10, 20)], ids=str)
def test_no_window_holds_more_than_the_limit_and_who_waits_uses_it_all(driver, limit, period, seed):
    driver.fresh()
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


def test_small_costs_do_not_keep_a_large_one_out(driver):
    driver.fresh()
    constrain(driver, rate={"limit": 10, "period": 10}, cost="argument.cost")
    push(driver, [{"c": n, "cost": 1} for n in range(7)])
    pick_all(driver)
    push(driver, [{"c": "large", "cost": 8}])
    for second in range(10):
        push(driver, [{"c": second, "cost": 1}], priority=1)
        assert pick_all(driver)[0] == []
        advance(driver, 1)
    assert pick_all(driver)[0] == ["large", 0, 1]


def test_in_strict_order_a_failing_job_holds_back_its_successors(driver):
    driver.fresh()
    constrain(driver, by="argument.c", concurrency=1, order="strict")
    jobs = push(driver, [{"c": 1, "n": 1}, {"c": 1, "n": 2}, {"c": 2}], retry_jitter=0)
    assert pick_all(driver)[0] == [1, 2]
    finish(driver, jobs[:1], type="failure")
    assert pick_all(driver)[0] == []
    advance(driver, 1)
    better = push(driver, [{"c": 1}], priority=-1)
    assert driver.names[better[0]] not in [doc["id"] for doc, _ in pick(driver)[1:]]
    finish(driver, jobs[:1], token=2)
    assert [doc["id"] for doc, _ in pick(driver)[1:]] == [driver.names[better[0]]]


class TestFairQueues:
    def fair(self, driver, *levels):
        driver.fresh()
        driver.run(["queue", {"name": "many", "fair": list(levels)}, 0])

    def test_a_flood_delays_nobody_else(self, driver):
        self.fair(driver, {"by": "argument.c"})
        push(driver, [{"c": "flood"}] * 500)
        pick(driver, count=100)
        push(driver, [{"c": "light"}] * 3)
        came = [dict(decode(argument))["c"] for _, argument in pick(driver, count=6)[1:]]
        assert came.count("light") == 3

    def first(self, driver, count):
        """The values of the first jobs. A pick that has cost enough gives fewer than it was asked for."""
        came = []
        while len(came) < count:
            jobs = pick(driver, count=count - len(came))[1:]
            came += [dict(decode(argument))["c"] for _, argument in jobs]
        return came

    def test_weights_give_shares(self, driver):
        self.fair(driver, {"by": "argument.c", "weights": {"x": 3, "7": 0.5}})
        push(driver, [{"c": value} for value in ("x", 7, b"z") for _ in range(100)])
        came = self.first(driver, 90)
        assert [came.count(value) for value in ("x", 7, b"z")] == [60, 10, 20]

    def test_many_keys_do_not_make_a_larger_share(self, driver):
        self.fair(driver, {"by": "argument.c"}, {"by": "argument.key"})
        push(driver, [{"c": "one", "key": n} for n in range(50)] + [{"c": "two", "key": 0}] * 50)
        assert self.first(driver, 40).count("two") == 20

    def test_who_is_held_loses_no_turn_to_an_idle_worker(self, driver):
        self.fair(driver, {"by": "argument.c"})
        constrain(driver, by="argument.c", concurrency=5)
        push(driver, [{"c": n} for n in range(2) for _ in range(LANES)])
        push(driver, values(LANES))
        assert len(pick_all(driver)[0]) == 10 + LANES - 2


def test_who_was_woken_goes_on_until_all_that_waits_is_sorted(driver):
    driver.fresh()
    push(driver, [{"c": n} for n in range(50)])
    wait = {"on": "push", "ms": 60000}
    for master in ("m1", "m2"):
        driver.run(["assign", {"master": master, "wait": wait}, 0])
    driver.run(["queue", {"name": "many", "fair": [{"by": "argument.c"}]}, 0])
    driver.run(["register", {"name": "w", "queues": "*", "url": "http://w/"}, 0])
    driver.run(["wake", {"on": "push", "assign": {"master": "m2", "wait": wait}}, 0])
    assert sum(job.status == "running" for job in driver.model.jobs.values()) == 1


def test_who_is_asked_to_go_on_is_counted_on_and_who_is_to_be_quiet_is_not(driver):
    driver.fresh()
    driver.run(["register", {"name": "w", "queues": "many"}, "registered"])
    for worker, ms in (("other", 60000), ("worker:registered", 1000)):
        driver.run(["pick", {"worker": worker, "queues": "many", "wait": {"on": "all", "ms": ms}}, 0])
    for request in ("resume", "quiet"):
        driver.run(["worker", {"worker": "worker:registered", "request": request}, 0])
        enqueue(driver, 1, delay=5)
        assert driver.is_marked("all") == (request == "quiet")


def test_a_job_under_a_key_that_has_opened_is_for_who_is_about_to_be_up(driver):
    driver.fresh()
    constrain(driver, rate={"limit": 1, "period": 1})
    wait = {"on": "all", "ms": 60000}
    driver.run(["pick", {"worker": "other", "queues": "many", "wait": wait}, 0])
    push(driver, [None, None])
    pick(driver, count=1)
    driver.run(["wake", {"on": "all", "pick": {"worker": "late", "queues": "many", "wait": wait}}, 0])
    for is_dead in (False, True):
        driver.run(["clock", {"delta_ms": 1500}, 0])
        push(driver, [None])
        assert driver.is_marked("all") == is_dead


def blocked(driver, *depends, **spec):
    return push(driver, [None], depends=list(depends), **spec)


@pytest.mark.parametrize("settings", [{}, {"events_max": 100}, {"events_max": 100, "error_max": 0}], ids=str)
@pytest.mark.parametrize("delay", [0, 5])
def test_what_is_free_and_expires_in_the_same_sweep(driver, settings, delay):
    driver.fresh()
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
    driver.fresh()
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
    driver.fresh()
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
    driver.fresh()
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
    driver.fresh()
    driver.run(["config", {"set": {"cancelled_ttl": 0, "error_max": 0}}, 0])
    first = push(driver, [None])
    last = blocked(driver, *first, if_failed="fail")
    driver.run(["cancel", {"ids": first, "dependents": "cancel"}, 0])
    driver.run(["depend", {"id": last[0]}, 0])
    driver.run(["tick", {}, 0])
    [counts] = driver.run(["stats", {"by": "day", "series": True}, 0])
    assert (counts["cancelled"], counts["error"]) == (2, 0)


def test_what_may_be_cancelled_and_fails_with_another_in_the_same_sweep(driver):
    driver.fresh()
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


def test_there_are_at_most_a_thousand_constraints(driver):
    driver.fresh()
    for number in range(1001):
        constrain(driver, str(number), {"name": f"name-{number}"}, concurrency=1)
    assert len(driver.model.constraints) == 1000
    driver.run(["check", {}, 0])


if __name__ == "__main__":
    sys.exit(main(__doc__))
