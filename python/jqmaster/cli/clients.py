"""One client for all commands: of a master by HTTP, or straight on Redis.

Straight on Redis a request is carried out by the master's own handlers, in this process: what a command sees,
documents and refusals, is the same both ways, and there is one set of calls (`jqmaster.client`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import Any, Self, TypeVar
from urllib.parse import unquote, urlsplit

from jqmaster.cli.reach import Place
from jqmaster.cli.status import EXIT_UNAVAILABLE, EXIT_USAGE, Refused
from jqmaster.client import Client
from jqmaster.client.asks import HEADERS, Ask
from jqmaster.errors import Unavailable

T = TypeVar("T")


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
            raise self._explained(error) from error

    def _stream(self, path: str, headers: Mapping[str, str]) -> Iterator[bytes]:
        try:
            yield from super()._stream(path, headers)
        except Unavailable as error:
            raise self._explained(error) from error

    def _explained(self, error: Unavailable) -> Unavailable:
        if isinstance(error.__cause__, ConnectionRefusedError):
            return Unavailable(
                f"no master answers at {self._shown}. Start one with `jqmaster serve`, or name another "
                "(--url), or a Redis (--redis)"
            )
        return Unavailable(f"{self._shown}: {error.message}")


class _Quiet:
    """Stands where a master has others to tell: those who wait for jobs, and workers it pushes to."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class RedisClient(AnyClient):
    """Straight on Redis. `engine` and `run` are for what has no request."""

    def __init__(self, where: Place, *, creates: bool) -> None:
        from jqmaster.engine.ended import Ended
        from jqmaster.engine.engine import Engine, connect
        from jqmaster.master.master import Master

        super().__init__()
        url, namespace = where.url, where.namespace
        self.where, self.namespace = where, namespace
        try:
            self.redis = connect(url)
        except ValueError as error:
            raise Refused(f"{url}: {error}", EXIT_USAGE, "INVALID") from None
        self.engine = Engine(self.redis, namespace, form=where.form)
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
            raise Unavailable(f"cannot use Redis at {self.where.shown}: {reason}") from problem
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
        from jqmaster.master.http.routes import respond

        parts = urlsplit(path)
        route, params = _route(method, parts.path)
        sent = [(name.encode(), value.encode()) for name, value in (headers or HEADERS).items()]
        scope = {"headers": sent, "query_string": parts.query.encode()}
        response = self.run(respond(self._master, route, scope, params, body or b""))
        return response.status, response.body

    def _stream(self, path: str, headers: Mapping[str, str]) -> Iterator[bytes]:
        raise NotImplementedError(path)


def _route(method: str, path: str) -> tuple[Any, dict[str, str]]:
    from jqmaster.master.http.routes import ROUTES

    segments = path.strip("/").split("/")
    for route in ROUTES:
        pattern = route.path.strip("/").split("/")
        if route.method != method or len(pattern) != len(segments):
            continue
        pairs = list(zip(pattern, segments, strict=True))
        if all(known == found or known.startswith("{") for known, found in pairs):
            return route, {known[1:-1]: found for known, found in pairs if known.startswith("{")}
    raise NotImplementedError(f"{method} {unquote(path)}")
