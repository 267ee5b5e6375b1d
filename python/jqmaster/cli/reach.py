"""Which server a command asks; `clients` has how. Here is nothing that would make `--help` slow."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from jqmaster.cli.status import EXIT_USAGE, Refused
from jqmaster.connection import url as redis_url

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from jqmaster.cli.clients import Client
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


def client_of(where: Place, *, creates: bool = False) -> AbstractContextManager[Client]:
    """A client of this server."""
    from jqmaster.cli.clients import opened

    return opened(where, creates=creates)


def redis_place(options: argparse.Namespace, command: str) -> Place:
    """For commands that need Redis itself. Raises Refused."""
    where = place(options)
    if not where.is_redis:
        raise Refused(f"{command} needs Redis itself: give --redis URL, or JQ_REDIS", EXIT_USAGE, "INVALID")
    return where
