"""Under gevent's and eventlet's patches threads are greenlets, which have no turn while somebody waits in C.

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
OTHERS = """
import time

handles = add.map((number, 1) for number in range(20))
ended = []
for handle in handles:
    spawn(lambda handle=handle: ended.append(handle.join(timeout=30)))
time.sleep(0.3)
assert jq.call("cancel", [handle.id for handle in handles]) == ["queued"] * 20
while len(ended) < 20:
    time.sleep(0.01)
print(*ended)
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


@pytest.mark.parametrize(
    ("files", "patches"),
    [
        (GEVENT, "import gevent.monkey; gevent.monkey.patch_all()"),
        (EVENTLET, "import eventlet; eventlet.monkey_patch()"),
    ],
)
def test_plain_calls_work_where_threads_never_begin(
    files: dict[str, str], patches: str, tmp_path: Path, redis_url: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JQ_URL", redis_url)
    monkeypatch.setenv("JQ_NAMESPACE", namespace)
    ended = run(tmp_path, files, patches, PLAIN)
    assert (ended.returncode, ended.stdout.split()) == (0, ["queued", "queued"]), ended.stderr


@pytest.mark.parametrize("library", ["gevent", "eventlet"])
def test_others_go_on_while_one_waits(
    library: str, tmp_path: Path, redis_url: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the library itself, where it is installed."""
    module = pytest.importorskip(library)
    monkeypatch.setenv("JQ_URL", redis_url)
    monkeypatch.setenv("JQ_NAMESPACE", namespace)
    patches = {
        "gevent": "import gevent.monkey; gevent.monkey.patch_all(); from gevent import spawn",
        "eventlet": "import eventlet; eventlet.monkey_patch(); from eventlet import spawn",
    }
    (tmp_path / "installed.py").write_text(f"import sys; sys.path.append({str(Path(module.__file__).parents[1])!r})")
    ended = run(tmp_path, {}, f"import installed; {patches[library]}", OTHERS)
    assert (ended.returncode, ended.stdout.split()) == (0, ["cancelled"] * 20), ended.stderr


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
