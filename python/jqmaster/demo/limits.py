"""The demo's two limits: how they are set, and whether they held.

Each count has one witness on one clock. What ran at once is what the workers saw, by the monotonic clock,
which all processes of a machine share: a function runs within what the engine counts as running, so an
overlap seen there was one for the engine, too. When a job was sent and started is Redis' word, by its clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from jqmaster.client.app import JQ
from jqmaster.demo.journal import Moment
from jqmaster.demo.plan import FLOODING, Sent

PER_CUSTOMER = "reports-per-customer"
AT_ONCE = 4
MESSAGE_RATE = "text-messages"
PERIOD_S = 1
SECONDS_OF_MESSAGES = 5


def message_limit(plan: Sequence[Sent]) -> int:
    """Text messages in any second, such that the plan's take a few seconds."""
    return max(1, sum(sent.kind == "text-message" for sent in plan) // SECONDS_OF_MESSAGES)


async def set_limits(client: JQ, plan: Sequence[Sent]) -> str:
    """Set both over HTTP, and say what they are."""
    limit = message_limit(plan)
    await client.aconstrain(PER_CUSTOMER, {"name": "report"}, by="argument.customer", concurrency=AT_ONCE)
    await client.aconstrain(MESSAGE_RATE, {"name": "text-message"}, rate={"limit": limit, "period": PERIOD_S})
    return f"limits: {AT_ONCE} reports at once for each customer, {limit} text messages in any second"


async def flood_use(client: JQ) -> tuple[int, int]:
    """How many reports of the flooding customer run, and how many its limit holds back."""
    for key in await client.ausage(PER_CUSTOMER):
        if key["by"] == FLOODING:
            return key["running"], key["held"]
    return 0, 0


async def why_it_waits(client: JQ, plan: Sequence[Sent]) -> str:
    """What the engine says about the last report of the flood; nothing once it has started."""
    last = [sent for sent in plan if sent.customer == FLOODING and sent.id][-1]
    said = await client.handle(last.id).aexplain()
    for one in said.get("constraints", ()):
        use = f"{one['id']} of {one['by']!r} has {one['running']} of {one['concurrency']} running"
        return f"why does {last.id} wait? {use}; {said['ahead']} are ahead of it"
    return ""


# -- the check ------------------------------------------------------------------------------------


@dataclass
class Findings:
    """What the limits did, a line each, and everything that is not as it should be."""

    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def check_limits(
    plan: Sequence[Sent],
    documents: Mapping[str, Mapping[str, Any] | None],
    moments: Mapping[str, Sequence[Moment]],
    killed: str,
    killed_at_s: float,
) -> Findings:
    """`documents` by job id; `moments` by worker; `killed` was cut off at `killed_at_s`."""
    findings = Findings()
    _check_customers(plan, documents, _spans(moments, killed, killed_at_s), findings)
    _check_messages(plan, documents, findings)
    return findings


Spans = defaultdict[str, list[tuple[float, float]]]  # by job id: when a function began and ended, seconds


def _spans(moments: Mapping[str, Sequence[Moment]], killed: str, killed_at_s: float) -> Spans:
    spans: Spans = defaultdict(list)
    for worker, noted in moments.items():
        ends = {(one.job, one.attempt): one.at_s for one in noted if one.what == "end"}
        cut_s = killed_at_s if worker == killed else inf
        for one in noted:
            if one.what == "start":
                end_s = ends.get((one.job, one.attempt), cut_s)
                spans[one.job].append((one.at_s, max(one.at_s, end_s)))
    return spans


def _check_customers(
    plan: Sequence[Sent], documents: Mapping[str, Mapping[str, Any] | None], spans: Spans, findings: Findings
) -> None:
    ids = defaultdict(list)
    for sent in plan:
        if sent.customer:
            ids[sent.customer].append(sent.id)
    most = {who: most_at_once(span for job in jobs for span in spans[job]) for who, jobs in ids.items()}
    flood = ids.pop(FLOODING)
    flood_s = _waits_s(documents, flood)
    others_s = _waits_s(documents, [job for jobs in ids.values() for job in jobs])
    for who, count in most.items():
        if count > AT_ONCE:
            findings.problems.append(f"{who} had {count} reports running at once, the limit is {AT_ONCE}")
    if most[FLOODING] < AT_ONCE:
        findings.problems.append(f"{FLOODING} never had {AT_ONCE} reports running, only {most[FLOODING]}")
    # In one line with the flood they would wait for as long as its last job.
    if max(others_s) > max(flood_s) / 2:
        findings.problems.append(
            f"others waited up to {max(others_s):.2f} s behind {FLOODING}, which waited {max(flood_s):.2f} s"
        )
    findings.lines.append(
        f"Customers: {FLOODING} sent {len(flood)} reports in one go, had up to {most.pop(FLOODING)} running"
        f" at once ({AT_ONCE} are allowed), and waited up to {max(flood_s):.1f} s;\n"
        f"           {len(ids)} others, who sent theirs behind, had up to {max(most.values())} running each"
        f" and waited up to {max(others_s):.2f} s."
    )


def _check_messages(
    plan: Sequence[Sent], documents: Mapping[str, Mapping[str, Any] | None], findings: Findings
) -> None:
    limit = message_limit(plan)
    found = [documents.get(sent.id) for sent in plan if sent.kind == "text-message"]
    # The last start of each. One that the kill cut off is not known: the count may be too low, not too high.
    starts_ms = [document["started_ms"] for document in found if document and "started_ms" in document]
    most = most_within(starts_ms, PERIOD_S * 1000)
    if most > limit:
        findings.problems.append(f"{most} text messages started within a second, the limit is {limit}")
    if most < limit:
        findings.problems.append(f"never more than {most} of {limit} text messages started within a second")
    took_s = (max(starts_ms) - min(starts_ms)) / 1000 if starts_ms else 0
    findings.lines.append(
        f"Rate:      {len(starts_ms)} text messages started within {took_s:.1f} s, up to {most} of them in"
        f" any second ({limit} are allowed)."
    )


def _waits_s(documents: Mapping[str, Mapping[str, Any] | None], ids: Iterable[str]) -> list[float]:
    """From being sent to the start; what was started again after the kill says nothing of its first one."""
    found = [document for document in map(documents.get, ids) if document and document["attempt"] == 1]
    return [(document["started_ms"] - document["created_ms"]) / 1000 for document in found] or [0.0]


def most_at_once(spans: Iterable[tuple[float, float]]) -> int:
    """How many of these spans share a moment. Who begins at the moment when another ends does not meet it."""
    changes = sorted(change for start, end in spans for change in ((start, 1), (end, -1)))
    running = most = 0
    for _, change in changes:
        running += change
        most = max(most, running)
    return most


def most_within(starts: Iterable[int], period: int) -> int:
    """The most starts in any window of that length, one of its ends not included."""
    ordered = sorted(starts)
    first = most = 0
    for last, start in enumerate(ordered):
        while start - ordered[first] >= period:
            first += 1
        most = max(most, last - first + 1)
    return most
