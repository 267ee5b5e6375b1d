"""The operations of a system as if it were one namespace: each call goes to the partitions that it concerns.

Semantics stay in the scripts: here calls are taken apart, carried and put together again.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, connect, pack
from jqmaster.engine.engine import Engine, Operations
from jqmaster.engine.scripts import Form, check_namespace
from jqmaster.errors import Invalid, JQError, NotFound, Outdated, Unavailable, from_redis
from jqmaster.system import calls, limits, reading, settings, working
from jqmaster.system.enqueueing import Enqueueing
from jqmaster.system.listings import Listings
from jqmaster.system.picking import Picking
from jqmaster.system.record import OVER, System, partition_of
from jqmaster.system.routing import is_spec, unpacked, whole_path
from jqmaster.system.settled import Settled
from jqmaster.system.slots import Slots
from jqmaster.system.staying import refuse_change, refuse_queue
from jqmaster.system.ways import all_of, next_of, not_yet, place_of, spec_of
from jqmaster.wire import packform

LOOK_S = 2.0
"""How often a process that makes calls looks whether the record is another."""
_ANSWER_S = 5.0

log = logging.getLogger("jqmaster.system")


class SystemEngine(Listings, Enqueueing, Operations):
    """``url`` is that of the cluster, or server, ``root`` the system's name, or that of another of its partitions,
    which does while partition 0 is away. The record is read, and connections are made, with the first call.

    Operations that do not work over partitions yet raise Invalid, which names the operation: ask one partition
    (``partitions``), or each. A call that concerns several partitions goes to all of them at once; what one refuses
    is raised, and the others have done their part: each is all or nothing for itself.
    """

    def __init__(
        self, url: str, root: str, *, form: Form = "auto", actor: str | None = None, partial: bool = False
    ) -> None:
        """With ``partial`` listings and sums leave out partitions that do not answer, and ``missing`` names them;
        else they raise Unavailable."""
        self.url = url
        self.root = check_namespace(root)
        self.form = form
        self.actor = actor
        self._clients: list[Redis] = []
        self._engines: list[Engine] = []
        self._opening = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None
        self._looked = 0.0
        self.record: System | None = None
        self.settled = Settled()
        self.picking = Picking(self, secrets.token_hex(4))
        self.rooms = Slots(self)
        Listings.__init__(self, partial=partial)

    async def partitions(self) -> Sequence[Engine]:
        """The engine of each. Raises NotFound where there is no system, Version, Unavailable.

        Where the record was not looked at for `LOOK_S` that is done meanwhile: who asks then may hear of all.
        """
        if not self._engines:
            async with self._opening:
                if not self._engines:
                    self._adopt(await calls.read(self.url, self.root))
                    self._looked = time.monotonic()
        elif time.monotonic() - self._looked > LOOK_S and (self._looking is None or self._looking.done()):
            self._looked = time.monotonic()
            self._looking = asyncio.create_task(self._look_aside(), name=f"record of {self.root}")
        return self._engines

    async def live(self) -> dict[int, Engine]:
        """The engines of those that are not closed or lost, by number, in order."""
        engines = await self.partitions()
        assert self.record is not None
        return {number: engines[number] for number in self.record.live}

    @property
    def namespace(self) -> str:
        """Its name, which is partition 0's."""
        return self.root

    def _adopt(self, record: System) -> bool:
        """Whether it is a later one. Partitions are never fewer, nor have they other numbers."""
        if self.record is not None and record.generation <= self.record.generation:
            return False
        more = record.partitions[len(self._engines) :]
        clients = [connect(self.url) for _ in more]
        self._clients += clients
        self._engines = [  # another list: who goes through the old one is not disturbed
            *self._engines,
            *(
                Engine(client, one.namespace, form=self.form, actor=self.actor)
                for client, one in zip(clients, more, strict=True)
            ),
        ]
        if self.record is not None:
            log.info("system %s has %d partitions, generation %d", self.root, len(record.partitions), record.generation)
        self.record = record
        return True

    async def look(self, number: int = 0) -> bool:
        """Read the record as a partition has it, and of which version its settings are; whether the record is later
        than what was known. Raises Unavailable, Version, NotFound."""
        engine = (await self.partitions())[number]
        self._looked = time.monotonic()
        try:
            async with asyncio.timeout(_ANSWER_S):
                found, version = await calls.look_at(engine.redis, engine.namespace)
        except TimeoutError as problem:
            raise Unavailable(f"{engine.namespace} did not answer within {_ANSWER_S:g} s") from problem
        except RedisError as problem:
            raise from_redis(problem) from problem
        if self.settled.heard(version) or version != self.settled.version:
            self.settled.bring()
        return found is not None and self._adopt(found)

    async def _look_aside(self) -> None:
        with suppress(JQError):  # what is known goes on holding
            await self.look()

    async def changed(self, generation: int) -> None:
        """Return when there is a later record than of this generation."""
        while self.record is None or self.record.generation <= generation:
            await asyncio.sleep(LOOK_S * random.uniform(0.8, 1.2))
            if self.record is None or time.monotonic() - self._looked > LOOK_S / 2:
                await self._look_aside()

    async def catch_up(self, engine: Engine, problem: Outdated) -> None:
        """A partition knows of a later record: partition 0 has it, or if that lost it, this one. Raises the problem
        where neither has."""
        number = list(await self.partitions()).index(engine)
        known = self.record.generation if self.record else 0
        for one in (0, number):
            if self.record is not None and self.record.generation > known:
                return
            await self.look(one)
        if self.record is None or self.record.generation <= known:
            raise problem

    async def of(self, job_id: Argument, path: str = "id") -> Engine:
        """The engine of the partition that gave a job's id. Raises NotFound when the system has none of the number."""
        engines = await self.partitions()
        number = partition_of(job_id)
        if number >= len(engines) and await self.look():
            engines = await self.partitions()
        if number >= len(engines):
            shown = replies.text(job_id)
            raise NotFound(f"no such job: {shown}, the system {self.root} has no partition {number}", path)
        assert self.record is not None
        if (state := self.record.partitions[number].state) in OVER:
            raise NotFound(f"no such job: {replies.text(job_id)}, partition {number} is {state}", path)
        return engines[number]

    async def call(self, operation: str, *arguments: Argument) -> Any:
        way = _WAYS.get(operation)
        if way is None:
            raise not_yet(operation)
        if _is_malformed(operation, arguments):
            await (await self.partitions())[0].call(operation, *arguments)  # the script says what is wrong
            raise Invalid("expected one map, of valid UTF-8", "spec")
        return _as_sent(await way(self, operation, arguments))

    async def close(self) -> None:
        """Close the connections."""
        picking, self.picking = self.picking, Picking(self, secrets.token_hex(4))
        await picking.stop()
        await self.rooms.stop()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait({self._looking})
        for client in self._clients:
            await client.aclose()
        self._clients, self._engines, self.record = [], [], None

    # -- ways: how an operation goes over partitions --------------------------------------------------

    async def _by_id(self, operation: str, arguments: Sequence[Argument]) -> Any:
        """Of one job, whose id is the argument."""
        return await self._asked(await self.of(arguments[0]), operation, *arguments)

    async def _asked(self, engine: Engine, operation: str, *arguments: Argument) -> Any:
        """What a partition says. Who only looks does not wait for long where it may be away."""
        if not self.is_partial or operation not in _LOOKS:
            return await engine.call(operation, *arguments)
        number = list(await self.partitions()).index(engine)
        return await self.patiently(number, lambda one: one.call(operation, *arguments), _ANSWER_S)

    async def _explain(self, operation: str, arguments: Sequence[Argument]) -> Any:
        """With the number of the job's partition."""
        reply = await self._by_id(operation, arguments)
        return packform.extend_map(reply, {"partition": packform.pack(partition_of(arguments[0]))})

    async def _by_spec_id(self, operation: str, arguments: Sequence[Argument]) -> Any:
        """Of one job, whose id is in the spec."""
        return await (await self.of(spec_of(arguments).get("id", ""))).call(operation, *arguments)

    async def _by_ids(self, operation: str, arguments: Sequence[Argument]) -> Any:
        """An argument for each job: its id."""
        return await self._each(operation, arguments, [(job_id,) for job_id in arguments])

    async def _by_pairs(self, operation: str, arguments: Sequence[Argument]) -> Any:
        """Two arguments for each job: a spec with its id, a blob."""
        pairs = list(replies.pairs(list(arguments)))
        await refuse_change(self, pairs)
        ids = [unpacked(spec).get("id", "") for spec, _ in pairs]
        return await self._each(operation, ids, pairs)

    async def _each(self, operation: str, ids: Sequence[Argument], asked: Sequence[tuple[Argument, ...]]) -> Any:
        """An answer for each job, in order."""

        async def ask(engine: Engine, indexes: list[int]) -> Any:
            return await self._asked(engine, operation, *(one for index in indexes for one in asked[index]))

        return await self.grouped(ids, ask, "ids")

    async def by_spec_ids(self, operation: str, arguments: Sequence[Argument]) -> Any:
        """A spec with the ids of jobs, or with conditions, step by step."""
        spec = spec_of(arguments)
        await refuse_queue(self, spec)
        if "where" in spec:
            return await self._steps(operation, arguments)
        ids = spec.get("ids")
        if not isinstance(ids, list) or not ids:  # the script says what is wrong
            return await (await self.partitions())[0].call(operation, *arguments)
        if spec.get("atomic") and len({partition_of(one) for one in ids}) > 1:
            raise Invalid("all or nothing is possible within one partition alone", "atomic")

        async def ask(engine: Engine, indexes: list[int]) -> Any:
            return await engine.call(operation, pack({**spec, "ids": [ids[index] for index in indexes]}))

        return await self.grouped(ids, ask, "ids")

    async def grouped(
        self, ids: Sequence[Argument], ask: Callable[[Engine, list[int]], Awaitable[Any]], path: str
    ) -> list[Any]:
        """An answer for each job, in order, ``ask``ed by its place of the partition that has it."""
        groups: dict[Engine, list[int]] = {}
        for index, job_id in enumerate(ids):
            groups.setdefault(await self.of(job_id, f"{path}[{index}]"), []).append(index)

        async def told(engine: Engine, indexes: list[int]) -> Any:
            try:
                return await ask(engine, indexes)
            except JQError as problem:
                problem.path = whole_path(problem.path, path, indexes)
                raise

        answers = await all_of(told(engine, indexes) for engine, indexes in groups.items())
        found: list[Any] = [None] * len(ids)
        for indexes, answer in zip(groups.values(), answers, strict=True):
            for index, one in zip(indexes, answer, strict=True):
                found[index] = one
        return found

    async def _steps(self, operation: str, arguments: Sequence[Argument]) -> Any:
        """One partition after the other; the cursor begins with the number of the one that it is in."""
        spec = spec_of(arguments)
        live = await self.live()
        at, cursor = place_of(spec.get("cursor"), live)
        reply = await live[at].call(operation, pack({**spec, "cursor": cursor}))
        following = replies.text(reply[0])
        if following or next_of(at, live) is not None:
            reply[0] = f"{at}:{following}" if following else f"{next_of(at, live)}:"
        return reply

    async def _by_key(self, operation: str, arguments: Sequence[Argument]) -> Any:
        """By the bucket of the unique key, and of where that was; where queues have routes, wherever it is."""
        engines = await self.partitions()
        assert self.record is not None
        key = str(spec_of(arguments).get("unique", "")).encode(errors="surrogatepass")
        home, former = (engines[one.home(key)] for one in (self.record, self.record.before))
        others = [
            one for one in (await self.live()).values() if one is not home and (one is former or self.record.routes)
        ]
        asked = (one.call(operation, *arguments) for one in (home, *others))
        answers = await asyncio.gather(*asked, return_exceptions=True)
        problems = [one for one in answers if isinstance(one, BaseException)]
        for one in problems:
            if not isinstance(one, NotFound):
                raise one
        if len(problems) == len(answers):
            raise problems[0]
        return next(one for one in answers if not isinstance(one, BaseException))

    async def _least(self, operation: str, arguments: Sequence[Argument]) -> Any:
        """Of one answer each, or none, the least."""
        answers = await all_of(engine.call(operation, *arguments) for engine in (await self.live()).values())
        return min(filter(None, answers), default=[])

    async def _enqueue(self, operation: str, arguments: Sequence[Argument]) -> Any:
        return await self.enqueue_by(lambda engine, part: engine.call(operation, *part), arguments)


