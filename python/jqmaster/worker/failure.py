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
TRACE_CHARACTERS = 16_000
TRACE_FRAMES = 20
ERROR_BYTES = 1 << 20
GROUP_BYTES = 255
LONGEST_DELAY_S = 1e10

_WORKER = str(Path(__file__).parent)
_CALLERS = (_WORKER, str(Path(_WORKER).with_name("client")), concurrent.futures.__path__[0], asyncio.__path__[0])

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
    """How an attempt failed: as `finish` takes it, with `error` behind it, packed."""

    spec: dict[str, Any]
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
    kind = type(error)
    trace = f"{kind.__qualname__} (which cannot be described)"
    spec: dict[str, Any] = {"should_retry": True, "message": trace}
    value = None
    try:
        if kind is RuntimeError and error.args == ("coroutine raised StopIteration",):
            error = error.__cause__ or error  # a coroutine cannot raise it: Python puts it into another error
            kind = type(error)
        trace = trace_of(error)
        group = kind.__name__ if kind is JobFailed else _qualified(kind)
        if isinstance(error, JobFailed):
            spec |= {"message": text_of(error), "should_retry": bool(error.retry)}
            value, group = error.error, _cut_group(error.group) or group
            if isinstance(error.retry_in, float | int) and 0 <= error.retry_in <= LONGEST_DELAY_S:
                spec["retry_in"] = error.retry_in  # else the engine would refuse it all, and nobody hear of the failure
        else:
            spec |= {"message": summary(error), "should_retry": retries is None or retries(error)}
            value = {"type": kind.__name__, "traceback": trace}
    except BaseException:  # of a class with odd attributes
        group = kind.__qualname__
    return Failure(spec | {"group": _cut_group(group)}, _packed(value), trace)


def text_of(value: object, most: int = MESSAGE_CHARACTERS) -> str:
    """`str(value)`, at most `most` characters, such that UTF-8 can hold them."""
    try:
        text = str.__getitem__(str(value), slice(most))
    except BaseException as problem:
        text = f"({type(value).__name__}, whose text raises {type(problem).__name__})"
    return clean(text)


def clean(text: str) -> str:
    """With `\\udc80` and the like for what UTF-8 cannot hold."""
    return text.encode(errors="backslashreplace").decode()


def summary(error: BaseException) -> str:
    """`ValueError: no such thing`."""
    text = text_of(error)
    return f"{type(error).__name__}: {text}"[:MESSAGE_CHARACTERS] if text else type(error).__name__


def trace_of(error: BaseException) -> str:
    """The traceback with its causes as Python shows it, without the worker's own frames; of what is too long without
    its middle."""
    at = error.__traceback__ and _from_the_function(error.__traceback__)
    shown = traceback.TracebackException(type(error), error, at, limit=-TRACE_FRAMES, lookup_lines=False)
    text = "".join(shown.format())
    if len(text) > TRACE_CHARACTERS:
        half = TRACE_CHARACTERS // 2
        text = f"{text[:half]}\n[{len(text) - 2 * half} characters are left out]\n{text[-half:]}"
    return clean(text)


def _cut_group(group: object) -> str:
    """As the engine takes it; "" for none."""
    text = "" if group is None else text_of(group)
    text = "".join(character if character.isprintable() else " " for character in text)
    return text.encode()[:GROUP_BYTES].decode(errors="ignore")


def _packed(value: Any) -> bytes:
    """What is kept of a failure; as text if it cannot be packed, and a text instead if it is too large."""
    try:
        blob: bytes = msgpack.packb(value)
    except BaseException:
        blob = msgpack.packb(_representation(value))
    if len(blob) > ERROR_BYTES:
        note = f"(left out: {len(blob)} bytes, and at most {ERROR_BYTES} are kept; it begins: {_representation(value)})"
        blob = msgpack.packb(note)
    return blob


def _qualified(kind: type) -> str:
    """With its module, where that says anything."""
    module = "" if kind.__module__ in ("builtins", "__main__", "__mp_main__") else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}"


def _representation(value: object) -> str:
    return clean(_SHORT.repr(value[:MESSAGE_CHARACTERS] if isinstance(value, str | bytes) else value))


def _from_the_function(at: TracebackType) -> TracebackType:
    """Without the frames of those that called it."""
    while at.tb_next is not None and at.tb_frame.f_code.co_filename.startswith(_CALLERS):
        at = at.tb_next
    return at
