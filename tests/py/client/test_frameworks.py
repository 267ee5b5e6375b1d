"""The pages on web frameworks: each is a whole application, written out and run with a server and a worker."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import jqmaster
from processes import Process
from topologies import free_ports

DOCS = Path(__file__).resolve().parents[3] / "docs"
PACKAGE = str(Path(jqmaster.__file__).parents[1])
PYTEST = ("-m", "pytest", "-q", "-pno:cacheprovider")
FILE = re.compile(r"```python\n# file: (\S+)\n(.*?)```", re.DOTALL)


# On a busy machine a program that tests itself takes minutes; what hangs is found all the same.
LONGEST_S = 300
pytestmark = pytest.mark.timeout(2 * LONGEST_S)


def write(page: str, folder: Path) -> None:
    for name, text in FILE.findall((DOCS / page).read_text()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def variables(redis_url: str, namespace: str, tmp_path: Path) -> dict[str, str]:
    return {
        "JQ_URL": redis_url, "JQ_NAMESPACE": namespace, "PYTHONUNBUFFERED": "1", "DATABASE": str(tmp_path / "shop.db"),
    }  # fmt: skip


def run(*command: str, folder: Path, variables: dict[str, str]) -> str:
    environment = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join([PACKAGE, str(folder)])}
    ended = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST_S
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def ask(url: str, body: bytes | None = None, kind: str = "application/json") -> tuple[int, Any]:
    try:
        request = urllib.request.Request(url, body, {"content-type": kind})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null") if error.code < 404 else None


def shown(url: str) -> dict[str, Any]:
    deadline = time.monotonic() + LONGEST_S
    while (job := ask(url)[1])["status"] != "done":
        assert time.monotonic() < deadline, job
        time.sleep(0.05)
    return dict(job)


def test_fastapi(tmp_path: Path, variables: dict[str, str]) -> None:
    write("fastapi.md", tmp_path)
    run(*PYTEST, folder=tmp_path, variables=variables)
    [port] = free_ports(1)
    url = f"http://127.0.0.1:{port}/pictures"
    serve = ("hypercorn", "main:app", "--bind", f"127.0.0.1:{port}")
    with (
        Process(*serve, ready="Running on", folder=tmp_path, variables=variables),
        Process("jqmaster.cli", "work", "jobs:jq", ready="worker ", folder=tmp_path, variables=variables),
    ):
        status, made = ask(url, b'{"path": "cat.jpg"}')
        assert status == 202
        job = ask(f"{url}/{made['id']}?wait=20")[1]
        assert (job["status"], job["result"]) == ("done", "cat.jpg-400")
        assert ask(f"{url}/unknown")[0] == ask(f"{url}/unknown/live")[0] == 404
        status, made = ask(url, b'{"path": "dog.jpg"}')
        with urllib.request.urlopen(f"{url}/{made['id']}/live", timeout=LONGEST_S) as live:
            lines = [line[len("data: ") :] for line in live.read().decode().split("\n\n") if line]
        *before, last = [json.loads(line) for line in lines]
        assert last["status"] == "done" and all(job["status"] != "done" for job in before)


def test_flask(tmp_path: Path, variables: dict[str, str]) -> None:
    write("flask.md", tmp_path)
    run(*PYTEST, folder=tmp_path, variables=variables)
    [port] = free_ports(1)
    url = f"http://127.0.0.1:{port}/mails"
    with (
        Process("flask", "run", "--port", str(port), ready="Running on", folder=tmp_path, variables=variables),
        Process("jqmaster.cli", "work", "more_jobs:jq", ready="worker ", folder=tmp_path, variables=variables),
    ):
        status, made = ask(url, b'{"to": "bob", "subject": "hello"}')
        assert status == 202
        assert shown(f"{url}/{made['id']}")["result"] == "sent 'hello' to bob"
        assert ask(f"{url}/unknown")[0] == 404
        report = "from more_jobs import report; print(report.enqueue().result(timeout=60))"
        assert run("-c", report, folder=tmp_path, variables=variables) == "app\n"


def test_django(tmp_path: Path, variables: dict[str, str]) -> None:
    write("django.md", tmp_path)
    for folder in ("shop", "shop/management", "shop/management/commands", "project"):
        (tmp_path / folder / "__init__.py").touch()
    run("-m", "manage", "test", folder=tmp_path, variables=variables)
    run("-m", "manage", "migrate", "--run-syncdb", folder=tmp_path, variables=variables)
    [port] = free_ports(1)
    serve = ("manage", "runserver", "--noreload", str(port))
    count = "from shop.models import Order; print(sorted(Order.objects.values_list('customer', 'receipts')))"
    with (
        Process(*serve, ready="Quit the server", folder=tmp_path, variables=variables),
        Process("manage", "work", ready="worker ", folder=tmp_path, variables=variables) as worker,
    ):
        form = "application/x-www-form-urlencoded"
        assert ask(f"http://127.0.0.1:{port}/orders", b"customer=acme", form)[0] == 201
        assert ask(f"http://127.0.0.1:{port}/orders", b"customer=bob&card=declined", form)[0] == 402
        deadline = time.monotonic() + 60
        while "('acme', 1)" not in (
            said := run("-m", "manage", "shell", "-c", count, folder=tmp_path, variables=variables)
        ):
            assert time.monotonic() < deadline, said + worker.text
        assert "bob" not in said
        worker.signal()
        assert worker.ends() == 0
