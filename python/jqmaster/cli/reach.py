"""One client for all commands: of a master by HTTP, or straight on Redis.

Straight on Redis a request is carried out by the master's own handlers, in this process: what a command sees,
documents and refusals, is the same both ways, and there is one set of calls (`jqmaster.client`).
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
from collections.abc import Iterator, Mapping
from typing import Any, Self, TypeVar
from urllib.parse import unquote, urlsplit

from jqmaster.cli.status import EXIT_UNAVAILABLE, EXIT_USAGE, Refused
from jqmaster.client import Client
from jqmaster.client.asks import HEADERS, Ask
from jqmaster.errors import Unavailable

T = TypeVar("T")

LOCAL = "http://127.0.0.1:8400"
REDIS_SCHEMES = ("redis://", "rediss://", "unix://")
NAMESPACE = "{jq}"


class Place:
    """A server: its URL, and the namespace where it is a Redis."""

    def __init__(self, url: str, namespace: str) -> None:
        self.url = url
        self.namespace = namespace
        self.is_redis = url.startswith(REDIS_SCHEMES)

    @property
    def shown(self) -> str:
        """The URL, fit for a log."""
        from jqmaster.server import without_password

        return without_password(self.url)

    def __str__(self) -> str:
        return f"{self.shown} {self.namespace}" if self.is_redis else self.shown


def place(options: argparse.Namespace) -> Place:
    """Which server the options and the environment mean. Raises Refused."""
    # What is in the environment is already in the options; only what differs from it was said here.
    url, redis = options.url, options.redis
    if url is not None and redis is not None:
        said_url, said_redis = url != os.environ.get("JQ_URL"), redis != os.environ.get("JQ_REDIS")
        if said_url and said_redis:
            raise Refused("give --url or --redis, not both", EXIT_USAGE, "INVALID")
        if said_redis:
            url = None
    chosen = str(url or redis or LOCAL).split(",")[0]
    if not chosen.startswith((*REDIS_SCHEMES, "http://", "https://")) or (
        chosen == redis and not chosen.startswith(REDIS_SCHEMES)
    ):
        forms = "redis://, rediss:// or unix://" if chosen == redis else "http://, https://, redis://, …"
        raise Refused(f"{chosen}: expected a URL that begins with {forms}", EXIT_USAGE, "INVALID")
    return Place(chosen, options.namespace or NAMESPACE)


def open_client(options: argparse.Namespace, *, creates: bool = False) -> AnyClient:
    """A client of the server that the options mean. `creates`: straight on Redis, a namespace that is not
    there is set up; else it is refused, as it would be a slip of the finger."""
    where = place(options)
    if not where.is_redis:
        return MasterClient(where.url)
    return RedisClient(where.url, where.namespace, creates=creates)


def redis_place(options: argparse.Namespace, command: str) -> Place:
    """For commands that need Redis itself. Raises Refused."""
    where = place(options)
    if not where.is_redis:
        raise Refused(f"{command} needs Redis itself: give --redis URL, or JQ_REDIS", EXIT_USAGE, "INVALID")
    return where


class AnyClient(Client):
    """What both have beside the calls of `Client`."""

    def __enter__(self) -> Self:
        return self

    def do(self, ask: Ask[T]) -> T:
        """Ask what no method asks in this form."""
        return self._do(ask)

    def has_result(self, job_id: str) -> bool:
        """Whether a result that shows as nil is there. A master does not tell; so it is taken for one."""
        return True


class MasterClient(AnyClient):
    """By HTTP, with a hint when nobody is there."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._shown = url

    def _send(self, *arguments: Any, **more: Any) -> tuple[int, bytes]:
        try:
            return super()._send(*arguments, **more)
        except Unavailable as error:
            if isinstance(error.__cause__, ConnectionError | OSError) and "refused" in error.message.lower():
                raise Unavailable(
                    f"no master answers at {self._shown}. Start one with `jqmaster serve`, or name another "
                    "(--url), or a Redis (--redis)"
                ) from error
            raise Unavailable(f"{self._shown}: {error.message}") from error


