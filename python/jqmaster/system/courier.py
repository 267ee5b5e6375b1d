"""Carries letters between the partitions of a system (docs/protocol.md, section 22).

Any number of couriers may run, in any processes. A letter is written anew until it is answered, so one that is killed,
or gives up, loses nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence

from redis.exceptions import RedisError

from jqmaster.connection.wake import WINDOW_MS, Channel, backoff_s
from jqmaster.engine.engine import Engine
from jqmaster.engine.systems import Letters
from jqmaster.errors import JQError, NotFound
from jqmaster.system import calls
from jqmaster.system.balance import balance
from jqmaster.system.bringing import keep_in_line
from jqmaster.system.partitions import Partitions, rendezvous

log = logging.getLogger("jqmaster.courier")

MOST_SERVED = 8  # partitions at which one courier sleeps
NET_S = 5.0
CARRY_S = 3.0  # letters are given out again after five seconds, and older ones are not to be brought
AWAY_CAP_S = 10.0
AGAIN_S = 5.0
SOON_S = 0.05  # who has brought letters away looks again after this, if none is answered before


class _Away:
    """Partitions that did not answer, and until when they are left alone."""

    def __init__(self) -> None:
        self._until: dict[int, float] = {}
        self._failures: dict[int, int] = defaultdict(int)

    def failed(self, number: int) -> None:
        self._until[number] = time.monotonic() + backoff_s(self._failures[number], AWAY_CAP_S)
        self._failures[number] += 1

    def answered(self, number: int) -> None:
        self._until.pop(number, None)
        self._failures.pop(number, None)

    def now(self) -> set[int]:
        return {number for number, until in self._until.items() if until > time.monotonic()}

    def left_s(self) -> float:
        """Until the first of them is to be tried again; a window where there is none."""
        now = time.monotonic()
        return min((until - now for until in self._until.values() if until > now), default=WINDOW_MS / 1000)


class _Round:
    """What goes out from one partition: letters that are under way, and what was answered to others."""

    def __init__(self, courier: Courier, number: int, engine: Engine) -> None:
        self.number = number
        self._courier = courier
        self._engine = engine
        self._under_way: dict[int, asyncio.Task[None]] = {}
        self._answered: list[tuple[bytes, str]] = []
        self._channel = Channel(engine.redis, f"{engine.namespace}:wake:mail")

    async def look(self, wait_ms: int | None = None) -> Letters:
        """Take back what was answered, and have letters brought away; those of other partitions do not wait."""
        answered, self._answered = self._answered[:100], self._answered[100:]
        left_out = self._courier.away.now() | set(self._under_way)
        found = await self._engine.outbox(
            self._courier.name, answered, wait=wait_ms, partitions_left_out=sorted(left_out)
        )
        by_target: dict[int, list[bytes]] = defaultdict(list)
        for to, letter in found.letters:
            by_target[to].append(letter)
        for to, letters in by_target.items():
            task = asyncio.create_task(self._bring(to, letters), name=f"mail {self.number} to {to}")
            self._under_way[to] = task
        return found

    async def _bring(self, to: int, letters: Sequence[bytes]) -> None:
        try:
            async with asyncio.timeout(CARRY_S):
                answers = await (await self._courier.at(to)).deliver(letters)
        except (JQError, TimeoutError, OSError) as problem:
            log.info("partition %d takes no mail: %s", to, problem or "no answer")
            self._courier.away.failed(to)
        else:
            self._courier.away.answered(to)
            self._answered += zip(letters, answers, strict=True)
            if any(answer.startswith("ROUTE ") for answer in answers):
                await self._courier.align(self.number, to)
            for answer in answers:
                if answer[:1].isupper() and not answer.startswith("ROUTE "):
                    log.warning("partition %d refused a letter of partition %d: %s", to, self.number, answer)
        finally:
            del self._under_way[to]
            self._channel.wake_all()

    async def serve(self) -> None:
        """Carry what there is, and sleep. Runs until it is cancelled."""
        failures = 0
        try:
            while True:
                try:
                    found = await self.look(WINDOW_MS)
                    failures = 0
                except (JQError, OSError) as problem:
                    log.info("partition %d gives no mail: %s", self.number, problem)
                    await asyncio.sleep(backoff_s(failures, AWAY_CAP_S))
                    failures += 1
                    continue
                # Answers wake only who sleeps: no await between this look at them and the sleep.
                if self._answered:
                    continue
                soon_s = WINDOW_MS / 1000 if found.next_ms < 0 else max(found.next_ms, 1) / 1000
                if found.letters:
                    soon_s = SOON_S
                await self._channel.sleep(min(soon_s, WINDOW_MS / 1000, self._courier.away.left_s()))
        finally:
            await self._channel.stop()

    async def finish(self) -> None:
        """Wait for what is under way, and take its answers back."""
        while self._under_way or self._answered:
            if self._under_way:
                await asyncio.wait(set(self._under_way.values()))
            else:
                await self.look()

    def drop(self) -> None:
        """Give up what is under way."""
        for task in list(self._under_way.values()):
            task.cancel()


class Courier:
    """Carries letters of up to eight partitions, chosen by its name such that couriers share them evenly; of a smaller
    system of all. Every five seconds it looks at another one, by chance, in case that nobody does.

    A partition that does not answer is tried again, ever more rarely, and holds up no other.
    """

    def __init__(self, engine: Partitions, name: str = "") -> None:
        self.name = name or f"courier {secrets.token_hex(6)}"
        self.away = _Away()
        self._engine = engine

    async def at(self, number: int) -> Engine:
        """The engine of a partition; the record is looked at for one that is not known yet. Raises NotFound."""
        if number >= len(await self._engine.partitions()):
            await self._engine.look()
        engines = await self._engine.partitions()
        if number >= len(engines):
            raise NotFound(f"the system has no partition {number}")
        return engines[number]

    async def align(self, *numbers: int) -> None:
        """Have these partitions know the same record of the system, the later of theirs. Whoever changes it tells all;
        one that was away then may not know it."""
        with contextlib.suppress(JQError, TimeoutError, RedisError):  # the letter comes again
            async with asyncio.timeout(CARRY_S):
                engines = [await self.at(number) for number in numbers]
                found = [await calls.read_at(one) for one in engines]
                records = [one for one in found if one is not None]
                for engine in engines:
                    for record in records:  # it keeps a later one than its own
                        await engine.system(record.packed())

    async def served(self) -> list[int]:
        """The numbers of the partitions whose letters it carries."""
        engines = await self._engine.live()

        nearest = rendezvous(self.name, engines.values())[:MOST_SERVED]
        return [number for number, engine in engines.items() if engine in nearest]

    async def run(self) -> None:
        """Carry letters until it is cancelled. Raises what reading the system's record raises."""
        await self._engine.partitions()
        rounds: dict[int, _Round] = {}
        serving: dict[int, asyncio.Task[None]] = {}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._net(), name="mail of others")
                while True:
                    engines = await self._engine.live()
                    _, record = await self._engine.known()
                    # Of those that it served before it goes on serving all: others may not know yet that they should.
                    for number in set(await self.served()) - rounds.keys():
                        rounds[number] = _Round(self, number, engines[number])
                        serving[number] = group.create_task(rounds[number].serve(), name=f"mail of {number}")
                    for number in rounds.keys() - engines.keys():
                        serving[number].cancel()
                    await self._engine.changed(record.generation)
        finally:
            for one in rounds.values():
                one.drop()

    async def carry_all(self) -> None:
        """Carry what there is now at each partition, once. Raises Unavailable when one gives none."""
        for number, engine in (await self._engine.live()).items():
            one = _Round(self, number, engine)
            await one.look()
            await one.finish()

    async def _net(self) -> None:
        while True:
            await asyncio.sleep(NET_S * random.uniform(0.8, 1.2))
            engines = await self._engine.live()
            number = random.choice(list(engines))
            one = _Round(self, number, engines[number])
            with contextlib.suppress(JQError, OSError):
                await one.look()
                await one.finish()


async def tend(system: Partitions, name: str) -> None:
    """Until it is cancelled: carry mail between the partitions, share limits out, and keep settings the same. Any
    process may."""
    await asyncio.gather(
        again("mail is not carried", Courier(system, name).run),
        again("limits are not shared", lambda: balance(system)),
        again("settings are not compared", lambda: keep_in_line(system)),
    )


async def again(what: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run it until it is cancelled or says that it is through, whatever it raises."""
    while True:
        try:
            return await run()
        except Exception as problem:
            is_ours = not isinstance(problem, JQError)  # an oversight must not end what others count on
            log.log(
                logging.ERROR if is_ours else logging.WARNING, "%s, trying again: %s", what, problem, exc_info=is_ours
            )
        await asyncio.sleep(AGAIN_S)
