"""Calling scripts by name: connections, packing, and bringing back what Redis has lost.

A call whose reply was lost may have run, and is not made again. Where a caller repeats it after ``Unavailable``, give
``enqueue`` and ``pick`` a ``request`` token; every other operation is safe to repeat as it is.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, TypeAlias

import redis.exceptions

from jqmaster.bundle.build import Bundle, builtin
from jqmaster.connection import plainly
from jqmaster.connection.connect import connect
from jqmaster.connection.redis_client import RedisClient, refusal
from jqmaster.connection.together import Together
from jqmaster.engine.calling import Argument, Holding, Operations, Spec, given, pack
from jqmaster.engine.scripts import check_namespace, is_missing_function, load, load_library, refuses_functions
from jqmaster.errors import JQError, Unavailable, Vanished, Version, from_redis

__all__ = ["Argument", "Engine", "Holding", "Operations", "Spec", "connect", "given", "pack"]

log = logging.getLogger(__name__)

Observe: TypeAlias = Callable[[str, str, float], object]  # script, error's code or "ok", seconds

_HEALS = 4  # rounds: functions, scripts, namespace lost, and what another flush takes


class Engine(Operations):
    """Runs the operations of one namespace in Redis; ``engine.http`` has them by a server.

    ``close`` closes ``redis``.

    An operation of the library is called by FCALL, all others by EVALSHA. Where functions cannot be called,
    which the first call shows, all are called by EVALSHA; so they are when ``scripts`` have no library.

    Functions and scripts that Redis has lost (FUNCTION FLUSH, SCRIPT FLUSH, restart, failover) are loaded
    again, and a namespace that is not set up is set up, when a call meets it. One that was there when a call
    was made before, and has vanished (FLUSHALL), only with ``recreate``. Raises what ``jqmaster.errors`` has.
    """

    def __init__(
        self,
        redis: RedisClient,
        namespace: str = "{jq}",
        *,
        scripts: Bundle | None = None,
        timeout_s: float | None = None,
        recreate: bool = False,
        actor: str | None = None,
    ) -> None:
        """``redis``: of ``connect``. ``timeout_s``: how long a call may take, then it raises Unavailable; default: what
        the URL says.

        ``recreate``: a namespace that has vanished is set up again, empty, without its constraints, schedules
        and settings; else calls raise Vanished until it is back.

        ``actor``: who is said to change things.
        """
        self.redis = redis
        self.actor = actor
        self.namespace = check_namespace(namespace)
        self.scripts = builtin() if scripts is None else scripts
        self.observe: Observe | None = None
        self.engines: Sequence[Engine] = [self]  # of a cluster those of its partitions
        self._library = self.scripts.library
        self._functions = (
            {name: f"{self._library.name}_{name}" for name in self._library.functions} if self._library else {}
        )
        self._meta = f"{namespace}:meta"
        self._timeout_s = timeout_s or redis.reply_s
        redis.reply_s = max(redis.reply_s, self._timeout_s)
        self._recreates = recreate
        self._is_known = self._is_missed = False
        self._shared = {name: Together(functools.partial(self._observed, name)) for name in ("enqueue", "watch")}

    def of(self, _job_id: str) -> Engine:
        """That of the partition that has a job."""
        return self

    async def load(self) -> str:
        """See ``scripts.load``."""
        for engine in self.engines:
            version = await load(engine.redis, engine.namespace, self.scripts)
        return version

    async def close(self) -> None:
        """Close the connections."""
        for engine in self.engines:
            await engine.redis.aclose()

    @property
    def form_in_use(self) -> Literal["functions", "scripts"]:
        """How the operations are called that have both forms, as far as is known."""
        return "functions" if self._functions else "scripts"

    def raw(self, operation: str, *arguments: Argument) -> Coroutine[Any, Any, Any]:
        # No coroutine of its own, which would be a tenth of a call.
        if operation in self._shared and _is_single(operation, arguments) and not plainly.is_plain():
            return self._shared[operation].get(*arguments)
        return self._observed(operation, *arguments)

    async def _observed(self, operation: str, *arguments: Argument) -> Any:
        if self.observe is None:
            return await self._call(operation, arguments)
        started, code = time.perf_counter(), "ok"
        try:
            return await self._call(operation, arguments)
        except JQError as problem:
            code = problem.code
            raise
        except BaseException:
            code = "cancelled"
            raise
        finally:
            self.observe(operation, code, time.perf_counter() - started)

    async def _call(self, script: str, arguments: Sequence[Argument]) -> Any:
        was_known, heals = self._is_known, _HEALS
        missed: Exception | None = None
        while True:
            try:
                if missed is not None:
                    await self._heal(was_known, script, missed)
                async with plainly.within(self._timeout_s):
                    reply = await self.redis.call(*self._command(script, arguments))
                if not self._is_known or self._is_missed:
                    self._is_here(script)
                return reply
            except TimeoutError as problem:
                raise Unavailable(f"Redis at {self.redis} did not answer in time", problem) from problem
            except redis.exceptions.RedisError as problem:
                if not heals or not _lost(problem):
                    raise from_redis(problem) from problem
                heals, missed = heals - 1, problem

    def _is_here(self, script: str) -> None:
        if script == "import":  # the one operation that has no namespace to work in
            return
        self._is_known = True
        if self._is_missed:
            self._is_missed = False
            log.warning("namespace %s is back", self.namespace)

    def _command(self, script: str, arguments: Sequence[Argument]) -> tuple[Argument, ...]:
        """By the function's name or by the script's sha."""
        if function := self._functions.get(script):
            return ("FCALL", function, 2, self.namespace, self._meta, *arguments)
        return ("EVALSHA", self.scripts[script].sha, 2, self.namespace, self._meta, *arguments)

    async def _heal(self, was_known: bool, script: str, problem: Exception) -> None:
        """Bring back what a call missed. `was_known`: whether the namespace was there before it; since then another
        thread may have set it up. Raises RedisError, JQError."""
        match _lost(problem):
            case "functions":
                self._do_without_functions(script, problem)
            case "namespace":
                self._allow_setup(was_known)
                await load(self.redis, self.namespace, self.scripts)
            case "library" if self._library:
                log.info("namespace %s: functions are missing in Redis, loading them", self.namespace)
                if not await load_library(self.redis, self._library):
                    self._do_without_functions(script, problem)
            case "scripts":
                log.debug("Redis has not script %s of namespace %s: loading it", script, self.namespace)
                await self.redis.script_load(self.scripts[script].source)

    def _allow_setup(self, was_known: bool) -> None:
        """Raise Vanished when the namespace was there, and is not to be set up again."""
        if not was_known:
            log.info("namespace %s is not set up in this Redis: setting it up", self.namespace)
        elif self._recreates:
            log.error("namespace %s has vanished from this Redis: setting it up again, empty", self.namespace)
        else:
            vanished = Vanished(
                f"namespace {self.namespace} was here and has vanished: Redis was emptied, or is another one. "
                "Bring its data back; or `jqmaster load` sets it up anew, as --recreate does by itself"
            )
            if not self._is_missed:
                self._is_missed = True
                log.error("%s", vanished.message)
            raise vanished

    def _do_without_functions(self, script: str, problem: Exception) -> None:
        """A user may be granted some functions, and not others."""
        if refusal(problem) == "NOPERM":
            self._functions.pop(script, None)
            return
        log.info("functions cannot be used in this Redis, scripts are: %s", problem)
        self._functions.clear()


def _is_single(operation: str, arguments: Sequence[Argument]) -> bool:
    """Whether a call may be made along with those of others: numbers in `depends` are places in a call."""
    packed = [one for one in arguments if isinstance(one, bytes)]
    if len(packed) < len(arguments):
        return False  # others must not get what comes of it
    return len(packed) == 1 if operation == "watch" else len(packed) == 2 and b"depends" not in packed[0]


def _lost(problem: Any) -> Literal["functions", "library", "scripts", "namespace"] | None:
    """What must be brought back, or done without (``functions``), for a call to succeed."""
    if refusal(problem) == "NOSCRIPT":
        return "scripts"
    if not isinstance(problem, redis.exceptions.ResponseError):
        return None
    if is_missing_function(problem):
        return "library"
    if refuses_functions(problem):
        return "functions"
    parsed: JQError = from_redis(problem)
    is_absent = isinstance(parsed, Version) and "not set up" in parsed.message
    return "namespace" if is_absent else None
