"""What both clients ask a JQ master, and how they read its answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import msgpack

from jqmaster.errors import Conflict, Full, Internal, Invalid, JQError, NotDurable, NotFound, Unavailable
from jqmaster.wire import tracing
from jqmaster.wire.message import MSGPACK

T = TypeVar("T")
Document = dict[str, Any]

PAGE = 1000
TIMEOUT_S = 30.0
POLL_S = 30.0
# A server that has nothing to send says so every 15 seconds.
SILENCE_S = 60.0
IMPORT_BYTES = 4 << 20
HEADERS = {"content-type": MSGPACK, "accept": MSGPACK}
RECORDS_HEADERS = {"content-type": "application/octet-stream", "accept": MSGPACK}
_REFUSALS: dict[str, type[JQError]] = {
    "INVALID": Invalid, "NOTFOUND": NotFound, "CONFLICT": Conflict, "FULL": Full
}  # fmt: skip


class Enqueued(NamedTuple):
    """A job's id; `created` is false where `unique` named one that was there."""

    id: str
    created: bool


class Event(NamedTuple):
    """One event of a stream. `id` is what to go on after; `kind` is `message`, or `missed` for a gap."""

    id: str
    kind: str
    data: Document


@dataclass(frozen=True, slots=True)
class Ask(Generic[T]):
    """One request, and how its answer is read."""

    method: str
    path: str
    read: Callable[[Any], T]
    body: bytes | None = None
    headers: Mapping[str, str] | None = None

    def answer(self, status: int, body: bytes) -> T:
        """The answer's value. Raises JQError for an error."""
        return self.read(content(status, body))


def pack(value: Any) -> bytes:
    """A body."""
    packed: bytes = msgpack.packb(value)
    return packed


def given(fields: Mapping[str, Any]) -> Document:
    """Those fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def place(*segments: str, **query: Any) -> str:
    """A path of these segments, and a query of what is not None; true is `1`."""
    path = "".join(f"/{quote(segment, safe='')}" for segment in segments)
    shown = {name: "1" if value is True else value for name, value in given(query).items()}
    return path + (f"?{urlencode(shown)}" if shown else "")


def content(status: int, body: bytes) -> Any:
    """An answer's value. Raises JQError for an error."""
    # Arguments may hold text that is not UTF-8, and one such job must not hide a whole listing.
    value = msgpack.unpackb(body, strict_map_key=False, unicode_errors="surrogateescape") if body else None
    if status < 400:
        return value
    refusal = value["error"] if isinstance(value, dict) else {}
    message = refusal.get("message", f"the master answered {status}")
    if refusal.get("code") == NotDurable.code:
        raise NotDurable(message, refusal["job_ids"])
    if status == 503:
        raise Unavailable(message)
    kind = _REFUSALS.get(refusal.get("code", ""), Internal)
    raise kind(message, code=refusal.get("code"))


# How answers are read.


def nothing(_value: Any) -> None:
    return None


def whole(value: Any) -> Any:
    return value


def field(name: str, kind: Callable[[Any], T]) -> Callable[[Any], T]:
    """One field of a map."""
    return lambda value: kind(value[name])


status = field("status", str)
answers = field("jobs", list)


def page(name: str) -> Callable[[Any], tuple[str, list[Any]]]:
    """Where to go on, and the documents."""
    return lambda value: (value["cursor"], value[name])


def step(value: Any) -> tuple[str, int]:
    return value["cursor"], value["changed"]


# How requests are made.


def listing(what: str, read_as: str | None = None, /, *segments: str, **query: Any) -> Callable[[str], Ask[Any]]:
    """Asks for a listing's page behind a cursor."""
    path = segments or (what,)
    return lambda cursor: Ask(
        "GET", place(*path, **{"count": PAGE, **query, "cursor": cursor or None}), page(read_as or what)
    )


def steps(what: str, where: Mapping[str, Any], **options: Any) -> Callable[[str], Ask[tuple[str, int]]]:
    """Asks for a step of a change of all jobs that match."""
    body = given({"where": given(where), **options})
    return lambda cursor: Ask("POST", f"/jobs/{what}", step, pack(given({**body, "cursor": cursor or None})))


def each(what: str, ids: Iterable[str], **options: Any) -> Ask[list[str]]:
    """A change of the jobs named."""
    return Ask("POST", f"/jobs/{what}", answers, pack(given({"ids": list(ids), **options})))


def enqueue(name: str, argument: Any, options: Mapping[str, Any]) -> Ask[str]:
    body = pack({**tracing.injected({"name": name, **options}), "argument": argument})
    return Ask("POST", "/job", field("job_id", str), body)


def enqueue_many(jobs: Iterable[Mapping[str, Any]], request: str | None) -> Ask[list[Enqueued]]:
    body = given({"jobs": [tracing.injected(dict(job)) for job in jobs], "request": request})
    return Ask("POST", "/jobs", _enqueued, pack(body))


