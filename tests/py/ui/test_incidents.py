"""Five incidents with real processes: the overview begins with the cause, `doctor` and the metrics agree,
and the page where it is mended is one click away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from playwright.sync_api import expect

from processes import MasterProcess, Process
from servers import RedisServer
from ui_support import Server, Ui

NAMED_S = 15
NAMESPACE = "{incidents}"
PROGRAM = """
import os, time
from jqmaster import JQ

jq = JQ({url!r}, namespace={namespace!r})

@jq.job(name="thumbnail", max_retry=0)
def thumbnail(size):
    if os.path.exists("bad") and size % 5 < 2:
        raise KeyError("width")

@jq.job(name="sync")
def sync(customer):
    time.sleep(0.2)

@jq.job(name="media")
def media(clip):
    while clip == "endless" and os.path.exists("endless"):
        time.sleep(0.1)

@jq.job(name="search")
def search(text):
    time.sleep(0.5)
"""


@pytest.fixture(scope="module")
def redis_() -> Iterator[RedisServer]:
    with RedisServer("--appendonly", "yes") as server:
        yield server


@pytest.fixture(scope="module")
def server(redis_: RedisServer) -> Iterator[Server]:
    with MasterProcess("--redis", redis_.url, "--namespace", NAMESPACE) as process:
        server = Server(process.url)
        server.call("POST", "/config", {"set": {"late_after": 5}})
        yield server


@pytest.fixture(scope="module")
def folder(redis_: RedisServer, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the worker runs; it looks there for what it is to do wrong."""
    folder = tmp_path_factory.mktemp("worker")
    (folder / "program.py").write_text(PROGRAM.format(url=redis_.url, namespace=NAMESPACE))
    with Process(
        "jqmaster.cli", "work", "program:jq", "--concurrency", "8", "--name", "w", ready="is ready", folder=folder
    ):
        yield folder


def enqueue(server: Server, name: str, *arguments: object) -> None:
    jobs = [{"name": name, "argument": argument} for argument in arguments]
    for start in range(0, len(jobs), 1000):
        server.call("POST", "/jobs", {"jobs": jobs[start : start + 1000]})


def done(server: Server, name: str, count: int) -> None:
    deadline = time.monotonic() + 60
    while server.queue(name)["done"] < count:
        assert time.monotonic() < deadline, server.queue(name)
        time.sleep(0.1)


def named(ui: Ui, redis_: RedisServer, kind: str, *texts: str, page: str) -> None:
    """The overview begins with this, in time."""
    began = time.monotonic()
    for text in texts:
        expect(ui.page.locator(".verdict b")).to_contain_text(text)
    took_s = time.monotonic() - began
    assert took_s < NAMED_S, took_s
    metrics = requests.get(f"{ui.server.url}/metrics", timeout=60).text
    assert f'jq_alerts{{kind="{kind}",level="problem"}}' in metrics
    place = ("--redis", redis_.url, "--namespace", NAMESPACE)
    command = [sys.executable, "-m", "jqmaster.cli", "doctor", "--quiet", *place]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ})
    assert said.returncode == 1 and texts[0] in said.stdout, said.stdout + said.stderr
    ui.page.get_by_label("Alerts").get_by_role("link", name="Show").first.click()
    expect(ui.page.locator("h1")).to_contain_text(page)
    ui.go("/", "Overview")


def cleared(server: Server, *names: str) -> None:
    for name in names:
        server.call("POST", "/jobs/discard", {"where": {"queue": name}})


def test_a_deploy_fails_two_in_five(ui: Ui, server: Server, redis_: RedisServer, folder: Path) -> None:
    enqueue(server, "thumbnail", *({"size": n} for n in range(100)))
    done(server, "thumbnail", 100)
    ui.go("/", "Overview")
    expect(ui.page.locator(".verdict b")).to_have_text("All is well")
    (folder / "bad").touch()
    enqueue(server, "thumbnail", *({"size": n} for n in range(100, 300)))
    named(ui, redis_, "failing", "Queue thumbnail:", "of attempts failed", "KeyError", page="Jobs")
    (folder / "bad").unlink()
    cleared(server, "thumbnail")


def test_a_customer_floods_a_queue(ui: Ui, server: Server, redis_: RedisServer, folder: Path) -> None:
    enqueue(server, "sync", *({"customer": {"id": f"c{n % 9}"}} for n in range(60)))
    done(server, "sync", 60)
    ui.go("/", "Overview")
    enqueue(server, "sync", *({"customer": {"id": "hooli"}} for _ in range(2000)))
    named(ui, redis_, "late", "Queue sync:", "argument.customer.id hooli", page="sync")
    server.call("POST", "/jobs/cancel", {"where": {"queue": "sync", "status": "queued"}})
    cleared(server, "sync")


def test_a_worker_hangs(ui: Ui, server: Server, redis_: RedisServer, folder: Path) -> None:
    enqueue(server, "media", *({"clip": f"{n}"} for n in range(100)))
    done(server, "media", 100)
    (folder / "endless").touch()
    ui.go("/", "Overview")
    enqueue(server, "media", {"clip": "endless"}, {"clip": "endless"})
    named(ui, redis_, "hung", "Worker w hangs: 2 attempts of media", page="w")
    (folder / "endless").unlink()
    cleared(server, "media")


def test_a_limit_whose_path_leads_nowhere(ui: Ui, server: Server, redis_: RedisServer, folder: Path) -> None:
    ui.go("/", "Overview")
    limit = {"match": {"name": "search"}, "by": "argument.tenant.id", "concurrency": 1}
    server.call("PUT", "/constraint/per-tenant", limit)
    enqueue(server, "search", *({"text": f"{n}"} for n in range(100)))
    named(ui, redis_, "path", "Limit per-tenant: argument.tenant.id leads nowhere", page="per-tenant")
    server.call("DELETE", "/constraint/per-tenant")
    cleared(server, "search")


def test_redis_stops_and_is_killed(ui: Ui, server: Server, redis_: RedisServer) -> None:
    ui.go("/", "Overview")
    expect(ui.page.locator(".verdict b")).to_be_visible()
    assert redis_.process is not None
    os.kill(redis_.process.pid, signal.SIGSTOP)
    began = time.monotonic()
    expect(ui.page.locator("#banner")).to_contain_text("Redis")
    took_s = time.monotonic() - began
    os.kill(redis_.process.pid, signal.SIGCONT)
    expect(ui.page.locator("#banner")).to_be_hidden()
    assert took_s < NAMED_S
    redis_.kill()
    expect(ui.page.locator("#banner")).to_contain_text("Redis")
    redis_.start()
    expect(ui.page.locator("#banner")).to_be_hidden()
    ui.refusals = 1000  # what the browser says of each answer 503 meanwhile
    ui.problems.clear()
