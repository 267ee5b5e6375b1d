"""Operations for workers, and for masters that push to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, Calling, Holding, Spec, given, pack, packed_each
from jqmaster.engine.options import About, Steps
from jqmaster.engine.replies import Assigned, Assignment, Beat, Finished, Note, Page, Picked

Follow = Sequence[tuple[Spec, bytes]]  # jobs that an outcome enqueues: (spec, argument) each
Outcomes = Sequence[tuple[Spec, bytes] | tuple[Spec, bytes, Follow]]


class WorkCalls(Calling):
    """Getting jobs, keeping them, saying what became of them."""

    async def pick(self, worker: str, queues: str | Sequence[str], count: int = 1, **options: Any) -> Picked:
        """Start up to ``count`` jobs. ``options``: ``order``, ``before``, ``request``, ``wait``."""
        return replies.picked(await self._ask("pick", worker=worker, queues=queues, count=count, **options))

    async def head(self, queues: str | Sequence[str]) -> tuple[int, str] | None:
        """Priority and id of the best job that a pick of these queues could start; nothing changes.

        In queues with constraints or shared fairly, and where much has gone since, it is a lower bound: 14 digits
        that need not be a job's. None: a pick finds nothing but what is due and was not seen to yet.
        """
        found = await self._ask("head", queues=queues)
        return (int(found[0]), replies.text(found[1])) if found else None

    async def heartbeat(
        self, worker: str, jobs: Sequence[Holding] = (), *, notes: Mapping[Holding, Note] | None = None
    ) -> list[int | str]:
        """Renew leases: per job the remaining milliseconds, or ``LOST`` or ``CANCELLED``.

        ``notes``: what some of the jobs have to say of themselves.
        """
        arguments = _heartbeat({"worker": worker}, jobs, notes)
        return replies.states(await self.call("heartbeat", *arguments))

    async def beat(
        self, worker: str, jobs: Sequence[Holding] = (), *, notes: Mapping[Holding, Note] | None = None
    ) -> Beat:
        """The same, and what was asked of the registered ``worker``: ``quiet``, ``stop`` or ``""``."""
        arguments = _heartbeat({"worker": worker, "control": True}, jobs, notes)
        answers, request = await self.call("heartbeat", *arguments)
        return Beat(replies.states(answers), replies.text(request))

    async def finish(self, worker: str, outcomes: Outcomes = (), *, pick: Spec | None = None) -> Finished:
        """Report outcomes: (spec, blob), or (spec, blob, jobs to enqueue in the same step).

        With ``pick`` (a pick's spec without worker) fetch the next jobs as well.
        """
        arguments: list[Argument] = [pack(given(worker=worker, pick=pick))]
        for index, (outcome, blob, *rest) in enumerate(outcomes):
            follow: Follow = rest[0] if rest else ()
            path = f"outcomes[{index}]"
            arguments += (pack({**outcome, **({"enqueue": len(follow)} if follow else {})}, path), blob)
            if follow:
                arguments += packed_each(follow, f"{path}.enqueue")
        return replies.finished(await self.call("finish", *arguments), len(outcomes))

    async def release(
        self,
        worker: str,
        jobs: Sequence[Holding],
        *,
        delay: float | None = None,
        hold: Mapping[str, float] | None = None,
        message: str | None = None,
    ) -> list[str]:
        """Give jobs back without spending a retry; per job its state or why not.

        ``delay`` in seconds. ``hold``: ids of constraints, and for how many seconds the keys of these jobs
        are closed under each. ``message``: why, for their history.
        """
        reply = await self._ask("release", worker=worker, jobs=jobs, delay=delay, hold=hold, message=message)
        return replies.texts(reply)

    # --- workers that are pushed to ---

    async def register(
        self,
        name: str,
        queues: str | Sequence[str],
        *,
        url: str | None = None,
        max_jobs: int | None = None,
        secrets: Sequence[str] | None = None,
        announce: bool | None = None,
        running: Sequence[str] | None = None,
        **about: Unpack[About],
    ) -> str:
        """Register a worker; its id. ``secrets``: at most two, ``whsec_<base64>``; what is pushed to it is
        signed with each. With ``announce`` one that picks as ``name`` is listed for three minutes, with those of
        the jobs ``running`` that are its own."""
        more = given(announce=announce, running=running, **about)
        fields = given(name=name, queues=queues, url=url, max_jobs=max_jobs, secrets=secrets) | more
        return replies.text(await self._ask("register", **fields))

    async def unregister(self, worker: str) -> int:
        """Remove a worker; how many jobs went back to their queues. Raises NotFound."""
        return int(await self._ask("unregister", worker=worker))

    async def workers(
        self, ids: Sequence[str] | None = None, *, others: bool | None = None, **steps: Unpack[Steps]
    ) -> Page:
        """The workers named, or a page of the registered ones, or of the ``others``: those that pull and announce
        themselves, and for an hour those that died."""
        return await self._page("workers", ids=ids, others=others, **steps)

    async def worker(self, worker: str, request: str) -> None:
        """Ask a registered worker to be ``quiet``, to ``stop``, or to ``resume``. Raises NotFound."""
        await self._ask("worker", worker=worker, request=request, actor=self.actor)

    async def assign(
        self,
        master: str,
        *,
        limit: int | None = None,
        wait: Spec | None = None,
        request: str | None = None,
        without: Sequence[str] | None = None,
    ) -> Assigned:
        """Start jobs on registered workers with room, but those ``without``. For masters, which then deliver them."""
        spec = given(master=master, limit=limit, wait=wait, request=request, without=without)
        next_ms, *parts = await self._ask("assign", **spec)
        return Assigned(
            next_ms,
            [
                Assignment(replies.text(name), replies.text(url), replies.text(secrets).split(), replies.job(*job))
                for name, url, secrets, _key, *job in zip(*(parts[at::6] for at in range(6)), strict=True)
            ],
        )

    async def refuse(
        self,
        worker: str,
        jobs: Sequence[Holding],
        why: str,
        *,
        retry_after: float | None = None,
        message: str | None = None,
    ) -> list[str]:
        """Give back what a worker did not take; ``why``: unknown, busy, unreachable, gone. ``retry_after`` in
        seconds; ``message`` is for the jobs' history."""
        reply = await self._ask("refuse", worker=worker, jobs=jobs, why=why, retry_after=retry_after, message=message)
        return replies.texts(reply)


def _heartbeat(spec: dict[str, Any], jobs: Sequence[Holding], notes: Mapping[Holding, Note] | None) -> list[Argument]:
    blobs: list[Argument] = []
    held: list[Any] = []
    for job in jobs:
        note = (notes or {}).get(job)
        if note is None:
            held.append(job)
            continue
        said = given(progress=note.progress, message=note.message)
        if note.argument is not None:
            said["argument"] = len(blobs)
            blobs.append(note.argument)
        held.append([*job, said])
    return [pack({**spec, "jobs": held}), *blobs]
