"""Under gevent's and eventlet's patches threads are greenlets, which have no turn while somebody waits in C.

Neither is installed here. What stands for them has their public functions, and threads that never begin, which is what
a plain call met with the real ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jqmaster

GEVENT = {
    "gevent/__init__.py": "",
    "gevent/monkey.py": """
import threading

patched = set()


def is_module_patched(name):
    return name in patched


def patch_all(thread=True):
    if thread:
        patched.add("threading")
        threading.Thread.start = lambda self: None
""",
    "gevent/threadpool.py": """
import _thread


class ThreadPool:
    def __init__(self, size):
        assert size == 1

    def spawn(self, target):
        self.ended = _thread.allocate_lock()
        self.ended.acquire()

        def run():
            target()
            self.ended.release()

        _thread.start_new_thread(run, ())
        return self

    def wait(self, timeout):
        self.ended.acquire(timeout=timeout)
""",
}
EVENTLET = {
    "eventlet/__init__.py": """
import threading
from eventlet import patcher


def monkey_patch(thread=True):
    if thread:
        patcher.patched.add("thread")
        threading.Thread.start = lambda self: None
""",
    "eventlet/patcher.py": """
patched = set()


def is_monkey_patched(name):
    return name in patched
""",
}
PROGRAM = """
{patches}

import asyncio
import os
import sys

from jqmaster import JQ

jq = JQ()


@jq.job
def add(a: int, b: int) -> int:
    return a + b


async def asked() -> str:
    return await (await add.aenqueue(1, 2)).astatus()


{does}
"""
PLAIN = """
print(add.enqueue(1, 2).status(), flush=True)
if os.fork() == 0:
    print(add.enqueue(1, 2).status(), flush=True)
    sys.exit()
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
"""


def run(
    folder: Path, files: dict[str, str], patches: str, does: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    for name, text in {**files, "program.py": PROGRAM.format(patches=patches, does=does)}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    paths = os.pathsep.join([str(Path(jqmaster.__file__).parents[1]), str(folder)])
    command = [sys.executable, *(arguments or ("program.py",))]
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100)


def test_plain_calls_work_under_gevent(tmp_path: Path, redis_url: str, namespace: str, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("JQ_URL", redis_url)
    monkeypatch.setenv("JQ_NAMESPACE", namespace)
    ended = run(tmp_path, GEVENT, "import gevent.monkey; gevent.monkey.patch_all()", PLAIN)
    assert (ended.returncode, ended.stdout.split()) == (0, ["queued", "queued"]), ended.stderr


def test_under_eventlet_they_say_that_they_cannot(tmp_path: Path, redis_url: str, namespace: str, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("JQ_URL", redis_url)
    monkeypatch.setenv("JQ_NAMESPACE", namespace)
    patches = "import eventlet; eventlet.monkey_patch()"
    ended = run(tmp_path, EVENTLET, patches, "print(asyncio.run(asked()), flush=True)\nadd.enqueue(1, 2)")
    assert ended.stdout == "queued\n"
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("RuntimeError: eventlet has patched threads") and "add.aenqueue(1, 2)" in last
    assert "never awaited" not in ended.stderr
    ended = run(tmp_path, EVENTLET, "import eventlet; eventlet.monkey_patch(thread=False)", PLAIN)
    assert (ended.returncode, ended.stdout.split()) == (0, ["queued", "queued"]), ended.stderr


def test_a_worker_says_that_it_cannot_run_there(tmp_path: Path) -> None:
    for files, patches in (
        (GEVENT, "import gevent.monkey; gevent.monkey.patch_all()"),
        (EVENTLET, "import eventlet; eventlet.monkey_patch()"),
    ):
        worker = ("-m", "jqmaster.cli", "work", "program:jq", "--redis", "redis://127.0.0.1:1")
        ended = run(tmp_path, files, patches, "", *worker)
        assert ended.returncode == 1
        assert "has patched threads, in which a worker runs plain functions" in ended.stderr
        assert "Traceback" not in ended.stderr
