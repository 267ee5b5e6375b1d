"""Random sequences of operations: engine and reference model must agree on every reply, document and count.

python tests/py/test_model.py --steps 1000000 --seed 7     runs long
python tests/py/test_model.py --replay failing.txt         runs a printed sequence again
"""

import argparse
import ast
import os
import random
import re
import sys
import time
import traceback

import pytest
from redis.exceptions import RedisError

from model_driver import Driver
from model_random import Generator
from servers import RedisServer

LENGTH = 300  # operations of a sequence; each begins with an empty namespace


# A reply of an unexpected shape may trip the model anywhere.
WRONG = (AssertionError, LookupError, TypeError, ValueError, AttributeError, RedisError)


def replay(driver, operations):
    """What goes wrong when these operations run on an empty namespace, or None."""
    driver.fresh()
    for operation in operations:
        try:
            driver.run(operation)
        except WRONG as error:
            return error
    return None


def random_sequence(driver, seed, length=LENGTH):
    """Runs one random sequence. Gives its operations and what went wrong, or None."""
    driver.fresh()
    generator = Generator(seed, driver)
    operations = []
    for _ in range(length):
        operations.append(generator.next() if operations else generator.first())
        try:
            driver.run(operations[-1])
        except WRONG as error:
            return operations, error
    return operations, None


def smaller(value):
    """The same with one thing left out, for everything that it holds."""
    parts = range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()
    for part in parts:
        if isinstance(value, dict):
            yield {k: v for k, v in value.items() if k != part}
        else:
            yield value[:part] + value[part + 1 :]
    for part in parts:
        for less in smaller(value[part]):
            if isinstance(value, dict):
                yield value | {part: less}
            else:
                yield [*value[:part], less, *value[part + 1 :]]


def shrink(driver, operations, error):
    """Leaves out operations, and then parts of them, as long as the same kind of thing still goes wrong."""

    def kind(error):
        return type(error), str(error).split("\n")[0], re.findall("code='(\\w*)", str(error))

    def fails(candidate):
        other = replay(driver, candidate)
        return other is not None and kind(other) == kind(error)

    size = len(operations) // 2
    while size:
        before = len(operations)
        first = 0
        while first < len(operations):
            candidate = operations[:first] + operations[first + size :]
            if fails(candidate):
                operations = candidate
            else:
                first += size
        if len(operations) == before or size > 1:
            size //= 2
    return shrink_parts(operations, fails)


def shrink_parts(operations, fails):
    for number, (script, fields, label) in enumerate(operations):
        shrinks = True
        while shrinks:
            shrinks = False
            for less in smaller(fields):
                candidate = [*operations[:number], [script, less, label], *operations[number + 1 :]]
                if fails(candidate):
                    operations, fields, shrinks = candidate, less, True
                    break
    return operations


def report(driver, seed, operations, error):
    small = shrink(driver, operations, error)
    last = replay(driver, small) or error
    trace = "".join(traceback.format_exception(last))
    listing = "\n".join(f"    {operation!r}," for operation in small)
    return f"seed {seed}: {len(small)} operations disagree\n{trace}\nOPERATIONS = [\n{listing}\n]\n"


def run(driver, seed, steps, progress=lambda done: None):
    """Random sequences until so many steps are done."""
    for number in range(-(-steps // LENGTH)):
        own_seed = f"{seed}/{number}"
        operations, error = random_sequence(driver, own_seed)
        if error is not None:
            raise AssertionError(report(driver, own_seed, operations, error))
        progress((number + 1) * LENGTH)


@pytest.fixture(scope="module")
def driver():
    with RedisServer() as server:
        driver = Driver(server.socket)
        yield driver
        driver.close()


@pytest.mark.timeout(3600)
def test_engine_and_model_agree(driver):
    seed = os.environ.get("JQ_MODEL_SEED") or str(random.SystemRandom().randrange(10**6))
    print("JQ_MODEL_SEED =", seed)
    run(driver, seed, int(os.environ.get("JQ_MODEL_STEPS", "15000")))


def enqueue(driver, count, **spec):
    jobs = [[{"name": "many"} | spec, b"\xc0"] for _ in range(count)]
    driver.run(["enqueue", {"options": None, "jobs": jobs}, "many"])
    return [f"job:many.{number}" for number in range(count)]


def pick(driver, count=1000, queues="*", worker="w"):
    return driver.run(["pick", {"worker": worker, "queues": queues, "count": count}, 0])


def finish(driver, jobs, **outcome):
    outcomes = [[{"id": job, "attempt": 1, "type": "success"} | outcome, b"\xc0"] for job in jobs]
    driver.run(["finish", {"worker": "w", "outcomes": outcomes}, 0])


def advance(driver, seconds):
    driver.run(["clock", {"delta_ms": seconds * 1000}, 0])


def pick_until_all_is_done(driver, queues):
    """Picks as long as bounded work is left; gives how many jobs came and in how many calls."""
    came, calls, next_ms = 0, 0, 0
    while next_ms == 0:
        next_ms, *jobs = pick(driver, queues=queues)
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

    def test_lapsed_leases(self, driver, queues):
        driver.fresh()
        enqueue(driver, MANY, retry_base=0)
        pick(driver)
        advance(driver, 31)
        came, calls = pick_until_all_is_done(driver, queues)
        assert came == MANY and calls > 3

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
        assert len(result) == (2 if delta_ms == 9999 else 1)


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
        finish(driver, ["job:many.0"], type="failure", attempt=attempt)
        (job,) = driver.model.jobs.values()
        waits.append((job.due_ms - driver.model.now) / 1000)
        advance(driver, 10)
    assert waits == [1, 2, 4, 8, 10, 10, 10]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**6)))
    parser.add_argument("--one", help="the seed of one sequence, as a failure prints it")
    parser.add_argument("--replay", help="file with OPERATIONS = [...], as a failure prints it")
    options = parser.parse_args()
    begun = time.monotonic()

    def progress(done):
        if done % (LENGTH * 100) == 0:
            print(f"{done} steps, {done / (time.monotonic() - begun):.0f}/s", flush=True)

    with RedisServer() as server:
        driver = Driver(server.socket)
        if options.replay:
            with open(options.replay) as file:
                operations = ast.literal_eval(file.read().split("OPERATIONS = ", 1)[1].strip())
            error = replay(driver, operations)
            if error is not None:
                traceback.print_exception(error)
            return int(error is not None)
        if options.one:
            operations, error = random_sequence(driver, options.one)
            print("agreed" if error is None else report(driver, options.one, operations, error))
            return int(error is not None)
        print("seed", options.seed)
        try:
            run(driver, options.seed, options.steps, progress)
        except AssertionError as failure:
            print(failure)
            return 1
    print(f"{options.steps} steps agreed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
