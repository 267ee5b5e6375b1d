"""Holds what became of the demo's jobs against what was sent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jqmaster.demo.journal import Entry
from jqmaster.demo.plan import Sent

FINAL = ("done", "error")


@dataclass
class Verdict:
    """The summary by kind, and everything that is not as it should be."""

    sent: Counter[str] = field(default_factory=Counter)
    states: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    retries: Counter[str] = field(default_factory=Counter)
    results: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.problems


def check(
    plan: Sequence[Sent],
    documents: Mapping[str, Mapping[str, Any] | None],
    results: Mapping[str, Any],
    journals: Mapping[str, Sequence[Entry]],
    killed: str,
) -> Verdict:
    """`documents` and `results` by job id; `journals` by worker; `killed`: the one that was killed on the
    way."""
    verdict = Verdict()
    accepted: dict[str, list[tuple[str, Entry]]] = defaultdict(list)
    for worker, entries in journals.items():
        for entry in entries:
            accepted[entry.job].append((worker, entry))
    for sent in plan:
        verdict.sent[sent.kind] += 1
        document = documents.get(sent.id)
        if document is None:
            verdict.problems.append(f"{sent.kind} {sent.id or '(no id)'}: lost, there is no record of it")
            continue
        verdict.states[sent.kind][document["status"]] += 1
        verdict.retries[sent.kind] += document["retry_count"]
        # An attempt that no worker reported: one that hung, as planned, or one that died with its worker.
        unheard = document["attempt"] - len(accepted[sent.id]) - sent.hangs
        for problem in [
            *_state_problems(sent, document, was_cut_off=bool(killed) and unheard > 0),
            *_result_problems(sent, results, verdict),
            *_journal_problems(document, accepted[sent.id], killed),
        ]:
            verdict.problems.append(f"{sent.kind} {sent.id}: {problem}")
    ids = [sent.id for sent in plan]
    if len(set(ids)) != len(ids):
        verdict.problems.append("two jobs have the same id")
    if strange := set(accepted) - set(ids):
        verdict.problems.append(f"workers finished jobs nobody sent: {sorted(strange)[:3]}")
    return verdict


def _state_problems(sent: Sent, document: Mapping[str, Any], *, was_cut_off: bool) -> list[str]:
    if document["status"] != sent.ends:
        return [f"is {document['status']} ({document.get('message', '')}), expected {sent.ends}"]
    problems = []
    failures = document["retry_count"]
    if failures < sent.retries or (failures > sent.retries and not was_cut_off):
        problems.append(f"failed {failures} times, expected {sent.retries}")
    if sent.reason is not None and document.get("reason") != sent.reason and not was_cut_off:
        problems.append(f"failed by {document.get('reason')}, expected {sent.reason}")
    if sent.delay_s and document["started_ms"] < document["created_ms"] + sent.delay_s * 1000 - 1:
        problems.append(f"started before its delay of {sent.delay_s} s was over")
    return problems


def _result_problems(sent: Sent, results: Mapping[str, Any], verdict: Verdict) -> list[str]:
    if not sent.keeps_result:
        return []
    if results.get(sent.id) != sent.result:
        return [f"gave {results.get(sent.id)!r}, expected {sent.result!r}"]
    verdict.results[sent.kind] += 1
    return []


def _journal_problems(document: Mapping[str, Any], accepted: Sequence[tuple[str, Entry]], killed: str) -> list[str]:
    problems = []
    ends = [(worker, entry) for worker, entry in accepted if entry.state in FINAL]
    if len(ends) > 1:
        problems.append("finished twice: " + ", ".join(f"attempt {e.attempt} by {w}" for w, e in ends))
    elif len(ends) == 1 and ends[0][1].state != document["status"]:
        problems.append(f"was accepted as {ends[0][1].state} and is {document['status']}")
    elif not ends and document["status"] in FINAL and document.get("holder") != killed:
        # Only the killed worker may have been cut off between the answer and its journal. Leases that run
        # out in the last attempt end a job with no worker's word, but no job of the plan ends so.
        problems.append(f"is {document['status']}, and no worker says that it finished it")
    if len({entry.attempt for _, entry in accepted}) != len(accepted):
        problems.append("an attempt was accepted twice")
    return problems


def table(verdict: Verdict) -> str:
    """The summary, one line per kind of job."""
    columns = ("done", "error", "cancelled")

    def row(kind: str, sent: Any, states: Mapping[str, Any], failures: Any, results: Any) -> str:
        return f"{kind:<14}{sent:>7}" + "".join(f"{states[one]:>11}" for one in columns) + f"{failures:>10}{results:>9}"

    head = row("kind", "sent", {name: name for name in columns}, "failures", "results")
    kinds = sorted(verdict.sent)
    rows = [
        row(one, verdict.sent[one], verdict.states[one], verdict.retries[one], verdict.results[one]) for one in kinds
    ]
    states = sum((verdict.states[kind] for kind in kinds), Counter[str]())
    total = row("all", verdict.sent.total(), states, verdict.retries.total(), verdict.results.total())
    line = "-" * len(head)
    return "\n".join([head, line, *rows, line, total])
