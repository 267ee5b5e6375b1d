"""Holds what became of the demo's jobs against what was sent, by their documents."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jqmaster.demo.plan import FLOODING, Sent

AT_ONCE = 4  # reports of a customer
ENDED = ("done", "error", "cancelled")

Documents = Mapping[str, Mapping[str, Any]]  # by job id


def problems_of_jobs(
    plan: Sequence[Sent], documents: Documents, results: Mapping[str, Any], cut_off: int
) -> Iterator[str]:
    """What is lost, doubled or wrong. `cut_off`: how many jobs may have run once more: those that a
    killed worker held, and whose outcomes it had not told yet."""
    if len({sent.id for sent in plan}) != len(plan):
        yield "two jobs have the same id"
    again = 0
    for sent in plan:
        document = documents.get(sent.id)
        if document is None:
            yield f"{sent.name} {sent.id}: lost, there is no record of it"
            continue
        attempts = sent.failures + (sent.ends == "done")
        again += document["attempt"] != attempts
        for problem in _problems_of_job(sent, document, results.get(sent.id)):
            yield f"{sent.name} {sent.id}: {problem}"
    if again > cut_off:
        yield f"{again} jobs ran more often than they had to"


def _problems_of_job(sent: Sent, document: Mapping[str, Any], result: Any) -> Iterator[str]:
    if document["status"] != sent.ends:
        yield f"is {document['status']} ({document.get('message', '')}), expected {sent.ends}"
    if document["retry_count"] < sent.failures:
        yield f"failed {document['retry_count']} times, expected {sent.failures}"
    if result != sent.result:
        yield f"gave {result!r}, expected {sent.result!r}"
    delay_ms = sent.options.get("delay", 0) * 999
    if "started_ms" in document and document["started_ms"] < document["created_ms"] + delay_ms:
        yield f"started before its delay of {sent.options['delay']} s was over"


def check_limit(plan: Sequence[Sent], documents: Documents) -> tuple[str, list[str]]:
    """What the limit of reports did, in a line, and what is wrong with it. By Redis' clock, of last attempts."""
    reports: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for sent in plan:
        if sent.name == "report" and "ended_ms" in documents.get(sent.id, ()):
            reports[sent.argument["customer"]].append(documents[sent.id])
    most = {customer: most_at_once(ended) for customer, ended in reports.items()}
    problems = [
        f"{customer} had {count} reports running at once, the limit is {AT_ONCE}"
        for customer, count in most.items()
        if count > AT_ONCE
    ]
    flood = reports.pop(FLOODING, [])
    flood_s = _longest_wait_s(flood)
    others_s = _longest_wait_s(document for ended in reports.values() for document in ended)
    if others_s > flood_s / 2:  # in one line with the flood they would wait as long as its last job
        problems.append(f"others waited up to {others_s:.2f} s behind {FLOODING}, which waited {flood_s:.2f} s")
    line = (
        f"{FLOODING} sent {len(flood)} reports in one go, had up to {most.get(FLOODING)} running at once ({AT_ONCE} are"
        f" allowed), and waited up to {flood_s:.1f} s;\n"
        f"{len(reports)} other customers, who sent theirs behind, waited up to {others_s:.2f} s."
    )
    return line, problems


def _longest_wait_s(documents: Iterable[Mapping[str, Any]]) -> float:
    """From being sent to the start; a job that was started again says nothing of its first one."""
    waits = (one["started_ms"] - one["created_ms"] for one in documents if one["attempt"] == 1)
    return max(waits, default=0) / 1000


def most_at_once(ended: Iterable[Mapping[str, Any]]) -> int:
    """How many of these jobs share a moment; what starts when another ends does not meet it."""
    changes = sorted(change for job in ended for change in ((job["started_ms"], 1), (job["ended_ms"], -1)))
    running = most = 0
    for _, change in changes:
        running += change
        most = max(most, running)
    return most


def table(plan: Sequence[Sent], documents: Documents) -> str:
    """The summary, one line per kind of job."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for sent in plan:
        document = documents.get(sent.id, {})
        for name in (sent.name, "all"):
            rows[name].update(["sent", document.get("status", "lost")])
            rows[name]["failures"] += document.get("retry_count", 0)
    columns = ("sent", *ENDED, "failures")
    lines = [
        f"{name:<14}" + "".join(f"{rows[name][column]:>11}" for column in columns)
        for name in sorted(rows, key=lambda name: (name == "all", name))
    ]
    return "\n".join([f"{'job':<14}" + "".join(f"{column:>11}" for column in columns), *lines])
