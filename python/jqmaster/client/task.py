"""A function as a kind of job: called, it runs here; enqueued, it runs in a worker."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar, Unpack, cast, overload

from jqmaster.client import calling
from jqmaster.client.calling import Converter
from jqmaster.client.handle import Handle
from jqmaster.client.link import plain
from jqmaster.engine import options, tracing
from jqmaster.engine.options import JobOptions, NewJob, When
from jqmaster.engine.replies import Job
from jqmaster.worker.ending import UNPACKABLE, FollowUp, JobFailed, Move, NewCall, text_of, unpackable
from jqmaster.worker.notes import current_notebook

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
V = TypeVar("V")
Middleware = Callable[[Job, Callable[[], Awaitable[Any]]], Awaitable[Any]]
Exceptions = tuple[type[BaseException], ...] | type[BaseException]


class TaskOptions(JobOptions, total=False):
    """Those of each job, and those of its kind."""

    name: str | None
    """The name of its jobs; default: the function's."""
    process: bool
    """Run it in a process of its own kind, for work that keeps a processor busy."""
    retry_on: Exceptions | None
    """Only these exceptions lead to a retry; default: all."""
    give_up_on: Exceptions | None
    """These never do."""


@dataclass(slots=True, eq=False)
class Call(NewCall, Generic[R_co]):
    """A call that is not enqueued yet: for `JQ.enqueue_many`, `FollowUp` and `depends`. Two are two jobs, also with
    the same arguments."""

    task: Task[..., Any]
    argument: bytes = field(repr=False)
    options: JobOptions = field(repr=False)

    def spec(self) -> dict[str, Any]:
        """Its spec; `depends` still as it was given."""
        return {"name": self.task.name, **options.spec_of(self.options)}

    def new_job(self, siblings: Mapping[Any, str | int]) -> NewJob:
        spec = tracing.injected(self.spec())
        if "depends" in spec:
            spec["depends"] = [_reference(dependency, siblings) for dependency in spec["depends"]]
        return NewJob(spec, self.argument)


def calls_of(calls: Any) -> list[Call[Any]]:
    """One or several as a list. Raises TypeError for what is none."""
    listed = [*calls] if isinstance(calls, Iterable) else [calls]
    for call in listed:
        if not isinstance(call, Call):
            raise TypeError(f"expected a call, as task.job(...) makes, got {call!r}")
    return listed


def _reference(dependency: Any, siblings: Mapping[Any, str | int]) -> Any:
    if not isinstance(dependency, Call):
        return dependency.id if isinstance(dependency, Handle) else dependency
    if dependency not in siblings:
        raise ValueError(f"{dependency!r} is not enqueued; depends takes calls of the same enqueue_many or FollowUp")
    return siblings[dependency]


