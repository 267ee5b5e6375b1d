"""Workers of a `JQ` that are processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from app_support import jq, working
from jqmaster import JQ
from processes import Process

__all__ = ["jq"]

PROGRAM = """
from jqmaster import JQ

jq = JQ()


@jq.job
def add(a: int, b: int) -> int:
    return a + b


if __name__ == "__main__":
    raise SystemExit(jq.run(concurrency=2))
"""


@pytest.mark.parametrize("how", ["jq", "module alone", "own program", "redis given"])
def test_a_worker_by_its_object(
    how: str, redis_url: str, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = {
        "jq": ("jqmaster.cli", "work", "program:jq"),
        "module alone": ("jqmaster.cli", "work", "program"),
        "own program": ("program",),
        "redis given": ("jqmaster.cli", "work", "program:jq", "--redis", redis_url, "--namespace", namespace),
    }[how]
    jq = JQ(redis_url, namespace=namespace)
    if how != "redis given":
        (tmp_path / "program.py").write_text(PROGRAM.replace("JQ()", f"JQ({redis_url!r}, namespace={namespace!r})"))
    with Process(*command, ready="is ready", folder=tmp_path) as worker:
        assert jq.task("add").enqueue(40, 2).result(timeout=60) == 42
        worker.signal()
        assert worker.ends() == 0
        assert worker.text.rstrip().endswith(" has stopped")


def test_a_worker_by_an_object_of_a_master_takes_no_namespace(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.replace("JQ()", "JQ('http://127.0.0.1:9')"))
    command = ("jqmaster.cli", "work", "program:jq", "--namespace", "{mail}")
    with Process(*command, folder=tmp_path) as worker:
        assert worker.ends() == 2
        assert "namespace {mail} applies to Redis only: a server has its own namespace" in worker.text


def test_an_object_without_jobs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("from jqmaster import JQ\njq = JQ()\n")
    with Process("jqmaster.cli", "work", "empty:jq", folder=tmp_path) as worker:
        assert worker.ends() == 2
        assert "there are no jobs" in worker.text


def test_a_pushed_worker_by_its_object(redis_url: str, namespace: str) -> None:
    from processes import MasterProcess

    with MasterProcess("--redis", redis_url, "--namespace", namespace) as master:
        jq = JQ(master.url)

        @jq.job
        def add(a: int, b: int) -> int:
            return a + b

        with working(jq, push=True):
            assert add.enqueue(1, 2).result(timeout=60) == 3
        jq.close()
