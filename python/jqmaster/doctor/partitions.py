"""What is wrong with a system: each partition is looked at, and what several have alike is told once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jqmaster.doctor import doctor
from jqmaster.doctor.finding import Finding
from jqmaster.errors import JQError
from jqmaster.system import bringing

if TYPE_CHECKING:
    from jqmaster.engine.engine import Engine
    from jqmaster.system.engine import SystemEngine


async def look(system: SystemEngine) -> list[Finding]:
    """All findings, the worst first; ``values.partitions`` has the numbers of those concerned. Raises what reading the
    record does."""
    live = await system.live()
    answers = dict(zip(live, await asyncio.gather(*(_of(*one) for one in live.items())), strict=True))
    found = _together(answers) + await _settings(system, live, answers)
    return sorted(found, key=lambda finding: doctor.ORDER.index(finding.level))


async def _of(number: int, engine: Engine) -> list[Finding]:
    try:
        return await doctor.look(engine)
    except JQError as problem:
        title = f"partition {number}, {engine.namespace}, does not answer"
        do = "See `jqmaster system show`, and the node that has its slot."
        return [Finding("partition", "problem", title, f"{problem}.", do, engine.namespace)]


def _together(answers: Mapping[int, Sequence[Finding]]) -> list[Finding]:
    alike: dict[tuple[str, str, str], list[tuple[int, Finding]]] = {}
    for number, findings in answers.items():
        for finding in findings:
            alike.setdefault((finding.check, finding.level, finding.title), []).append((number, finding))
    wrong = {check for check, level, _ in alike if level != "ok"}
    found = []
    for (check, level, title), each in alike.items():
        if level == "ok" and check in wrong:
            continue
        numbers = sorted({number for number, _ in each})
        if level != "ok" and check != "partition" and len(numbers) < len(answers):
            which = ", ".join(map(str, numbers))
            title = f"{title} (partition{'s' if len(numbers) > 1 else ''} {which})"
        first = each[0][1]
        found.append(replace(first, title=title, values={**first.values, "partitions": numbers}))
    return found


async def _settings(
    system: SystemEngine, engines: Mapping[int, Engine], answers: Mapping[int, Sequence[Finding]]
) -> list[Finding]:
    """Partitions that have other settings than the latest, among those that answer."""
    silent = {number for number, found in answers.items() if any(one.check == "partition" for one in found)}
    numbers = [number for number in engines if number not in silent]
    if 0 in silent or system.record is None:
        return []
    found = []
    try:
        told = await bringing.behind([engines[number] for number in numbers], system.record.routes)
    except JQError:
        return []  # of partition 0, whose trouble is told already
    for number, behind in zip(numbers, told, strict=True):
        if isinstance(behind, JQError):
            means, title = f"{behind}.", f"the settings of partition {number} cannot be read"
        elif behind:
            means = f"It is behind with {', '.join(one.what for one in behind[:10])}."
            title = f"partition {number} has other settings than the latest"
        else:
            continue
        do = f"`jqmaster system sync --namespace '{system.root}'` brings them."
        values = {"partitions": [number]}
        found.append(Finding("settings", "warning", title, means, do, engines[number].namespace, values))
    return found or [Finding("settings", "ok", "all partitions have the same settings")]
