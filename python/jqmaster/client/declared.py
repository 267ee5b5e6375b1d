"""What a program declares beside its jobs: limits and schedules, which workers bring to the server when they start."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from jqmaster.client.task import ScheduleOptions, Task, When
from jqmaster.connection.wake import backoff_s
from jqmaster.engine import options, zones
from jqmaster.engine.options import Limits, known
from jqmaster.errors import Invalid, Unavailable

log = logging.getLogger("jqmaster.jobs")

Match = Mapping[str, Any] | Task[..., Any]
"""Which jobs: a map of conditions (docs/limits.md), or a task, which stands for its name."""


class LimitOptions(Limits, total=False):
    """And the `id` of a declared one; default: the task's name."""

    id: str | None


class Limit(NamedTuple):
    """One that a program declares."""

    id: str
    match: Mapping[str, Any]
    limits: Limits

    def __str__(self) -> str:
        return f"limit {self.id}"

    async def bring(self, jq: Any) -> None:
        """Raises what the operation does."""
        declared = _digest(self.match, self.limits)
        await jq.acall("constrain", self.id, self.match, **{"declared": declared, **self.limits})


class Schedule(NamedTuple):
    """One that a program declares."""

    id: str
    task: Task[..., Any]
    when: ScheduleOptions

    def __str__(self) -> str:
        return f"schedule {self.id}"

    async def bring(self, jq: Any) -> None:
        """Raises what the operation does, and what the serializer raises."""
        when = self.when.copy()  # what is left of it in the end says when
        call = self.task.options(**when.pop("options", {})).call(when.pop("args", ()), when.pop("kwargs", {}))
        # A new rule of a time zone makes another declaration.
        when.setdefault("declared", _digest(call.spec(), call.argument.hex(), zones.with_rule(options.when_of(when))))
        await jq.arepeat(self.id, call, **cast(When, when))


def limit_of(match: Match, limits: LimitOptions) -> Limit:
    """Raises TypeError for one that cannot be."""
    own: dict[str, Any] = {**limits}
    limit_id = own.pop("id", None) or (match.name if isinstance(match, Task) else None)
    if isinstance(match, Task):
        match = {"name": match.name}
    if not isinstance(match, Mapping):
        raise TypeError(f"expected a task (@jq.limit goes above @jq.job), or a map of conditions; got {match!r}")
    if not isinstance(limit_id, str):
        raise TypeError("give the limit an id: jq.limit({...}, id='per-customer', concurrency=5)")
    return Limit(limit_id, match, cast(Limits, known(own, Limits, "option of a limit")))


def schedule_of(task: Any, when: ScheduleOptions) -> Schedule:
    """Raises TypeError or ValueError for one that cannot be. When its moments are the engine judges."""
    if not isinstance(task, Task):
        raise TypeError("@jq.schedule(...) goes above @jq.job")
    known(when, ScheduleOptions)
    task.options(**when.get("options", {}))
    if task.signature is not None:  # values wait until all types are known
        task.signature.bind(tuple(when.get("args", ())), when.get("kwargs", {}))
    return Schedule(when.pop("id", None) or task.name, task, when)


async def bring(jq: Any, tried: asyncio.Event) -> None:
    """Bring all that a program declares. Sets `tried` when the server cannot be reached: it gets the rest later, then.
    Raises ValueError for what cannot be, such as a cron expression that is none: a program with it must not start as if
    all were well."""
    declared: list[Limit | Schedule] = [*jq.limits.values(), *jq.recurring.values()]  # a schedule's jobs may be due
    for item in declared:
        failures = 0
        while True:
            try:
                await item.bring(jq)
                break
            except Unavailable as error:
                log.log(logging.DEBUG if failures else logging.WARNING, "%s comes later: %s", item, error)
                tried.set()
                await asyncio.sleep(backoff_s(failures))
                failures += 1
            except Exception as error:  # also what a serializer raises: the others are to be brought all the same
                if isinstance(error, Invalid | TypeError | ValueError) and not tried.is_set():
                    raise ValueError(f"{item}: {error}") from error
                log.error("%s is refused: %s", item, error)
                break


def _digest(*declaration: Any) -> str:
    """Equal for equal declarations, in every process."""
    text = json.dumps(declaration, sort_keys=True, default=repr)
    return hashlib.blake2s(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
