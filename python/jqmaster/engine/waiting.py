"""Long polls: a pick that waits until there is work, without a polling loop."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import math
import random
import time
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jqmaster.connection import plainly
from jqmaster.connection.wake import BLOCK_S, WINDOW_MS, Channel, backoff_s, end
from jqmaster.engine import replies
from jqmaster.engine.calling import new_request
from jqmaster.engine.engine import Engine, pack
from jqmaster.errors import JQError, Unavailable

log = logging.getLogger("jqmaster.cluster")

TAKES_BACK_S = 30.0
NOTHING: list[Any] = [-1]
"""A pick's reply that holds no job."""
AGAIN = (0, 1)
"""``next_ms`` of a reply that says to pick again at once: without, and with ``wait``."""

# Where there are several partitions:
MOST_SLEPT_AT = 16  # of them; each takes a connection
BLOCKS_S = 120.0  # of each of these connections. There are so many of them that each has to call rarely
FAR_S = 4.0  # how often each of the others is looked at
DUE_S = 1.0  # the same by one that has work
LOOK_S = 3.0  # how long a partition may take to answer before the next is asked
AWAY_S = 5.0  # at most so long a partition that did not answer is not asked
MOST_REMEMBERED = 10_000

Reply = list[Any]
"""Of `pick`, as the script gives it: `[next_ms, document, argument, …]`."""


def channel_of(queues: object, without: object = None) -> str:
    """The channel of all who want the same, in any process and language (protocol.md, Sleeping)."""
    lists = [[queues] if isinstance(queues, str) else queues, without]
    texts = ["\n".join(sorted(map(str, names))) for names in lists if isinstance(names, list | tuple)]
    return "q-" + hashlib.sha1("\n\n".join(texts).encode(errors="surrogatepass")).hexdigest()[:16]


def note_s(next_ms: int) -> float:
    """How long the engine's note of a sleeper is good for, less a little: it ends a second after `next_ms`.

    At `next_ms` itself the channel's timer wakes one sleeper, not all; the others renew their notes one by one.
    """
    return WINDOW_MS / 1000 if next_ms < 0 else min(WINDOW_MS, next_ms) / 1000 + random.uniform(0.2, 0.8)


class _Views:
    """What one worker with one wish knows of each partition."""

    def __init__(self, count: int) -> None:
        self.looked_at = [-math.inf] * count
        self.quiet_until = [-math.inf] * count

    def note(self, number: int, reply: Reply, quiet_s: float) -> None:
        """What a look there has found: jobs, and there may be more; or nothing for so long."""
        self.looked_at[number] = time.monotonic()
        is_empty = len(reply) == 1 and reply[0] != 0
        self.quiet_until[number] = time.monotonic() + quiet_s if is_empty else -math.inf


class _Wish:
    """All who want jobs of the same queues in the same way."""

    def __init__(self, engines: Sequence[Engine], name: str) -> None:
        self.name = name
        block_s = BLOCK_S if len(engines) == 1 else BLOCKS_S
        self.channels = [Channel(engine.redis, f"{engine.namespace}:wake:{name}", block_s) for engine in engines]
        self.views: OrderedDict[str, _Views] = OrderedDict()
        self.users = 0

    def view(self, worker: str) -> _Views:
        """Of this worker."""
        if worker not in self.views:
            self.views[worker] = _Views(len(self.channels))
            if len(self.views) > MOST_REMEMBERED:
                self.views.popitem(last=False)
        self.views.move_to_end(worker)
        return self.views[worker]


