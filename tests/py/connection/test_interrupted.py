"""Plain calls that a signal handler interrupts, by Ctrl-C or an alarm, in a program that goes on."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import random, signal, sys
from jqmaster import JQ
from jqmaster.connection import plainly
from jqmaster.engine.engine import connect

class Interrupted(BaseException): ...

is_armed = False

def interrupt(*_):
    if is_armed:
        raise Interrupted

signal.signal(signal.SIGALRM, interrupt)

def interrupted(most_s, call):
    "Whether it was."
    global is_armed
    signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0001, most_s))
    try:
        is_armed = True
        call()
    except Interrupted:
        return True
    finally:
        is_armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
    return False

url, namespace = sys.argv[1:]
url += "&max_connections=10000"  # of which an interrupted call may keep a place
redis = connect(url)
assert plainly.run(redis.call("PING")) == b"PONG"
assert sum(interrupted(0.05, lambda: plainly.run(redis.call("EXISTS", *range(200_000)))) for _ in range(30))
assert plainly.run(redis.call("PING")) == b"PONG"

jq = JQ(url, namespace=namespace)
ids = [handle.id for handle in jq.task("job").map(range(100))]

def look():
    for wanted in random.choices(ids, k=3):
        [document] = jq.operations.get([wanted])
        assert document["id"] == wanted
        try:
            jq.handle(wanted).result(timeout=1)
        except TimeoutError:
            continue

look()
assert sum(interrupted(0.004, look) for _ in range(1500))
look()
"""


def test_an_interrupted_call_leaves_nothing_to_the_next_one(redis_url: str, namespace: str) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, redis_url, namespace], capture_output=True, text=True
    )
    assert (run.returncode, run.stderr[-2000:]) == (0, "")
