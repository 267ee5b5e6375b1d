"""docs/python.md: its programs run, section by section, beside a worker; and it names every option."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from jqmaster import JQ, JobError, JobReleased, current_job
from jqmaster.client.task import ScheduleOptions, TaskOptions
from jqmaster.engine.options import JobOptions

GUIDE = (Path(__file__).parents[3] / "docs" / "python.md").read_text()
EXAMPLES = Path(__file__).parents[3] / "examples"
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", GUIDE, re.DOTALL | re.MULTILINE))


def blocks(text: str) -> list[str]:
    found = re.findall(r"(<!-- not run -->\n)?```python\n(.*?)```", text, re.DOTALL)
    return [block for skipped, block in found if not skipped]


@pytest.mark.parametrize("section", [name for name, text in SECTIONS.items() if blocks(text)])
def test_section(section: str, redis_url: str, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JQ_URL", redis_url)
    monkeypatch.setenv("JQ_NAMESPACE", namespace)
    jq = JQ()
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.05):
            if jq.tasks:
                jq.burst(raises=False)

    worker = threading.Thread(target=work)
    if section != "Tests":
        worker.start()
    known: dict[str, Any] = {"JQ": JQ, "jq": jq, "pytest": pytest, "__name__": "guide"}
    known |= {"JobError": JobError, "JobReleased": JobReleased, "current_job": current_job}
    try:
        for block in blocks(SECTIONS[section]):
            code = compile(block, f"docs/python.md, {section}", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
            found = eval(code, known)
            if inspect.iscoroutine(found):
                asyncio.run(found)
        for name, test in list(known.items()):
            if name.startswith("test_"):
                test(jq)
    finally:
        stop.set()
        if worker.ident:
            worker.join(60)


def test_every_option_is_told() -> None:
    for options in (JobOptions, TaskOptions, ScheduleOptions):
        for name in options.__annotations__:
            assert f"`{name}`" in GUIDE, name


def test_the_first_program_is_the_example() -> None:
    assert blocks(GUIDE)[0] == (EXAMPLES / "hello.py").read_text()
