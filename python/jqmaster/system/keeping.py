"""Settings that a partition missed are brought there by whoever carries mail, as `jqmaster system sync` does."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING

from jqmaster.errors import Forbidden, JQError
from jqmaster.system.settings import behind

if TYPE_CHECKING:
    from jqmaster.system.engine import SystemEngine

CHECK_S = 60.0  # how often each process compares them
_EACH_S = 5.0  # for each partition, of which there may be many
_RETURN_S = 3.0  # of a partition that is back, within
_PAUSE_S = 5.0  # however often one goes and comes back
_LASTS_S = 1.0  # who sets something has told all within this, or they did not answer
_ANSWER_S = 5.0

log = logging.getLogger("jqmaster.system")


async def keep_in_line(system: SystemEngine) -> None:
    """Until it is cancelled: now and then, and soon after a partition that did not answer does so again, compare the
    settings of all with partition 0, and bring what one misses. Ends where the user of Redis may not do so."""
    while True:
        try:
            most_s = max(CHECK_S, _EACH_S * len(system.record.partitions if system.record else ()))
            async with asyncio.timeout(most_s * random.uniform(0.75, 1.25)):
                await system.returned.wait()
            await asyncio.sleep(_RETURN_S * random.random())  # others have seen it, too
        except TimeoutError:
            pass
        system.returned.clear()
        try:
            await bring(system)
        except Forbidden as problem:
            log.info("settings are compared by others: %s", problem)
            return
        except JQError as problem:
            log.info("settings are not compared now: %s", problem)
        await asyncio.sleep(_PAUSE_S)


async def bring(system: SystemEngine) -> None:
    """Bring what differs now and a moment later: a call that was under way meanwhile is left alone. So are those that
    do not answer. Raises what partition 0 does."""
    live = await system.live()
    assert system.record is not None
    engines, routes = list(live.values()), system.record.routes
    before = await behind(engines, routes, within_s=_ANSWER_S)
    if not any(isinstance(one, list) and one for one in before):
        return
    await asyncio.sleep(_LASTS_S)
    now = await behind(engines, routes, within_s=_ANSWER_S)
    for number, engine, first, found in zip(live, engines, before, now, strict=True):
        if isinstance(first, JQError) or isinstance(found, JQError):
            continue
        known = {(one.operation, one.what) for one in first}
        lasting = [one for one in found if (one.operation, one.what) in known]
        for one in lasting:
            await engine.call(one.operation, *one.arguments)
        if lasting:
            log.warning("partition %d was behind, and has now: %s", number, ", ".join(one.what for one in lasting))
