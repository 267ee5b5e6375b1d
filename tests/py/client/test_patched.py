"""Under gevent's patches threads are greenlets, which have no turn while somebody waits in C.

What stands for them here has their public functions, and threads that never begin.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
}
PROGRAM = """
import gevent.monkey; gevent.monkey.patch_all()

import os
import sys

from jqmaster import JQ

jq = JQ()


@jq.job
def add(a: int, b: int) -> int:
    return a + b


{does}
"""
PLAIN = """
print(add.enqueue(1, 2).status(), flush=True)
if os.fork() == 0:
    print(add.enqueue(1, 2).status(), flush=True)
    sys.exit()
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
"""


def run(folder: Path, does: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    for name, text in {**GEVENT, "program.py": PROGRAM.format(does=does)}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    paths = os.pathsep.join([str(Path(jqmaster.__file__).parents[1]), str(folder)])
    command = [sys.executable, *(arguments or ("program.py",))]
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100)


def test_plain_calls_work_where_threads_never_begin(
    tmp_path: Path, redis_url: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JQ_URL", redis_url)
    monkeypatch.setenv("JQ_NAMESPACE", namespace)
    ended = run(tmp_path, PLAIN)
    assert (ended.returncode, ended.stdout.split()) == (0, ["queued", "queued"]), ended.stderr


def test_a_worker_says_that_it_cannot_run_there(tmp_path: Path) -> None:
    ended = run(tmp_path, "", "-m", "jqmaster.cli", "work", "program:jq", "--redis", "redis://127.0.0.1:1")
    assert ended.returncode == 1
    assert "has patched threads, in which a worker runs plain functions" in ended.stderr
    assert "Traceback" not in ended.stderr
