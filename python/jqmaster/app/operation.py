"""What `JQ` has for those who look after jobs: looking, cancelling, limits, queues, schedules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Unpack

from jqmaster.app.handle import Handle, document, unpacked
from jqmaster.app.link import Link
from jqmaster.app.task import Call, Task, When
from jqmaster.app.transport import Transport
from jqmaster.engine import options
from jqmaster.engine.calls import ABSENT, given
from jqmaster.engine.options import Seconds
from jqmaster.engine.replies import Document

BATCH = 1000
Ids = str | Handle[Any] | Iterable[str | Handle[Any]]
Match = Mapping[str, Any] | Task[..., Any]


class Operations:
    """Every method has an async twin with an `a` before its name. All raise what `jqmaster.errors` has."""

    link: Link

    def get(self, job_id: str) -> Document:
        """All there is to know about a job, its values unpacked. Raises NotFound."""
        return self.link.run(lambda it: document(it, self.link.serializer, job_id))

    async def aget(self, job_id: str) -> Document:
        """As `get`."""
        return await self.link.arun(lambda it: document(it, self.link.serializer, job_id))

    def get_many(self, ids: Ids) -> list[Document | None]:
        """Per job what `get` gives, or None. `ids`: ids or handles."""
        return self.link.run(lambda it: self._documents(it, ids))

    async def aget_many(self, ids: Ids) -> list[Document | None]:
        """As `get_many`."""
        return await self.link.arun(lambda it: self._documents(it, ids))

    def cancel(self, ids: Ids, *, force: bool = False) -> list[str]:
        """Cancel jobs, or one; `ids`: ids or handles. Per job the state it was in, `NOTFOUND`, or `CONFLICT`
        (it runs, the settings protect such, and `force` was not given)."""
        return self.link.run(lambda it: _cancel(it, ids, force))

    async def acancel(self, ids: Ids, *, force: bool = False) -> list[str]:
        """As `cancel`."""
        return await self.link.arun(lambda it: _cancel(it, ids, force))

    def constrain(self, constraint_id: str, match: Match, **limits: Any) -> Document:
        """Limit the jobs that `match`, from now on, also those that are there; replaces a constraint of this
        id whole. `match`: a matcher, `{"name": "mail.*"}`, or a task, which stands for its name. `limits`:
        `by`, `concurrency`, `rate`, `cost`, `order` (docs/protocol.md, section 7)."""
        fields = _matcher(match), _plain(given(**limits))
        return self.link.run(lambda it: it.constrain(constraint_id, *fields))

    async def aconstrain(self, constraint_id: str, match: Match, **limits: Any) -> Document:
        """As `constrain`."""
        fields = _matcher(match), _plain(given(**limits))
        return await self.link.arun(lambda it: it.constrain(constraint_id, *fields))

    def unconstrain(self, constraint_id: str) -> None:
        """Delete a constraint; what it held is free at once. Raises NotFound."""
        self.link.run(lambda it: it.unconstrain(constraint_id))

    async def aunconstrain(self, constraint_id: str) -> None:
        """As `unconstrain`."""
        await self.link.arun(lambda it: it.unconstrain(constraint_id))

    def constraints(self) -> list[Document]:
        """All constraints, each with how much of it is in use."""
        return self.link.run(lambda it: _paged(it.constraints))

    async def aconstraints(self) -> list[Document]:
        """As `constraints`."""
        return await self.link.arun(lambda it: _paged(it.constraints))

    def usage(self, constraint_id: str) -> list[Document]:
        """The keys of a constraint that are in use: `by`, `running`, `held`, `opens_ms`, …. Raises
        NotFound."""
        return self.link.run(lambda it: _paged(lambda cursor: it.usage(constraint_id, cursor)))

    async def ausage(self, constraint_id: str) -> list[Document]:
        """As `usage`."""
        return await self.link.arun(lambda it: _paged(lambda cursor: it.usage(constraint_id, cursor)))

    def hold(self, constraint_id: str, seconds: Seconds, *, by: Any = ABSENT) -> int:
        """Start nothing under a constraint for so long; 0 opens it. The moment it opens, in ms since 1970.

        `by`: which key, where the constraint has `by`: the value, or the list of values; None is one, too.
        Raises NotFound, Invalid.
        """
        return self.link.run(lambda it: it.hold(constraint_id, options.seconds(seconds), by))

    async def ahold(self, constraint_id: str, seconds: Seconds, *, by: Any = ABSENT) -> int:
        """As `hold`."""
        return await self.link.arun(lambda it: it.hold(constraint_id, options.seconds(seconds), by))

    def queue(self, name: str, **changes: Any) -> Document:
        """Change a queue (`paused`, `max_waiting`, `fair`, `set`, `unset`); its document afterwards, with the
        number of jobs in each state."""
        return self.link.run(lambda it: it.queue(name, _plain(changes)))

    async def aqueue(self, name: str, **changes: Any) -> Document:
        """As `queue`."""
        return await self.link.arun(lambda it: it.queue(name, _plain(changes)))

    def repeat(self, schedule_id: str, call: Call[Any], **when: Unpack[When]) -> Document:
        """Make a call again and again: `jq.repeat("acme-report", report.job("acme"), cron="0 8 * * mon")`.
        Creates or replaces the schedule of this id; its document, with `next_ms`. Raises Invalid."""
        spec, fields = (call.spec(), call.argument), options.when_of(when)
        return self.link.run(lambda it: it.schedule(schedule_id, spec, fields))

    async def arepeat(self, schedule_id: str, call: Call[Any], **when: Unpack[When]) -> Document:
        """As `repeat`."""
        spec, fields = (call.spec(), call.argument), options.when_of(when)
        return await self.link.arun(lambda it: it.schedule(schedule_id, spec, fields))

    def unschedule(self, schedule_id: str) -> None:
        """Delete a schedule; jobs that it has made stay. Raises NotFound."""
        self.link.run(lambda it: it.unschedule(schedule_id))

    async def aunschedule(self, schedule_id: str) -> None:
        """As `unschedule`."""
        await self.link.arun(lambda it: it.unschedule(schedule_id))

    async def _documents(self, transport: Transport, ids: Ids) -> list[Document | None]:
        found = await _batched(transport.documents, _ids(ids))
        return [None if one is None else unpacked(one, self.link.serializer) for one in found]


async def _cancel(transport: Transport, ids: Ids, force: bool) -> list[str]:
    return await _batched(lambda some: transport.cancel(some, force), _ids(ids))


def _ids(ids: Ids) -> list[str]:
    several = [ids] if isinstance(ids, str | Handle) else ids
    return [one.id if isinstance(one, Handle) else one for one in several]


def _matcher(match: Match) -> Mapping[str, Any]:
    """Raises TypeError for what is none."""
    if isinstance(match, Task):
        return {"name": match.name}
    if not isinstance(match, Mapping):
        name = match if isinstance(match, str) else "send_mail"
        raise TypeError(f"match is a map of conditions, such as {{'name': {name!r}}}, or a task; got {match!r}")
    return match


def _plain(value: Any) -> Any:
    """With seconds instead of every `timedelta`, also inside of maps: `rate={"period": timedelta(…)}`."""
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return options.seconds(value) if isinstance(value, timedelta) else value


async def _paged(ask: Callable[[str], Awaitable[tuple[str, list[Document]]]]) -> list[Document]:
    cursor, found = await ask("")
    while cursor:
        cursor, more = await ask(cursor)
        found += more
    return found


async def _batched(call: Any, ids: list[str]) -> list[Any]:
    found: list[Any] = []
    for start in range(0, len(ids), BATCH):
        found += await call(ids[start : start + BATCH])
    return found
