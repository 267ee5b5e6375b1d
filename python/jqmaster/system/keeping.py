"""Settings that a partition missed are brought there by whoever carries mail, as `jqmaster system sync` does."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING

from jqmaster.errors import Forbidden, JQError
from jqmaster.system.bringing import bring

if TYPE_CHECKING:
    from jqmaster.system.engine import SystemEngine

CHECK_S = 60.0  # how often each process compares them
_EACH_S = 5.0  # for each partition, of which there may be many
_RETURN_S = 3.0  # of a partition that is back, within
_STALE_S = 0.5  # of one that starts nothing before that
_PAUSE_S = 5.0  # however often one goes and comes back
_LASTS_S = 1.0  # who sets something has told all within this, or they did not answer
_ANSWER_S = 5.0

log = logging.getLogger("jqmaster.system")


async def keep_in_line(system: SystemEngine) -> None:
    """Until it is cancelled: now and then, and soon after a partition that did not answer does so again, or has older
    settings, compare the settings of all, and bring what one misses. Ends where the user of Redis may not do so."""
    while True:
        try:
            most_s = max(CHECK_S, _EACH_S * len(system.record.partitions if system.record else ()))
            async with asyncio.timeout(most_s * random.uniform(0.75, 1.25)):
                await system.settled.wrong.wait()
            within_s = _STALE_S if system.settled.is_behind else _RETURN_S
            await asyncio.sleep(within_s * random.random())  # others have seen it, too
        except TimeoutError:
            pass
        is_behind, system.settled.is_behind = system.settled.is_behind, False
        system.settled.wrong.clear()
        try:
            await _bring(system, is_behind)
        except Forbidden as problem:
            log.info("settings are compared by others: %s", problem)
            return
        except JQError as problem:
            log.info("settings are not compared now: %s", problem)
        await asyncio.sleep(_STALE_S if is_behind else _PAUSE_S)


async def _bring(system: SystemEngine, is_behind: bool) -> None:
    """What differs now and a moment later: a call that was under way meanwhile is left alone. So are those that do not
    answer."""
    lasting_s = _STALE_S if is_behind else _LASTS_S
    answers = await bring(system, within_s=_ANSWER_S, lasting_s=lasting_s, are_versions_enough=is_behind)
    for number, one in answers.items():
        if isinstance(one, Forbidden):
            raise one
        if one and not isinstance(one, JQError):
            log.warning("partition %d was behind, and has now: %s", number, ", ".join(one))
