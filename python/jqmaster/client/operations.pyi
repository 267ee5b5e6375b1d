# Made from the heads of scripts/*.lua by `make generate`.
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, overload

from jqmaster.client.link import Link
from jqmaster.engine.calling import Spec
from jqmaster.engine.operations import (
    CancelReply,
    DiscardReply,
    HeartbeatReply,
    KickReply,
    RetryReply,
    ScheduleReply,
    TickReply,
)
from jqmaster.engine.replies import Assigned, Document, Finished, Page, Picked, Result

class PlainOperations:
    def __init__(self, link: Link) -> None: ...
    def call(self, operation: str, /, *arguments: Any, **named: Any) -> Any: ...
    async def acall(self, operation: str, /, *arguments: Any, **named: Any) -> Any: ...
    def assign(
        self,
        master: str,
        limit: int | None = ...,
        request: str | None = ...,
        wait: Spec | None = ...,
        without: Sequence[str] | None = ...,
    ) -> Assigned:
        """Picks jobs for the registered workers that are pushed to, least loaded first. For JQ servers."""
    async def aassign(
        self,
        master: str,
        limit: int | None = ...,
        request: str | None = ...,
        wait: Spec | None = ...,
        without: Sequence[str] | None = ...,
    ) -> Assigned:
        """Picks jobs for the registered workers that are pushed to, least loaded first. For JQ servers."""
    def audit(self, cursor: str | None = ..., count: int | None = ...) -> Page:
        """Recounts indexes against job records, a step at a time."""
    async def aaudit(self, cursor: str | None = ..., count: int | None = ...) -> Page:
        """Recounts indexes against job records, a step at a time."""
    def bulk(
        self,
        what: Literal["discard", "cancel", "retry"] | None = ...,
        where: Spec | None = ...,
        total: int | None = ...,
        force: bool | None = ...,
        dependents: Literal["leave", "cancel"] | None = ...,
        queue: str | None = ...,
        id: str | None = ...,
        stop: bool | None = ...,
        holder: str | None = ...,
        cursor: str | None = ...,
        changed: int | None = ...,
        ended: bool | None = ...,
        problem: str | None = ...,
    ) -> Document:
        """Begins, steps or stops a bulk operation, which does something to all jobs that fit a description."""
    async def abulk(
        self,
        what: Literal["discard", "cancel", "retry"] | None = ...,
        where: Spec | None = ...,
        total: int | None = ...,
        force: bool | None = ...,
        dependents: Literal["leave", "cancel"] | None = ...,
        queue: str | None = ...,
        id: str | None = ...,
        stop: bool | None = ...,
        holder: str | None = ...,
        cursor: str | None = ...,
        changed: int | None = ...,
        ended: bool | None = ...,
        problem: str | None = ...,
    ) -> Document:
        """Begins, steps or stops a bulk operation, which does something to all jobs that fit a description."""
    def bulks(self) -> list[Document]:
        """Lists bulk operations, the latest first: those under way, and those that ended within an hour, a hundred at
        most."""
    async def abulks(self) -> list[Document]:
        """Lists bulk operations, the latest first: those under way, and those that ended within an hour, a hundred at
        most."""
    @overload
    def cancel(
        self,
        *,
        ids: Sequence[str] | None = ...,
        where: Spec,
        cursor: str | None = ...,
        count: int | None = ...,
        force: bool | None = ...,
        dependents: Literal["leave", "cancel", "refuse"] | None = ...,
        atomic: bool | None = ...,
    ) -> CancelReply:
        """Cancels jobs."""
    @overload
    def cancel(
        self,
        ids: Sequence[str] | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
        force: bool | None = ...,
        dependents: Literal["leave", "cancel", "refuse"] | None = ...,
        atomic: bool | None = ...,
    ) -> list[Any]:
        """Cancels jobs."""
    @overload
    async def acancel(
        self,
        *,
        ids: Sequence[str] | None = ...,
        where: Spec,
        cursor: str | None = ...,
        count: int | None = ...,
        force: bool | None = ...,
        dependents: Literal["leave", "cancel", "refuse"] | None = ...,
        atomic: bool | None = ...,
    ) -> CancelReply:
        """Cancels jobs."""
    @overload
    async def acancel(
        self,
        ids: Sequence[str] | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
        force: bool | None = ...,
        dependents: Literal["leave", "cancel", "refuse"] | None = ...,
        atomic: bool | None = ...,
    ) -> list[Any]:
        """Cancels jobs."""
    def change(self, jobs: Sequence[Sequence[Any]]) -> list[Any]:
        """Changes jobs: their queue, priority, argument, time, retries, lease, tags."""
    async def achange(self, jobs: Sequence[Sequence[Any]]) -> list[Any]:
        """Changes jobs: their queue, priority, argument, time, retries, lease, tags."""
    @overload
    def config(self, *, set: Spec | None = ..., unset: Sequence[str] | None = ..., describe: bool) -> list[Document]:
        """Shows and changes a namespace's settings."""
    @overload
    def config(self, set: Spec | None = ..., unset: Sequence[str] | None = ...) -> Document:
        """Shows and changes a namespace's settings."""
    @overload
    async def aconfig(
        self, *, set: Spec | None = ..., unset: Sequence[str] | None = ..., describe: bool
    ) -> list[Document]:
        """Shows and changes a namespace's settings."""
    @overload
    async def aconfig(self, set: Spec | None = ..., unset: Sequence[str] | None = ...) -> Document:
        """Shows and changes a namespace's settings."""
    def constrain(
        self,
        id: str,
        match: Spec | bytes,
        by: str | Sequence[str] | None = ...,
        concurrency: int | None = ...,
        rate: Spec | None = ...,
        cost: float | str | None = ...,
        order: Literal["strict"] | None = ...,
        expires_in: float | timedelta | None = ...,
        shared: bool | None = ...,
        declared: str | None = ...,
    ) -> Document:
        """Creates a constraint, or replaces it whole."""
    async def aconstrain(
        self,
        id: str,
        match: Spec | bytes,
        by: str | Sequence[str] | None = ...,
        concurrency: int | None = ...,
        rate: Spec | None = ...,
        cost: float | str | None = ...,
        order: Literal["strict"] | None = ...,
        expires_in: float | timedelta | None = ...,
        shared: bool | None = ...,
        declared: str | None = ...,
    ) -> Document:
        """Creates a constraint, or replaces it whole."""
    def constraints(
        self,
        ids: Sequence[str] | None = ...,
        busiest: int | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
    ) -> Page:
        """Lists constraints, in order of id, with how much of each is in use."""
    async def aconstraints(
        self,
        ids: Sequence[str] | None = ...,
        busiest: int | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
    ) -> Page:
        """Lists constraints, in order of id, with how much of each is in use."""
    def depend(
        self,
        id: str,
        add: Sequence[str] | None = ...,
        remove: Sequence[str] | None = ...,
        if_failed: Literal["wait", "fail", "run", "only"] | None = ...,
    ) -> str:
        """Changes what a job waits for."""
    async def adepend(
        self,
        id: str,
        add: Sequence[str] | None = ...,
        remove: Sequence[str] | None = ...,
        if_failed: Literal["wait", "fail", "run", "only"] | None = ...,
    ) -> str:
        """Changes what a job waits for."""
    @overload
    def discard(
        self, *, ids: Sequence[str] | None = ..., where: Spec, cursor: str | None = ..., count: int | None = ...
    ) -> DiscardReply:
        """Removes jobs with their records. Those that wait are cancelled before."""
    @overload
    def discard(self, ids: Sequence[str] | None = ..., cursor: str | None = ..., count: int | None = ...) -> list[Any]:
        """Removes jobs with their records. Those that wait are cancelled before."""
    @overload
    async def adiscard(
        self, *, ids: Sequence[str] | None = ..., where: Spec, cursor: str | None = ..., count: int | None = ...
    ) -> DiscardReply:
        """Removes jobs with their records. Those that wait are cancelled before."""
    @overload
    async def adiscard(
        self, ids: Sequence[str] | None = ..., cursor: str | None = ..., count: int | None = ...
    ) -> list[Any]:
        """Removes jobs with their records. Those that wait are cancelled before."""
    def explain(self, id: str) -> Document:
        """Says why a job waits: what holds it, what is ahead of it, when it may start."""
    async def aexplain(self, id: str) -> Document:
        """Says why a job waits: what holds it, what is ahead of it, when it may start."""
    def export(self, cursor: str | None = ..., count: int | None = ...) -> Page:
        """Everything the namespace has, as records for import, some at a time."""
    async def aexport(self, cursor: str | None = ..., count: int | None = ...) -> Page:
        """Everything the namespace has, as records for import, some at a time."""
    def failures(
        self,
        group: str | None = ...,
        steps: int | None = ...,
        from_ms: int | datetime | None = ...,
        to_ms: int | datetime | None = ...,
        sample: int | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
    ) -> Page:
        """What failed for good, by group."""
    async def afailures(
        self,
        group: str | None = ...,
        steps: int | None = ...,
        from_ms: int | datetime | None = ...,
        to_ms: int | datetime | None = ...,
        sample: int | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
    ) -> Page:
        """What failed for good, by group."""
    def finish(self, worker: str, outcomes: Sequence[Sequence[Any]] | None = ..., pick: Spec | None = ...) -> Finished:
        """Takes the outcomes of attempts, and gives the worker its next jobs in the same round trip."""
    async def afinish(
        self, worker: str, outcomes: Sequence[Sequence[Any]] | None = ..., pick: Spec | None = ...
    ) -> Finished:
        """Takes the outcomes of attempts, and gives the worker its next jobs in the same round trip."""
    def forget(self, queue: str) -> None:
        """Removes a queue that has no jobs, with its settings and statistics."""
    async def aforget(self, queue: str) -> None:
        """Removes a queue that has no jobs, with its settings and statistics."""
    def free(self, unique: str) -> str:
        """Frees a unique key; its job goes on without one."""
    async def afree(self, unique: str) -> str:
        """Frees a unique key; its job goes on without one."""
    def get(self, ids: Sequence[str]) -> list[Document | None]:
        """Documents of jobs: all there is to know about each."""
    async def aget(self, ids: Sequence[str]) -> list[Document | None]:
        """Documents of jobs: all there is to know about each."""
    def head(self, queues: str | Sequence[str]) -> tuple[int, str] | None:
        """Tells where the best job stands that a pick of these queues could start."""
    async def ahead(self, queues: str | Sequence[str]) -> tuple[int, str] | None:
        """Tells where the best job stands that a pick of these queues could start."""
    @overload
    def heartbeat(
        self, worker: str, jobs: Sequence[Sequence[Any]], *, control: bool, arguments: Sequence[bytes] | None = ...
    ) -> HeartbeatReply:
        """Renews the leases of the jobs a worker holds, and marks a registered worker as alive."""
    @overload
    def heartbeat(
        self, worker: str, jobs: Sequence[Sequence[Any]], arguments: Sequence[bytes] | None = ...
    ) -> list[Any]:
        """Renews the leases of the jobs a worker holds, and marks a registered worker as alive."""
    @overload
    async def aheartbeat(
        self, worker: str, jobs: Sequence[Sequence[Any]], *, control: bool, arguments: Sequence[bytes] | None = ...
    ) -> HeartbeatReply:
        """Renews the leases of the jobs a worker holds, and marks a registered worker as alive."""
    @overload
    async def aheartbeat(
        self, worker: str, jobs: Sequence[Sequence[Any]], arguments: Sequence[bytes] | None = ...
    ) -> list[Any]:
        """Renews the leases of the jobs a worker holds, and marks a registered worker as alive."""
    def history(self, id: str) -> Document:
        """What happened to a job so far, oldest first."""
    async def ahistory(self, id: str) -> Document:
        """What happened to a job so far, oldest first."""
    def hold(self, id: str, seconds: float | timedelta, by: Any | None = ...) -> int:
        """Closes a key of a constraint for a while, or opens it: nothing starts under it until then."""
    async def ahold(self, id: str, seconds: float | timedelta, by: Any | None = ...) -> int:
        """Closes a key of a constraint for a while, or opens it: nothing starts under it until then."""
    def jobs(
        self,
        where: Spec | None = ...,
        newest: bool | None = ...,
        recent: bool | None = ...,
        brief: bool | None = ...,
        argument_max: int | None = ...,
        looked: bool | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
    ) -> Page:
        """Finds jobs by what they are, a page in order."""
    async def ajobs(
        self,
        where: Spec | None = ...,
        newest: bool | None = ...,
        recent: bool | None = ...,
        brief: bool | None = ...,
        argument_max: int | None = ...,
        looked: bool | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
    ) -> Page:
        """Finds jobs by what they are, a page in order."""
    def keys(self, digests: bool | None = ..., cursor: str | None = ..., count: int | None = ...) -> Page:
        """Lists the keys of the HTTP API, in order of id, without secrets."""
    async def akeys(self, digests: bool | None = ..., cursor: str | None = ..., count: int | None = ...) -> Page:
        """Lists the keys of the HTTP API, in order of id, without secrets."""
    @overload
    def kick(
        self,
        *,
        ids: Sequence[str] | None = ...,
        queue: str,
        worker: str | None = ...,
        count: int | None = ...,
        delay: float | timedelta | None = ...,
    ) -> KickReply:
        """Takes running jobs away from their workers. They wait again, and no retry is spent."""
    @overload
    def kick(
        self,
        *,
        ids: Sequence[str] | None = ...,
        queue: str | None = ...,
        worker: str,
        count: int | None = ...,
        delay: float | timedelta | None = ...,
    ) -> KickReply:
        """Takes running jobs away from their workers. They wait again, and no retry is spent."""
    @overload
    def kick(
        self, ids: Sequence[str] | None = ..., count: int | None = ..., delay: float | timedelta | None = ...
    ) -> list[Any]:
        """Takes running jobs away from their workers. They wait again, and no retry is spent."""
    @overload
    async def akick(
        self,
        *,
        ids: Sequence[str] | None = ...,
        queue: str,
        worker: str | None = ...,
        count: int | None = ...,
        delay: float | timedelta | None = ...,
    ) -> KickReply:
        """Takes running jobs away from their workers. They wait again, and no retry is spent."""
    @overload
    async def akick(
        self,
        *,
        ids: Sequence[str] | None = ...,
        queue: str | None = ...,
        worker: str,
        count: int | None = ...,
        delay: float | timedelta | None = ...,
    ) -> KickReply:
        """Takes running jobs away from their workers. They wait again, and no retry is spent."""
    @overload
    async def akick(
        self, ids: Sequence[str] | None = ..., count: int | None = ..., delay: float | timedelta | None = ...
    ) -> list[Any]:
        """Takes running jobs away from their workers. They wait again, and no retry is spent."""
    def mark(self, text: str, time_ms: int | datetime | None = ...) -> Document:
        """Puts a name to a moment, such as a deploy: it stands in charts, and what was before and after can be
        compared."""
    async def amark(self, text: str, time_ms: int | datetime | None = ...) -> Document:
        """Puts a name to a moment, such as a deploy: it stands in charts, and what was before and after can be
        compared."""
    def marks(
        self,
        from_ms: int | datetime | None = ...,
        to_ms: int | datetime | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
    ) -> Page:
        """Lists marks, newest first."""
    async def amarks(
        self,
        from_ms: int | datetime | None = ...,
        to_ms: int | datetime | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
    ) -> Page:
        """Lists marks, newest first."""
    def pick(
        self,
        worker: str,
        queues: str | Sequence[str],
        count: int | None = ...,
        order: Literal["priority", "ordered", "round_robin", "shuffled"] | None = ...,
        before: Spec | None = ...,
        without: Sequence[str] | None = ...,
        request: str | None = ...,
        wait: Spec | None = ...,
    ) -> Picked:
        """Gives a worker the next jobs and their leases."""
    async def apick(
        self,
        worker: str,
        queues: str | Sequence[str],
        count: int | None = ...,
        order: Literal["priority", "ordered", "round_robin", "shuffled"] | None = ...,
        before: Spec | None = ...,
        without: Sequence[str] | None = ...,
        request: str | None = ...,
        wait: Spec | None = ...,
    ) -> Picked:
        """Gives a worker the next jobs and their leases."""
    def queue(
        self,
        name: str,
        paused: bool | None = ...,
        max_waiting: int | None = ...,
        fair: Sequence[str] | None = ...,
        set: Spec | None = ...,
        unset: Sequence[str] | None = ...,
    ) -> Document:
        """Shows and changes a queue: pauses it, resumes it, limits it, gives it settings of its own."""
    async def aqueue(
        self,
        name: str,
        paused: bool | None = ...,
        max_waiting: int | None = ...,
        fair: Sequence[str] | None = ...,
        set: Spec | None = ...,
        unset: Sequence[str] | None = ...,
    ) -> Document:
        """Shows and changes a queue: pauses it, resumes it, limits it, gives it settings of its own."""
    def queues(
        self,
        names: str | Sequence[str] | None = ...,
        minutes: int | None = ...,
        held: int | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
    ) -> Page:
        """Documents of queues, with settings and counts: those named, or a page in order of name."""
    async def aqueues(
        self,
        names: str | Sequence[str] | None = ...,
        minutes: int | None = ...,
        held: int | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
    ) -> Page:
        """Documents of queues, with settings and counts: those named, or a page in order of name."""
    def refuse(
        self,
        worker: str,
        jobs: Sequence[Sequence[Any]],
        why: Literal["unknown", "busy", "unreachable"],
        retry_after: float | timedelta | None = ...,
        message: str | None = ...,
    ) -> list[Any]:
        """Gives back a delivery that a worker did not take; it gets nothing more of the kind, or for a while. For JQ
        servers."""
    async def arefuse(
        self,
        worker: str,
        jobs: Sequence[Sequence[Any]],
        why: Literal["unknown", "busy", "unreachable"],
        retry_after: float | timedelta | None = ...,
        message: str | None = ...,
    ) -> list[Any]:
        """Gives back a delivery that a worker did not take; it gets nothing more of the kind, or for a while. For JQ
        servers."""
    def register(
        self,
        name: str,
        queues: str | Sequence[str],
        url: str | None = ...,
        max_jobs: int | None = ...,
        secrets: Sequence[str] | None = ...,
        key: str | None = ...,
        host: str | None = ...,
        pid: int | None = ...,
        version: str | None = ...,
        knows: Sequence[str] | None = ...,
        refused: Sequence[str] | None = ...,
        id: str | None = ...,
        announce: bool | None = ...,
        running: Sequence[str] | None = ...,
    ) -> str:
        """Registers a worker; or lists one that picks under its own name, until it is silent for three minutes."""
    async def aregister(
        self,
        name: str,
        queues: str | Sequence[str],
        url: str | None = ...,
        max_jobs: int | None = ...,
        secrets: Sequence[str] | None = ...,
        key: str | None = ...,
        host: str | None = ...,
        pid: int | None = ...,
        version: str | None = ...,
        knows: Sequence[str] | None = ...,
        refused: Sequence[str] | None = ...,
        id: str | None = ...,
        announce: bool | None = ...,
        running: Sequence[str] | None = ...,
    ) -> str:
        """Registers a worker; or lists one that picks under its own name, until it is silent for three minutes."""
    def release(
        self,
        worker: str,
        jobs: Sequence[Sequence[Any]],
        delay: float | timedelta | None = ...,
        message: str | None = ...,
        hold: Mapping[str, float | timedelta] | None = ...,
    ) -> list[Any]:
        """Gives jobs back: they wait again, and no retry is spent."""
    async def arelease(
        self,
        worker: str,
        jobs: Sequence[Sequence[Any]],
        delay: float | timedelta | None = ...,
        message: str | None = ...,
        hold: Mapping[str, float | timedelta] | None = ...,
    ) -> list[Any]:
        """Gives jobs back: they wait again, and no retry is spent."""
    def result(self, id: str) -> Result:
        """Reads a result. The first read starts the grace after which it goes."""
    async def aresult(self, id: str) -> Result:
        """Reads a result. The first read starts the grace after which it goes."""
    @overload
    def retry(
        self,
        *,
        ids: Sequence[str] | None = ...,
        where: Spec,
        cursor: str | None = ...,
        count: int | None = ...,
        queue: str | None = ...,
    ) -> RetryReply:
        """Runs jobs again that failed for good, were cancelled or skipped, or wait for their backoff."""
    @overload
    def retry(
        self,
        ids: Sequence[str] | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
        queue: str | None = ...,
    ) -> list[Any]:
        """Runs jobs again that failed for good, were cancelled or skipped, or wait for their backoff."""
    @overload
    async def aretry(
        self,
        *,
        ids: Sequence[str] | None = ...,
        where: Spec,
        cursor: str | None = ...,
        count: int | None = ...,
        queue: str | None = ...,
    ) -> RetryReply:
        """Runs jobs again that failed for good, were cancelled or skipped, or wait for their backoff."""
    @overload
    async def aretry(
        self,
        ids: Sequence[str] | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
        queue: str | None = ...,
    ) -> list[Any]:
        """Runs jobs again that failed for good, were cancelled or skipped, or wait for their backoff."""
    def revoke(self, id: str) -> None:
        """Takes a key of the HTTP API away. It stops working on every server at once."""
    async def arevoke(self, id: str) -> None:
        """Takes a key of the HTTP API away. It stops working on every server at once."""
    @overload
    def schedule(
        self,
        id: str,
        *,
        job: Spec | None = ...,
        every: float | timedelta | None = ...,
        offset: float | timedelta | None = ...,
        cron: str | None = ...,
        utc_offset: int | None = ...,
        timezone: str | None = ...,
        tz: str | None = ...,
        start: float | datetime | None = ...,
        end: float | datetime | None = ...,
        limit: int | None = ...,
        catch_up: Literal["one", "all", "none"] | None = ...,
        backlog: int | None = ...,
        paused: bool | None = ...,
        declared: str | None = ...,
        argument: bytes | None = ...,
        run: bool,
    ) -> ScheduleReply:
        """Creates a recurring job, or replaces it whole; or makes its job at once, beside those of its moments."""
    @overload
    def schedule(
        self,
        id: str,
        job: Spec | None = ...,
        every: float | timedelta | None = ...,
        offset: float | timedelta | None = ...,
        cron: str | None = ...,
        utc_offset: int | None = ...,
        timezone: str | None = ...,
        tz: str | None = ...,
        start: float | datetime | None = ...,
        end: float | datetime | None = ...,
        limit: int | None = ...,
        catch_up: Literal["one", "all", "none"] | None = ...,
        backlog: int | None = ...,
        paused: bool | None = ...,
        declared: str | None = ...,
        argument: bytes | None = ...,
    ) -> Document:
        """Creates a recurring job, or replaces it whole; or makes its job at once, beside those of its moments."""
    @overload
    async def aschedule(
        self,
        id: str,
        *,
        job: Spec | None = ...,
        every: float | timedelta | None = ...,
        offset: float | timedelta | None = ...,
        cron: str | None = ...,
        utc_offset: int | None = ...,
        timezone: str | None = ...,
        tz: str | None = ...,
        start: float | datetime | None = ...,
        end: float | datetime | None = ...,
        limit: int | None = ...,
        catch_up: Literal["one", "all", "none"] | None = ...,
        backlog: int | None = ...,
        paused: bool | None = ...,
        declared: str | None = ...,
        argument: bytes | None = ...,
        run: bool,
    ) -> ScheduleReply:
        """Creates a recurring job, or replaces it whole; or makes its job at once, beside those of its moments."""
    @overload
    async def aschedule(
        self,
        id: str,
        job: Spec | None = ...,
        every: float | timedelta | None = ...,
        offset: float | timedelta | None = ...,
        cron: str | None = ...,
        utc_offset: int | None = ...,
        timezone: str | None = ...,
        tz: str | None = ...,
        start: float | datetime | None = ...,
        end: float | datetime | None = ...,
        limit: int | None = ...,
        catch_up: Literal["one", "all", "none"] | None = ...,
        backlog: int | None = ...,
        paused: bool | None = ...,
        declared: str | None = ...,
        argument: bytes | None = ...,
    ) -> Document:
        """Creates a recurring job, or replaces it whole; or makes its job at once, beside those of its moments."""
    def schedules(
        self,
        ids: Sequence[str] | None = ...,
        next: int | None = ...,
        runs: int | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
    ) -> Page:
        """Lists recurring jobs, in order of id, with the moments to come, and what became of their last jobs."""
    async def aschedules(
        self,
        ids: Sequence[str] | None = ...,
        next: int | None = ...,
        runs: int | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
    ) -> Page:
        """Lists recurring jobs, in order of id, with the moments to come, and what became of their last jobs."""
    def setup(self) -> int:
        """Creates a namespace; changes nothing if it is there."""
    async def asetup(self) -> int:
        """Creates a namespace; changes nothing if it is there."""
    @overload
    def stats(
        self,
        by: Literal["minute", "hour", "day"],
        *,
        queue: str | None = ...,
        name: str | None = ...,
        from_ms: int | datetime | None = ...,
        to_ms: int | datetime | None = ...,
        brief: bool | None = ...,
        series: bool,
        cursor: str | None = ...,
        count: int | None = ...,
    ) -> Page:
        """What happened: counts by minute, hour or day, and how long jobs waited and ran."""
    @overload
    def stats(
        self,
        by: Literal["minute", "hour", "day"],
        queue: str | None = ...,
        name: str | None = ...,
        from_ms: int | datetime | None = ...,
        to_ms: int | datetime | None = ...,
        brief: bool | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
    ) -> list[Document]:
        """What happened: counts by minute, hour or day, and how long jobs waited and ran."""
    @overload
    async def astats(
        self,
        by: Literal["minute", "hour", "day"],
        *,
        queue: str | None = ...,
        name: str | None = ...,
        from_ms: int | datetime | None = ...,
        to_ms: int | datetime | None = ...,
        brief: bool | None = ...,
        series: bool,
        cursor: str | None = ...,
        count: int | None = ...,
    ) -> Page:
        """What happened: counts by minute, hour or day, and how long jobs waited and ran."""
    @overload
    async def astats(
        self,
        by: Literal["minute", "hour", "day"],
        queue: str | None = ...,
        name: str | None = ...,
        from_ms: int | datetime | None = ...,
        to_ms: int | datetime | None = ...,
        brief: bool | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
    ) -> list[Document]:
        """What happened: counts by minute, hour or day, and how long jobs waited and ran."""
    def subscribe(
        self,
        id: str,
        url: str | None = ...,
        match: Spec | bytes | None = ...,
        on: Sequence[Literal["done", "error", "cancelled", "skipped"]] | None = ...,
        secrets: Sequence[str] | None = ...,
    ) -> Document:
        """Creates a webhook, or replaces it but for its secrets: who is told when jobs end."""
    async def asubscribe(
        self,
        id: str,
        url: str | None = ...,
        match: Spec | bytes | None = ...,
        on: Sequence[Literal["done", "error", "cancelled", "skipped"]] | None = ...,
        secrets: Sequence[str] | None = ...,
    ) -> Document:
        """Creates a webhook, or replaces it but for its secrets: who is told when jobs end."""
    def tags(self, top: int | None = ..., cursor: str | None = ..., count: int | None = ...) -> Page:
        """The tags there are, and how many jobs have them: in order of tag, or the most used first."""
    async def atags(self, top: int | None = ..., cursor: str | None = ..., count: int | None = ...) -> Page:
        """The tags there are, and how many jobs have them: in order of tag, or the most used first."""
    def tick(self, limit: int | None = ...) -> TickReply:
        """Does what is due by the clock, in bounded steps."""
    async def atick(self, limit: int | None = ...) -> TickReply:
        """Does what is due by the clock, in bounded steps."""
    def touch(self, ids: Sequence[str]) -> int:
        """Notes that keys of the HTTP API were used."""
    async def atouch(self, ids: Sequence[str]) -> int:
        """Notes that keys of the HTTP API were used."""
    def track(self, ids: Sequence[str], on: bool | None = ...) -> list[Any]:
        """Publishes each further change of state of jobs on channels of their own, or stops doing so."""
    async def atrack(self, ids: Sequence[str], on: bool | None = ...) -> list[Any]:
        """Publishes each further change of state of jobs on channels of their own, or stops doing so."""
    def trail(self, cursor: str | None = ..., count: int | None = ...) -> Page:
        """What operators changed, newest first."""
    async def atrail(self, cursor: str | None = ..., count: int | None = ...) -> Page:
        """What operators changed, newest first."""
    def unconstrain(self, id: str) -> None:
        """Deletes a constraint. What it held is free."""
    async def aunconstrain(self, id: str) -> None:
        """Deletes a constraint. What it held is free."""
    def unregister(self, worker: str) -> int:
        """Takes a worker off the list; the jobs of a registered one go back to their queues."""
    async def aunregister(self, worker: str) -> int:
        """Takes a worker off the list; the jobs of a registered one go back to their queues."""
    def unschedule(self, id: str) -> None:
        """Deletes a recurring job. The jobs it has made stay."""
    async def aunschedule(self, id: str) -> None:
        """Deletes a recurring job. The jobs it has made stay."""
    def unsubscribe(self, id: str) -> None:
        """Deletes a webhook. What it is still to be told is not delivered any more."""
    async def aunsubscribe(self, id: str) -> None:
        """Deletes a webhook. What it is still to be told is not delivered any more."""
    def usage(self, id: str, prefix: str | None = ..., cursor: str | None = ..., count: int | None = ...) -> Page:
        """Lists the keys of a constraint that are in use."""
    async def ausage(
        self, id: str, prefix: str | None = ..., cursor: str | None = ..., count: int | None = ...
    ) -> Page:
        """Lists the keys of a constraint that are in use."""
    def watch(self, ids: Sequence[str]) -> list[Any]:
        """Marks jobs whose end is to be published on <namespace>:ended."""
    async def awatch(self, ids: Sequence[str]) -> list[Any]:
        """Marks jobs whose end is to be published on <namespace>:ended."""
    def webhooks(self, secrets: bool | None = ...) -> list[Document]:
        """Lists webhooks, in order of id: all of them, as they are few."""
    async def awebhooks(self, secrets: bool | None = ...) -> list[Document]:
        """Lists webhooks, in order of id: all of them, as they are few."""
    def worker(self, worker: str, request: Literal["quiet", "stop", "resume"]) -> None:
        """Asks a registered worker to be quiet (finish what it has, take no more), to stop, or to resume."""
    async def aworker(self, worker: str, request: Literal["quiet", "stop", "resume"]) -> None:
        """Asks a registered worker to be quiet (finish what it has, take no more), to stop, or to resume."""
    def workers(
        self,
        ids: Sequence[str] | None = ...,
        others: bool | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
    ) -> Page:
        """Documents of registered workers, a page in order of registration; or of the others."""
    async def aworkers(
        self,
        ids: Sequence[str] | None = ...,
        others: bool | None = ...,
        cursor: str | None = ...,
        count: int | None = ...,
    ) -> Page:
        """Documents of registered workers, a page in order of registration; or of the others."""
