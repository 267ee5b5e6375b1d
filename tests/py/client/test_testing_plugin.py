"""The pytest plugin, in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import jqmaster
from jqmaster import JQ
from jqmaster.testing import working

PROGRAM = """
from jqmaster import JQ

jq = JQ("redis://127.0.0.1:9")


@jq.job
def add(a: int, b: int) -> int:
    return a + b


@jq.limit(by="argument.to", concurrency=1)
@jq.job
def mail(to: str) -> None: ...


@jq.job(max_retry=2)
def fail() -> None:
    raise ValueError("no")
"""

TESTS = """
import pytest
from program import add, fail


def test_result(jq):
    handle = add.enqueue(40, 2)
    assert jq.burst() == 1
    assert handle.result(timeout=60) == 42


def test_every_test_has_a_namespace_of_its_own(jq):
    assert jq.burst() == 0


def test_failures_are_raised(jq):
    fail.enqueue()
    with pytest.raises(ValueError, match="no"):
        jq.burst()


def test_without_a_server(jq):
    with jq.immediate():
        assert add.enqueue(1, 2).result() == 3


def test_a_worker_beside_the_test(jq, jq_worker):
    assert add.enqueue(1, 2).result(timeout=60) == 3


def test_the_program_s_limits_are_there(jq):
    assert [one["id"] for one in jq.each("constraints")] == ["mail"]


def test_the_fixtures(jq, jq_redis, jq_namespace):
    assert (jq.url, jq.namespace) == (jq_redis, jq_namespace)
"""

WITHOUT_AN_APP = """
def test_new_object(jq):
    @jq.job
    async def double(a):
        return 2 * a

    handle = double.enqueue(4)
    jq.burst()
    assert handle.result(timeout=60) == 8
"""


def run(folder: Path, *options: str, **environment: str) -> str:
    paths = os.pathsep.join([str(Path(jqmaster.__file__).parents[1]), str(folder)])
    plugins = ["jqmaster.testing", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *(f"-p{plugin}" for plugin in plugins), *options]
    ended = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": paths, **environment}, capture_output=True,
        text=True, timeout=100,
    )  # fmt: skip
    return ended.stdout + ended.stderr


def test_a_program_s_jobs_on_a_private_redis(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "test_program.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\njq_app = program:jq\n")
    said = run(tmp_path)
    assert "7 passed" in said, said


def test_a_redis_that_is_given_is_left_clean(tmp_path: Path, redis_url: str) -> None:
    import redis

    (tmp_path / "test_program.py").write_text(WITHOUT_AN_APP)
    said = run(tmp_path, JQ_TEST_REDIS=redis_url)
    assert "1 passed" in said, said
    with redis.Redis.from_url(redis_url) as client:
        assert list(client.scan_iter(match="{test-*")) == []


def test_a_wrong_name_is_explained(tmp_path: Path, redis_url: str) -> None:
    (tmp_path / "test_program.py").write_text(WITHOUT_AN_APP)
    said = run(tmp_path, "-o", "jq_app=nowhere:jq", JQ_TEST_REDIS=redis_url)
    assert "jq_app = nowhere:jq: No module named 'nowhere'" in said, said


def test_what_ends_a_worker_early_is_raised() -> None:
    with pytest.raises(ValueError, match="there are no jobs"), working(JQ()):
        pass