class Waiting:
    """The long polls of one process: of one namespace, or over all partitions of a cluster. Then the one where a worker
    looked longest ago comes first."""

    def __init__(self, *engines: Engine) -> None:
        self._engines = engines
        self._wishes: dict[str, _Wish] = {}
        self._away_until = [-math.inf] * len(engines)
        self._failures = [0] * len(engines)
        self._answered: OrderedDict[str, int] = OrderedDict()  # request of a pick -> the partition that gave jobs
        self._stopping = asyncio.Event()
        self._background: set[asyncio.Task[Any]] = set()

    @property
    def channels(self) -> list[Channel]:
        """Those on which somebody sleeps, or did a while ago."""
        return [channel for wish in self._wishes.values() for channel in wish.channels]

    async def pick(self, spec: Mapping[str, Any], timeout_s: float) -> Reply:
        """`pick` with `spec` (without `wait`), waiting up to `timeout_s` for a job. The reply is `pick`'s
        own: `[next_ms, doc, argument, ...]`, with no job when the time is up or the master stops.

        Raises JQError for a bad spec, and Unavailable when nobody answers the first look. Safe to cancel: jobs
        that were picked for a caller who has gone are given back.
        """
        deadline, is_own = time.monotonic() + timeout_s, spec.get("request") is None
        asked = {**spec, "request": new_request()} if is_own else dict(spec)
        with self._using(spec) as wish:
            return await self._pick(wish, asked, deadline, is_own=is_own)

    def is_due(self, spec: Mapping[str, Any]) -> bool:
        """Whether a worker that takes the next job where its last one was has not looked elsewhere for too long; or has
        been answered already."""
        with self._using(spec) as wish:
            looked_at = wish.view(str(spec.get("worker"))).looked_at
            looks_at = [max(pair) + DUE_S for pair in zip(looked_at, self._away_until, strict=True)]
        return str(spec.get("request")) in self._answered or min(looks_at) <= time.monotonic()

    def note(self, spec: Mapping[str, Any], number: int, reply: Reply) -> None:
        """What a pick has found that went along with a report."""
        with self._using(spec) as wish:
            wish.view(str(spec.get("worker"))).note(number, reply, 0.0)
        self._remember(spec, number, reply)

    def look_again(self, worker: str) -> None:
        """Have this worker's long polls look at once: what it was refused may be its now."""
        for wish in self._wishes.values():
            if worker in wish.views:
                wish.views[worker] = _Views(len(self._engines))
        for channel in self.channels:
            channel.wake_same(worker)

    def drain(self) -> None:
        """Answer all open long polls at once, and every later one."""
        self._stopping.set()
        for channel in self.channels:
            channel.hand_over()

    async def stop(self) -> None:
        """`drain`, and close all connections; bounded."""
        self.drain()
        await asyncio.gather(*(channel.stop() for channel in self.channels))
        if self._background:
            await asyncio.wait(set(self._background), timeout=2)
        for task in self._background:
            task.cancel()

    # -- a poll -----------------------------------------------------------------------------------

    async def _pick(self, wish: _Wish, spec: dict[str, Any], deadline: float, *, is_own: bool) -> Reply:
        worker = str(spec.get("worker"))
        view, called = wish.view(worker), set[int]()
        reply, unanswered = list(NOTHING), set[int]()
        is_first, is_one = True, len(self._engines) == 1
        try:
            while not self._stopping.is_set():
                moments, sleeps = dict[int, int](), time.monotonic() < deadline
                for number in self._in_order(view, called, spec, is_first=is_first):
                    unanswered.add(number)
                    try:
                        found = await self._look(wish, number, spec, sleeps=sleeps)
                    except Unavailable as problem:
                        called.discard(number)
                        if is_first and len(unanswered) == len(self._engines):
                            unanswered = unanswered if is_own else set()  # else the client repeats it
                            raise problem if is_one else Unavailable("no partition of the cluster answers") from problem
                        continue
                    except JQError:
                        unanswered.discard(number)
                        raise
                    unanswered.discard(number)
                    called.discard(number)
                    if len(found) > 1:
                        wish.channels[number].wake_same(worker)
                        return found if is_one else [0, *found[1:]]  # others may have more
                    moments[number] = found[0]
                is_first = False
                reply = [min((ms for ms in moments.values() if ms >= 0), default=-1)] if moments else reply
                again = {number for number, next_ms in moments.items() if next_ms in AGAIN}
                if again and is_own:
                    spec["request"] = new_request()  # a repeated one none of whose jobs runs any more says so for ever
                elif again or not sleeps:
                    for number in again:  # the client goes on
                        wish.channels[number].wake_same(worker)
                    called |= again
                    return reply
                else:
                    await self._sleep(wish, view, worker, deadline, called)
                    # Whoever was woken looks, however late: its marker must not get lost.
                    if not called and time.monotonic() >= deadline:
                        return reply
            return reply
        finally:
            for number in called:  # where there may be jobs, and nobody looks now
                wish.channels[number].pass_on()
            for number in unanswered:  # it may have started jobs there that nobody knows of
                self._spawn(self._take_back(self._engines[number], spec))

    def _in_order(self, view: _Views, called: set[int], spec: Mapping[str, Any], *, is_first: bool) -> list[int]:
        """The partitions that may have jobs: where this request was answered before, where there was a call, and where
        the last look was longest ago."""
        if len(self._engines) == 1 and (is_first or called):
            return [0]
        before, now = self._answered.get(spec["request"]), time.monotonic()
        order = sorted(
            range(len(self._engines)), key=lambda one: (one != before, one not in called, view.looked_at[one])
        )
        is_away = min(self._away_until) > now
        due = [one for one in order if one in called or now >= max(view.quiet_until[one], self._away_until[one])]
        return due or (order if is_first and is_away else [])

    async def _look(self, wish: _Wish, number: int, spec: Mapping[str, Any], *, sleeps: bool) -> Reply:
        """A pick. Raises Unavailable."""
        worker = str(spec.get("worker"))
        is_slept_at = number in self._slept_at(worker)
        sleeps = sleeps and is_slept_at
        full = {name: value for name, value in spec.items() if name != "request"}
        if sleeps:
            # The engine keeps one note per worker and channel. Always the whole window, so that a short poll
            # of a worker does not shorten the note of a long one.
            full["wait"] = {"on": wish.name, "ms": WINDOW_MS}
        full["request"] = spec["request"]  # at the end (`new_request`)
        try:
            async with plainly.within(LOOK_S if len(self._engines) > 1 else math.inf):
                reply: Reply = await self._engines[number].raw("pick", pack(full))
        except Unavailable as problem:
            if len(self._engines) > 1:
                level = logging.DEBUG if self._failures[number] else logging.WARNING
                log.log(level, "%s does not answer, going on without it: %s", self._engines[number].namespace, problem)
            self._away_until[number] = time.monotonic() + min(AWAY_S, 4 * backoff_s(self._failures[number]))
            self._failures[number] += 1
            raise
        self._failures[number], self._away_until[number] = 0, -math.inf
        quiet_s = note_s(reply[0]) if sleeps else 0.0 if is_slept_at else FAR_S
        wish.view(worker).note(number, reply, quiet_s)
        if sleeps and len(reply) == 1:
            wish.channels[number].look_in(reply[0])
        self._remember(spec, number, reply)
        return reply

    def _remember(self, spec: Mapping[str, Any], number: int, reply: Reply) -> None:
        if len(reply) > 1 and len(self._engines) > 1:
            self._answered[str(spec.get("request"))] = number
            if len(self._answered) > MOST_REMEMBERED:
                self._answered.popitem(last=False)

    def _slept_at(self, worker: str) -> Sequence[int]:
        """The partitions at which a worker sleeps: all, or as many as it may from one on that its name says."""
        count = len(self._engines)
        if count <= MOST_SLEPT_AT:
            return range(count)
        first = zlib.crc32(worker.encode(errors="surrogatepass"))
        return [(first + step) % count for step in range(MOST_SLEPT_AT)]

    async def _sleep(self, wish: _Wish, view: _Views, worker: str, deadline: float, called: set[int]) -> None:
        """Until a partition may have something, but at most so long. `called` gets those where somebody called, also
        when this is cancelled: nobody else knows of that."""
        wakes = [max(*pair) for pair in zip(view.quiet_until, self._away_until, strict=True)]
        sleep_s = max(0.001, min(deadline, *wakes) - time.monotonic())

        async def sleep_at(number: int) -> None:
            if await wish.channels[number].sleep(sleep_s, worker):
                called.add(number)

        if len(wakes) == 1:
            await sleep_at(0)
            return
        sleeping: list[asyncio.Task[Any]] = [asyncio.create_task(sleep_at(number)) for number in self._slept_at(worker)]
        # Who wakes all that sleep finds nobody while these have not begun to.
        sleeping.append(asyncio.create_task(self._stopping.wait()))
        try:
            await asyncio.wait(sleeping, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end(sleeping)

    @contextlib.contextmanager
    def _using(self, spec: Mapping[str, Any]) -> Iterator[_Wish]:
        """What all share who have this wish. Those that nobody uses any more go, so that a variety of them does not
        pile up."""
        name = channel_of(spec.get("queues"), spec.get("without"))
        if name not in self._wishes:
            self._wishes[name] = _Wish(self._engines, name)
        wish = self._wishes[name]
        wish.users += 1
        try:
            yield wish
        finally:
            wish.users -= 1
            if not wish.users and len(self._wishes) > 1:
                for idle in [one for one in self._wishes.values() if one is not wish and not one.users]:
                    if not any(channel.connected for channel in idle.channels):
                        del self._wishes[idle.name]

    # -- giving back ------------------------------------------------------------------------------

    async def _take_back(self, engine: Engine, spec: Mapping[str, Any]) -> None:
        """Repeat a pick whose answer was lost, until there is one, and release its jobs, which its client will never
        see. Errors are swallowed: the leases lapse."""
        failures = 0
        with contextlib.suppress(JQError, TimeoutError):
            async with asyncio.timeout(TAKES_BACK_S):
                while True:
                    try:
                        reply = await engine.raw("pick", pack(spec))
                        break
                    except Unavailable:
                        await asyncio.sleep(backoff_s(failures))
                        failures += 1
                if jobs := [job.held for job in replies.picked(reply).jobs]:
                    await engine.release(str(spec.get("worker")), jobs)

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work, name="give back")
        self._background.add(task)
        task.add_done_callback(self._background.discard)
