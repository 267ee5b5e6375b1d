"""What `JQ` has for those who run a system: jobs, queues, limits, schedules, workers, statistics, copies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal, Unpack

from jqmaster.client.handle import Dependents, Ids, document, ids_of, unpacked
from jqmaster.client.limits import Match, limits_of, matcher_of, with_seconds
from jqmaster.client.link import plain, plain_each
from jqmaster.client.listing import all_of, batched, conditions, each, in_seconds, kick_all
from jqmaster.client.running import RunningMethods
from jqmaster.engine import options
from jqmaster.engine.calling import given
from jqmaster.engine.options import Changes, Groups, Limits, Period, QueueChanges, Seconds, Webhook, Where, known
from jqmaster.engine.replies import Document, Event
from jqmaster.manifest.contract import Role


class OperationMethods(RunningMethods):
    """Every method has an async twin with an `a` before its name. All raise what `jqmaster.errors` has."""

    # -- jobs -------------------------------------------------------------------------------------

    async def aget(self, job_id: str) -> Document:
        """All there is to know about a job, its values unpacked. Raises NotFound."""
        return await document(await self.link.open(), self.link.serializer, job_id)

    async def aget_many(self, ids: Ids) -> list[Document | None]:
        """Per job what `get` gives, or None. `ids`: ids or handles."""
        engine = await self.aengine()
        documents = await batched(lambda some: engine.get(list(some)), ids)
        return [None if document is None else unpacked(document, self.link.serializer) for document in documents]

    async def acancel(
        self, ids: Ids, *, force: bool = False, dependents: Dependents | None = None, atomic: bool = False
    ) -> list[str]:
        """Cancel jobs, or one; `ids`: ids or handles. Per job the state it was in, `NOTFOUND`, or `CONFLICT`
        (it runs, the settings protect such, and `force` was not given). `dependents`: see `Handle.cancel`.

        `atomic`: all of them (at most 1000) or none: raises NotFound, or Conflict where one has ended or is protected;
        the error's `path`, such as `ids[2]`, says which. One that was cancelled before is no obstacle.
        """
        engine, wanted = await self.aengine(), ids_of(ids)
        if atomic and wanted:
            return await engine.cancel(wanted, force=force or None, dependents=dependents, atomic=True)
        return await batched(partial(engine.cancel, force=force or None, dependents=dependents), wanted)

    async def aretry(self, ids: Ids, *, queue: str | None = None) -> list[str]:
        """Have jobs run again that failed, were cancelled or wait for a retry; `queue`: in another queue. Per job
        `queued`, `NOTFOUND` or `CONFLICT`."""
        return await batched(partial((await self.aengine()).retry, queue=queue), ids)

    async def adiscard(self, ids: Ids) -> list[str]:
        """Remove all there is of jobs that do not run. Per job the state it had, `NOTFOUND` or `CONFLICT`."""
        return await batched((await self.aengine()).discard, ids)

    async def afree(self, key: str) -> str:
        """Free a unique key: the job whose it is goes on without one, and the next with this key is made.
        That job's id. Raises NotFound when it is free."""
        return await (await self.aengine()).free(key)

    async def akick(self, ids: Ids, *, delay: Seconds | None = None) -> list[str]:
        """Take running jobs from their workers; they wait again. Per job its state, `NOTFOUND` or `CONFLICT`."""
        return await batched(partial((await self.aengine()).kick, delay=in_seconds(delay)), ids)

    async def achange(self, ids: Ids, **changes: Unpack[Changes]) -> list[str]:
        """Change what waiting jobs were enqueued with, the same of all: `queue`, `priority`, `delay` or `run_at`,
        `max_retry`, `timeout`, `tags`, `argument`. Per job its state, `NOTFOUND` or `CONFLICT`."""
        spec, argument = options.changes_of(changes, self.link.serializer.dumps)
        engine = await self.aengine()
        return await batched(lambda some: engine.change([({"id": job_id, **spec}, argument) for job_id in some]), ids)

    async def aretry_where(self, *, to: str | None = None, **where: Unpack[Where]) -> int:
        """As `retry`, of all jobs that match; how many. `to`: the queue in which they wait from now on."""
        return await _steps(partial((await self.aengine()).call, "retry", queue=to), where)

    async def adiscard_where(self, **where: Unpack[Where]) -> int:
        """As `discard`, of all jobs that match; how many."""
        return await _steps(partial((await self.aengine()).call, "discard"), where)

    async def acancel_where(self, *, force: bool = False, **where: Unpack[Where]) -> int:
        """As `cancel`, of all jobs that match; how many."""
        return await _steps(partial((await self.aengine()).call, "cancel", force=force or None), where)

    async def ajobs(
        self, *, newest: bool = False, recent: bool = False, brief: bool = False, **where: Unpack[Where]
    ) -> AsyncIterator[Document]:
        """All jobs that match. `brief`: without argument, result and error. `newest`: the order within a state
        (a tag, a group) is turned round. `recent`: over all queues, what runs, then what ended last, then what
        waits."""
        jobs = (await self.aengine()).jobs
        ask = partial(jobs, conditions(where), newest=newest or None, recent=recent or None, brief=brief or None)
        async for fields in each(ask):
            yield unpacked(fields, self.link.serializer)

    async def asearch(self, text: str, count: int = 5) -> Document:
        """A few of each kind whose name contains `text`, and jobs that it describes: `{queues, names, workers,
        constraints, schedules, tags, groups, jobs, more, looked}`; `more` names the kinds that may have others."""
        return await (await self.aengine()).search(text, count=count)

    async def afailures(self, group: str | None = None, **groups: Unpack[Groups]) -> list[Document]:
        """The jobs that failed for good by group, or those of one: `group, count, first_ms, last_ms, id, message` of
        each. With `steps`, `from_ms`, `to_ms`: how many failed in each part of that time, `counts`. With `sample`:
        `names, queues, values` of so many of the newest, and how many that were, `looked`."""
        engine, groups = await self.aengine(), known(groups, Groups)
        if group is not None:
            return (await engine.failures(group, **groups)).documents
        return await all_of(partial(engine.failures, **groups))

    async def atags(self, top: int | None = None) -> list[tuple[str, int]]:
        """All tags in order, with how many jobs have each; or the `top` most used."""
        engine = await self.aengine()
        if top is not None:
            return (await engine.tags(top=top)).documents
        return await all_of(engine.tags)

    async def aevents(self, *, after: str | None = None) -> AsyncIterator[Event]:
        """Every transition of every job from now on, or behind the event `after`, as far as they are kept.

        Goes on until it is closed. Raises Conflict when the setting `events_max` is 0, and Unavailable when
        the connection is lost: then go on after the last event's `id`.
        """
        async for event in (await self.link.open()).events(None, after):
            yield event

    # -- queues -----------------------------------------------------------------------------------

    async def aqueues(self, *, minutes: int | None = None) -> list[Document]:
        """All queues, with the number of jobs in each state. `minutes`: with how they did in so many."""
        return await all_of(partial((await self.aengine()).queues, minutes=minutes))

    async def aqueue(self, name: str, **changes: Unpack[QueueChanges]) -> Document:
        """Change a queue (`paused`, `max_waiting`, `fair`, `set`, `unset`); its document afterwards, with the
        number of jobs in each state."""
        return await (await self.aengine()).queue(name, **with_seconds(known(changes, QueueChanges)))

    async def akick_queue(self, name: str, *, delay: Seconds | None = None) -> int:
        """Take all running jobs of a queue from their workers; how many. To keep it so, pause it first.

        Raises NotFound.
        """
        return await kick_all(partial((await self.aengine()).kick, queue=name), delay)

    # -- limits -----------------------------------------------------------------------------------

    async def aconstrain(self, constraint_id: str, match: Match, **limits: Unpack[Limits]) -> Document:
        """Limit the jobs that `match`, from now on, also those that are there; replaces a constraint of this
        id whole. `match`: a matcher, `{"name": "mail.*"}`, or a task, which stands for its name. `limits`:
        `by`, `concurrency`, `rate`, `cost`, `order`, `expires_in` (docs/protocol.md, section 7). A program declares its
        limits with `limit`. Raises Invalid, Full; ValueError where `by` leads to no parameter of the task."""
        matcher, fields = matcher_of(match), limits_of(match, limits)
        return await (await self.aengine()).constrain(constraint_id, matcher, **fields)

    async def aconstraints(self, *, busiest: int | None = None) -> list[Document]:
        """All constraints, each with how much of it is in use. `busiest`: with sums over the keys of those that
        have `by`, and so many (0 to 100) of the fullest: `looked, held, full, busiest, queues`."""
        return await all_of(partial((await self.aengine()).constraints, busiest=busiest))

    async def ahold(self, constraint_id: str, seconds: Seconds, *, by: Any = ...) -> int:
        """Start nothing under a constraint for so long; 0 opens it. The moment it opens, in ms since 1970.

        `by`: which key, where the constraint has `by`: the value, or the list of values; None is one, too.
        Raises NotFound, Invalid.
        """
        key = {} if by is ... else {"by": by}
        return await (await self.aengine()).hold(constraint_id, seconds, **key)

    # -- webhooks ---------------------------------------------------------------------------------

    async def asubscribe(
        self, webhook_id: str, url: str | None = None, match: Match | None = None, **webhook: Unpack[Webhook]
    ) -> Document:
        """Have a URL told of the ends of the jobs that `match`, from now on; replaces a webhook of this id.
        `webhook`: `on`, of which ends (`["error"]`); `secrets`, one or two with which it is signed. `notify` is the
        id of the secrets for jobs' own `notify` (docs/protocol.md, section 21). Raises Invalid, Full."""
        matcher = b"" if match is None else matcher_of(match)
        return await (await self.aengine()).subscribe(webhook_id, url, matcher, **known(webhook, Webhook))

    async def awebhooks(self) -> list[Document]:
        """All webhooks: `id, url, match, on`, and how many `secrets` each has."""
        return await (await self.aengine()).webhooks()

    # -- keys, and who changed what ---------------------------------------------------------------

    async def acreate_key(
        self,
        name: str,
        roles: Sequence[Role],
        *,
        queues: Sequence[str] | None = None,
        ttl: Seconds | None = None,
        rate: float | None = None,
    ) -> Document:
        """Create a key for masters' HTTP API: `id, key, name, roles, created_ms, …`. Nobody can ask for `key` again.

        `queues`: names and patterns of queues to which it is bound. `ttl`: it expires after so long. `rate`:
        requests a second, of each master. Raises Invalid, and Full when there are 1000.
        """
        engine = await self.aengine()
        return await engine.grant(name, roles, queues=queues, ttl=in_seconds(ttl), rate=rate)

    async def akeys(self) -> list[Document]:
        """All keys, without what is secret of them: `id, name, roles, queues?, rate?, created_ms, expires_ms?,
        used_ms?` of each."""
        return await all_of((await self.aengine()).keys)

    async def arevoke_key(self, key_id: str) -> None:
        """Take a key away; masters refuse it at once. Raises NotFound."""
        await (await self.aengine()).revoke(key_id)

    async def atrail(self) -> AsyncIterator[Document]:
        """What operators changed, newest first: `time_ms, actor, what, on?, change?, count?` of each."""
        async for entry in each((await self.aengine()).trail):
            yield entry

    # -- the whole --------------------------------------------------------------------------------

    async def astats(self, by: Literal["minute", "hour", "day"] = "hour", **period: Unpack[Period]) -> list[Document]:
        """What happened in each `minute`, `hour` or `day`, oldest first (docs/protocol.md, section 17)."""
        return await (await self.aengine()).stats(by, **known(period, Period))

    async def aseries(self, by: Literal["minute", "hour", "day"] = "hour", **period: Unpack[Period]) -> list[Document]:
        """Sums over a whole time, one for each pair of queue and name."""
        return await all_of(partial((await self.aengine()).stats, by=by, series=True, **known(period, Period)))

    async def aconfig(self) -> Document:
        """All settings of the namespace."""
        return await (await self.aengine()).config()

    async def aconfigure(self, /, **settings: Any) -> Document:
        """Change settings, all or none; all of them afterwards. None: the default again. Raises Invalid."""
        unset = [name for name, value in settings.items() if value is None]
        return await (await self.aengine()).config(given(**settings), unset or None)

    async def adescribe_config(self) -> list[Document]:
        """What there is to set: name, value, default, type, unit, least, most, queues, meaning of each."""
        return await (await self.aengine()).config(describe=True)

    async def aexport(self) -> AsyncIterator[bytes]:
        """Everything the namespace has, as records for `import_records`. Raises Unavailable if cut off."""
        async for record in (await self.link.open()).export():
            yield record

    async def aimport_records(self, records: Iterable[bytes], namespace: str) -> int:
        """Write records into another namespace of the same Redis; how many keys.

        It must not be set up (Conflict). Raises Invalid. Repeating it completes an import that broke off.
        """
        return await (await self.link.open()).import_records(records, namespace)

    get, get_many, jobs = plain(aget), plain(aget_many), plain_each(ajobs)
    cancel, retry, discard = plain(acancel), plain(aretry), plain(adiscard)
    cancel_where, retry_where, discard_where = plain(acancel_where), plain(aretry_where), plain(adiscard_where)
    kick, change, kick_queue = plain(akick), plain(achange), plain(akick_queue)
    free, search = plain(afree), plain(asearch)
    failures, tags, events = plain(afailures), plain(atags), plain_each(aevents)
    queues, queue = plain(aqueues), plain(aqueue)
    constrain, constraints = plain(aconstrain), plain(aconstraints)
    hold = plain(ahold)
    subscribe, webhooks = plain(asubscribe), plain(awebhooks)
    create_key, keys, revoke_key = plain(acreate_key), plain(akeys), plain(arevoke_key)
    trail = plain_each(atrail)
    stats, series = plain(astats), plain(aseries)
    config, configure, describe_config = plain(aconfig), plain(aconfigure), plain(adescribe_config)
    export, import_records = plain_each(aexport), plain(aimport_records)


async def _steps(ask: Callable[..., Awaitable[tuple[str, int]]], where: Where) -> int:
    cursor, total = await ask(where=conditions(where))
    while cursor:
        cursor, changed = await ask(where=conditions(where), cursor=cursor)
        total += changed
    return total
