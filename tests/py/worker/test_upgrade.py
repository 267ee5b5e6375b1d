"""Servers and workers are replaced by those of another version, and back, while jobs come in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

import jqmaster
from jqmaster import JQ
from processes import Process
from servers import RedisServer

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("python", "scripts", "jqlua", "openapi")
IGNORED = shutil.ignore_patterns("__pycache__", "*.egg-info")
EACH = 150  # jobs that must have run before the next step
APP = """
import os
import redis
from jqmaster import JQ

jq = JQ()
journal = redis.Redis.from_url(os.environ["JOURNAL"])

@jq.job
def note(number: int) -> int:
    journal.rpush("ran", number)
    return number
"""


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of another version: its package, its scripts and its library have other names."""
    checkout = tmp_path_factory.mktemp("old")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, checkout / name, ignore=IGNORED)
    version = checkout / "python" / "jqmaster" / "__init__.py"
    version.write_text(re.sub(r'^__version__ = ".*"', '__version__ = "0.0.9"', version.read_text(), flags=re.MULTILINE))
    for script in (checkout / "scripts").glob("*.lua"):
        script.write_text(script.read_text().replace("\nreturn ", "\nlocal _ = 'old'\nreturn ", 1))
    return checkout


class Release:
    """A master, a worker that pulls from it, and one straight on Redis: all of one version."""

    def __init__(self, checkout: Path, folder: Path, url: str, stack: ExitStack) -> None:
        tests = str(Path(__file__).resolve().parents[1] / "support")
        path = os.pathsep.join([str(checkout / "python"), tests])
        variables = {"PYTHONPATH": path, "JOURNAL": url}

        def started(*command: str, ready: str) -> Process:
            process = Process("jqmaster.cli", *command, ready=ready, folder=folder, variables=variables)
            return stack.enter_context(process)

        self.master = started("serve", "--port", "0", "--redis", url, ready="Redis ")
        address = self.master.text.split("\n")[0].split()[-1]
        where = ("--url", address), ("--redis", url)
        self.workers = [started("work", "app:jq", *each, ready="is ready") for each in where]
        command = [sys.executable, "-m", "jqmaster.cli", "--version"]
        self.version = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True).stdout

    def stop(self) -> None:
        for process in (*self.workers, self.master):
            process.signal()
            assert process.ends() == 0, process.text
            assert "Traceback" not in process.text, process.text


@pytest.mark.faults
def test_versions_replace_each_other_under_load(old: Path, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    with RedisServer() as redis, redis.client() as client, ExitStack() as stack:
        jq = JQ(redis.url)
        stack.callback(jq.close)
        before = Release(old, tmp_path, redis.url, stack)
        over = threading.Event()
        stack.callback(over.set)
        sent: list[int] = []

        def send() -> None:
            while not over.wait(0.005):
                jq.enqueue("note", [len(sent)])
                sent.append(len(sent))

        sender = threading.Thread(target=send)
        sender.start()

        def work(wanted: int) -> None:
            while client.llen("ran") < wanted:
                assert sender.is_alive() or over.is_set()
                time.sleep(0.05)

        def work_on() -> None:
            work(client.llen("ran") + EACH)

        work_on()
        after = Release(ROOT, tmp_path, redis.url, stack)
        assert "0.0.9" in before.version and jqmaster.__version__ in after.version
        work_on()
        before.stop()
        work_on()
        again = Release(old, tmp_path, redis.url, stack)  # the way back
        after.stop()
        work_on()
        over.set()
        sender.join()
        work(len(sent))
        again.stop()
        ran = Counter(int(number) for number in client.lrange("ran", 0, -1))
        assert set(ran) == set(sent), "lost"
        assert set(ran.values()) == {1}, "run twice"
