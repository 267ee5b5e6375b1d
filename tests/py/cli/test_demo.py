"""The demo tells the truth: it passes when all is well, and its check finds what is not."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jqmaster.demo.check import AT_ONCE, check_limit, most_at_once, problems_of_jobs
from jqmaster.demo.journal import Entry, read
from jqmaster.demo.plan import FLOODING, OTHERS, Sent, make_plan
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
        assert re.search(r"^all +1000 +\d+ +\d+ +\d+ +\d+ +\d+$", demo.text, re.M)
    assert left_over() == before


@pytest.mark.faults
def test_ctrl_c_stops_all_it_started() -> None:
    before = left_over()
    with Process("jqmaster.cli", "demo", ready="workers") as demo:
        demo.signal(signal.SIGINT)
        assert demo.ends() == 130
    assert left_over() == before


# -- the check ------------------------------------------------------------------------------------

DONE = Sent({"name": "thumbnail", "argument": {}}, id="1")
INVOICE = Sent({"name": "invoice", "argument": {}}, result={"total": 3}, id="2")
FLAKY = Sent({"name": "sync-account", "argument": {}}, failures=1, id="3")
LATER = Sent({"name": "reminder", "argument": {}, "delay": 4}, id="4")

Documents = dict[str, dict[str, Any]]


def well() -> tuple[Documents, dict[str, Any], list[Entry]]:
    documents: Documents = {
        "1": {"status": "done", "retry_count": 0, "attempt": 1, "created_ms": 0, "started_ms": 1},
        "2": {"status": "done", "retry_count": 0, "attempt": 1, "created_ms": 0, "started_ms": 1},
        "3": {"status": "done", "retry_count": 1, "attempt": 2, "created_ms": 0, "started_ms": 1},
        "4": {"status": "done", "retry_count": 0, "attempt": 1, "created_ms": 0, "started_ms": 4000},
    }
    entries = [Entry(job, 1, "success", "done") for job in "124"]
    entries += [Entry("3", 1, "failure", "retrying"), Entry("3", 2, "success", "done")]
    return documents, {"2": {"total": 3}}, entries


def problems(documents: Documents, results: dict[str, Any], entries: list[Entry], cut_off: int = 0) -> list[str]:
    return list(problems_of_jobs([DONE, INVOICE, FLAKY, LATER], documents, results, entries, cut_off))


def test_the_check_is_content_when_all_is_well() -> None:
    assert problems(*well()) == []
    documents, results, entries = well()
    assert problems(documents, results, entries[1:], cut_off=1) == []


Spoil = Callable[[Documents, dict[str, Any], list[Entry]], Any]
SPOILED: list[tuple[str, Spoil]] = [
    ("lost", lambda documents, _, entries: documents.pop("1")),
    ("is running", lambda documents, _, entries: documents["1"].update(status="running")),
    ("finished twice", lambda _d, _r, entries: entries.append(Entry("1", 2, "success", "done"))),
    ("accepted twice", lambda _d, _r, entries: entries.append(Entry("3", 1, "failure", "retrying"))),
    ("gave None", lambda _d, results, _e: results.clear()),
    ("failed 0 times", lambda documents, _, entries: documents["3"].update(retry_count=0)),
    ("failed 2 times", lambda documents, _, entries: documents["3"].update(retry_count=2)),
    ("no worker says", lambda _d, _r, entries: entries.pop(0)),
    ("nobody sent", lambda _d, _r, entries: entries.append(Entry("9", 1, "success", "done"))),
    ("was accepted as error", lambda _d, _r, entries: entries.append(Entry("1", 1, "failure", "error"))),
    ("before its delay", lambda documents, _, entries: documents["4"].update(started_ms=3000)),
]


@pytest.mark.parametrize(("problem", "spoil"), SPOILED, ids=[problem for problem, _ in SPOILED])
def test_the_check_finds_what_is_wrong(problem: str, spoil: Spoil) -> None:
    documents, results, entries = well()
    spoil(documents, results, entries)
    assert any(problem in each for each in problems(documents, results, entries))


REPORTS = [sent for sent in make_plan(600) if sent.customer]
for number, report in enumerate(REPORTS):
    report.id = str(number)
FLOOD = [sent.id for sent in REPORTS if sent.customer == FLOODING]
BEHIND = [sent.id for sent in REPORTS if sent.customer in OTHERS]


def held() -> Documents:
    """The limit used up and kept: the flood goes in rounds of a second, the others at once."""
    rounds = {**dict.fromkeys(BEHIND, 0), **{job: index // AT_ONCE for index, job in enumerate(FLOOD)}}
    return {
        job: {"attempt": 1, "created_ms": 0, "started_ms": start_s * 1000, "ended_ms": start_s * 1000 + 1000}
        for job, start_s in rounds.items()
    }


SPOILED_LIMITS: list[tuple[str, Callable[[Documents], Any]]] = [
    (f"{FLOODING} had {AT_ONCE + 1} reports running", lambda documents: documents[FLOOD[0]].update(ended_ms=1500)),
    (f"{FLOODING} never had {AT_ONCE} reports", lambda documents: [documents.pop(job) for job in FLOOD]),
    ("others waited up to", lambda documents: documents[BEHIND[-1]].update(started_ms=len(FLOOD) * 1000)),
]


@pytest.mark.parametrize(("problem", "spoil"), SPOILED_LIMITS, ids=[problem for problem, _ in SPOILED_LIMITS])
def test_the_check_finds_a_limit_that_did_not_hold(problem: str, spoil: Callable[[Documents], Any]) -> None:
    documents = held()
    line, found = check_limit(REPORTS, documents)
    assert not found
    assert f"{len(FLOOD)} reports in one go, had up to {AT_ONCE} running at once" in line
    spoil(documents)
    assert any(problem in each for each in check_limit(REPORTS, documents)[1])


def test_jobs_that_touch_do_not_overlap() -> None:
    times = [(0, 1000), (1000, 2000), (1500, 3000), (1900, 1950)]
    assert most_at_once([]) == 0
    assert most_at_once({"started_ms": start, "ended_ms": end} for start, end in times) == 3


def test_a_torn_last_line_of_a_journal_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text('["1", 2, "failure", "retrying"]\n["1"')
    assert read(tmp_path / "journal") == [Entry("1", 2, "failure", "retrying")]
    assert read(tmp_path / "none") == []


def test_the_plan_is_the_same_every_time() -> None:
    assert make_plan(500) == make_plan(500)
