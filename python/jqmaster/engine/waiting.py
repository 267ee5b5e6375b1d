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
from collections.abc import Mapping, Sequence
from typing import Any

from jqmaster.connection.wake import BLOCK_S, WINDOW_MS, Channel, backoff_s, sleep
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
SOON_S = 3.0  # how soon one is looked at again that did not answer, or where a worker that works is asleep
MOST_REMEMBERED = 10_000
BLOCKS_S = 120.0  # of a connection that waits in one of several partitions: so many have to call rarely

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


def in_order(engines: Sequence[Engine], request: object) -> list[Engine]:
    """In which order a pick looks at partitions: from one on to which its request leads, so that one that is repeated
    comes by the same jobs."""
    first = zlib.crc32(str(request).encode(errors="surrogatepass")) % len(engines)
    return [*engines[first:], *engines[:first]]


class _Wish:
    """All who want jobs of the same queues in the same way: where they sleep; and by worker, when its note ends that it
    does, which wakes it until then."""

    def __init__(self, engines: Sequence[Engine], name: str) -> None:
        self.name, self.polls = name, 0
        self.until: dict[Engine, dict[str, float]] = {engine: {} for engine in engines}
        block_s = BLOCK_S if len(engines) == 1 else BLOCKS_S
        self.channels = {
            engine: Channel(engine.redis, f"{engine.namespace}:wake:{name}", block_s) for engine in engines
        }


class _Poll:
    """A pick. ``unanswered``: partitions that may have started jobs of which nobody knows; ``called``:
    those where somebody called, and nobody has looked yet."""

    def __init__(self, wish: _Wish, spec: Mapping[str, Any], timeout_s: float) -> None:
        self.wish, self.worker = wish, str(spec.get("worker"))
        self.is_own = spec.get("request") is None
        self.spec = {**spec, "request": new_request()} if self.is_own else dict(spec)
        self.deadline = time.monotonic() + timeout_s
        self.unanswered: set[Engine] = set()
        self.called: set[Engine] = set()