def _enqueued(value: Any) -> list[Enqueued]:
    return [Enqueued(*pair) for pair in zip(value["job_ids"], value["created"], strict=True)]


def job(method: str, job_id: str, rest: str, read: Callable[[Any], T], **body: Any) -> Ask[T]:
    """About one job."""
    return Ask(method, place("job", job_id, rest) if rest else place("job", job_id), read, _body(body))


def _body(fields: Mapping[str, Any]) -> bytes | None:
    known = given(fields)
    return pack(known) if known else None


def cancel(job_id: str, force: bool, dependents: str | None) -> Ask[None]:
    path = place("job", job_id, force=True if force else None, dependents=dependents)
    return Ask("DELETE", path, nothing)


def poll(job_id: str, timeout_s: float) -> str:
    return place("job", job_id, "polling", timeout=timeout_s)


def constraint(method: str, constraint_id: str, rest: str, read: Callable[[Any], T], **body: Any) -> Ask[T]:
    """About one constraint."""
    path = place("constraint", constraint_id, rest) if rest else place("constraint", constraint_id)
    return Ask(method, path, read, _body(body))


def queue(method: str, name: str, rest: str, read: Callable[[Any], T], **body: Any) -> Ask[T]:
    """About one queue."""
    return Ask(method, place("queue", name, rest) if rest else place("queue", name), read, _body(body))


def purge(name: str, status_: str | Iterable[str] | None) -> Ask[tuple[int, bool]]:
    states = status_ if status_ is None or isinstance(status_, str) else ",".join(status_)
    return Ask("DELETE", place("queue", name, "jobs", status=states), _purged)


def _purged(value: Any) -> tuple[int, bool]:
    return value["discarded"], value["more"]


def _kicked(value: Any) -> tuple[int, bool]:
    return value["kicked"], value["more"]


def kick_queue(name: str, delay: float | None) -> Ask[tuple[int, bool]]:
    return Ask("POST", place("queue", name, "kick"), _kicked, pack(given({"delay": delay, "count": PAGE})))


def schedule(schedule_id: str, job_spec: Mapping[str, Any], argument: Any, options: Mapping[str, Any]) -> Ask[Document]:
    body = {"job": dict(job_spec), "argument": argument, **given(options)}
    return Ask("PUT", place("schedule", schedule_id), dict, pack(body))


def search(options: Mapping[str, Any]) -> Callable[[str], Ask[Any]]:
    known = dict(options)
    states = known.get("status")
    if states is not None and not isinstance(states, str):
        known["status"] = ",".join(states)
    return listing("jobs", "jobs", "jobs", **{name: value for name, value in known.items() if value is not False})


def tags(top: int | None) -> Callable[[str], Ask[Any]]:
    if top is None:
        return listing("tags")
    return lambda cursor: Ask("GET", place("tags", top=top), page("tags"))


def import_batch(namespace: str, records: Iterable[bytes]) -> Ask[int]:
    path = place("import", namespace=namespace)
    return Ask("POST", path, field("keys", int), b"".join(records), RECORDS_HEADERS)


def batches(records: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Records as they go into one request."""
    batch: list[bytes] = []
    size = 0
    for record in records:
        if batch and size + len(record) > IMPORT_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += len(record)
    if batch:
        yield batch


class Records:
    """Takes an export apart as it comes."""

    def __init__(self) -> None:
        self._unpacker = msgpack.Unpacker(None, max_buffer_size=1 << 31)
        self._rest = b""
        self._taken = 0
        self._last: Any = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The records that are whole by now."""
        self._rest += data
        self._unpacker.feed(data)
        while True:
            try:
                self._unpacker.skip()
            except msgpack.OutOfData:
                return
            size = self._unpacker.tell() - self._taken
            self._taken += size
            self._last, self._rest = self._rest[:size], self._rest[size:]
            yield self._last

    def end(self) -> None:
        """Raises Unavailable when the stream was cut off."""
        if self._last is None or self._rest or msgpack.unpackb(self._last, raw=True)[0] != b"end":
            raise Unavailable("the export was cut off")


class EventLines:
    """Puts events together from the lines of a stream."""

    def __init__(self) -> None:
        self._id = ""
        self._kind = "message"
        self._data: list[str] = []

    def feed(self, line: bytes) -> Event | None:
        """An event, when this line is the empty one at its end."""
        name, _, value = line.decode().rstrip("\r\n").partition(": ")
        if name == "id":
            self._id = value
        elif name == "event":
            self._kind = value
        elif name == "data":
            self._data.append(value)
        elif not name and self._data:
            event = Event(self._id, self._kind, json.loads("\n".join(self._data)))
            self._kind, self._data = "message", []
            return event
        return None


def event_headers(after: str | None) -> Mapping[str, str]:
    return {"accept": "text/event-stream", **({"last-event-id": after} if after else {})}