class _Quiet:
    """Stands where a master has others to tell: those who wait for jobs, and workers it pushes to."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class RedisClient(AnyClient):
    """Straight on Redis. `engine` and `run` are for what has no request."""

    def __init__(self, url: str, namespace: str, *, creates: bool) -> None:
        from jqmaster.ended import Ended
        from jqmaster.engine import Engine, connect
        from jqmaster.master import Master

        super().__init__()
        self.url, self.namespace = url, namespace
        try:
            self.redis = connect(url)
        except ValueError as error:
            raise Refused(f"{url}: {error}", EXIT_USAGE, "INVALID") from None
        self.engine = Engine(self.redis, namespace)
        self._ended = Ended(self.engine, self.redis)
        quiet: Any = _Quiet()
        self._master = Master(self.engine, quiet, self._ended, quiet)
        self._runner = asyncio.Runner()
        self._creates, self._checked = creates, False
        # The handlers log what is refused, which is said once, in the end.
        self._loggers = [logging.getLogger(name) for name in ("jqmaster.http", "jqmaster.calls")]
        self._levels = [logger.level for logger in self._loggers]
        if not logging.getLogger().isEnabledFor(logging.DEBUG):
            for logger in self._loggers:
                logger.setLevel(logging.ERROR)

    def run(self, work: Any) -> Any:
        """Run a coroutine to its end."""
        return self._runner.run(self._careful(work))

    def has_result(self, job_id: str) -> bool:
        return self.run(self.engine.result(job_id))[1] is not None

    def close(self) -> None:
        for logger, level in zip(self._loggers, self._levels, strict=True):
            logger.setLevel(level)
        try:
            self._runner.run(self._ended.stop())
            self._runner.run(self.redis.aclose())
        finally:
            self._runner.close()

    # -- parts ------------------------------------------------------------------------------------

    async def _careful(self, work: Any) -> Any:
        import redis.exceptions

        from jqmaster.errors import from_redis

        try:
            if not self._checked:
                if not await self.redis.exists(f"{self.namespace}:meta") and not self._creates:
                    raise Refused(
                        f"there is no namespace {self.namespace} in this Redis; `jqmaster load` sets it up",
                        EXIT_UNAVAILABLE, "VERSION",
                    )  # fmt: skip
                self._checked = True
        except redis.exceptions.RedisError as problem:
            work.close()
            reason = from_redis(problem).message.partition(": ")[2] or str(problem)
            raise Unavailable(
                f"cannot use Redis at {Place(self.url, self.namespace).shown}: {reason}"
            ) from problem
        except Refused:
            work.close()
            raise
        return await work

    def _send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        timeout_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        from jqmaster.http.routes import respond

        parts = urlsplit(path)
        route, params = _route(method, parts.path)
        sent = [(name.encode(), value.encode()) for name, value in (headers or HEADERS).items()]
        scope = {"headers": sent, "query_string": parts.query.encode()}
        response = self.run(respond(self._master, route, scope, params, body or b""))
        return response.status, response.body

    def _stream(self, path: str, headers: Mapping[str, str]) -> Iterator[bytes]:
        raise NotImplementedError(path)


def _route(method: str, path: str) -> tuple[Any, dict[str, str]]:
    from jqmaster.http.routes import ROUTES

    segments = path.strip("/").split("/")
    for route in ROUTES:
        pattern = route.path.strip("/").split("/")
        if route.method != method or len(pattern) != len(segments):
            continue
        pairs = list(zip(pattern, segments, strict=True))
        if all(known == found or known.startswith("{") for known, found in pairs):
            return route, {known[1:-1]: found for known, found in pairs if known.startswith("{")}
    raise NotImplementedError(f"{method} {unquote(path)}")
