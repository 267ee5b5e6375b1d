"""Every example runs and prints what it says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import jqmaster
from jqmaster import JQ
from processes import MasterProcess, Process

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def master(redis_url: str) -> Iterator[MasterProcess]:
    with MasterProcess("--redis", redis_url, "--namespace", "{examples}") as master:
        yield master


@pytest.fixture(scope="module", params=[(), ("--push",)], ids=str)
def worker(master: MasterProcess, request: pytest.FixtureRequest) -> Iterator[None]:
    command = ("jqmaster.cli", "work", "tasks:jq", "--url", master.url, *request.param)
    with Process(*command, ready="worker ", folder=EXAMPLES) as worker:
        yield
        # One that is killed would be tried for the next one's jobs.
        worker.signal()
        assert worker.ends() == 0


# What whoever enqueues sees is the same whatever kind of worker runs the jobs, whose kinds test_enqueue has all.
PULLS = pytest.mark.parametrize("worker", [()], ids=str, indirect=True)


def run(*command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(jqmaster.__file__).parents[1])}
    ended = subprocess.run(command, cwd=EXAMPLES, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.usefixtures("worker")
def test_enqueue(master: MasterProcess) -> None:
    assert run(sys.executable, "enqueue.py", master.url).splitlines() == [
        "add: done 6",
        "resize: [{'width': 400, 'height': 300}, {'width': 800, 'height': 600}]",
        "call-partner: answered at attempt 3 after 2 retries",
        "call-partner: error - the account is closed",
        "later: cancelled",
    ]


@PULLS
@pytest.mark.usefixtures("worker")
def test_curl(master: MasterProcess) -> None:
    total, constraint, explained, usage, answer, page, schedule, failures, stats = map(
        json.loads, run("sh", "curl.sh", master.url).splitlines()
    )
    assert (total, answer, page) == (42, "answered at attempt 1", "the page as of edit 2")
    assert (constraint["id"], constraint["by"], constraint["concurrency"]) == ("calls", "argument.partner", 2)
    [held_by] = explained["constraints"]
    assert (explained["held"], held_by["by"], held_by["open"]) == (True, "acme", False)
    [key] = usage["keys"]
    [schedule] = schedule["schedules"]
    assert (key["by"], key["running"], key["held"]) == ("acme", 0, 1)
    assert key["opens_ms"] == held_by["opens_ms"]
    assert [moment / 60_000 % 1440 for moment in schedule["next"]] == [7 * 60 + 30] * 2
    [failure] = [each for each in failures["failures"] if each["group"] == "JobFailed"]
    assert failure["message"] == "the account is closed"
    assert stats["stats"][-1]["done"] >= 1


def test_limits(master: MasterProcess) -> None:
    assert run(sys.executable, "limits.py", master.url).splitlines() == [
        "worker mailer is ready",
        "bob: done",
        "acme: held by example-mail-per-customer of acme",
        "acme: 0 running, 20 held",
        "most at a time: 2 of acme, 1 of bob",
        "worker mailer has stopped",
    ]


@PULLS
@pytest.mark.usefixtures("worker")
def test_unique(master: MasterProcess) -> None:
    JQ(master.url).operations.discard(where={"name": "add"})
    assert run(sys.executable, "unique.py", master.url).splitlines() == [
        "edit 1 makes a job",
        "edit 2 changes the job that waits",
        "edit 3 changes the job that waits",
        "waits with edit 3",
        "rendered: the page as of edit 3",
        "notice sent",
        "notice not sent again",
    ]


@PULLS
@pytest.mark.usefixtures("worker")
def test_schedules(master: MasterProcess) -> None:
    JQ(master.url).operations.discard(where={"name": "add"})
    assert run(sys.executable, "schedules.py", master.url).splitlines() == [
        "nightly: 02:30",
        "on weekends: False",
        *["often: done 42"] * 3,
    ]


def said_between(output: str) -> list[str]:
    """What a program prints while its worker works."""
    first, *lines, last = output.splitlines()
    assert first.endswith(" is ready") and last.endswith(" has stopped")
    return lines


def test_fan(master: MasterProcess) -> None:
    *lines, last = said_between(run(sys.executable, "fan.py", master.url))
    assert lines[:3] == ["each page: [4, 5, 3]", "in all: 12", "4 of 4 jobs have ended"]
    counted, failed = sorted(lines[3:])  # by the job and by who waits: either may be first
    assert re.fullmatch(r"torn: job \w+ failed: ValueError: an empty page", failed)
    assert counted == "torn: 2 of 3 jobs were not done"
    assert last == "12 words on 3 pages"


def test_sealing(master: MasterProcess) -> None:
    said = run(sys.executable, "sealing.py", master.url)
    assert said.splitlines() == ["with the keys: paid with 4242 4242", "without: ExtType"]


def test_storing(master: MasterProcess) -> None:
    said = run(sys.executable, "storing.py", master.url)
    assert said.splitlines() == ["in Redis: 75 in files: 1", "words: 100000"]


def test_pipeline(master: MasterProcess) -> None:
    assert said_between(run(sys.executable, "pipeline.py", master.url)) == [
        "stored film.mp4",
        "thumbnail of film",
        "its attempts: moved moved done",
    ]


def test_failures(master: MasterProcess) -> None:
    lines = said_between(run(sys.executable, "failures.py", master.url))
    # Other examples have failures of their own.
    assert [line for line in lines if not line.startswith(("JobFailed", "TypeError", "ValueError", "dependency"))] == [
        "ConnectionError: 3, the last: ConnectionError: the shop does not answer",
        "NoSuchCustomer: 1, the last: nobody by this name",
        "retried: 3",
        "removed: 1",
        "ada done",
        "bob done",
        "ada: enqueued started failed started failed started done",
    ]


def test_progress(master: MasterProcess) -> None:
    assert said_between(run(sys.executable, "progress.py", master.url)) == [
        *[f"attempt 1 prints page {page}" for page in range(3)],
        *[f"attempt 2 prints page {page}" for page in range(3, 6)],
        "ended as done",
        "100%, 6 of 6 pages",
    ]


def test_direct(redis_url: str) -> None:
    assert run(sys.executable, "direct.py", redis_url).strip() == "done hello, world"


def test_any_worker(master: MasterProcess) -> None:
    code = ("any_worker", master.url)
    with Process(*code, ready="registered", folder=EXAMPLES) as worker:
        jq = JQ(master.url)
        jobs = jq.enqueue_many(jq.new_job("shout", text) for text in ("a", "b", "c"))
        assert jq.gather(jobs, timeout=60) == ["A", "B", "C"]
        assert worker.ends() == 0
        assert "unregistered" in worker.text


def test_hello(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A namespace of its own: the other examples' worker has another function of this name.
    with MasterProcess("--redis", redis_url, "--namespace", "{hello}") as master:
        monkeypatch.setenv("JQ_URL", master.url)
        command = ("jqmaster.cli", "work", "hello:jq", "--url", master.url)
        with Process(*command, ready="worker ", folder=EXAMPLES):
            assert run(sys.executable, "hello.py").strip() == "42"


def test_hello_is_in_the_readme() -> None:
    assert (EXAMPLES / "hello.py").read_text() in (EXAMPLES.parent / "README.md").read_text()


def test_every_example_is_run_here() -> None:
    names = {path.name for path in EXAMPLES.iterdir() if path.is_file()}
    assert names == {
        "hello.py", "tasks.py", "enqueue.py", "direct.py", "any_worker.py", "limits.py", "curl.sh",
        "unique.py", "fan.py", "pipeline.py", "schedules.py", "failures.py", "progress.py",
        "sealing.py", "storing.py",
        "checks.py",  # by tests/protocol/worker.py
        "demo.py",  # by test_demo
    }  # fmt: skip
