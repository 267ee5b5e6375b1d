"""What tests of the model let happen, a few words each."""

import itertools

from model.matcher import decode
from model.matcher import pack as pack_argument


def run(driver, script, label=0, **fields):
    return driver.run([script, fields, label])


def bring(driver, label, *specs):
    """Enqueues these jobs; gives their names."""
    run(driver, "enqueue", label, options=None, jobs=[[{"name": "many"} | spec, b"\xc0"] for spec in specs])
    return [f"job:{label}.{number}" for number in range(len(specs))]


pushed = itertools.count()


def push(driver, arguments, **spec):
    """Enqueues a job for each argument; gives their names."""
    label = f"pushed-{next(pushed)}"
    jobs = [[{"name": "many"} | spec, pack_argument(argument)] for argument in arguments]
    run(driver, "enqueue", label, options=None, jobs=jobs)
    return [f"job:{label}.{number}" for number in range(len(jobs))]


def enqueue(driver, count, **spec):
    return push(driver, [None] * count, **spec)


def pick(driver, count=1000, queues="*", worker="w", **more):
    return run(driver, "pick", worker=worker, queues=queues, count=count, **more)


def finish(driver, jobs, **outcome):
    outcomes = [[{"id": job, "token": 1, "type": "success"} | outcome, b"\xc0"] for job in jobs]
    run(driver, "finish", worker="w", outcomes=outcomes)


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


# Of what a call does a hundred of: two calls full, and a part of one.
MANY = 250


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
