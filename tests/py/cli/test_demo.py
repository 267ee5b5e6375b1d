"""The demo tells the truth: it passes when all is well, and its check finds what is not."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jqmaster.demo.check import AT_ONCE, Documents, check_limit, problems_of_jobs
from jqmaster.demo.plan import FLOODING, make_plan
from processes import Process

LONGEST_S = 280


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


@pytest.mark.faults
def test_the_demo_holds_and_leaves_nothing_behind() -> None:
    before = left_over()
    with Process("jqmaster.cli", "demo", "--jobs", "1000") as demo:
        code = demo.ends(LONGEST_S)
        assert code == 0, demo.text
        assert "nothing was finished twice" in demo.text
        assert "kill -9" in demo.text
        assert re.search(r"wait\? reports of 'globex' has \d of 4 running; \d+ are ahead", demo.text)
        assert re.search(r"globex sent 70 reports .* up to 4 running at once \(4 are allowed\)", demo.text)
        assert re.search(r"^all +1000 +\d+ +\d+ +\d+ +\d+$", demo.text, re.M)
    assert left_over() == before


@pytest.mark.faults
def test_ctrl_c_stops_all_it_started() -> None:
    before = left_over()
    with Process("jqmaster.cli", "demo", ready="workers") as demo:
        demo.signal(signal.SIGINT)
        assert demo.ends() == 130
    assert left_over() == before


PLAN = make_plan(500)
for number, sent in enumerate(PLAN):
    sent.id = str(number)
FLOOD = [sent.id for sent in PLAN if sent.argument.get("customer") == FLOODING]
OTHER = [sent.id for sent in PLAN if sent.name == "report" and sent.id not in FLOOD]
[DONE, FLAKY, INVOICE, LATER] = [
    next(sent.id for sent in PLAN if test(sent))
    for test in (
        lambda sent: sent.name == "thumbnail",
        lambda sent: sent.name == "sync_account" and sent.failures,
        lambda sent: sent.result,
        lambda sent: sent.options.get("delay", 3600) < 3600,
    )
]  # fmt: skip


def well() -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Of reports the flood goes in rounds of a second, the others at once."""
    start_ms = {job: index // AT_ONCE * 1000 for index, job in enumerate(FLOOD)}
    documents: dict[str, dict[str, Any]] = {}
    for sent in PLAN:
        began_ms = start_ms.get(sent.id, sent.options.get("delay", 0) * 1000)
        documents[sent.id] = {
            "status": sent.ends, "retry_count": sent.failures, "attempt": sent.failures + (sent.ends == "done"),
            "created_ms": 0, "started_ms": began_ms, "ended_ms": began_ms + 1000,
        }  # fmt: skip
    return documents, {sent.id: sent.result for sent in PLAN if sent.result}


def problems(documents: Documents, results: dict[str, Any]) -> list[str]:
    line, found = check_limit(PLAN, documents)
    assert f"{len(FLOOD)} reports in one go, had up to" in line
    return [*problems_of_jobs(PLAN, documents, results, 0), *found]


SPOILED: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("lost", lambda documents, _: documents.pop(DONE)),
    ("is running", lambda documents, _: documents[DONE].update(status="running")),
    ("ran more often", lambda documents, _: documents[DONE].update(attempt=2)),
    ("gave None", lambda _, results: results.pop(INVOICE)),
    ("failed 0 times", lambda documents, _: documents[FLAKY].update(retry_count=0)),
    ("before its delay", lambda documents, _: documents[LATER].update(started_ms=0)),
    (f"{FLOODING} had {AT_ONCE + 1} reports", lambda documents, _: documents[FLOOD[0]].update(ended_ms=1500)),
    ("others waited up to", lambda documents, _: documents[OTHER[-1]].update(started_ms=len(FLOOD) * 1000)),
]


def test_the_check_finds_what_is_wrong() -> None:
    assert problems(*well()) == []
    for problem, spoil in SPOILED:
        spoiled = well()
        spoil(*spoiled)
        assert any(problem in each for each in problems(*spoiled)), problem
