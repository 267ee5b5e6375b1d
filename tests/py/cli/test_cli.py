"""The command line: options, the environment, messages and exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jqmaster
from cli_support import Said, call
from jqmaster import JQ
from jqmaster.cli.run import COMMANDS
from processes import Process
from servers import RedisServer

__all__ = ["call"]


def run(*arguments: str, module: str = "jqmaster.cli", **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JQ_")}
    environment = {**kept, "PYTHONPATH": str(Path(jqmaster.__file__).parents[1]), **variables}
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def eventually(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_help_tells_each_command_and_its_options(call: Callable[..., Said]) -> None:
    said = call("--help").out
    names = [name for modules in COMMANDS.values() for words in modules.values() for name in words.split()]
    for name in names:
        assert f" {name} " in said
        own = call(name, "--help")
        assert own.code == 0 and f"jqmaster {name}" in own.out and "--redis" in own.out
    assert "Exit codes:" in said and "reads them from stdin" in call("retry", "--help").out


def test_help_is_quick() -> None:
    ended = run("--help", PYTHONPROFILEIMPORTTIME="1")
    assert ended.returncode == 0 and "Exit codes:" in ended.stdout
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert "cyclopts" in imported and not {"redis", "aiohttp", "quart"} & imported


@pytest.mark.parametrize(
    ("line", "offered"),
    [(["qu"], ["queues"]), (["queues", "re"], ["resume"]), (["jobs", "--status", "re"], ["retrying"])],
)
def test_bash_completes(line: list[str], offered: list[str], tmp_path: Path, call: Callable[..., Said]) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(call("completion", "bash").out)
    program = 'source "$1"; shift; COMP_WORDS=(jqmaster "$@"); COMP_CWORD=$#; _jqmaster; echo "${COMPREPLY[@]}"'
    ended = subprocess.run(["bash", "-c", program, "-", script, *line], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == offered, ended.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["fly"], 2, "fly"),
        (["load"], 2, "give --redis URL, or JQ_REDIS"),
        (["import", "/nowhere/file", "--redis", "unix:///x"], 1, "/nowhere/file"),
        (["load", "--redis", "unix:///nowhere/redis.sock"], 4, "/nowhere/redis.sock"),
        (["work", "nowhere:X", "--url", "http://x"], 2, "nowhere"),
        (["work", "os:sep", "--url", "http://x"], 2, "expected a JQ object"),
        (["work", "os:sep", "--url", "http://x", "--queues", "a,,b"], 2, "expected names with commas between"),
        (["work", "os:sep", "--url", "http://x", "--redis", "unix:///x"], 2, "--url or --redis, not both"),
        (["enque", "a"], 2, 'Did you mean "enqueue"? Available commands: '),
        (["enque", "a"], 2, ", ...\nSee jqmaster --help"),
        (["work", "myapp/jobs.py"], 2, "expected a module, not a file, such as myapp.jobs:jq"),
        (["enqueue", "a", "--priority", "x"], 2, "--priority: expected an integer, got 'x'"),
        (["jobs", "--queu", "a"], 2, "Did you mean --queue?"),
        (["work", "a:b", "c:d"], 2, "unexpected argument: c:d\nSee jqmaster work --help"),
    ],
)
def test_mistakes_are_named(call: Callable[..., Said], arguments: list[str], code: int, said: str) -> None:
    ended = call(*arguments)
    assert ended.code == code and said in ended.err, ended


@pytest.mark.parametrize("command", [["load"], ["enqueue", "a"]])
def test_a_redis_that_drops_keys_gets_no_namespace(call: Callable[..., Said], command: list[str]) -> None:
    with RedisServer("--maxmemory-policy", "allkeys-lru") as server:
        ended = call(*command, "--redis", server.url)
        assert ended.code == 4 and "noeviction" in ended.err, ended
        with server.client() as client:
            assert client.dbsize() == 0
            client.config_set("maxmemory-policy", "noeviction")
        assert call(*command, "--redis", server.url).code == 0


PROGRAM = """
from jqmaster import JQ, JobFailed
jq = JQ()
def divide(a, b=0):
    if b == 1: raise JobFailed("expected")
    return a / b
jq.job(name="divide")(divide)
"""


def test_a_worker_says_where_a_job_failed_and_when_for_good(redis_url: str, namespace: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    where = ["--redis", redis_url, "--namespace", namespace]
    jq = JQ(redis_url, namespace=namespace)
    retried = jq.enqueue("divide", [1], max_retry=1, retry_base=0.01)
    with Process("jqmaster", "work", "program:jq", *where, ready="for good", folder=tmp_path) as worker:
        lines = worker.text.splitlines()
        assert sum(line == "ZeroDivisionError: division by zero" for line in lines) == 2
        assert sum("return a / b" in line for line in lines) == 2
        [for_good] = [line for line in lines if "for good" in line]
        assert f"job {retried.id} (divide) failed for good in attempt 2: ZeroDivisionError" in for_good
        expected = jq.enqueue("divide", [1, 1], max_retry=0)
        eventually(lambda: f"{expected.id} (divide) failed for good in attempt 1: expected" in worker.text)
        assert worker.text.count("Traceback") == 2


def test_a_secret_that_is_none_is_not_shown(call: Callable[..., Said], monkeypatch: pytest.MonkeyPatch) -> None:
    said = [call("work", "hello:jq", "--push-secrets", "whsec_c3dvcmRmaXNo")]
    monkeypatch.setenv("JQ_PUSH_SECRETS", "whsec_c3dvcmRmaXNo")
    said.append(call("work", "hello:jq"))
    for ended in said:
        assert ended.code == 2 and "24 to 64 bytes in base64" in ended.err
        assert "c3dvcm" not in ended.err + ended.out
