"""What a running function says of its job: how far it is, and where another attempt may go on."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, SupportsFloat, TypeVar

import msgpack

from jqmaster.engine.replies import Job, Note

T = TypeVar("T")

MESSAGE_BYTES = 1024
CHECKPOINT_BYTES = 16 << 20  # as masters take it; heartbeats carry it
MOST = 1e300  # of a progress, either way

current_notebook: contextvars.ContextVar[Notebook] = contextvars.ContextVar("notebook")


class CurrentJob(Job):
    """The job that the running function works on."""

    __slots__ = ()

    @property
    def cancelled(self) -> bool:
        """Whether the function should end, since nobody waits for it any more: the job was cancelled, its lease was
        lost, it ran for `max_runtime`, or its worker stops. For functions in threads, which nobody can stop, and in
        processes, which are killed soon after."""
        notebook = current_notebook.get(None)
        return notebook is not None and notebook.over is not None


current_job: contextvars.ContextVar[CurrentJob] = contextvars.ContextVar("current_job")
"""The job that the running function works on."""


class JobStopped(BaseException):
    """What `progress` and `checkpoint` raise in a thread or process whose job was cancelled, lost, or given
    up; the message says why. Not an Exception, as asyncio's CancelledError: a function that catches those ends all the
    same."""


def progress(number: SupportsFloat, message: str | None = None) -> None:
    """Say how far the running job is, for those who look at it: any finite number, and a text (at most 1024 bytes).

    Goes with the next heartbeat, which is now, or as soon as the one before is answered; of several in
    between the last one counts. For functions that run as jobs, also in threads; LookupError elsewhere. Raises
    TypeError and ValueError for what is no such number or no text, and JobStopped in a thread whose job is not its own
    any more (`CurrentJob.cancelled`).
    """
    notebook = _opened("progress")
    if message is not None and not isinstance(message, str):
        raise TypeError(f"message: expected text, got {type(message).__name__}")
    text = None if message is None else message.encode(errors="replace")[:MESSAGE_BYTES].decode(errors="ignore")
    notebook.write(Note(progress=_number(number), message=text))


def _opened(caller: str) -> Notebook:
    notebook = current_notebook.get(None)
    if notebook is None:
        raise LookupError(f"{caller}() is for a function that runs as a job, while it runs")
    notebook.check()
    return notebook


def _number(value: SupportsFloat) -> float:
    try:
        number = float("nan" if isinstance(value, str | bytes) else value)
    except (TypeError, OverflowError) as error:
        raise TypeError(f"progress: {error}") from None
    if not abs(number) <= MOST:
        raise ValueError(f"progress: expected a finite number, got {value!r}")
    return number + 0.0  # the engine knows no -0.0


def checkpoint(argument: Any) -> None:
    """Have the next attempt of the running job, if there is one, start with this argument.

    Goes like `progress`, and at the latest before the attempt's failure is reported. Raises TypeError or
    ValueError for what cannot be packed or takes more than 16 MiB, and LookupError and JobStopped as `progress` does.
    """
    notebook = _opened("checkpoint")
    packed = notebook.dumps(argument)
    if len(packed) > CHECKPOINT_BYTES:
        raise ValueError(f"checkpoint: expected at most {CHECKPOINT_BYTES} bytes, got {len(packed)}")
    notebook.write(Note(argument=packed))


def in_a_loop() -> bool:
    """Whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def outside_of_loops(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end from plain code: here if no loop runs in this thread, else in another thread."""
    if not in_a_loop():
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(contextvars.copy_context().run, asyncio.run, work).result()


class Notebook:
    """What one job has said and nobody was told yet. For any thread; `tell` is called when there is more."""

    def __init__(self, tell: Callable[[], object]) -> None:
        self.is_used = False
        self.over: str | None = None
        """Why nobody wants to hear more of this attempt."""
        self.dumps: Callable[[Any], bytes] = msgpack.packb
        """How a checkpoint's argument is packed: as the job's own was."""
        self._tell = tell
        self._note: Note | None = None
        self._lock = threading.Lock()

    @contextmanager
    def opened(self, job: Job) -> Iterator[None]:
        """Make this the notebook, and `job` the job, of what is called within; then it is the job around this one
        again."""
        job_before, before = current_job.set(CurrentJob(*job)), current_notebook.set(self)
        try:
            yield
        finally:
            current_job.reset(job_before)
            current_notebook.reset(before)

    def check(self) -> None:
        """Raise JobStopped where the attempt is over and the function goes on: in a thread or process. On an event loop
        it has been cancelled."""
        if self.over is not None and not in_a_loop():
            raise JobStopped(self.over)

    @property
    def has_more(self) -> bool:
        return self._note is not None

    def write(self, note: Note) -> None:
        with self._lock:
            self._note = _over(note, self._note)
            self.is_used = True
        self._tell()

    def take(self) -> Note | None:
        """What there is to tell."""
        with self._lock:
            note, self._note = self._note, None
        return note

    def put_back(self, note: Note) -> None:
        """It could not be told. What was written meanwhile counts more."""
        with self._lock:
            self._note = note if self._note is None else _over(self._note, note)


def _over(later: Note, earlier: Note | None) -> Note:
    if earlier is None:
        return later
    return Note._make(old if new is None else new for new, old in zip(later, earlier, strict=True))
