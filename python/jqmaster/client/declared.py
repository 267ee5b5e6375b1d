"""What a program declares beside its jobs, limits and schedules: workers bring it to the server when they start."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from jqmaster.client.limits import Declared, matcher_of
from jqmaster.client.task import Call, ScheduleOptions, Task, When
from jqmaster.connection.wake import backoff_s
from jqmaster.engine import options, zones
from jqmaster.engine.options import JobOptions
from jqmaster.errors import Invalid, Unavailable

if TYPE_CHECKING:
    from jqmaster.client.registry import Registry

log = logging.getLogger("jqmaster.jobs")


async def bring(jq: Registry, tried: asyncio.Event) -> None:
    """Bring all of it. Sets `tried` when that is done, or the server cannot be reached: it gets the rest later,
    then. Raises ValueError for what cannot be, such as a cron expression that is none: a program with it must not
    start as if all were well."""
    try:
        for what, brings in _all(jq).items():  # limits first: a schedule's jobs may be due
            await _bring(what, brings, tried)
    finally:
        tried.set()


async def bring_limits(jq: Registry) -> None:
    """Bring the limits alone, now. Raises what `constrain` raises."""
    for limit_id, limit in jq.limits.items():
        await _bring_limit(jq, limit_id, limit)


def _all(jq: Registry) -> dict[str, Callable[[], Awaitable[object]]]:
    limits = {f"limit {name}": partial(_bring_limit, jq, name, declared) for name, declared in jq.limits.items()}
    schedules = {
        f"schedule {name}": partial(_bring_schedule, jq, name, *declared) for name, declared in jq.recurring.items()
    }
    return {**limits, **schedules}


async def _bring(what: str, brings: Callable[[], Awaitable[object]], tried: asyncio.Event) -> None:
    failures = 0
    while True:
        try:
            await brings()
            return
        except Unavailable as error:
            level = logging.DEBUG if failures else logging.WARNING
            log.log(level, "%s comes later: %s", what, error)
            tried.set()
            await asyncio.sleep(backoff_s(failures))
            failures += 1
        except (Invalid, TypeError, ValueError) as error:
            if not tried.is_set():
                raise ValueError(f"{what}: {error}") from error
            log.error("%s is refused: %s", what, error)
            return
        except Exception as error:  # whatever a serializer raises: the others are to be brought all the same
            log.error("%s is refused: %s", what, error)
            return


async def _bring_limit(jq: Registry, limit_id: str, limit: Declared) -> None:
    own = limit.limits.copy()
    own.setdefault("declared", _digest(matcher_of(limit.match), own))
    await jq.aconstrain(limit_id, limit.match, **own)


async def _bring_schedule(jq: Registry, schedule_id: str, task: Task[..., Any], when: ScheduleOptions) -> None:
    own = when.copy()  # what is left of it in the end says when
    chosen: JobOptions = {**task.chosen, **own.pop("options", {})}
    call: Call[Any] = Call(task, *task.prepare(own.pop("args", ()), own.pop("kwargs", {}), chosen))
    # A new rule of a time zone makes another declaration.
    own.setdefault("declared", _digest(call.spec(), call.argument.hex(), zones.with_rule(options.when_of(own))))
    await jq.arepeat(schedule_id, call, **cast(When, own))


def _digest(*declaration: Any) -> str:
    """Equal for equal declarations, in every process."""
    text = json.dumps(declaration, sort_keys=True, default=repr)
    return hashlib.blake2s(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
