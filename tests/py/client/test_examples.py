"""Every example runs and prints what it says. What a program does with jobs is run from docs/python.md."""

from __future__ import annotations

import os
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


def run(*command: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(jqmaster.__file__).parents[1])}
    ended = subprocess.run(
        [sys.executable, *command], cwd=EXAMPLES, env=environment, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


@pytest.mark.parametrize("how", [("hello",), ("hello:jq", "--push")], ids=str)
def test_hello(how: tuple[str, ...], master: MasterProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JQ_URL", master.url)
    with Process("jqmaster.cli", "work", *how, "--url", master.url, ready="worker ", folder=EXAMPLES) as worker:
        assert run("hello.py") == ["42"]
        worker.signal()  # one that is killed would be tried for the next one's jobs
        assert worker.ends() == 0


def test_hello_is_in_the_readme() -> None:
    assert (EXAMPLES / "hello.py").read_text() in (EXAMPLES.parent / "README.md").read_text()


def test_sealing(master: MasterProcess) -> None:
    assert run("sealing.py", master.url) == ["with the keys: paid with 4242 4242", "without: ExtType"]


def test_storing(master: MasterProcess) -> None:
    assert run("storing.py", master.url) == ["in Redis: 75 in files: 1", "words: 100000"]


def test_any_worker(master: MasterProcess) -> None:
    with Process("any_worker", master.url, ready="registered", folder=EXAMPLES) as worker:
        jq = JQ(master.url)
        jobs = jq.enqueue_many(jq.new_job("shout", text) for text in ("a", "b", "c"))
        assert jq.gather(jobs, timeout=60) == ["A", "B", "C"]
        assert worker.ends() == 0
        assert "unregistered" in worker.text


def test_every_example_is_run() -> None:
    elsewhere = {"checks.py", "demo.py"}  # by tests/protocol/worker.py, by test_demo.py
    assert {path.name for path in EXAMPLES.iterdir() if path.is_file()} == elsewhere | {
        "hello.py", "sealing.py", "storing.py", "any_worker.py",
    }  # fmt: skip
