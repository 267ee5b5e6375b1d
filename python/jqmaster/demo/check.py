"""Holds what became of the demo's jobs against what was sent.

Which outcomes were accepted is what the workers wrote down; when a job was sent, started and ended is Redis' word.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jqmaster.demo.journal import Entry
from jqmaster.demo.plan import FLOODING, Sent

AT_ONCE = 4  # reports of a customer
ENDED = ("done", "error", "cancelled")

Documents = Mapping[str, Mapping[str, Any]]  # by job id


def problems_of_jobs(
    plan: Sequence[Sent], documents: Documents, results: Mapping[str, Any], entries: Sequence[Entry], cut_off: int
) -> Iterator[str]:
    """What is lost, doubled or wrong. `cut_off`: how many jobs a killed worker may have held."""
    accepted: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        accepted[entry.job].append(entry)
    if len({sent.id for sent in plan}) != len(plan):
        yield "two jobs have the same id"
    if strange := set(accepted) - {sent.id for sent in plan}:
        yield f"workers finished jobs nobody sent: {sorted(strange)[:3]}"
    unheard = [sent.id for sent in plan if sent.ends != "cancelled" and not _ends(accepted[sent.id])]
    if len(unheard) > cut_off:
        yield f"no worker says that it finished {len(unheard)} jobs: {unheard[:3]}"
    for sent in plan:
        document = documents.get(sent.id)
        if document is None:
            yield f"{sent.kind} {sent.id}: lost, there is no record of it"
            continue
        for problem in _problems_of_job(sent, document, results.get(sent.id), accepted[sent.id]):
            yield f"{sent.kind} {sent.id}: {problem}"


def _ends(accepted: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in accepted if entry.state in ENDED]


def _problems_of_job(sent: Sent, document: Mapping[str, Any], result: Any, accepted: Sequence[Entry]) -> Iterator[str]:
    was_cut_off = document["attempt"] > len(accepted)  # an attempt that no worker reported: it died with its worker
    failures = document["retry_count"]
    if document["status"] != sent.ends:
        yield f"is {document['status']} ({document.get('message', '')}), expected {sent.ends}"
    if failures < sent.failures or (failures > sent.failures and not was_cut_off):
        yield f"failed {failures} times, expected {sent.failures}"
    if result != sent.result:
        yield f"gave {result!r}, expected {sent.result!r}"
    if "started_ms" in document and document["started_ms"] < document["created_ms"] + sent.spec.get("delay", 0) * 999:
        yield f"started before its delay of {sent.spec['delay']} s was over"
    if len(_ends(accepted)) > 1:
        yield "finished twice"
    for entry in _ends(accepted):
        if entry.state != document["status"]:
            yield f"is {document['status']}, and was accepted as {entry.state}"
    if len({entry.attempt for entry in accepted}) != len(accepted):
        yield "an attempt was accepted twice"


def check_limit(plan: Sequence[Sent], documents: Documents) -> tuple[str, list[str]]:
    """What the limit of reports did, in a line, and what is wrong with it. By Redis' clock, of last attempts."""
    reports: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for sent in plan:
        if sent.customer and "ended_ms" in documents.get(sent.id, ()):
            reports[sent.customer].append(documents[sent.id])
    most = {customer: most_at_once(ended) for customer, ended in reports.items()}
    problems = [
        f"{customer} had {count} reports running at once, the limit is {AT_ONCE}"
        for customer, count in most.items()
        if count > AT_ONCE
    ]
    flood = reports.pop(FLOODING, [])
    flood_s = _longest_wait_s(flood)
    others_s = _longest_wait_s(document for ended in reports.values() for document in ended)
    if most.get(FLOODING, 0) < AT_ONCE:
        problems.append(f"{FLOODING} never had {AT_ONCE} reports running")
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
        for kind in (sent.kind, "all"):
            rows[kind].update(["sent", document.get("status", "lost")])
            rows[kind]["failures"] += document.get("retry_count", 0)
            rows[kind]["results"] += sent.result is not None
    columns = ("sent", *ENDED, "failures", "results")
    lines = [
        f"{kind:<14}" + "".join(f"{rows[kind][column]:>11}" for column in columns)
        for kind in sorted(rows, key=lambda kind: (kind == "all", kind))
    ]
    head = f"{'kind':<14}" + "".join(f"{column:>11}" for column in columns)
    return "\n".join([head, "-" * len(head), *lines[:-1], "-" * len(head), lines[-1]])
