"""What a job can be told beside its arguments, and the spec that comes of it (section 3 of the protocol).

`JobOptions` is written out for editors and type checkers; the tests hold it against `wire.fields`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import blake2s
from typing import Any, Literal, NamedTuple, TypedDict

from jqmaster.wire.fields import FIELDS

Seconds = float | timedelta


class Reference:
    """What `depends` takes beside ids: a handle, or a call that is not enqueued yet."""

    __slots__ = ()


class JobOptions(TypedDict, total=False):
    """Options of a job; None stands for the default. Durations are seconds or a `timedelta`."""

    queue: str | None
    """Where it waits; default: its name."""
    priority: int | None
    """Smaller runs first; default 0."""
    max_retry: int | None
    """Retries after the first failure; default 10."""
    max_lapses: int | None
    """So many leases may run out, or workers vanish, without a retry being spent; default: each spends one."""
    retry_base: Seconds | None
    """The first retry comes after so long, each next one after twice that; default: the queue's, 1 s."""
    retry_cap: Seconds | None
    """But no later than after so long; default: the queue's, an hour."""
    retry_jitter: float | None
    """Up to this part of it (0 to 1) is taken off at random; default: the queue's, 0.1."""
    keep_result: bool | None
    """Keep what the function returns, for `result`; default: unless it is annotated to return None."""
    timeout: Seconds | None
    """Length of the lease, which the worker renews: when a worker dies, the job goes on elsewhere after so
    long. Default 30."""
    max_runtime: Seconds | None
    """The most an attempt may take; default: any time."""
    delay: Seconds | None
    """Not before so long from now."""
    run_at: datetime | float | None
    """Not before this moment: a datetime with a time zone, or Unix seconds."""
    expires_in: Seconds | None
    """Not started by then, counted from enqueueing: it ends as an error."""
    tags: Sequence[str] | None
    """To match and to find it by."""
    unique: str | bool | Callable[..., str] | None
    """While a job with this key has not ended, no other is made. True: the name with the arguments is the
    key. A function is called with the job's arguments and gives it."""
    unique_for: Seconds | None
    """The key is kept for so long after the end as well."""
    unique_within: Seconds | None
    """The key is kept for so long from enqueueing, and no longer, whatever becomes of the job."""
    if_exists: Literal["keep", "replace", "latest"] | None
    """What becomes of the second with the same key."""
    depends: Sequence[str | Reference] | None
    """Runs when all of these are done: ids, handles, or calls further ahead in the same `enqueue_many`."""
    if_failed: Literal["wait", "fail", "run"] | None
    """What becomes of it when one of them fails or is cancelled."""
    track: bool | None
    """Publish each of its transitions."""
    headers: Mapping[str, str] | None
    """Texts that go with it, at most 16 of 1024 bytes in all: `current_job.get().headers` in the worker."""
    notify: str | None
    """A URL that a master tells of its end (docs/protocol.md, section 21)."""
    durable: int | Mapping[str, Any] | None
    """Enqueueing returns when so many replicas have it, or as `{"replicas": 1, "timeout": 1.0, "fsync": True}` says;
    else it raises NotDurable. Not for schedules, and what follows a job."""


class Changes(TypedDict, total=False):
    """What can be changed of a job that is there; see JobOptions."""

    queue: str
    priority: int
    max_retry: int
    timeout: Seconds
    delay: Seconds
    run_at: datetime | float
    tags: Sequence[str]
    argument: Any
    """All of it, a map of names where the function has parameters."""


class About(TypedDict, total=False):
    """What a worker says of itself, for people to see. ``knows``: names of jobs, at most 100."""

    host: str | None
    pid: int | None
    version: str | None
    knows: Sequence[str] | None


class Steps(TypedDict, total=False):
    """Where a listing, or a change of many, goes on, and how far."""

    cursor: str | None
    count: int | None


class Where(TypedDict, total=False):
    """Conditions that a job must meet, all of them (docs/protocol.md, section 14). None is no condition."""

    queue: str | None
    status: str | Sequence[str] | None
    name: str | None
    tag: str | None
    group: str | None
    message: str | None
    from_ms: int | None
    to_ms: int | None
    worker: str | None
    slower_ms: float | None
    argument: str | None
    match: Mapping[str, Any] | None


