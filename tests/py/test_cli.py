"""The command line: options, the environment, messages and exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import redis as blocking

import jqmaster


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JQ_")}
    environment = {**kept, "PYTHONPATH": str(Path(jqmaster.__file__).parents[1]), **variables}
    command = [sys.executable, "-m", "jqmaster.cli", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "command", [[], ["serve"], ["load"], ["export"], ["import"], ["work"], ["demo"], ["version"]]
)
def test_help_names_its_options(command: list[str]) -> None:
    ended = run(*command, "--help")
    assert ended.returncode == 0 and "usage: jqmaster" in ended.stdout
    if command in (["serve"], ["work"]):
        assert "[JQ_NAMESPACE]" in ended.stdout


def test_version() -> None:
    ended = run("version")
    assert ended.returncode == 0 and ended.stdout.startswith(f"jqmaster {jqmaster.__version__}, scripts ")


def test_load_prints_what_it_loaded(redis_url: str, namespace: str) -> None:
    ended = run("load", JQ_REDIS=redis_url, JQ_NAMESPACE=namespace)
    assert ended.returncode == 0, ended.stderr
    shas = {line.split()[1]: line.split()[0] for line in ended.stdout.splitlines()[:-1]}
    with blocking.Redis.from_url(redis_url, decode_responses=True) as client:
        assert client.hget(f"{namespace}:manifest", "enqueue") == shas["enqueue"]
        assert client.script_exists(*shas.values()) == [True] * len(shas)
    assert run("load", "--redis", redis_url, "--namespace", namespace).returncode == 0  # safe to repeat


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "COMMAND"),
        (["fly"], 2, "fly"),
        (["load"], 2, "--redis or JQ_REDIS"),
        (["export", "file"], 2, "--redis or JQ_REDIS"),
        (["import", "/nowhere/file", "--redis", "unix:///x"], 1, "/nowhere/file"),
        (["load", "--redis", "unix:///nowhere/redis.sock"], 3, "/nowhere/redis.sock"),
        (["load", "--redis", "ftp://x"], 3, "URL"),
        (["work", "copyreg:dispatch_table"], 2, "either --master or --redis"),
        (["work", "nowhere:X", "--master", "http://x"], 2, "nowhere"),
        (["work", "os:sep", "--master", "http://x"], 2, "a map of job names"),
        (["work", "os:sep", "--master", "http://x", "--synchronous"], 2, "--push"),
        (["work", "os:sep", "--master", "http://x", "--concurrency", "0"], 2, "at least 1"),
    ],
)
def test_mistakes_are_named(arguments: list[str], code: int, said: str) -> None:
    ended = run(*arguments)
    assert ended.returncode == code, ended.stderr
    assert said in ended.stderr and "Traceback" not in ended.stderr


def test_a_bad_value_in_the_environment_is_refused_like_one_in_the_options() -> None:
    ended = run("serve", JQ_PORT="http")
    assert ended.returncode == 2 and "0 to 65535" in ended.stderr
