"""Which server a command asks, and a client of it. Nothing is imported here that would make `--help` slow."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from jqmaster.cli.status import EXIT_UNAVAILABLE, EXIT_USAGE, Refused
from jqmaster.connection import url as redis_url

if TYPE_CHECKING:
    from jqmaster.cli.clients import Client
    from jqmaster.engine.engine import Engine
    from jqmaster.engine.scripts import Form

LOCAL = "http://127.0.0.1:8400"
NAMESPACE = "{jq}"


class Place:
    """A server: its URL; and where it is a Redis, the namespace, and how operations are called."""

    def __init__(self, url: str, namespace: str, form: Form = "auto") -> None:
        self.url = url
        self.namespace = namespace
        self.form = form
        self.is_redis = redis_url.is_redis(url)

    @property
    def shown(self) -> str:
        """The URL, fit for a log."""
        return redis_url.without_password(self.url)

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
    chosen = str(url or redis or LOCAL)
    if not redis_url.is_redis(chosen):
        chosen = chosen.split(",")[0]
        is_for_redis = not url and redis
        if is_for_redis or not chosen.startswith(("http://", "https://")):
            forms = redis_url.FORMS if is_for_redis else "http://, https://, redis://, …"
            shown = redis_url.without_password(chosen)
            raise Refused(f"{shown}: expected a URL that begins with {forms}", EXIT_USAGE, "INVALID")
    return Place(chosen, options.namespace or NAMESPACE, options.form or "auto")


def open_client(options: argparse.Namespace, *, creates: bool = False) -> AbstractContextManager[Client]:
    """A client of the server that the options mean. `creates`: straight on Redis, a namespace that is not
    there is set up; else it is refused, as it would be a slip of the finger."""
    return client_of(place(options), creates=creates)


@contextmanager
def client_of(where: Place, *, creates: bool = False) -> Iterator[Client]:
    """A client of this server."""
    from jqmaster.cli.clients import Client
    from jqmaster.errors import Unavailable

    client = Client(where.url, where.namespace, where.form)
    try:
        if where.is_redis:
            _check(client, where, creates)
        yield client
    except Unavailable as error:
        if isinstance(getattr(error.cause, "os_error", None), OSError):
            raise Unavailable(
                f"no master answers at {where.shown}. Start one with `jqmaster serve`, or name another "
                "(--url), or a Redis (--redis)"
            ) from error
        raise
    finally:
        client.close()


def _check(client: Client, where: Place, creates: bool) -> None:
    """Whether the namespace is there, which most likely was misspelt otherwise. Raises Refused."""
    import redis.exceptions

    from jqmaster.errors import Unavailable, from_redis

    async def is_there(engine: Engine) -> bool:
        try:
            return bool(await engine.redis.exists(f"{engine.namespace}:meta"))
        except redis.exceptions.RedisError as problem:
            reason = from_redis(problem).message.partition(": ")[2] or str(problem)
            raise Unavailable(f"cannot use Redis at {where.shown}: {reason}") from problem

    try:
        if not client.ask_redis(is_there) and not creates:
            raise Refused(
                f"there is no namespace {where.namespace} in this Redis; `jqmaster load` sets it up",
                EXIT_UNAVAILABLE, "VERSION",
            )  # fmt: skip
    except ValueError as error:
        raise Refused(f"{where.shown}: {error}", EXIT_USAGE, "INVALID") from None


def redis_place(options: argparse.Namespace, command: str) -> Place:
    """For commands that need Redis itself. Raises Refused."""
    where = place(options)
    if not where.is_redis:
        raise Refused(f"{command} needs Redis itself: give --redis URL, or JQ_REDIS", EXIT_USAGE, "INVALID")
    return where
