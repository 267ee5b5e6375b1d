"""What is told of a failure: message, group, traceback, whatever a job raised.

Nothing here raises, and all of it is bounded: the text of an exception may raise, be of any size, or hold what UTF-8
cannot (`os.fsdecode` makes half surrogates).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import reprlib
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import msgpack

from jqmaster.engine.options import Seconds

MESSAGE_CHARACTERS = 2000
TRACE_CHARACTERS = 32_000
TRACE_FRAMES = 20
ERROR_BYTES = 1 << 20
GROUP_BYTES = 255

_WORKER = str(Path(__file__).parent)
_CALLERS = (_WORKER, str(Path(_WORKER).with_name("client")), concurrent.futures.__path__[0], asyncio.__path__[0])
_KNOWN = "jq_failure"

_SHORT = reprlib.Repr()
_SHORT.maxother = _SHORT.maxstring = MESSAGE_CHARACTERS


class JobFailed(Exception):
    """Raise it in a function to choose what is reported. `error`: any value MessagePack can hold, up to 1 MiB.

    `retry_in`: the retry comes after so long (seconds or a `timedelta`), whatever the backoff; it is spent as any.
    A value that is not a time is ignored: the backoff decides then. `group`: what `failures` lists it under; by
    default the name of the exception's class, so that all that are raised without one are listed as `JobFailed`.
    """

    # Of a subclass that does not call `__init__`.
    retry: bool = True
    retry_in: float | None = None
    error: Any = None
    group: str | None = None

    def __init__(
        self,
        message: str,
        *,
        retry: bool = True,
        retry_in: Seconds | None = None,
        error: Any = None,
        group: str | None = None,
    ) -> None:
        super().__init__(message)
        self.retry = retry
        self.retry_in = None if retry_in is None else seconds_of(retry_in)
        self.error = error
        self.group = group


class Failure(NamedTuple):
    """How an attempt failed, as plain data that may come from another process. `error` is packed. `should_retry`: None
    where the rules are not known there."""

    message: str
    group: str
    should_retry: bool | None
    retry_in: Any
    error: bytes
    trace: str


def seconds_of(duration: Seconds) -> float:
    """What is no duration is left as it is: whoever is told of it refuses it."""
    try:
        return duration.total_seconds() if isinstance(duration, timedelta) else float(duration)
    except (TypeError, ValueError, OverflowError):
        return duration  # type: ignore[return-value]


def failure_of(error: BaseException, retries: Callable[[BaseException], bool] | None = None) -> Failure:
    """What is told of an attempt that raised `error`. `retries`: whether another may follow; default: yes. What
    JobFailed says itself counts more."""
    try:
        return _failure_of(_meant(error), retries)
    except BaseException as problem:  # of a class with odd attributes
        name = _name(type(error))
        message = f"{name} (which cannot be described: {_name(type(problem))})"
        return Failure(message, cut_group(name), True, None, packed(None), message)


def remember(error: BaseException, failure: Failure) -> None:
    """Have `failure_of(error)` be what was decided elsewhere."""
    error.__dict__[_KNOWN] = failure


def text_of(value: object, most: int = MESSAGE_CHARACTERS) -> str:
    """`str(said)`, at most `most` characters, such that UTF-8 can hold them."""
    try:
        text = str.__getitem__(str(value), slice(most))
    except BaseException as problem:
        text = f"({_name(type(value))}, whose text raises {_name(type(problem))})"
    return clean(text)


def clean(text: str) -> str:
    """With `\\udc80` and the like for what UTF-8 cannot hold."""
    return text.encode(errors="backslashreplace").decode()


def summary(error: BaseException) -> str:
    """`ValueError: no such thing`."""
    text = text_of(error)
    return f"{_name(type(error))}: {text}"[:MESSAGE_CHARACTERS] if text else _name(type(error))


def group_of(error: BaseException) -> str:
    """By what failures with `error` are listed: the qualified name of its class."""
    kind = type(error)
    return cut_group(_name(kind) if kind is JobFailed else _qualified(kind)) or "Exception"


def cut_group(group: object) -> str:
    """As the engine takes it; "" for none."""
    if group is None:
        return ""
    text = "".join(character if character.isprintable() else " " for character in text_of(group))
    return text.encode()[:GROUP_BYTES].decode(errors="ignore")


def packed(value: Any) -> bytes:
    """What is kept of a failure; as text if it cannot be packed, and a text instead if it is too large."""
    try:
        blob: bytes = msgpack.packb(value)
    except BaseException:
        blob = msgpack.packb(_representation(value))
    if len(blob) > ERROR_BYTES:
        note = f"(left out: {len(blob)} bytes, and at most {ERROR_BYTES} are kept; it begins: {_representation(value)})"
        blob = msgpack.packb(note)
    return blob


def trace_of(error: BaseException) -> str:
    """The traceback with its causes as Python shows it, without the worker's own frames; of what is too long without
    its middle."""
    try:
        at = error.__traceback__ and _from_the_function(error.__traceback__)
        shown = traceback.TracebackException(type(error), error, at, limit=-TRACE_FRAMES, lookup_lines=False)
        text = "".join(shown.format())
    except BaseException as problem:
        text = f"{summary(error)} (its traceback cannot be shown: {summary(problem)})\n"
    if len(text) > TRACE_CHARACTERS:
        half = TRACE_CHARACTERS // 2
        text = f"{text[:half]}\n[{len(text) - 2 * half} characters are left out]\n{text[-half:]}"
    return clean(text)


# -- parts ----------------------------------------------------------------------------------------


def _failure_of(error: BaseException, retries: Callable[[BaseException], bool] | None) -> Failure:
    known = error.__dict__.get(_KNOWN)
    if isinstance(known, Failure) and known.should_retry is not None:
        return known
    if isinstance(error, JobFailed):
        group = cut_group(error.group) or group_of(error)
        return Failure(text_of(error), group, bool(error.retry), error.retry_in, packed(error.error), trace_of(error))
    should_retry = retries is None or retries(error)
    if isinstance(known, Failure):
        return known._replace(should_retry=should_retry)
    trace = trace_of(error)
    value = {"type": _name(type(error)), "traceback": trace}
    return Failure(summary(error), group_of(error), should_retry, None, packed(value), trace)


def _meant(error: BaseException) -> BaseException:
    """A coroutine cannot raise StopIteration: Python puts it into another error."""
    cause = error.__cause__
    if type(error) is RuntimeError and isinstance(cause, StopIteration):
        return cause if error.args == ("coroutine raised StopIteration",) else error
    return error


def _name(kind: type) -> str:
    try:
        return text_of(kind.__name__)
    except BaseException:  # of a metaclass
        return "an exception without a name"


def _qualified(kind: type) -> str:
    """With its module, where that says anything."""
    module = "" if kind.__module__ in ("builtins", "__main__", "__mp_main__") else f"{text_of(kind.__module__)}."
    return f"{module}{text_of(kind.__qualname__)}"


def _representation(value: object) -> str:
    try:
        value = value[:MESSAGE_CHARACTERS] if isinstance(value, str | bytes) else value
        return clean(_SHORT.repr(value)[:MESSAGE_CHARACTERS])
    except BaseException as problem:
        return f"({_name(type(value))}, whose repr raises {_name(type(problem))})"


def _from_the_function(at: TracebackType) -> TracebackType:
    """Without the frames of those that called it."""
    while at.tb_next is not None and at.tb_frame.f_code.co_filename.startswith(_CALLERS):
        at = at.tb_next
    return at
