"""Plain calls that a signal handler interrupts, by Ctrl-C or an alarm, in a program that goes on."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from jqmaster.connection import plainly
from jqmaster.engine.engine import connect

pytestmark = pytest.mark.filterwarnings("ignore:coroutine")  # it was interrupted before it began

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


class Interrupted(BaseException): ...


def interrupted(step: int, call: Callable[[], object]) -> bool:
    """Whether `call` entered and left so many functions of the package, and was interrupted there, as by a signal
    handler."""
    left = step

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal left
        if "/jqmaster/" not in frame.f_code.co_filename:
            return None
        left -= event in ("call", "return")  # between lines no handler comes
        if left == 0:
            raise Interrupted
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except Interrupted:
        pass
    finally:
        sys.settrace(before)
    return left <= 0


def test_a_call_that_is_interrupted_anywhere_leaves_no_reply_to_the_next_one(redis_url: str) -> None:
    redis = connect(f"{redis_url}&max_connections=10000")  # of which an interrupted call may keep a place
    slow = "for _ = 1, 3000000 do end return 'late'"  # the reply comes after the next command
    for step in itertools.count(1):
        was_interrupted = interrupted(step, lambda: plainly.run(redis.call("EVAL", slow, 0)))
        assert plainly.run(redis.call("PING")) == b"PONG", step
        if not was_interrupted:
            break
    assert step > 20


def test_a_client_that_is_interrupted_anywhere_connects_the_next_time(redis_url: str) -> None:
    for step in itertools.count(1):
        redis = connect(f"{redis_url}&max_connections=2")

        def ping(redis: Any = redis) -> Any:
            return plainly.run(redis.call("PING"))

        was_interrupted = interrupted(step, ping)
        assert ping() == b"PONG", step
        plainly.run(redis.aclose())
        if not was_interrupted:
            break
    assert step > 20
