"""What the HTTP layer needs of the rest of a JQ server, and the one object that holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

from jqmaster.engine.ended import Ended
from jqmaster.engine.engine import Engine
from jqmaster.engine.waiting import Waiting
from jqmaster.server.egress import Network
from jqmaster.server.keyring import Keyring
from jqmaster.server.meters import Meters

Networks = Collection[Network]
Color = Literal["grey", "blue", "green", "amber", "red", "purple"]


@dataclass
class Master:
    """The parts of one JQ server. Whoever builds it starts and stops the parts.

    While `draining` is set the server takes no new picks, `/health` answers 503 so that a load balancer looks
    elsewhere, and open long polls are answered at once. It never goes back.
    """

    engine: Engine
    waiting: Waiting
    ended: Ended
    keyring: Keyring
    proxies: Networks = ()
    """They say who somebody is, since they have asked. What others send in these headers counts nothing."""
    redis: str = ""
    """Where it is, without passwords."""
    environment: str = ""
    """Shown in the web UI with its color, so that nobody takes one system for another."""
    color: Color = "grey"
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    meters: Meters = field(default_factory=Meters)

    def __post_init__(self) -> None:
        for engine in self.engine.engines:
            engine.observe = self.meters.call
