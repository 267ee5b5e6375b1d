"""Where a worker's jobs come from, and where it says what became of them: Redis itself (a server: `http_source`)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jqmaster.cluster.opening import Opened
from jqmaster.connection.endpoint import Endpoint
from jqmaster.connection.subscriptions import listened
from jqmaster.connection.wake import end
from jqmaster.engine import replies
from jqmaster.engine.calling import new_request
from jqmaster.engine.engine import Operations
from jqmaster.engine.replies import Beat, Job, Note
from jqmaster.engine.scripts import Form
from jqmaster.errors import JQError
from jqmaster.worker.ending import Outcome
from jqmaster.worker.slots import Key
from jqmaster.worker.trouble import PASSES

log = logging.getLogger("jqmaster.worker")

POLL_S = 30.0
TAKE_BACK_S = STOP_TIMEOUT_S = 2.5
QUIET_S = 60.0  # of its channels: heartbeats find dead connections as well
MOST_REFUSED = 100  # names that a pick can exclude


def default_name() -> str:
    """A worker's name that no other worker has: leases and sleep are noted under it."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"


class EngineSource:
    """What all have in common: the operations are the same, whatever carries them. All methods raise Unavailable while
    the other side is away."""

    def __init__(
        self,
        engine: Operations,
        queues: Sequence[str],
        *,
        order: str = "priority",
        name: str | None = None,
        is_registered: bool = False,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name or default_name()
        self.worker = self.name
        """Its name; its id, once it is registered."""
        self.is_registered = is_registered
        """Whether the worker is one that must show that it is alive, and can be asked to be quiet or stop."""
        self.about = dict(about or {})
        """What is said of it, as `register` of the engine takes it; with `url` jobs are pushed there."""
        self._engine = engine
        self._wish: dict[str, Any] = {"queues": list(queues), "order": order}
        self._refused: list[str] = []
        self.has_refused = asyncio.Event()
        """A name more than it has announced."""
        self._unanswered: dict[str, Any] | None = None
        self._is_listed = False

    @property
    def full_name(self) -> str:
        """Its name; and its id, if it is registered."""
        return self.name if self.worker == self.name else f"{self.name} ({self.worker})"

    def refuse(self, name: str) -> bool:
        """Take no jobs of this name from now on. False when another name had to be forgotten for it."""
        if name not in self._refused:
            self._refused.append(name)
            self.has_refused.set()
        is_full = len(self._refused) > MOST_REFUSED
        del self._refused[:-MOST_REFUSED]
        self._wish["without"] = sorted(self._refused)
        return not is_full

    async def fetch(self, count: int) -> list[Job]:
        """Wait a while for jobs; at most `count`. When it was cancelled `take_back` is to be called."""
        # The same request until it is answered: what an answer brought that was lost comes again.
        spec = self._unanswered or {**self._wish, "request": new_request()}
        self._unanswered = spec = {**spec, "worker": self.worker, "count": count}
        try:
            jobs = await self._wait(spec)
        except (*PASSES, asyncio.CancelledError):
            raise
        except JQError:
            self._unanswered = None
            raise
        self._unanswered = None
        return jobs

    async def take_back(self) -> None:
        """Give back what a fetch brought whose answer was lost, or not waited for: the same request brings the same
        jobs. Gives up after `TAKE_BACK_S`."""
        spec, self._unanswered = self._unanswered, None
        if spec is not None:
            with contextlib.suppress(JQError, TimeoutError):
                async with asyncio.timeout(TAKE_BACK_S):
                    if jobs := (await self._engine.pick(**spec)).jobs:
                        await self.release([job.held for job in jobs])

    async def finish(self, outcomes: list[Outcome], want: int, request: str) -> tuple[list[str], list[Job]]:
        """Report outcomes and take up to `want` jobs in the same round trip: a state for each outcome, the jobs. The
        same `request` brings the same jobs."""
        pick = {**self._wish, "count": want, "request": request} if want else None
        said = [(outcome.spec, outcome.blob, outcome.follow) for outcome in outcomes]
        finished = await self._engine.finish(self.worker, said, pick=pick)
        return finished.states, finished.picked.jobs if finished.picked else []

    async def heartbeat(self, held: list[Key], notes: Mapping[Key, Note]) -> Beat:
        """Renew leases, and pass on what some jobs say: remaining milliseconds, LOST or CANCELLED each; and what is
        asked of the worker. Raises NotFound for a dropped worker."""
        return await self._engine.beat(self.worker, held, notes=notes)

    async def listen(self, on_message: Callable[[str], None]) -> None:
        """Call `on_message` with what the worker is told at once (docs/protocol.md), and with "" when something
        may have been missed. Where nothing can be heard, heartbeats tell all there is."""

    async def release(
        self, held: list[Key], *, delay: float = 0, hold: Mapping[str, float] | None = None, message: str = ""
    ) -> None:
        """Give jobs back, with what `JobReleased` says. Raises NotFound for an unknown constraint."""
        await self._engine.release(self.worker, held, delay=delay or None, hold=hold or None, message=message or None)

    async def register(self, running: Sequence[str] = ()) -> None:
        """Be a registered worker from now on; or be listed for some minutes, with the jobs that run."""
        self._is_listed = True  # it may be so although the answer never comes
        self.has_refused.clear()
        about = {**self.about, "refused": self._refused or None}
        if not self.is_registered:
            about |= {"announce": True, "running": running}
        self.worker = await self._engine.register(self.name, self._wish["queues"], **about)

    async def register_again(self) -> bool:
        """The worker was dropped as dead and is not. Whether that is known there now; if not, that was logged."""
        try:
            await self.register()
        except JQError as error:
            log.warning("cannot register again, trying later: %s", error)
            return False
        return True

    async def stop(self) -> None:
        """Unregister, give back what a lost answer brought, and close the connections; bounded."""
        await self.take_back()
        if self._is_listed:
            with contextlib.suppress(JQError, TimeoutError):
                async with asyncio.timeout(STOP_TIMEOUT_S):
                    await self._engine.unregister(self.worker)

    # -- what differs -----------------------------------------------------------------------------

    async def _wait(self, spec: dict[str, Any]) -> list[Job]:
        """A pick that waits for a while."""
        raise NotImplementedError


class RedisSource(EngineSource):
    """Picks, renews and finishes by the scripts, with no master in between."""

    def __init__(
        self,
        url: str,
        namespace: str,
        queues: Sequence[str],
        *,
        form: Form = "auto",
        recreate: bool = False,
        **more: Any,
    ) -> None:
        self._opened = Opened(url, namespace, form=form, recreate=recreate)
        super().__init__(self._opened.engine, queues, **more)
        self._waiting = self._opened.waiting()
        self._renamed = asyncio.Event()

    async def listen(self, on_message: Callable[[str], None]) -> None:
        while True:
            self._renamed.clear()
            places = self._opened.channels(f"worker:{self.worker}")
            tasks: list[asyncio.Task[Any]] = [asyncio.create_task(hear(*place, on_message)) for place in places]
            tasks.append(asyncio.create_task(self._renamed.wait()))
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                await end(tasks)

    async def register(self, running: Sequence[str] = ()) -> None:
        before = self.worker
        await super().register(running)
        if self.worker != before:
            self._renamed.set()

    async def stop(self) -> None:
        await super().stop()
        await self._waiting.stop()
        await self._opened.close()

    async def _wait(self, spec: dict[str, Any]) -> list[Job]:
        return replies.picked(await self._waiting.pick(spec, POLL_S)).jobs


async def hear(endpoint: Endpoint, channel: str, on_message: Callable[[str], None]) -> None:
    """Pass on what is said on a worker's channel, "" for a gap, until cancelled."""
    async for message in listened(endpoint, channel, quiet_s=QUIET_S):
        if message != b"":
            on_message("" if message is None else message.decode(errors="replace"))