class Waiting:
    """The long polls of one process: of one namespace, or over all partitions of a cluster."""

    def __init__(self, *engines: Engine) -> None:
        self._engines = engines
        self._is_one = len(engines) == 1
        self._wishes: dict[str, _Wish] = {}
        self._away_until = dict.fromkeys(engines, -math.inf)
        self._is_draining = False
        self._background: set[asyncio.Task[Any]] = set()

    @property
    def channels(self) -> list[Channel]:
        """Those on which somebody sleeps, or did a while ago."""
        return [channel for wish in self._wishes.values() for channel in wish.channels.values()]

    async def pick(self, spec: Mapping[str, Any], timeout_s: float) -> Reply:
        """`pick` with `spec` (without `wait`), waiting up to `timeout_s` for a job. The reply is `pick`'s
        own: `[next_ms, doc, argument, ...]`, with no job when the time is up or the server stops.

        Raises JQError for a bad spec, and Unavailable when nobody answers the first look. Safe to cancel: jobs
        that were picked for a caller who has gone are given back.
        """
        poll = _Poll(self._wish(spec), spec, timeout_s)
        poll.wish.polls += 1
        try:
            return await self._pick(poll)
        finally:
            poll.wish.polls -= 1
            for engine in poll.called:
                poll.wish.channels[engine].pass_on()
            for engine in poll.unanswered:
                task = asyncio.create_task(self._take_back(engine, poll.spec), name="give back")
                self._background.add(task)
                task.add_done_callback(self._background.discard)

    def look_again(self, worker: str) -> None:
        """Have this worker's long polls look at once: what it was refused may be its now."""
        for until in (until for wish in self._wishes.values() for until in wish.until.values()):
            until.pop(worker, None)
        for channel in self.channels:
            channel.wake_same(worker)

    def drain(self) -> None:
        """Answer all open long polls at once, and every later one."""
        self._is_draining = True
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

    def _wish(self, spec: Mapping[str, Any]) -> _Wish:
        """Those that nobody uses any more go, so that a variety of them does not pile up."""
        name = channel_of(spec.get("queues"), spec.get("without"))
        if name not in self._wishes:
            for idle in [wish for wish in self._wishes.values() if not wish.polls]:
                if not any(channel.connected for channel in idle.channels.values()):
                    del self._wishes[idle.name]
            self._wishes[name] = _Wish(self._engines, name)
        return self._wishes[name]

    async def _pick(self, poll: _Poll) -> Reply:
        reply, is_first = list(NOTHING), True
        due = in_order(self._engines, poll.spec["request"])
        if not self._is_one and time.monotonic() < poll.deadline:
            due = self._due(poll, due)
        while not self._is_draining:
            moments, sleeps = dict[Engine, int](), time.monotonic() < poll.deadline
            for engine in due:
                try:
                    found = await self._look(poll, engine, sleeps=sleeps)
                except Unavailable:
                    if is_first and len(poll.unanswered) == len(self._engines):
                        if not poll.is_own:
                            poll.unanswered.clear()  # the client repeats it
                        raise
                    continue
                if len(found) > 1:
                    return found if self._is_one else [0, *found[1:]]  # others may have more
                moments[engine] = found[0]
            is_first = False
            reply = [min((ms for ms in moments.values() if ms >= 0), default=-1)] if moments else reply
            due = [engine for engine, next_ms in moments.items() if next_ms in AGAIN]
            if due and poll.is_own and not poll.unanswered:
                poll.spec["request"] = new_request()  # a repeated one none of whose jobs runs any more says so for ever
            elif due or not sleeps:
                poll.called.update(due)  # the client goes on, or somebody else
                return reply
            else:
                await self._sleep(poll)
                # Whoever was woken looks, however late: its marker must not get lost.
                if not poll.called and time.monotonic() >= poll.deadline:
                    return reply
                due = self._due(poll, self._engines)
        return reply

    def _due(self, poll: _Poll, engines: Sequence[Engine]) -> list[Engine]:
        """Those that may have jobs and do not wake this worker; where it has found some comes last."""
        now = time.monotonic()
        due = [engine for engine in engines if engine in poll.called or now >= self._rests_until(poll, engine)]
        return sorted(due, key=lambda engine: poll.worker not in poll.wish.until[engine])

    def _rests_until(self, poll: _Poll, engine: Engine) -> float:
        return max(poll.wish.until[engine].get(poll.worker, -math.inf), self._away_until[engine])

    async def _look(self, poll: _Poll, engine: Engine, *, sleeps: bool) -> Reply:
        """A pick. Raises Unavailable."""
        wish, channel = poll.wish, poll.wish.channels[engine]
        full = {name: value for name, value in poll.spec.items() if name != "request"}
        if sleeps:
            # The engine keeps one note per worker and channel. Always the whole window, so that a short poll
            # of a worker does not shorten the note of a long one.
            full["wait"] = {"on": wish.name, "ms": WINDOW_MS}
        full["request"] = poll.spec["request"]  # at the end (`new_request`)
        poll.unanswered.add(engine)
        try:
            reply: Reply = await engine.raw("pick", pack(full))
        except Unavailable as problem:
            if not self._is_one and self._away_until[engine] < 0:
                log.warning("going on without a partition: %s", problem)
            self._away_until[engine] = time.monotonic() + SOON_S
            poll.called.discard(engine)
            raise
        except JQError:
            poll.unanswered.discard(engine)
            raise
        poll.unanswered.discard(engine)
        poll.called.discard(engine)
        self._away_until[engine] = -math.inf
        if len(reply) > 1 or reply[0] in AGAIN:
            wish.until[engine].pop(poll.worker, None)
            for until in wish.until.values():  # one that works all the time may not see that it is called
                if poll.worker in until:
                    until[poll.worker] = min(until[poll.worker], time.monotonic() + SOON_S)
            channel.wake_same(poll.worker)
        elif sleeps:
            if len(wish.until[engine]) >= MOST_REMEMBERED:
                wish.until[engine].clear()
            wish.until[engine][poll.worker] = time.monotonic() + note_s(reply[0])
            channel.look_in(reply[0])
        return reply

    async def _sleep(self, poll: _Poll) -> None:
        """Until a partition may have something, but at most until the poll is over."""
        channels = poll.wish.channels
        up_at = min(poll.deadline, *(self._rests_until(poll, engine) for engine in self._engines))
        called = await sleep([*channels.values()], max(0.001, up_at - time.monotonic()), poll.worker)
        poll.called.update(engine for engine, channel in channels.items() if channel in called)

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
