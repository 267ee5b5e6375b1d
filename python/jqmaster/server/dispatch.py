"""Push dispatch: takes from the engine what is assigned to registered workers, and carries it to them.

Which worker gets which job is decided in Lua (`assign`), so any number of masters share one namespace and
none matters. The same loop is the namespace's clock: `assign` does what is due before it chooses, and the
loop sleeps until the next due moment, a wake marker, or a poke.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from jqmaster.connection.url import without_password
from jqmaster.connection.wake import WINDOW_MS, Channel, backoff_s
from jqmaster.engine.calling import new_request
from jqmaster.engine.engine import Engine, pack
from jqmaster.errors import Forbidden, Invalid, JQError, NotFound, Unavailable
from jqmaster.server import answers, delivery, logs
from jqmaster.server.answers import NO_ROOM, REFUSED, PushAnswer
from jqmaster.server.breakers import Breakers
from jqmaster.server.delivery import Deliverer, PushJob
from jqmaster.server.egress import Egress
from jqmaster.server.http.within import check_answer
from jqmaster.server.http_error import HttpError
from jqmaster.server.keyring import Keyring
from jqmaster.server.meters import Meters

log = logging.getLogger("jqmaster.dispatch")

CHANNEL = "push"
BATCH = 100
# The next due moment may be known to one master alone. If that one is killed, another looks after this time.
LOOK_EVERY_S = 10.0
NO_ROOM_S = 1.0  # how long a master that can open no connection leaves jobs to others


class Dispatch(Deliverer):
    """Delivers jobs to registered workers, at most `max_deliveries` at a time. `start`, then `stop`.

    `master`: its name. `secrets`: with which is signed what goes to workers that registered none. `egress`: to where,
    default loopback and private networks. `keyring`: the keys with which workers are registered; what one answers is
    held to the queues of its key.
    """

    log = log
    takes = "assign jobs"

    def __init__(
        self,
        engine: Engine,
        *,
        master: str = "",
        secrets: Sequence[str] = (),
        max_deliveries: int = 1000,
        meters: Meters | None = None,
        egress: Egress | None = None,
        keyring: Keyring | None = None,
    ) -> None:
        super().__init__(max_deliveries, egress or Egress())
        self.meters = meters or Meters()
        self._engine = engine
        self._channel = Channel(engine.redis, f"{engine.namespace}:wake:{CHANNEL}")
        self._master = master
        self._secrets = secrets
        self._request = new_request()
        self._keyring = keyring
        self._breakers = Breakers(max_deliveries, self.meters, self.poke)
        self._poked = False
        self._rests_until = 0.0

    def poke(self) -> None:
        """Look for deliverable jobs soon. Cheap; pokes that come together cause one look."""
        self._poked = True
        self._channel.wake_all()

    def drain(self) -> None:
        """Assign nothing more, and have others look; deliveries under way go on."""
        super().drain()
        self._channel.hand_over()

    async def stop(self, timeout_s: float = delivery.STOP_TIMEOUT_S) -> None:
        """As `Deliverer.stop`, and close what waiting needs."""
        await super().stop(timeout_s)
        await self._channel.stop()

    async def take(self, room: int) -> None:
        """Have jobs assigned, or sleep until there may be some."""
        if (rest_s := self._rests_until - time.monotonic()) > 0:
            await asyncio.sleep(rest_s)
            return
        self._poked = False
        limit = max(1, min(room // 2, BATCH))  # or one worker could take all the room at once
        next_ms, jobs = await self._assign(limit)
        for job in jobs:
            if self._breakers.take(job.worker, job.url):
                work = self._deliver(job)
            else:
                work = self._return(job, "the worker failed often; it is tried with one job")
            self.begin(work, f"deliver {job.id}")
        if not jobs and next_ms != 0 and not self._poked:
            self._channel.look_in(next_ms)
            await self._channel.sleep(LOOK_EVERY_S)

    async def _assign(self, limit: int) -> tuple[int, list[PushJob]]:
        """Jobs that were started on registered workers, each counted in the same step, and when there are more."""
        wait = {"on": CHANNEL, "ms": WINDOW_MS}
        spec = {"limit": limit, "master": self._master, "wait": wait, "request": self._request}
        if out := self._breakers.without():
            spec["without"] = out
        next_ms, *parts = await self._engine.raw("assign", pack(spec))
        self._request = new_request()  # only now: what an answer brought that was lost comes again
        return next_ms, delivery.assigned(parts, self._secrets)

    # -- one delivery -----------------------------------------------------------------------------

    async def _deliver(self, job: PushJob) -> None:
        started = time.perf_counter()
        answer = NO_ROOM  # if this is cancelled
        try:
            answer = await delivery.deliver(self.session, job)
        finally:
            self._breakers.done(job.worker, answer.trouble)
        self._tell(job, answer, time.perf_counter() - started)
        if answer.spec is not None:
            await self._finish(job, answer)
        elif answer.outcome in REFUSED:
            suffix = f", {answer.message[:200]}" if answer.message else ""
            log.info("worker %s did not take job %s: %s%s", job.worker, job.id, answer.outcome, suffix)
            await self._insist(job, lambda: self._refuse(job, answer))
        elif answer is NO_ROOM:
            self._rest()
            await self._return(job, "the master could open no connection")
        elif answer.outcome == "lapsed":
            log.info("worker %s did not answer within the lease of job %s", job.worker, job.id)

    def _tell(self, job: PushJob, answer: PushAnswer, seconds: float) -> None:
        self.meters.delivery(answer.outcome, seconds)
        if logs.delivery_log.isEnabledFor(logging.INFO):
            pairs = {
                "job": f"{job.id}/{job.attempt}", "name": job.name, "worker": job.worker,
                "url": without_password(job.url), "outcome": answer.outcome, "ms": round(seconds * 1000, 3),
            }  # fmt: skip
            logs.delivery_log.info(logs.Fields("delivery", pairs))

    def _rest(self) -> None:
        """Take no jobs for a while, as no connection can be opened to bring them to anybody."""
        now = time.monotonic()
        if now >= self._rests_until:
            log.warning("cannot open connections (too many open files?): leaving jobs to other servers for a while")
        self._rests_until = now + NO_ROOM_S

    async def _return(self, job: PushJob, why: str) -> None:
        await self._insist(job, lambda: self._give_back(job, why))

    async def _give_back(self, job: PushJob, why: str) -> None:
        await self._engine.release(job.worker, [(job.id, job.token)], message=why)

    async def _finish(self, job: PushJob, answer: PushAnswer) -> None:
        try:
            await self._insist(job, lambda: self._report(job, answer))
        except (Invalid, NotFound) as error:
            refused = answers.failure(f"the worker's answer is no outcome: {error.path}: {error.message}")
            await self._insist(job, lambda: self._report(job, refused))

    async def _report(self, job: PushJob, answer: PushAnswer) -> None:
        if job.key and self._keyring is not None:
            who = await self._keyring.of_worker(job.key)
            if who is None:
                return await self._give_back(job, "the key that the worker was registered with is not good any more")
            try:
                check_answer(who, answer.spec or {}, answer.follow)
            except HttpError as error:
                answer = answers.failure(f"the worker's answer was refused: {error.message}")
        outcome = {**(answer.spec or {}), "id": job.id, "token": job.token}
        spec = pack({"worker": job.worker})
        await self._engine.raw("finish", spec, pack(outcome), answer.blob, *answer.follow)

    async def _refuse(self, job: PushJob, answer: PushAnswer) -> None:
        await self._engine.call(
            "refuse", job.worker, [(job.id, job.token)], answer.outcome, retry_after=answer.retry_after_s,
            message=answer.message or None,
        )  # fmt: skip

    async def _insist(self, job: PushJob, say: Callable[[], Awaitable[None]]) -> None:
        """Say it to the engine, again and again while Redis is away or refuses, for as long as the lease may stand.
        Repeating is safe: finish and refuse go by the token."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(1.0, job.timeout_s)):
                failures = 0
                while True:
                    try:
                        await say()
                        return
                    except (Unavailable, Forbidden) as error:
                        log.warning("cannot report job %s, trying again: %s", job.id, error)
                        await asyncio.sleep(backoff_s(failures))
                        failures += 1
                    except JQError as error:
                        if isinstance(error, Invalid) or (error.path or "").startswith("outcomes"):
                            raise
                        log.warning("job %s: %s", job.id, error)
                        return
