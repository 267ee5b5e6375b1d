"""docs/compare.md: its table counts the lines that are there, and JQ's programs do what their headings say."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import jqmaster
from jqmaster import JobError
from processes import Process

pytestmark = pytest.mark.faults

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "compare.md").read_text()
NAMES = ("JQ", "Celery", "BullMQ")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
SECTIONS.pop("What it costs")  # bench/ measures that
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def programs(section: str) -> dict[str, list[tuple[str, str]]]:
    """Of each library its blocks of code, with their languages."""
    parts = re.split(rf"^\*\*({'|'.join(NAMES)})\*\*", SECTIONS[section], flags=re.MULTILINE)
    assert tuple(parts[1::2]) == NAMES, section
    return {name: BLOCK.findall(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def lines(blocks: list[tuple[str, str]]) -> int:
    every = [line.strip() for _, code in blocks for line in code.splitlines()]
    return sum(1 for line in every if line and not line.startswith(("#", "//")))


def test_the_table_counts_what_is_there() -> None:
    rows = re.findall(r"^\| \[(.+?)]\((#.+?)\) \| (.*) \|$", PAGE, re.MULTILINE)
    by_anchor = {"#" + re.sub(r"[^\w -]", "", name).lower().replace(" ", "-"): name for name in SECTIONS}
    assert [by_anchor[anchor] for _, anchor, _ in rows] == list(SECTIONS)
    for _, anchor, cells in rows:
        counted = {name: lines(blocks) for name, blocks in programs(by_anchor[anchor]).items()}
        told = dict(zip(NAMES, cells.split(" | "), strict=True))
        assert {name: int(re.match(r"\d*", cell)[0] or 0) for name, cell in told.items()} == counted  # type: ignore[index]


def test_formatters_leave_the_code_alone(tmp_path: Path) -> None:
    for number, section in enumerate(SECTIONS):
        for name, blocks in programs(section).items():
            for language, code in blocks:
                assert max(map(len, code.splitlines())) <= 120
                if language == "python":
                    (tmp_path / f"{number}_{name}.py").write_text(code)
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--check", "--line-length", "120", tmp_path]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout


class Program:
    """JQ's of a section, as the file shop.py: with a worker, and as a module of the caller."""

    def __init__(self, section: str, folder: Path, variables: dict[str, str]) -> None:
        [(_, code)] = programs(section)["JQ"]
        self.folder, self.variables = folder, variables
        self.path = folder / "shop.py"
        self.path.write_text(code)

    def module(self) -> ModuleType:
        spec = importlib.util.spec_from_file_location("shop", self.path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def worker(self) -> Process:
        arguments = ("jqmaster.cli", "work", "shop:jq")
        return Process(*arguments, ready="worker ", folder=self.folder, variables=self.variables)

    @contextmanager
    def caller(self) -> Iterator[subprocess.Popen[str]]:
        environment = {**os.environ, **self.variables, "PYTHONPATH": str(Path(jqmaster.__file__).parents[1])}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen([sys.executable, "shop.py"], cwd=self.folder, env=environment, **pipes) as process:
            yield process


@pytest.fixture
def program(
    request: pytest.FixtureRequest, redis_url: str, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Program:
    variables = {"JQ_URL": redis_url, "JQ_NAMESPACE": namespace}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return Program(request.param, tmp_path, variables)


def of(section: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("program", [section], indirect=True)


def eventually(condition: Any, within_s: float = 60) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@of("Limit per customer")
def test_limit(program: Program) -> None:
    shop = program.module()
    mails = shop.mail.map([("acme", str(number)) for number in range(103)])
    others = shop.mail.map([("bob", str(number)) for number in range(5)])
    with program.worker():
        shop.jq.gather(others, timeout=60)
        shop.jq.gather(mails[:100], timeout=60)
        [why] = mails[100].explain()["constraints"]
        assert (why["by"], why["open"]) == ("acme", False)
        assert [mail.status() for mail in mails[100:]] == ["queued"] * 3
    [limit] = shop.jq.each("constraints")
    assert (limit["concurrency"], limit["by"]) == (5, "argument.customer")


@of("Nightly, in a time zone")
def test_nightly(program: Program) -> None:
    shop = program.module()
    with program.worker():
        eventually(lambda: list(shop.jq.each("schedules")))
    [schedule] = shop.jq.each("schedules")
    following = datetime.fromtimestamp(schedule["next_ms"] / 1000, ZoneInfo("Europe/Berlin"))
    assert (following.hour, following.minute) == (3, 0)


@of("Fan out and in")
def test_fan_out_and_in(program: Program) -> None:
    with program.worker(), program.caller() as caller:
        assert caller.communicate(timeout=60)[0] == "6\n"


@of("What crashes or hangs")
def test_what_hangs(program: Program) -> None:
    """What crashes has tests of its own: tests/py/worker/test_processes.py."""
    text = program.path.read_text()
    assert text.count("max_runtime=60") == 1
    program.path.write_text(text.replace("max_runtime=60", "max_runtime=6, retry_base=0.1"))
    shop = program.module()
    with program.worker():
        endless = shop.crunch.enqueue(10**12)
        assert shop.crunch.enqueue(4).result(timeout=60) == 14
        with pytest.raises(JobError):
            endless.result(timeout=60)
        assert endless.document()["attempt"] == 3
        assert shop.crunch.enqueue(4).result(timeout=60) == 14
