"""All operations of docs/operations.md, whatever carries the calls: a method for each; those that take more than their
script's arguments; and what is made of several calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from jqmaster.engine import secret
from jqmaster.engine.calling import Spec, given
from jqmaster.engine.operations import CallsByName
from jqmaster.engine.options import Bounds
from jqmaster.engine.replies import Beat, Document, Enqueued, Note
from jqmaster.errors import Conflict, JQError, NotFound, Unavailable

Holding = tuple[str, str]  # job id, token
_AT_ONCE = 1000  # at most: each call is bounded by what it costs
_MOST_PROBLEM = 300


class Operations(CallsByName):
    """What an engine, a cluster and a server have."""

    async def enqueue(self, jobs: Sequence[tuple[Spec, bytes]], *, request: str | None = None) -> list[Enqueued]:
        """Enqueue all of ``jobs``, (spec, argument) each, or none. ``request`` makes repeating harmless."""
        enqueued: list[Enqueued] = await self.call("enqueue", **given(jobs=jobs, request=request))
        return enqueued

    async def beat(
        self, worker: str, jobs: Sequence[Holding] = (), *, notes: Mapping[Holding, Note] | None = None
    ) -> Beat:
        """Renew leases, with what some of the jobs have to say of themselves; and what was asked of the registered
        ``worker``: ``quiet``, ``stop`` or ``""``."""
        arguments: list[bytes] = []
        held: list[tuple[Any, ...]] = []
        for job in jobs:
            note = (notes or {}).get(job)
            said = given(progress=note.progress, message=note.message) if note else {}
            if note and note.argument is not None:
                said["argument"] = len(arguments)
                arguments.append(note.argument)
            held.append((*job, said) if note else job)
        answers, request = await self.call("heartbeat", worker, held, control=True, arguments=arguments)
        return Beat(answers, request)

    async def grant(self, name: str, roles: Sequence[str], **bounds: Unpack[Bounds]) -> Document:
        """Create a key of the HTTP API; its document, and in it the key itself as ``key``, which nobody can ask for
        again.

        ``roles``: some of ``viewer``, ``pusher``, ``worker``, ``operator``, ``admin``. Raises Invalid, and Full when
        there are 1000.
        """
        new = secret.new()
        document = await self.call("grant", id=new.id, digest=new.digest, name=name, roles=roles, **bounds)
        return {**document, "key": new.text}

    # -- bulks: something is done to all jobs that fit a description, however many, in steps

    async def carry_on(
        self, bulk: Document, holder: str, said: Callable[[Document], object] | None = None
    ) -> Document | None:
        """Straight on Redis: go on with a bulk until it is over; its document then. None when another has it.

        What is done is told step by step (``said``). Raises Unavailable; another goes on then."""
        try:
            now = await self.bulk(id=bulk["id"], holder=holder)
            while not now.get("ended_ms"):
                step = await self._step(now)
                now = await self.bulk(id=now["id"], holder=holder, **step)
                if said is not None:
                    said(now)
        except (Conflict, NotFound):
            return None
        return now

    async def _step(self, bulk: Document) -> dict[str, Any]:
        """What a step says of itself."""
        options: dict[str, Any] = {
            name: bulk[name] for name in ("force", "dependents", "queue", "actor") if name in bulk
        }
        where, cursor = bulk["where"], bulk["cursor"] or None
        try:
            cursor, changed = await self.call(bulk["what"], where=where, cursor=cursor, count=_AT_ONCE, **options)
        except Unavailable:
            raise
        except JQError as error:
            return {"ended": True, "problem": f"{error.code}: {error}"[:_MOST_PROBLEM]}
        return {"cursor": cursor, "changed": changed, "ended": not cursor}
