"""Operations for couriers, who carry letters between the partitions of a system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jqmaster.engine import replies
from jqmaster.engine.calls import Calling, given, pack


class Letters(NamedTuple):
    """``next_ms``: when there is more, -1 for not by time alone. ``letters``: (number of a partition, letter) each."""

    next_ms: int
    letters: list[tuple[int, bytes]]


class MailCalls(Calling):
    """Letters between partitions."""

    async def outbox(
        self,
        courier: str,
        answered: Sequence[tuple[bytes, str]] = (),
        *,
        count: int | None = None,
        wait: int | None = None,
        partitions_left_out: Sequence[int] = (),
    ) -> Letters:
        """Up to ``count`` letters, 100 unless told, and bring back what was ``answered`` to earlier ones.

        ``wait``: for how many milliseconds this courier sleeps if there is none. Raises Invalid, Version.
        """
        spec = given(courier=courier, count=count, wait=wait)
        if partitions_left_out:
            spec["except"] = list(partitions_left_out)
        arguments = [part for one in answered for part in one]
        next_ms, *found = await self.call("outbox", pack(spec), *arguments)
        return Letters(int(next_ms), [(int(to), bytes(letter)) for to, letter in replies.pairs(found)])

    async def deliver(self, letters: Sequence[bytes]) -> list[str]:
        """Apply letters, 1 to 100 of them; the answer to each, which its sender is to get. Raises Invalid."""
        return [replies.text(one) for one in await self.call("deliver", *letters)]