def _as_sent(reply: Any) -> Any:
    """Texts of a reply as Redis gives them."""
    if isinstance(reply, str):
        return reply.encode("utf-8", "surrogateescape")
    return [_as_sent(one) for one in reply] if isinstance(reply, list) else reply


_ONE_SPEC = frozenset(
    "audit bulk cancel constraints discard failures free hold jobs keys kick marks pick queues retry schedules stats "
    "track trail usage workers".split()
)
_LOOKS = frozenset(("explain", "get", "history"))
_ONE_ID = frozenset(("explain", "history", "result"))


def _is_malformed(operation: str, arguments: Sequence[Argument]) -> bool:
    """Whether the arguments are not those that an operation is taken apart by."""
    if operation in _ONE_ID:
        return len(arguments) != 1
    if operation in _ONE_SPEC:
        return len(arguments) != 1 or not is_spec(arguments[0])
    if operation == "constrain":
        return not arguments or not is_spec(arguments[0])
    return operation in ("change", "get", "watch") and (
        not arguments or (operation == "change" and len(arguments) % 2 > 0)
    )


_Way = Callable[[SystemEngine, str, Sequence[Argument]], Awaitable[Any]]
_WAYS: dict[str, _Way] = {
    "cancel": SystemEngine.by_spec_ids,
    "change": SystemEngine._by_pairs,
    "constrain": limits.constrain,
    "depend": SystemEngine._by_spec_id,
    "discard": SystemEngine.by_spec_ids,
    "enqueue": SystemEngine._enqueue,
    "explain": SystemEngine._explain,
    "free": SystemEngine._by_key,
    "get": SystemEngine._by_ids,
    "head": SystemEngine._least,
    "history": SystemEngine._by_id,
    "hold": limits.hold,
    "result": SystemEngine._by_id,
    "retry": SystemEngine.by_spec_ids,
    "track": SystemEngine.by_spec_ids,
    "unconstrain": limits.unconstrain,
    "watch": SystemEngine._by_ids,
    **reading.WAYS,
    **settings.WAYS,
    **working.WAYS,
}
OPERATIONS = frozenset(_WAYS)
Whole = Engine | SystemEngine
"""A namespace alone, or a system."""
