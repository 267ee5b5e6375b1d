"""The demo tells the truth: it passes when all is well, and its check finds what is not."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jqmaster
from jqmaster.demo.check import check, table
from jqmaster.demo.functions import invoice_result
from jqmaster.demo.journal import Entry
from jqmaster.demo.plan import Sent, make_plan
from processes import Process

pytestmark = pytest.mark.timeout(120)


def left_over() -> list[str]:
    """Processes of a demo that still run."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                command = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if "jq-demo-" in command:
                found.append(command)
    return found


def test_the_demo_holds_and_leaves_nothing_behind() -> None:
    before = left_over()
    began = time.monotonic()
    with Process("jqmaster.demo", "--jobs", "1000") as demo:
        code = demo.ends(90)
        assert code == 0, demo.text
        assert time.monotonic() - began < 60
        assert "nothing was finished twice" in demo.text
        assert "kill -9" in demo.text
        assert re.search(r"^all\s+1000\s+930\s+60\s+10\s", demo.text, re.M)
    assert left_over() == before


def test_ctrl_c_stops_all_it_started() -> None:
    before = left_over()
    with Process("jqmaster.demo", ready="workers") as demo:
        demo.signal(signal.SIGINT)
        assert demo.ends(30) == 130
    assert left_over() == before


def test_on_a_terminal_one_line_is_rewritten() -> None:
    controller, terminal = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(Path(jqmaster.__file__).parents[1])}
    demo = subprocess.Popen(
        [sys.executable, "-m", "jqmaster.demo", "--jobs", "200"], stdin=subprocess.DEVNULL, stdout=terminal,
        stderr=terminal, env=environment,
    )  # fmt: skip
    os.close(terminal)
    text = b""
    while demo.poll() is None or select.select([controller], [], [], 0)[0]:
        if select.select([controller], [], [], 0.2)[0]:
            try:
                text += os.read(controller, 65536)
            except OSError:
                break
    os.close(controller)
    assert demo.wait(30) == 0, text.decode()
    assert b"\r\x1b[K" in text


# -- the check ------------------------------------------------------------------------------------

DONE = Sent("thumbnail", {"name": "thumbnail"}, id="1")
INVOICE = Sent("invoice", {"name": "invoice", "keep_result": True}, result={"total": 3}, id="2")
FLAKY = Sent("sync-account", {"name": "sync-account"}, retries=1, id="3")


def well() -> tuple[dict[str, Any], dict[str, Any], dict[str, list[Entry]]]:
    documents: dict[str, Any] = {
        "1": {"status": "done", "retry_count": 0, "attempt": 1, "holder": "a"},
        "2": {"status": "done", "retry_count": 0, "attempt": 1, "holder": "b"},
        "3": {"status": "done", "retry_count": 1, "attempt": 2, "holder": "b"},
    }
    journals = {
        "a": [Entry("1", 1, "success", "done"), Entry("3", 1, "failure", "retrying")],
        "b": [Entry("2", 1, "success", "done"), Entry("3", 2, "success", "done")],
    }
    return documents, {"2": {"total": 3}}, journals


def test_the_check_is_content_when_all_is_well() -> None:
    verdict = check([DONE, INVOICE, FLAKY], *well(), "")
    assert verdict.holds, verdict.problems
    assert "sync-account" in table(verdict)


Spoil = Callable[[dict[str, Any], dict[str, Any], dict[str, list[Entry]]], Any]
SPOILED: list[tuple[str, Spoil]] = [
    ("lost", lambda d, r, j: d.update({"1": None})),
    ("is running", lambda d, r, j: d["1"].update(status="running")),
    ("finished twice", lambda d, r, j: j["b"].append(Entry("1", 2, "success", "done"))),
    ("accepted twice", lambda d, r, j: j["b"].append(Entry("3", 1, "failure", "retrying"))),
    ("gave None", lambda d, r, j: r.clear()),
    ("failed 0 times", lambda d, r, j: d["3"].update(retry_count=0)),
    ("failed 2 times", lambda d, r, j: d["3"].update(retry_count=2)),
    ("no worker says", lambda d, r, j: j["a"].pop(0)),
    ("nobody sent", lambda d, r, j: j["a"].append(Entry("9", 1, "success", "done"))),
    ("was accepted as error", lambda d, r, j: j["a"].insert(0, Entry(*j["a"].pop(0)[:3], "error"))),
]


@pytest.mark.parametrize(("said", "spoil"), SPOILED, ids=[said for said, _ in SPOILED])
def test_the_check_finds_what_is_wrong(said: str, spoil: Spoil) -> None:
    documents, results, journals = well()
    spoil(documents, results, journals)
    verdict = check([DONE, INVOICE, FLAKY], documents, results, journals, "")
    assert any(said in problem for problem in verdict.problems), verdict.problems


def test_the_plan_is_the_same_every_time() -> None:
    assert make_plan(500) == make_plan(500)
    assert {sent.kind for sent in make_plan(500)} == {
        "thumbnail", "invoice", "sync-account", "charge-card", "export", "reminder"
    }  # fmt: skip
    argument = {"number": 1, "items": [{"price": 3, "count": 2}]}
    assert invoice_result(argument)["total"] == 6
