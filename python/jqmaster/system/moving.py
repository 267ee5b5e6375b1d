"""Buckets that move to other partitions, with what lies by them. docs/partitions.md, "Resizing", has the rules."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from jqmaster.engine import replies
from jqmaster.engine.calls import pack
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Document
from jqmaster.errors import Conflict, NotFound, Unavailable
from jqmaster.system.calls import answering, documents_of
from jqmaster.system.partitions import Partitions
from jqmaster.system.record import System, bucket_of
from jqmaster.system.routing import belonging, value_for

OPEN = ("queued", "scheduled", "blocked", "retrying", "running")
_PAGE = 1000
_RUNS = 20
_LEARNS_S = 10.0
_AGAIN_S = 0.05
_ANSWER_S = 30.0  # as a call of a script has
CLOCKS_S = 5.0
"""By so much clocks may differ, and partitions learn later than the first."""
_SPECIAL = re.compile(rb"([][\\*?])")
_MADE = frozenset(("made", "next_ms", "last_ms", "last_id", "on_its_way_ms", "next", "runs", "argument"))
"""What of a schedule's document nobody has given."""


# -- schedules -------------------------------------------------------------------------------------------


async def bring_schedule(system: Partitions, schedule_id: str) -> None:
    """Have a schedule whose bucket has moved where it belongs, if there is one. Raises Unavailable."""
    engines, record = await system.known()
    bucket = bucket_of(schedule_id)
    if bucket in record.former:
        source = engines[record.former[bucket]]
        await _learnt(source, record.generation)
        for one in (await source.schedules([schedule_id], runs=_RUNS)).documents:
            await _bring(one, source, engines[record.buckets[bucket]])


async def bring_schedules(system: Partitions) -> int:
    """The same for all of them; how many."""
    engines, record = await system.known()
    count = 0
    for number in set(record.former.values()):
        source = engines[number]
        await _learnt(source, record.generation)
        async for one in documents_of(source.schedules, runs=_RUNS):
            bucket = bucket_of(one["id"])
            if record.former.get(bucket) == number:
                await _bring(one, source, engines[record.buckets[bucket]])
                count += 1
    return count


async def _learnt(engine: Engine, generation: int) -> None:
    """Until a partition knows a record: from then on it makes no jobs of schedules whose buckets went."""
    deadline = time.monotonic() + _LEARNS_S
    while True:
        async with answering(engine.namespace, _ANSWER_S):
            known = int(await engine.redis.get(f"{engine.namespace}:generation") or 0)
        if known >= generation:
            return
        if time.monotonic() > deadline:
            raise Unavailable(f"{engine.namespace} has not learnt of generation {generation}: `system sync` tells it")
        await asyncio.sleep(_AGAIN_S)


async def _bring(one: Document, source: Engine, target: Engine) -> None:
    """It makes nothing at its source any more. There it goes last: who breaks off repeats it, and the token says what
    has been brought, so that one that is deleted meanwhile does not come back."""
    had = {field: one[field] for field in ("made", "next_ms", "last_ms", "last_id") if field in one}
    if "on_its_way_ms" in one:  # its answer comes to the source, which has no such schedule any more
        had |= {"made": one["made"] + 1, "last_ms": one["on_its_way_ms"]}
    runs = [run["id"] for run in reversed(one.get("runs", []))]
    spec = {field: value for field, value in one.items() if field not in _MADE}
    token = hashlib.sha1(f"{source.namespace} {one['id']} {sorted(had.items())}".encode(errors="replace")).hexdigest()
    more: dict[str, Any] = {"runs": runs} if runs else {}
    told = {**spec, "had": had | more, "request": token}
    with suppress(Conflict):
        await target.call("schedule", pack(told), one["argument"])
    with suppress(NotFound):
        await source.unschedule(one["id"])


# -- jobs of queues with routes --------------------------------------------------------------------------


async def busy_buckets(engines: Mapping[int, Engine], record: System) -> Counter[int]:
    """Buckets by which jobs that have not ended lie where they are, and how many of them each has."""
    found = Counter[int]()
    for engine in engines.values():
        for queue in record.routes:
            async for one in documents_of(engine.jobs, {"queue": queue, "status": list(OPEN)}):
                by = value_for({"queue": queue}, one["argument"], record)
                assert by is not None
                found[bucket_of(by[0])] += 1
    return found


# -- keys ------------------------------------------------------------------------------------------------


async def keys_left(engine: Engine, number: int, record: System) -> int:
    """How many unique keys a partition still has of buckets that it had."""
    count, cursor = 0, 0
    prefix = f"{engine.namespace}:unique:".encode()
    pattern = _SPECIAL.sub(rb"\\\1", prefix) + b"*"
    while True:
        async with answering(engine.namespace, _ANSWER_S):
            found: Any = await engine.redis.scan(cursor, match=pattern, count=_PAGE)
        cursor, names = found
        for name in names:
            count += await _is_left(engine, number, record, name[len(prefix) :])
        if not cursor:
            return count


async def _is_left(engine: Engine, number: int, record: System, key: bytes) -> bool:
    if not record.routes:
        return record.former.get(bucket_of(key)) == number
    async with answering(engine.namespace, _ANSWER_S):
        ids = await engine.redis.get(f"{engine.namespace}:unique:".encode() + key)
    [job] = await engine.get(replies.text(ids).split(" ")[0]) if ids else [None]
    if job is None:
        return ids is not None
    spec = {"queue": job["queue"], "unique": key.decode("utf-8", "surrogateescape")}
    belongs = belonging(spec, job["argument"], record)
    former = belonging(spec, job["argument"], record.before)
    return belongs is not None and former is not None and belongs[0] != former[0] == number


def settles_s(record: System, request_ttl_s: float) -> float:
    """For how long partitions may still remember request tokens from before buckets moved; 0 or less: none does."""
    return record.moved_ms / 1000 + request_ttl_s + CLOCKS_S - time.time()


async def jobs_left(engine: Engine) -> tuple[int, int]:
    """How many jobs of a partition have not ended, and how many have."""
    unended = ended = 0
    async for one in documents_of(engine.queues):
        unended += sum(one[state] for state in OPEN)
        ended += sum(one[state] for state in ("done", "error", "cancelled"))
    return unended, ended


async def has_mail(number: int, engines: Mapping[int, Engine]) -> bool:
    """Whether a partition has something to tell to others, or one of them has a job for it, which it may have made."""
    own = engines[number]
    sets = [(one, f"{one.namespace}:onward:{number:02x}") for one in engines.values()]
    for engine, key in [(own, f"{own.namespace}:outboxes"), *sets]:
        async with answering(engine.namespace, _ANSWER_S):
            if await engine.redis.zcard(key):
                return True
    return False
