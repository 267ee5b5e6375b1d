"""The demo tells the truth: it passes when all is well, and its check finds what is not."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jqmaster
from jqmaster.demo.check import check, table
from jqmaster.demo.functions import invoice_result
from jqmaster.demo.journal import Entry, Journal, Moment, read
from jqmaster.demo.limits import AT_ONCE, check_limits, message_limit, most_at_once, most_within
from jqmaster.demo.plan import FLOODING, OTHERS, Sent, make_plan
from jqmaster.engine.replies import Job
from jqmaster.worker.worker import Outcome, current_job
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
    with Process("jqmaster.demo", "--jobs", "1000") as demo:
        code = demo.ends(LONGEST_S)
        assert code == 0, demo.text
        assert "nothing was finished twice" in demo.text
        assert "kill -9" in demo.text
        assert re.search(r"wait\? reports-per-customer of 'globex' has \d of 4 running; \d+ are ahead", demo.text)
        assert re.search(r"globex sent 60 reports .* up to 4 running at once \(4 are allowed\)", demo.text)
        assert re.search(r"20 text messages .* up to 4 of them in any second \(4 are allowed\)", demo.text)
        assert re.search(r"^all\s+1000\s+930\s+60\s+10\s", demo.text, re.M)
    assert left_over() == before


@pytest.mark.faults
def test_ctrl_c_stops_all_it_started() -> None:
    before = left_over()
    with Process("jqmaster.demo", ready="workers") as demo:
        demo.signal(signal.SIGINT)
        assert demo.ends() == 130
    assert left_over() == before


@pytest.mark.faults
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
    assert demo.wait(60) == 0, text.decode()
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


# -- the check of the limits ----------------------------------------------------------------------

LIMITED = [sent for sent in make_plan(600) if sent.kind in ("report", "text-message")]
for number, one in enumerate(LIMITED):
    one.id = str(number)
FLOOD = [sent.id for sent in LIMITED if sent.customer == FLOODING]
BEHIND = [sent.id for sent in LIMITED if sent.customer in OTHERS]
MESSAGES = [sent.id for sent in LIMITED if sent.kind == "text-message"]
CUSTOMER = next(sent.customer for sent in LIMITED if sent.id == BEHIND[0])
LIMIT = message_limit(LIMITED)


def held() -> tuple[dict[str, Any], list[Moment]]:
    """Limits used up and kept: the flood goes in rounds of a second, the others at once."""
    rounds = {job: index // AT_ONCE for index, job in enumerate(FLOOD)}
    seconds = {job: index // LIMIT for index, job in enumerate(MESSAGES)}
    starts_s = {**dict.fromkeys(BEHIND, 0), **rounds, **seconds}
    documents = {
        job: {"attempt": 1, "created_ms": 5_000, "started_ms": 5_000 + start_s * 1000}
        for job, start_s in starts_s.items()
    }
    moments = []
    for job, start_s in starts_s.items():
        moments += [Moment(job, 1, "start", start_s), Moment(job, 1, "end", start_s + 1)]
    return documents, moments


def test_the_check_is_content_when_limits_hold() -> None:
    documents, moments = held()
    by_worker = {"a": moments[: len(FLOOD)], "b": moments[len(FLOOD) :]}
    findings = check_limits(LIMITED, documents, by_worker, "", 0.0)
    assert not findings.problems
    assert f"{len(FLOOD)} reports in one go, had up to {AT_ONCE} running at once" in findings.lines[0]
    assert f"up to {LIMIT} of them in any second" in findings.lines[1]


def test_what_a_killed_worker_ran_ends_with_it() -> None:
    documents, moments = held()
    by_worker = {"a": [one for one in moments if one.job != FLOOD[0]], "b": [Moment(FLOOD[0], 1, "start", 0)]}
    assert not check_limits(LIMITED, documents, by_worker, "b", 0.5).problems
    [late] = check_limits(LIMITED, documents, by_worker, "b", 1.5).problems
    assert late == f"{FLOODING} had {AT_ONCE + 1} reports running at once, the limit is {AT_ONCE}"


def put_off(moments: list[Moment], job: str, by_s: float) -> None:
    moments[:] = [one._replace(at_s=one.at_s + by_s) if one.job == job else one for one in moments]


SpoilLimits = Callable[[dict[str, Any], list[Moment]], Any]
SPOILED_LIMITS: list[tuple[str, SpoilLimits]] = [
    (f"{FLOODING} had {AT_ONCE + 1} reports running", lambda d, m: put_off(m, FLOOD[0], 0.5)),
    (
        f"{CUSTOMER} had 6 reports",
        lambda d, m: m.extend(Moment(BEHIND[0], n, "start", 0) for n in range(2, 7)),
    ),
    (f"{FLOODING} never had {AT_ONCE} reports", lambda d, m: m.clear()),
    ("others waited up to", lambda d, m: d[BEHIND[-1]].update(started_ms=5_000 + len(FLOOD) * 1000)),
    ("started within a second, the limit is", lambda d, m: d[MESSAGES[LIMIT]].update(started_ms=5_999)),
    ("never more than", lambda d, m: [d[job].update(started_ms=int(job) * 9000) for job in MESSAGES]),
]


@pytest.mark.parametrize(("said", "spoil"), SPOILED_LIMITS, ids=[said for said, _ in SPOILED_LIMITS])
def test_the_check_finds_a_limit_that_did_not_hold(said: str, spoil: SpoilLimits) -> None:
    documents, moments = held()
    spoil(documents, moments)
    problems = check_limits(LIMITED, documents, {"a": moments}, "", 0.0).problems
    assert any(said in problem for problem in problems), problems


def test_spans_that_touch_do_not_overlap() -> None:
    assert most_at_once([]) == 0
    assert most_at_once([(0, 1), (1, 2), (1.5, 3), (1.9, 1.95)]) == 3


def test_a_window_does_not_hold_both_its_ends() -> None:
    assert most_within([], 1000) == 0
    assert most_within([0, 1000, 1, 1999, 2000], 1000) == 2
    assert most_within([0, 999], 1000) == 2
    assert most_within([0, 1000], 1000) == 1


async def test_a_journal_keeps_what_was_begun_and_what_was_accepted(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    job = Job("1", "2-0123456789ab", "report", "report", 0, 2, 1, 30.0, b"\xc0")

    async def fails(argument: Any) -> None:
        raise ValueError(argument)

    current_job.set(job)
    with pytest.raises(ValueError, match="why"):
        await journal.around(fails)("why")
    journal.note(Outcome(job, {"type": "failure"}), "retrying")
    journal.note(Outcome(job, {"type": "failure"}), "LOST")
    with path.open("a") as torn:
        torn.write('["Moment", "1"')
    assert read(path, Entry) == [Entry("1", 2, "failure", "retrying")]
    start, end = read(path, Moment)
    assert (start[:3], end[:3]) == (("1", 2, "start"), ("1", 2, "end"))
    assert start.at_s <= end.at_s
    assert read(tmp_path / "none", Moment) == []


def test_the_plan_is_the_same_every_time() -> None:
    assert make_plan(500) == make_plan(500)
    assert {sent.kind for sent in make_plan(500)} == {
        "thumbnail", "invoice", "sync-account", "charge-card", "export", "reminder", "report", "text-message"
    }  # fmt: skip
    argument = {"number": 1, "items": [{"price": 3, "count": 2}]}
    assert invoice_result(argument)["total"] == 6