class Task(Generic[P, R]):
    """A kind of job. `function` is what was decorated; None for one that lives elsewhere. `jq`: the `JQ` that it is
    of; `chosen`: the options of each of its jobs."""

    def __init__(self, jq: Any, function: Callable[..., Any] | None, name: str, given: Mapping[str, Any]) -> None:
        chosen: dict[str, Any] = {**given}
        self.jq = jq
        self.function = function
        self.name = name
        self.process = chosen.pop("process", False)
        called: Any = type(function).__call__  # of an object that is called as a function
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
        self._retry_on, self._give_up_on = chosen.pop("retry_on", None), chosen.pop("give_up_on", None)
        try:
            self._check()
            self.signature = None if function is None else calling.Signature(function)
        except TypeError as error:
            raise TypeError(f"job {name}: {error}") from None
        self.returns_none = self.signature is not None and self.signature.returns_none
        kind = JobOptions if function is None else TaskOptions
        self.chosen: JobOptions = options.known(cast(JobOptions, chosen), kind, f"option of job {name}")
        if function is not None:
            functools.update_wrapper(self, function, updated=())  # type: ignore[arg-type]

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Enqueue a call with these arguments. Raises TypeError when they do not fit the function, and what
        `jqmaster.errors` has."""
        return cast(Handle[R], (await self.jq.aenqueue_many([self.job(*args, **kwargs)]))[0])

    async def amap(self, arguments: Iterable[Any]) -> list[Handle[R]]:
        """Enqueue one job for each of `arguments`, 1000 in a call: a tuple holds positional arguments,
        anything else is the one argument."""
        call: Callable[..., Call[R]] = self.job
        calls = (call(*(args if isinstance(args, tuple) else (args,))) for args in arguments)
        return cast(list[Handle[R]], await self.jq.aenqueue_many(calls))

    enqueue, map = plain(aenqueue), plain(amap)

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """The call, for `JQ.enqueue_many`, `FollowUp` and `depends`."""
        try:
            value = calling.join(args, kwargs) if self.signature is None else self.signature.encode(args, kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}{self.signature or ''}: {error}") from error.__cause__
        return self.call_with(value, args, kwargs)

    def handle(self, job_id: str) -> Handle[R]:
        """A job of this kind by its id, whose result is of the type that the function is annotated to return. Asks
        nobody: it may not exist, or be of another kind."""
        return Handle(job_id, self.jq.link, self)

    def options(self, **more: Unpack[JobOptions]) -> Self:
        """The task with options for the jobs to come, these as well: `add.options(delay=5).enqueue(1, 2)`."""
        options.known(more, JobOptions, f"option of job {self.name}")
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, chosen={**self.chosen, **more})
        return other

    def retries(self, error: BaseException) -> bool:
        """Whether an attempt that raised `error` may be followed by another."""
        if self._give_up_on is not None and isinstance(error, self._give_up_on):
            return False
        return self._retry_on is None or isinstance(error, self._retry_on)

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    def __reduce__(self) -> str:
        # As a function is pickled: by its name.
        return str(getattr(self, "__qualname__", self.name))

    @property
    def queue(self) -> str:
        """Where its jobs wait, unless they are told otherwise."""
        return cast(str, self.chosen.get("queue") or self.jq.defaults.get("queue") or self.name)

    def call_with(self, value: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call[R]:
        """The call whose argument is `value`, which stands for these."""
        merged: JobOptions = {"keep_result": not self.returns_none, **self.jq.defaults, **self.chosen}
        try:
            argument = self.jq.serializer.dumps(value)
        except UNPACKABLE as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{self.name}: {error}") from error
        if (asked := merged.get("unique")) is not None:
            merged["unique"] = calling.key_of(asked, self.name, args, kwargs, self.signature, self.jq.serializer)
        return Call(self, argument, merged)

    async def attempt(self, job: Job, elsewhere: Callable[..., Awaitable[Any]] | None = None) -> Any:
        """Run one attempt; its result as it travels. `elsewhere` calls a plain function, in a thread. Raises what the
        function, the serializer and middleware raise."""
        function = cast(Any, self.function)
        signature = self.signature
        assert signature is not None
        if (notebook := current_notebook.get(None)) is not None:
            notebook.dumps = self.jq.serializer.dumps
        try:
            args, kwargs = signature.decode(self.jq.serializer.loads(job.argument))
        except (TypeError, ValueError) as error:
            message = f"the argument does not fit {self.name}{signature}: {text_of(error)}"
            raise JobFailed(message, retry=False) from error

        async def called() -> Any:
            if elsewhere is None or self.is_async:
                result = function(*args, **kwargs)
            else:
                result = await elsewhere(function, *args, **kwargs)
            while isinstance(result, Coroutine):  # one behind a plain decorator may return a coroutine
                result = await result
            return result

        call: Callable[[], Awaitable[Any]] = called
        for middleware in reversed(self.jq.middlewares):
            call = functools.partial(middleware, job, call)
        result = await call()
        try:
            return self.sent(result)
        except UNPACKABLE as error:
            raise unpackable(job, error) from error

    @property
    def result_converter(self) -> Converter | None:
        """What makes its results of what travels; None where these are the same. Raises TypeError."""
        return None if self.signature is None else self.signature.converters.get("return")

    def sent(self, result: Any) -> Any:
        """What the function returned as it travels. Raises TypeError or ValueError for what is not as annotated."""
        if self.result_converter is None or isinstance(result, Move):
            return result
        if isinstance(result, FollowUp):
            return FollowUp(self.sent(result.result), result.jobs)
        return self.result_converter.send(result)

    def read_result(self, value: Any) -> Any:
        """What the function returned, of the type that it is annotated to return. Raises ValueError."""
        return value if self.result_converter is None else self.result_converter.make(value)

    def _check(self) -> None:
        """Raise TypeError for a function that cannot be a job, and for options that nobody would look at before one
        fails."""
        for option, kinds in (("retry_on", self._retry_on), ("give_up_on", self._give_up_on)):
            try:
                isinstance(None, () if kinds is None else kinds)
            except TypeError:
                raise TypeError(f"{option}: expected an exception's class, or a tuple of them, got {kinds!r}") from None
        if self.process and self.is_async:
            raise TypeError("process=True is for plain functions, not for async ones")
        if self.process and (not inspect.isfunction(self.function) or "<" in self.function.__qualname__):
            raise TypeError("a process finds only functions at the top of a module, by their names")


class DefinedTask(Task[P, R], Generic[P, R, V]):
    """One with its function. `V`: what a call of it gives, a coroutine of an async one."""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> V:
        return cast(V, cast(Any, self.function)(*args, **kwargs))


class Decorator(Protocol):
    """What `jq.job` and `jq.job(...)` are. The first that fits is meant. The result of a function that says what
    follows is the one that this holds."""

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, FollowUp[R]]], /
    ) -> DefinedTask[P, R, Coroutine[Any, Any, FollowUp[R]]]: ...
    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, Move[R]]], /
    ) -> DefinedTask[P, R, Coroutine[Any, Any, Move[R]]]: ...
    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> DefinedTask[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[P, FollowUp[R]], /) -> DefinedTask[P, R, FollowUp[R]]: ...
    @overload
    def __call__(self, function: Callable[P, Move[R]], /) -> DefinedTask[P, R, Move[R]]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> DefinedTask[P, R, R]: ...
    @overload
    def __call__(self, /, **given: Unpack[TaskOptions]) -> Decorator: ...


class ScheduleOptions(When, total=False):
    """And what it is given."""

    id: str | None
    """Of the schedule; default: the task's name."""
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    options: JobOptions
