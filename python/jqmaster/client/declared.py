"""What a program declares beside its jobs: limits and schedules, which workers bring to the server when they start."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, cast

from jqmaster.client.task import ScheduleOptions, Task, When
from jqmaster.engine import options, zones
from jqmaster.engine.options import Limits, known

Match = Mapping[str, Any] | Task[..., Any]
"""Which jobs: a map of conditions (docs/limits.md), or a task, which stands for its name."""
Bring = Callable[[], Coroutine[Any, Any, object]]
"""Brings a declaration to the server. Raises what the operation does, and what the serializer raises."""


class LimitOptions(Limits, total=False):
    """And the `id` of a declared one; default: the task's name."""

    id: str | None


def limit_of(jq: Any, match: Match, own: dict[str, Any]) -> tuple[str, Bring]:
    """Its id, and what brings it. Raises TypeError for one that cannot be."""
    limit_id = own.pop("id", None) or (match.name if isinstance(match, Task) else None)
    matcher = {"name": match.name} if isinstance(match, Task) else match
    if not isinstance(matcher, Mapping):
        raise TypeError(f"expected a task (@jq.limit goes above @jq.job), or a map of conditions; got {match!r}")
    if not isinstance(limit_id, str):
        raise TypeError("give the limit an id: jq.limit({...}, id='per-customer', concurrency=5)")
    limits = {"declared": _digest(matcher, own), **known(own, Limits, "option of a limit")}
    return limit_id, lambda: jq.acall("constrain", limit_id, matcher, **limits)


def schedule_of(jq: Any, task: Any, when: ScheduleOptions) -> tuple[str, Bring]:
    """Its id, and what brings it. Raises TypeError or ValueError for one that cannot be. When its moments are the
    engine judges."""
    if not isinstance(task, Task):
        raise TypeError("@jq.schedule(...) goes above @jq.job")
    own: dict[str, Any] = {**known(when, ScheduleOptions)}
    schedule_id, args, kwargs = own.pop("id", None) or task.name, own.pop("args", ()), own.pop("kwargs", {})
    task = task.options(**own.pop("options", {}))
    if task.signature is not None:  # values wait until all types are known
        task.signature.bind(*args, **kwargs)

    async def bring() -> None:
        call = task.job(*args, **kwargs)
        # A new rule of a time zone makes another declaration.
        digest = _digest(call.spec(), call.argument.hex(), zones.with_rule(options.when_of(own)))
        await jq.arepeat(schedule_id, call, **cast(When, {"declared": digest, **own}))

    return schedule_id, bring


def _digest(*declaration: Any) -> str:
    """Equal for equal declarations, in every process."""
    text = json.dumps(declaration, sort_keys=True, default=repr)
    return hashlib.blake2s(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
