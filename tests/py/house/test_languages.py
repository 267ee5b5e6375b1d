"""The conformance suite, and clients in other languages, which know docs/protocol.md and nothing else."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jqmaster.bundle.build import builtin
from jqmaster.engine.engine import connect
from jqmaster.engine.scripts import load
from servers import RedisServer

ROOT = Path(__file__).parents[3]
SUITE = ROOT / "tests" / "protocol"
EXAMPLES = ROOT / "examples"
NAMESPACE = "{languages}"
TOPICS = {file.stem: json.loads(file.read_text()) for file in sorted(SUITE.glob("*.json"))}
CASES = sum(len(topic["cases"]) for topic in TOPICS.values())


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """A server of their own, since they flush its scripts."""

    async def loaded(url: str) -> None:
        async with connect(url) as client:
            await load(client, NAMESPACE)

    with RedisServer() as server:
        asyncio.run(loaded(server.url))
        yield server


def run(*command: str | Path, **environment: str) -> list[str]:
    """The lines that a program prints; it must end well."""
    ended = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.splitlines()


# -- Node ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def node() -> Path:
    """A copy of examples/node with its packages, kept under var/ for the next time."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node and npm are not installed")
    folder = ROOT / "var" / "node"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other processes run tests of this file at the same time
        install_node(folder)
        for file in (EXAMPLES / "node").glob("*.js"):
            if not (folder / file.name).exists() or (folder / file.name).read_text() != file.read_text():
                shutil.copy(file, folder)
    return folder


def install_node(folder: Path) -> None:
    wanted, installed = EXAMPLES / "node" / "package.json", folder / "package.json"
    if (folder / "node_modules").exists() and wanted.read_text() == installed.read_text():
        return
    shutil.rmtree(folder / "node_modules", ignore_errors=True)
    shutil.copy(wanted, installed)
    command = ["npm", "install", "--no-audit", "--no-fund", "--fetch-retries=0", "--fetch-timeout=20000"]
    # npm may leave a folder without packages where it reaches nothing.
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=90)
    if ended.returncode != 0:
        shutil.rmtree(folder / "node_modules", ignore_errors=True)
        pytest.skip(f"npm could not install packages: {ended.stderr.strip()[-300:]}")


def test_node_example(node: Path, server: RedisServer) -> None:
    assert run("node", node / "example.js", server.url, NAMESPACE) == [
        "add: done 42",
        "attempt 1 prints page 0",
        "attempt 1 prints page 1",
        "attempt 2 prints page 2",
        "print: done at attempt 2, 100%: printed",
        "       failed before: out of paper",
        "never: error, NoSuchCustomer: no such customer, 1 attempt",
        "many: 100 done",
        "long: it was running and is cancelled",
    ]


# -- Lua -----------------------------------------------------------------------------------------------------


def test_lua_example(server: RedisServer) -> None:
    told = run("lua5.1", EXAMPLES / "lua" / "example.lua", server.url, NAMESPACE)
    # Whether a retry or the next job comes first is a matter of milliseconds.
    assert told.index("attempt 1 prints page 1") < told.index("attempt 2 prints page 2")
    assert sorted(told) == sorted(
        [
            "attempt 1 prints page 0",
            "attempt 1 prints page 1",
            "long: it was running",
            "attempt 2 prints page 2",
            "add: done 42",
            "print: done at attempt 2, 100%: printed",
            "       failed before: out of paper",
            "never: error, NoSuchCustomer: no such customer, 1 attempt",
            "long: it is cancelled",
        ]
    )


# -- Shell ---------------------------------------------------------------------------------------------------


def test_shell_example(server: RedisServer) -> None:
    script = EXAMPLES / "shell" / "example.sh"
    assert run("sh", script, "-s", str(server.socket), JQ_NAMESPACE=NAMESPACE) == [
        "greet, attempt 1: done",
        "print, attempt 1: retrying",
        "print, attempt 2: done",
        "greet: hello, ada",
        "print: done, 50%, half of it, failed before: out of paper",
        "and this is what an error is like",
    ]


# -- The suite, and the checks of workers --------------------------------------------------------------------


def command_of(request: pytest.FixtureRequest, language: str, program: str) -> list[str | Path]:
    """How the example of this name is run."""
    if language == "node":
        return ["node", request.getfixturevalue("node") / f"{program}.js"]
    return [
        "lua5.1" if language == "lua" else "sh",
        EXAMPLES / language / f"{program}.{language.replace('shell', 'sh')}",
    ]


@pytest.mark.parametrize("form", ["functions", "scripts"])
@pytest.mark.parametrize("language", ["node", "lua", "python"])
def test_a_client_passes_the_suite(
    request: pytest.FixtureRequest, server: RedisServer, language: str, form: str
) -> None:
    own = [sys.executable, SUITE / "run.py"]
    command = own if language == "python" else [*command_of(request, language, "conformance"), SUITE]
    assert run(*command, server.url, NAMESPACE, JQ_FORM=form) == [f"{CASES} of {CASES} cases passed"]


@pytest.mark.faults
@pytest.mark.timeout(600)
@pytest.mark.parametrize("language", ["python", "node", "lua", "shell"])
def test_a_worker_passes_the_checks(request: pytest.FixtureRequest, language: str) -> None:
    """Of tests/protocol/worker.py."""
    own = [sys.executable, "-m", "jqmaster", "work", "checks:jq", "--concurrency", "10"]
    command = own if language == "python" else command_of(request, language, "checks")
    options = {"lua": ("--slots", "1", "--without", "sigterm"), "shell": ("--slots", "1")}.get(language, ())
    checks = [sys.executable, SUITE / "worker.py", *options, *command]
    ended = subprocess.run(checks, cwd=EXAMPLES, capture_output=True, text=True, timeout=560)
    assert ended.returncode == 0, ended.stdout + ended.stderr


# -- The suite itself ----------------------------------------------------------------------------------------


def test_the_suite_meets_every_kind_of_error() -> None:
    steps = [step for topic in TOPICS.values() for case in topic["cases"] for step in case["steps"]]
    assert {step["call"] for step in steps if "call" in step} <= set(builtin())
    codes = {step["error"].split()[0] for step in steps if "error" in step}
    # LOST is never a whole call's error: it is the answer of one job among many.
    assert codes == {"INVALID", "NOTFOUND", "CONFLICT", "EXPIRED", "FULL", "VERSION"}


def test_the_suite_is_written_as_its_readme_says() -> None:
    known = {"call", "args", "reply", "error", "until", "redis", "subscribe", "message"}
    for name, topic in TOPICS.items():
        assert topic["topic"] == name
        titles = [case["case"] for case in topic["cases"]]
        assert len(titles) == len(set(titles))
        for case in topic["cases"]:
            assert set(case) <= {"case", "steps", "setup"}
            for step in case["steps"]:
                assert set(step) <= known
                assert len(set(step) & {"call", "redis", "subscribe", "message"}) == 1
                assert ("call" in step) == ("args" in step)
                assert all(isinstance(part, str) or len(part) == 1 for part in step.get("args", []))
