"""`jqmaster work --reload` starts anew when a Python file changes, cleanly, also after a slip."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

from jqmaster import JQ
from processes import Process

PROGRAM = """
import os, time
from jqmaster import JQ
from part import NUMBER

jq = JQ({url!r}, namespace={namespace!r})

@jq.job
def answer() -> list[int]:
    return [NUMBER, os.getpid()]

@jq.job
def slow() -> int:
    time.sleep(1.5)
    return NUMBER
"""


def until(what: Callable[[], object], worker: Process) -> None:
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end and not worker.has_ended, worker.text
        time.sleep(0.05)


def test_a_worker_starts_anew_when_a_file_changes(redis_url: str, namespace: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.format(url=redis_url, namespace=namespace))
    part = tmp_path / "part.py"
    part.write_text("NUMBER = 1\n")
    jq = JQ(redis_url, namespace=namespace)
    answer, slow = jq.task("answer"), jq.task("slow")
    with Process("jqmaster.cli", "work", "program:jq", "--reload", ready="is ready", folder=tmp_path) as worker:
        [one, first] = answer.enqueue().result(timeout=60)
        assert one == 1

        running = slow.enqueue()
        until(lambda: running.status() == "running", worker)
        (tmp_path / ".venv").mkdir()
        (tmp_path / ".venv" / "other.py").write_text("")
        part.write_text("NUMBER = 22\n")
        until(lambda: worker.text.count("is ready") == 2, worker)
        assert running.result(timeout=60) == 1 and running.document()["attempt"] == 1, "it was waited for"
        [two, second] = answer.enqueue().result(timeout=60)
        assert two == 22 and second != first

        part.write_text("NUMBER = = 333\n")
        until(lambda: "SyntaxError" in worker.text, worker)
        part.write_text("NUMBER = 4444\n")
        assert answer.enqueue().result(timeout=60)[0] == 4444

        assert worker.text.count("part.py has changed: the worker starts anew") == 3
        worker.signal(signal.SIGTERM)
        assert worker.ends() == 0
