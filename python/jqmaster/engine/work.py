"""All operations of docs/operations.md, whatever carries the calls: a method for each; those that take more than their
script's arguments; and what is made of several calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from jqmaster.engine import secret
from jqmaster.engine.calling import Spec, given
from jqmaster.engine.operations import CallsByName
from jqmaster.engine.options import Bounds
from jqmaster.engine.replies import Beat, Document, Enqueued, Note

Holding = tuple[str, str]  # job id, token


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
