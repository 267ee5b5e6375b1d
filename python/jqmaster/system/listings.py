"""Asking all partitions of a system, of which some may be away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Literal, TypeVar

from jqmaster.engine.engine import Engine
from jqmaster.errors import PartitionsAway, Unavailable, Vanished
from jqmaster.system.ways import all_of

_LISTING_S = 2.0  # how long a partition is waited for, where others may do
_SILENT_S = 5.0  # how long one is not asked then

T = TypeVar("T")


class Listings:
    """Of `SystemEngine`."""

    root: str

    def __init__(self, *, partial: bool) -> None:
        self.is_partial = partial
        self._silent: dict[int, float] = {}  # partitions that did not answer, and until when no listing asks them

    async def partitions(self) -> Sequence[Engine]:
        raise NotImplementedError

    async def live(self) -> dict[int, Engine]:
        raise NotImplementedError

    def heard(self, number: int, *, answers: bool) -> None:
        """Whether a partition answered."""
        if answers:
            self._silent.pop(number, None)
        else:
            self._silent[number] = time.monotonic() + _SILENT_S

    @property
    def missing(self) -> list[int]:
        """The numbers of the partitions that did not answer the last listing."""
        return sorted(self._silent)

    async def everywhere(self, ask: Callable[[Engine], Awaitable[T]], *, within_s: float = _LISTING_S) -> list[T]:
        """The answers of all partitions. Raises the first problem once all are through, of which Unavailable only where
        none answers, if listings may be partial."""
        engines = await self.live()
        if not self.is_partial:
            return await all_of(map(ask, engines.values()))
        self._silent = {number: until for number, until in self._silent.items() if number in engines}
        asked = [number for number in engines if not self._is_left_out(number)]
        answers = await asyncio.gather(
            *(self.patiently(number, ask, within_s) for number in asked), return_exceptions=True
        )
        found: list[T] = []
        problems: list[Unavailable] = []
        for answer in answers:
            if isinstance(answer, Unavailable):
                problems.append(answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found.append(answer)
        if not found:
            raise problems[0] if problems else PartitionsAway(f"no partition of {self.root} answers")
        return found

    async def perhaps(self, number: int, ask: Callable[[Engine], Awaitable[T]]) -> T | None:
        """What one partition says; None where it does not answer, if listings may be partial."""
        if not self.is_partial:
            return await ask((await self.partitions())[number])
        if self._is_left_out(number):
            return None
        with suppress(Unavailable):
            return await self.patiently(number, ask)
        return None

    def _is_left_out(self, number: int) -> bool:
        """Whether a partition was silent just before. Of those who find that this is over one asks it, and the others
        go on without it until that is answered."""
        until = self._silent.get(number)
        if until is None:
            return False
        now = time.monotonic()
        if until <= now:
            self._silent[number] = now + _LISTING_S
        return until > now

    async def root_or_another(self, ask: Callable[[Engine], Awaitable[T]]) -> T:
        """What partition 0 says; if listings may be partial, the first one that answers."""
        engines = await self.live()
        *others, last = engines
        for number in others if self.is_partial else ():
            with suppress(Unavailable):
                return await self.patiently(number, ask)
        return await ask(engines[last if self.is_partial else 0])

    async def form_in_use(self) -> Literal["functions", "scripts"]:
        """How the operations are called that have both forms."""
        return await self.root_or_another(lambda engine: engine.form_in_use())

    async def patiently(self, number: int, ask: Callable[[Engine], Awaitable[T]], within_s: float = _LISTING_S) -> T:
        """What a partition says within so long; whether it does is noted. Raises PartitionsAway."""
        engine = (await self.partitions())[number]
        try:
            async with asyncio.timeout(within_s):
                answer = await ask(engine)
        except TimeoutError as problem:
            self.heard(number, answers=False)
            message = f"partition {number}, {engine.namespace}, did not answer within {within_s:g} s"
            raise PartitionsAway(message) from problem
        except Vanished:
            self.heard(number, answers=False)
            raise
        except Unavailable as problem:
            self.heard(number, answers=False)
            raise PartitionsAway(f"partition {number}, {engine.namespace}, does not answer", problem.cause) from problem
        self.heard(number, answers=True)
        return answer
