"""Workers of a `JQ` that are processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from app_support import jq
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


def test_an_object_without_jobs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("from jqmaster import JQ\njq = JQ()\n")
    with Process("jqmaster.cli", "work", "empty:jq", folder=tmp_path) as worker:
        assert worker.ends() == 2
        assert "there are no jobs" in worker.text
