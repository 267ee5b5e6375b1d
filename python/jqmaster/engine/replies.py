"""What the engine's calls return. Arguments, results and errors of jobs stay bytes, one MessagePack value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgpack

from jqmaster.engine import packform

Document: TypeAlias = dict[str, Any]
_BLOBS = frozenset(["argument", "result", "error"])


class Enqueued(NamedTuple):
    """``created`` is false where the job was there before."""

    id: str
    created: bool


class Job(NamedTuple):
    """A job just started. ``(id, token)`` is what its outcome presents; ``timeout``: its lease, seconds."""

    id: str
    token: str
    name: str
    queue: str
    priority: int
    attempt: int
    retry_count: int
    timeout: float
    argument: bytes
    schedule: str | None = None  # of which it was made, for the moment ``schedule_ms``
    schedule_ms: int | None = None
    # Made from manifest/fields.py by `make generate`. fields.py: told
    max_runtime: float | None = None
    """The most an attempt may take."""
    depends: tuple[str, ...] = ()
    """Runs when all of these are done. Ids, handles, or calls further ahead in the same `enqueue_many`."""
    headers: Mapping[str, str] = {}
    """Go with it to its worker: what is about the call and not its argument, such as `traceparent`.
    `current_job.get().headers` there."""
    # end of told

    @property
    def held(self) -> tuple[str, str]:
        """As who has it names it."""
        return self.id, self.token


# Not ``**fields``: scripts of a later version may tell more.
_ALWAYS = Job._fields[: Job._fields.index("argument")]
_DEFAULTS = tuple(Job._field_defaults.values())


class Picked(NamedTuple):
    """``next_ms``: nothing becomes ready by time alone before; 0: pick again at once; -1: nothing planned. With
    ``wait`` for how long to block, at least 1."""

    next_ms: int
    jobs: list[Job]


class Finished(NamedTuple):
    """A state per outcome (upper case: why not), and the next jobs when these were asked for.

    ``enqueued``: by the outcome's index, the jobs that followed it.
    """

    states: list[str]
    picked: Picked | None
    enqueued: dict[int, list[Enqueued]] = {}  # noqa: RUF012 (nobody writes to it)


class Note(NamedTuple):
    """What a running job says of itself. ``argument``: its argument from the next attempt on, packed."""

    progress: float | None = None
    message: str | None = None
    argument: bytes | None = None


class Beat(NamedTuple):
    """Per job the remaining milliseconds of its lease or why it is gone; and what is asked of the worker."""

    answers: list[int | str]
    request: str


class Page(NamedTuple):
    """Documents, or what else a listing holds, in order; ``cursor`` continues it, empty at its end. ``looked``: how
    many jobs were looked at, where that was asked for."""

    cursor: str
    documents: list[Any]
    looked: int | None = None


class Result(NamedTuple):
    """``value`` is None before the end, and of a job that keeps none."""

    state: str
    value: bytes | None


def text(value: Any) -> str:
    """Text of a reply. What is not UTF-8 shows as replacement characters."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def states(values: list[Any]) -> list[Any]:
    """What became of each of many: text, milliseconds, or None where there is no such job."""
    return [text(value) if isinstance(value, bytes) else value for value in values]


def document(packed: bytes) -> Document:
    """Decode a job's document. Its blobs stay bytes, as they came; other text need not be UTF-8.

    A blob that is not one complete MessagePack value, which only a direct client could have brought in, takes
    the fields behind it with it.
    """
    unpacker = packform.reader(packed, unicode_errors="replace", strict_map_key=False)
    fields: Document = {}
    for _ in range(unpacker.read_map_header()):
        name = unpacker.unpack()
        if name not in _BLOBS:
            fields[name] = unpacker.unpack()
            continue
        start = unpacker.tell()
        try:
            unpacker.skip()
        except (ValueError, msgpack.UnpackException):
            fields[name] = packed[start:]
            break
        fields[name] = packed[start : unpacker.tell()]
    return fields


def plain_value(packed: bytes) -> Any:
    """Decode a document without blobs: a queue's (its ``error`` is a count), a worker's, the settings."""
    return msgpack.unpackb(packed, unicode_errors="replace")


def job(packed: bytes, argument: bytes) -> Job:
    return job_of(msgpack.unpackb(packed), argument)


def job_of(fields: Mapping[str, Any], argument: bytes) -> Job:
    """A job from its fields. Raises KeyError when one is missing that is always there."""
    always = [fields[name] for name in _ALWAYS]
    plain = Job._make([*always, argument, *_DEFAULTS])
    if len(fields) <= len(always):
        return plain
    given = {name: fields[name] for name in Job._field_defaults if fields.get(name) is not None}
    rare: dict[str, Any] = {name: tuple(value) if type(value) is list else value for name, value in given.items()}
    return plain._replace(**rare)


def enqueued(reply: list[Any]) -> list[Enqueued]:
    return [Enqueued(text(id_), bool(created)) for id_, created in pairs(reply)]


def pairs(reply: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """The parts of a flat list, two at a time."""
    return zip(reply[::2], reply[1::2], strict=True)


def finished(reply: list[Any], outcomes: int) -> Finished:
    """Of so many ``outcomes``; behind their answers stands what was picked."""
    answers = reply[:outcomes]
    states = [text(answer[0] if isinstance(answer, list) else answer) for answer in answers]
    followed = {index: enqueued(answer[1:]) for index, answer in enumerate(answers) if isinstance(answer, list)}
    jobs = reply[outcomes:]
    return Finished(states, picked(jobs) if jobs else None, followed)


def picked(reply: list[Any]) -> Picked:
    return Picked(reply[0], [job(packed, argument) for packed, argument in pairs(reply[1:])])


def page(reply: list[Any], read: Callable[[Any], Any]) -> Page:
    cursor, *rest = reply
    looked = rest.pop(0) if rest and isinstance(rest[0], int) else None
    return Page(text(cursor), [read(one) for one in rest], looked)


def result(reply: list[Any]) -> Result:
    return Result(text(reply[0]), reply[1] if len(reply) > 1 else None)
