"""What the engine's calls return. Arguments, results and errors of jobs stay bytes, one MessagePack value."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import msgpack

Document: TypeAlias = dict[str, Any]
_BLOBS = frozenset(["argument", "result", "error"])


class Enqueued(NamedTuple):
    """``created`` is false where the job was there before."""

    id: str
    created: bool


class Job(NamedTuple):
    """A job just started. ``(id, attempt)`` is what its outcome presents; ``timeout``: its lease, seconds."""

    id: str
    name: str
    queue: str
    priority: int
    attempt: int
    retry_count: int
    timeout: float
    argument: bytes


# Not ``**fields``: scripts of a later version may tell more.
_JOB_FIELDS = Job._fields[:-1]


class Picked(NamedTuple):
    """``next_ms``: nothing becomes ready by time alone before; 0: pick again at once; -1: nothing planned."""

    next_ms: int
    jobs: list[Job]


class Finished(NamedTuple):
    """A state per outcome (upper case: why not), and the next jobs when these were asked for."""

    states: list[str]
    picked: Picked | None


class Assignment(NamedTuple):
    """A job started on a registered worker, to be delivered to ``url``."""

    worker: str
    url: str
    job: Job


class Assigned(NamedTuple):
    """``next_ms`` as in Picked."""

    next_ms: int
    assignments: list[Assignment]


class Page(NamedTuple):
    """Documents in order; ``cursor`` continues the listing, empty at its end."""

    cursor: str
    documents: list[Document]


class Audited(NamedTuple):
    """Problems found in one step; ``cursor`` continues, ``"0"`` at the end."""

    cursor: str
    problems: list[str]


def text(value: Any) -> str:
    """Text of a reply. What is not UTF-8 shows as replacement characters."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def texts(values: list[Any]) -> list[str]:
    return [text(value) for value in values]


def document(packed: bytes) -> Document:
    """Decode a job's document. Its blobs stay bytes, as they came; other text need not be UTF-8.

    A blob that is not one complete MessagePack value, which only a direct client could have brought in, takes
    the fields behind it with it.
    """
    unpacker = msgpack.Unpacker(raw=True, strict_map_key=False, max_buffer_size=max(len(packed), 1))
    unpacker.feed(packed)
    fields: Document = {}
    for _ in range(unpacker.read_map_header()):
        name = text(unpacker.unpack())
        start = unpacker.tell()
        if name not in _BLOBS:
            fields[name] = _decoded(unpacker.unpack())
            continue
        try:
            unpacker.skip()
        except (ValueError, msgpack.UnpackException):
            fields[name] = packed[start:]
            break
        fields[name] = packed[start : unpacker.tell()]
    return fields


def plain_document(packed: bytes) -> Document:
    """Decode a document without blobs: a queue's (its ``error`` is a count), a worker's, the settings."""
    fields: Document = _decoded(msgpack.unpackb(packed, raw=True))
    return fields


def _decoded(value: Any) -> Any:
    if isinstance(value, bytes):
        return text(value)
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if isinstance(value, dict):
        return {text(key): _decoded(item) for key, item in value.items()}
    return value


def job(packed: bytes, argument: bytes) -> Job:
    fields = msgpack.unpackb(packed)
    return Job._make([*(fields[name] for name in _JOB_FIELDS), argument])


def picked(reply: list[Any]) -> Picked:
    return Picked(reply[0], [job(packed, argument) for packed, argument in reply[1:]])


def page(reply: list[Any]) -> Page:
    return Page(text(reply[0]), [plain_document(packed) for packed in reply[1:]])
