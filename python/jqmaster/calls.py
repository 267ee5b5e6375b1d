"""Calling scripts by name: connections, packing, and bringing back what Redis has lost.

redis-py may send a command again when its reply was lost; the script then runs twice. ``connect`` therefore
retries nothing by default. With retries, or where a caller repeats a call after ``Unavailable``, give
``enqueue`` and ``pick`` a ``request`` token; every other operation is safe to repeat as it is.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgpack
import redis.exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff

from .errors import Invalid, JQError, Unavailable, Version, from_redis
from .luabuild import Script
from .scripts import builtin, check_namespace, install

log = logging.getLogger(__name__)

Argument: TypeAlias = bytes | str | int
Spec: TypeAlias = Mapping[str, Any]
Holding: TypeAlias = tuple[str, str]  # job id, token
Observe: TypeAlias = Callable[[str, str, float], object]  # script, error's code or "ok", seconds

ABSENT: Any = object()  # where None is a value

_HEALS = 3  # rounds: scripts lost, namespace lost, and both once more


def connect(url: str, *, retries: int = 0, max_connections: int = 64) -> Redis:
    """A Redis client for ``redis://``, ``rediss://`` or ``unix://`` URLs, with replies as bytes.

    ``retries``: how often a command whose reply was lost is sent again; leave it 0 unless every call is safe
    to repeat. More than ``max_connections`` calls at a time wait for each other. Connects on first use.

    There is no limit on how long a reply may take: redis-py's own would send every command through
    ``asyncio.wait_for``, which on Python 3.11 loses a cancellation that comes while the send completes.
    ``Engine`` sets its own.
    """
    return Redis.from_pool(
        BlockingConnectionPool.from_url(
            url,
            max_connections=max_connections,
            protocol=2,
            decode_responses=False,
            socket_timeout=None,
            socket_connect_timeout=5.0,
            health_check_interval=30,
            retry=Retry(ExponentialWithJitterBackoff(base=0.05, cap=1.0), retries),
        )
    )


def pack(spec: Spec, path: str = "") -> bytes:
    """Pack a spec. Raises Invalid, naming the field under ``path``, for what MessagePack cannot hold."""
    try:
        packed: bytes = msgpack.packb(spec)
    except (TypeError, ValueError, OverflowError) as whole:
        for key, value in spec.items():
            try:
                msgpack.packb({key: value})
            except (TypeError, ValueError, OverflowError) as problem:
                raise Invalid(
                    f"cannot be packed as MessagePack: {problem}", f"{path}.{key}".lstrip(".")
                ) from problem
        raise Invalid(f"cannot be packed as MessagePack: {whole}", path or None) from whole
    return packed


def given(**fields: Any) -> dict[str, Any]:
    """Those fields that are not None: an absent field means its default."""
    return {name: value for name, value in fields.items() if value is not None}


class Caller:
    """Runs the scripts of one namespace. Holds no connection of its own; whoever made ``redis`` closes it.

    Scripts that Redis has lost (SCRIPT FLUSH, restart, failover) are loaded again, and a namespace that has
    vanished (FLUSHALL) is set up again, when a call meets it. Raises what ``jqmaster.errors`` has.
    """

    def __init__(
        self,
        redis: Redis,
        namespace: str = "{jq}",
        *,
        scripts: Mapping[str, Script] | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        """``timeout_s``: how long Redis may take to answer a call; then the call raises Unavailable."""
        if redis.get_encoder().decode_responses:
            raise ValueError("the client must not decode responses: arguments and results are bytes")
        self.redis = redis
        self.namespace = check_namespace(namespace)
        self.scripts = builtin() if scripts is None else scripts
        self.observe: Observe | None = None
        self._meta = f"{namespace}:meta"
        self._timeout_s = timeout_s

    async def call(self, script: str, *arguments: Argument) -> Any:
        """Run one script; its reply as it came: bytes, integers, lists, None."""
        if self.observe is None:
            return await self._call(script, arguments)
        started, code = time.perf_counter(), "ok"
        try:
            return await self._call(script, arguments)
        except JQError as problem:
            code = problem.code
            raise
        except BaseException:
            code = "cancelled"
            raise
        finally:
            self.observe(script, code, time.perf_counter() - started)

    async def _call(self, script: str, arguments: Sequence[Argument]) -> Any:
        sha = self.scripts[script].sha
        for round_ in range(_HEALS + 1):
            try:
                async with asyncio.timeout(self._timeout_s):
                    return await self.redis.execute_command(
                        "EVALSHA", sha, 2, self.namespace, self._meta, *arguments
                    )
            except TimeoutError as problem:
                raise self._late(problem) from problem
            except redis.exceptions.RedisError as problem:
                if round_ == _HEALS or not await self._heal([(script, problem)]):
                    raise from_redis(problem) from problem
        raise AssertionError("unreachable")

    def _late(self, problem: TimeoutError) -> Unavailable:
        return Unavailable(f"Redis did not answer within {self._timeout_s:g} s", problem)

    async def pipeline(self, calls: Sequence[tuple[str, Sequence[Argument]]]) -> list[Any]:
        """Run several scripts in one round trip; per call its reply, or the JQError it met.

        Not a transaction: each call stands alone. Calls that met a lost script or namespace are sent
        again, in their order, after the others have run. Raises Unavailable when the connection fails.
        """
        results: list[Any] = [None] * len(calls)
        waiting = list(range(len(calls)))
        for round_ in range(_HEALS + 1):
            try:
                async with self.redis.pipeline(transaction=False) as pipe:
                    for index in waiting:
                        script, arguments = calls[index]
                        pipe.execute_command(
                            "EVALSHA", self.scripts[script].sha, 2, self.namespace, self._meta, *arguments
                        )
                    async with asyncio.timeout(self._timeout_s):
                        answers = await pipe.execute(raise_on_error=False)
                for index, reply in zip(waiting, answers, strict=True):
                    results[index] = reply
            except TimeoutError as problem:
                raise self._late(problem) from problem
            except redis.exceptions.RedisError as problem:
                raise from_redis(problem) from problem
            failed = [index for index in waiting if isinstance(results[index], redis.exceptions.RedisError)]
            waiting = [index for index in failed if _curable(results[index])]
            if round_ == _HEALS or not await self._heal(
                [(calls[index][0], results[index]) for index in waiting]
            ):
                break
        return [
            from_redis(reply) if isinstance(reply, redis.exceptions.RedisError) else reply
            for reply in results
        ]

    async def _heal(self, failures: Sequence[tuple[str, Exception]]) -> bool:
        """Bring back what these calls missed. False when there is nothing to bring back."""
        problems = [problem for _, problem in failures if _curable(problem)]
        try:
            if any(not isinstance(problem, redis.exceptions.NoScriptError) for problem in problems):
                log.warning("namespace %s is not set up in this Redis: setting it up", self.namespace)
                current = await self.redis.hexists(f"{self.namespace}:manifest", "version")
                await install(self.redis, self.namespace, self.scripts, make_current=not current)
            elif problems:
                log.info("Redis has lost the scripts of namespace %s: loading them", self.namespace)
                async with self.redis.pipeline(transaction=False) as pipe:
                    for name in dict.fromkeys(name for name, _ in failures):
                        pipe.script_load(self.scripts[name].source)
                    await pipe.execute()
        except redis.exceptions.RedisError as problem:
            raise from_redis(problem) from problem
        return bool(problems)


def _curable(problem: Any) -> bool:
    """Whether loading scripts or setting the namespace up lets the call succeed."""
    if isinstance(problem, redis.exceptions.NoScriptError):
        return True
    if not isinstance(problem, redis.exceptions.ResponseError):
        return False
    parsed: JQError = from_redis(problem)
    return isinstance(parsed, Version) and "not set up" in parsed.message
