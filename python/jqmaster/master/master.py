"""What the HTTP layer needs of the rest of a JQ master, and the one object that holds it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from jqmaster.connection.coalesce import Calls, Coalescer
from jqmaster.engine.calls import Caller
from jqmaster.engine.durable import Durable
from jqmaster.engine.engine import Engine as WholeEngine
from jqmaster.master.figures import MOST_QUEUES, Figures
from jqmaster.master.keyring import Keyring
from jqmaster.master.lookout import Lookout
from jqmaster.master.meters import Meters
from jqmaster.master.overview import Overview
from jqmaster.master.rankings import Rankings
from jqmaster.master.session import IDLE_S, NO_PROXIES, Proxies
from jqmaster.master.standing import Standing
from jqmaster.master.trends import Trends
from jqmaster.system.engine import SystemEngine


class Engine(Calls, Protocol):
    """Calls the scripts of one namespace, in either form."""

    async def enqueue_packed(self, arguments: Sequence[Any], durable: Durable | None, /) -> Any:
        """`call` of `enqueue`, waiting for replicas where asked. Raises `NotDurable` as well."""

    async def form_in_use(self) -> str:
        """Whether operations are called as "functions" or as "scripts". Raises as `call`."""


class Waiting(Protocol):
    """Sleeps until there may be work, without polling."""

    async def pick(self, spec: Mapping[str, Any], timeout_s: float, /) -> list[Any]:
        """Pick for `spec`; when there is nothing, wait for up to `timeout_s`. Returns `pick`'s raw reply.

        Cancelling it must not strand a job: what a pick under way had already taken is given back.
        """

    def look_again(self, worker: str, /) -> None:
        """Have this worker's picks that wait look at once: what they were refused may be theirs now."""


class Ended(Protocol):
    """Waits for jobs to end."""

    async def wait(self, job_id: bytes, timeout_s: float, /) -> str | None:
        """The state `job_id` is in once it has ended, or after `timeout_s`; None for an unknown job."""


class Messages(Protocol):
    """What is published of one job."""

    async def get(self) -> bytes | None:
        """The next event, packed; None: look how the job stands, something may have been missed."""


class Events(Protocol):
    """Follows what happens."""

    async def last_id(self) -> str:
        """The id of the last event in the stream."""

    async def resume(self, event_id: str, /) -> tuple[str, bool]:
        """Behind which event to go on after this one, and whether some between may be missing."""

    def after(self, event_id: str, alive_every_s: float, /) -> AsyncGenerator[list[tuple[str, bytes]] | None, None]:
        """Events (id, packed) behind this one, some at once, without end; None when there was none for a
        while, an empty page where some are missing."""

    def of_job(self, job_id: str, /) -> AbstractAsyncContextManager[Messages]:
        """The events of a tracked job."""


class Dispatch(Protocol):
    """Pushes jobs to registered workers."""

    def poke(self) -> None:
        """Look for deliverable jobs soon: a worker may have got room. Returns at once, safe to call often."""


class Bulks(Protocol):
    """Carries on what is done to many jobs."""

    def poke(self) -> None:
        """One has begun."""


@dataclass
class Master:
    """The parts of one JQ master. Whoever builds it starts and stops the parts.

    While `draining` is set the master takes no new picks, `/health` answers 503 so that a load balancer looks
    elsewhere, and open long polls are answered at once. It never goes back.
    """

    engine: Engine
    waiting: Waiting
    ended: Ended
    dispatch: Dispatch
    events: Events | None = None
    bulks: Bulks | None = None
    keyring: Keyring | None = None
    """Without one everybody may do everything."""
    proxies: Proxies = NO_PROXIES
    session_idle_s: float = IDLE_S
    standing: Standing = field(default_factory=Standing)
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    meters: Meters = field(default_factory=Meters)
    figures: Figures = field(init=False)
    metrics_queues: int = MOST_QUEUES
    streams: int = 0
    most_streams: int = 10_000
    overview: Overview | None = field(init=False, default=None)
    trends: Trends | None = field(init=False, default=None)
    rankings: Rankings | None = field(init=False, default=None)
    partitions: Lookout | None = field(init=False, default=None)
    """Of a system."""
    enqueuing: Coalescer = field(init=False)

    def __post_init__(self) -> None:
        self.enqueuing = Coalescer(self.engine)
        self.figures = Figures(self.engine, self.metrics_queues)
        if isinstance(self.engine, Caller):
            self.engine.observe = self.meters.call
        if isinstance(self.engine, WholeEngine | SystemEngine):
            self.overview = Overview(self.engine, meters=self.meters)
            self.trends = Trends(self.engine)
            self.rankings = Rankings(self.engine)
        if isinstance(self.engine, SystemEngine):
            self.partitions = Lookout(self.engine)