class Limits(TypedDict, total=False):
    """What a constraint allows (docs/protocol.md, section 7)."""

    by: str | Sequence[str] | None
    concurrency: int | None
    rate: Mapping[str, Any] | None
    cost: float | str | None
    order: str | None
    expires_in: Seconds | None


class Webhook(TypedDict, total=False):
    """What is told to whom (docs/protocol.md, section 21). `secrets`: one or two; those it has stay without."""

    on: Sequence[Literal["done", "error", "cancelled"]] | None
    secrets: Sequence[str] | None


class Bounds(TypedDict, total=False):
    """What a key is bound to: names and patterns of queues, seconds until it expires, requests a second."""

    queues: Sequence[str] | None
    ttl: float | None
    rate: float | None


class QueueChanges(TypedDict, total=False):
    """What can be set of a queue; `set` and `unset` are settings of its own (docs/protocol.md, section 9)."""

    paused: bool | None
    max_waiting: int | None
    fair: Sequence[Mapping[str, Any]] | None
    set: Mapping[str, Any] | None
    unset: Sequence[str] | None


class Period(TypedDict, total=False):
    """Which statistics."""

    queue: str | None
    name: str | None
    from_ms: int | None
    to_ms: int | None
    brief: bool | None


class Groups(TypedDict, total=False):
    """What is told of groups of failures: `counts` in each of so many `steps` (1 to 100) from `from_ms` to `to_ms`;
    names, queues and values of the newest `sample` (1 to 100) of each."""

    steps: int | None
    from_ms: int | None
    to_ms: int | None
    sample: int | None


class NewJob(NamedTuple):
    """A job on its way to the engine: its spec, its argument packed."""

    spec: dict[str, Any]
    argument: bytes


NAMES = frozenset(JobOptions.__annotations__)


def check(options: JobOptions) -> JobOptions:
    """`options` as they were given, which type checkers need not have seen. Raises TypeError for a name that is
    none, and for a duration that is none."""
    unknown = sorted(options.keys() - NAMES)
    if unknown:
        raise TypeError(f"no such option: {', '.join(unknown)}; there are: {', '.join(sorted(NAMES))}")
    for name, value in options.items():
        if name in _DURATIONS and value is not None:
            seconds(value, name)
    return options


def spec_of(name: str, options: JobOptions) -> dict[str, Any]:
    """The spec, but for `unique` and `depends` where they are not plain text yet."""
    return {"name": name, **_sent(options)}


def changes_of(changes: Changes, dumps: Callable[[Any], bytes]) -> tuple[dict[str, Any], bytes]:
    """The spec of a change, but for the id, and the argument, which is empty where it stays."""
    spec = _sent(changes)
    spec.pop("argument", None)
    return spec, dumps(changes["argument"]) if "argument" in changes else b""


def _sent(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _SENT_AS[key](value) if key in _SENT_AS else value for key, value in options.items() if value is not None
    }


def seconds(duration: Any, name: str = "duration") -> float:
    """A duration in seconds. Raises TypeError for what is none."""
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if isinstance(duration, bool) or not isinstance(duration, int | float):
        raise TypeError(f"{name}: expected seconds or a timedelta, got {duration!r}")
    return duration


def unix(moment: datetime | float) -> float:
    """Unix seconds. Raises ValueError for a datetime without time zone, which could mean any moment."""
    if not isinstance(moment, datetime):
        return moment
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone; say datetime.now(timezone.utc), or .astimezone()")
    return moment.timestamp()


_OF_KIND: Mapping[str, Callable[[Any], Any]] = {"seconds": seconds, "moment": unix, "names": list, "texts": dict}
_DURATIONS = frozenset(field.name for field in FIELDS if field.kind == "seconds")
_SENT_AS = {field.name: _OF_KIND[field.kind] for field in FIELDS if field.kind in _OF_KIND}


def unique_key(unique: Any, name: str, argument: bytes, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The key that the option `unique` stands for, in a job of this name and argument; None for none."""
    if unique is True:
        return f"{name[:200]}:{blake2s(argument, digest_size=16).hexdigest()}"
    if callable(unique):
        return unique(*args, **kwargs)
    return None if unique is False else unique


def when_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """When a schedule makes its jobs, as the engine takes it."""
    when = {name: value for name, value in given.items() if value is not None}
    for name in ("start", "end"):
        if name in when:
            when[name] = unix(when[name])
    for name in ("every", "offset"):
        if name in when:
            when[name] = seconds(when[name], name)
    return when
