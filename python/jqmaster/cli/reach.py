"""Which server a command asks, a client of it, and how what it gives is printed. Imports nothing that is slow."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from jqmaster.cli.kinds import Namespace, option
from jqmaster.cli.status import EXIT_OK, Refused, Replies
from jqmaster.connection import url as redis_url

if TYPE_CHECKING:
    from jqmaster.cli.clients import Client

LOCAL = "http://127.0.0.1:8400"
NAMESPACE = "{jq}"
Yes = Annotated[bool, option("do not ask", name=["--yes", "-y"])]


@Parameter(name="*", group="Where to ask")
@dataclass
class Destination:
    """What the command line says of it, before the environment has its say."""

    url: Annotated[str | None, option("a server, http://…, or a Redis, as --redis; or JQ_URL")] = None
    redis: Annotated[str | None, option(f"a Redis: {redis_url.FORMS}; or JQ_REDIS")] = None
    namespace: Annotated[Namespace | None, option("with a Redis: the namespace; default {jq}", "JQ_NAMESPACE")] = None
    key_file: Annotated[str | None, option("file with the API key; or JQ_KEY, JQ_KEY_FILE")] = None
    json: Annotated[bool, option("print JSON, one document per line", "JQ_JSON")] = False
    verbose: Annotated[bool, option("log more, to stderr", name=["--verbose", "-v"])] = False
    stack: Annotated[ExitStack, Parameter(parse=False)] = field(default_factory=ExitStack)

    @property
    def said_namespace(self) -> str | None:
        """The namespace that was named on the command line: the variable is for whoever asks a Redis."""
        return self.namespace if self.namespace != os.environ.get("JQ_NAMESPACE") else None

    @property
    def redis_only(self) -> str | None:
        """The Redis that is meant, for what needs one."""
        urls = (self.redis, self.url, os.environ.get("JQ_REDIS"), os.environ.get("JQ_URL"))
        return next((url for url in urls if url and (url == self.redis or redis_url.is_redis(url))), None)

    def chosen(self, *, into: bool = False) -> str | None:
        """The URL that is meant; of servers several, with commas. `into`: `--namespace` is where records go, and may
        be said of a server as well. Raises Refused, ValueError."""
        if self.url and self.redis:
            raise Refused("give --url or --redis, not both", "INVALID")
        url = self.url or (None if self.redis else os.environ.get("JQ_URL"))
        found = url or self.redis or os.environ.get("JQ_REDIS") or None
        if found and not redis_url.is_redis(found):
            if not url:
                redis_url.parse(found)
            from jqmaster.engine.secret import masters_of

            masters_of(found, None if into else self.said_namespace)
        return found

    def server(self, *, into: bool = False) -> tuple[str, str | None]:
        """The one that is meant, as `chosen`, and where it is a Redis the namespace."""
        url = self.chosen(into=into) or LOCAL
        return (url, self.namespace or NAMESPACE) if redis_url.is_redis(url) else (url.split(",")[0], None)

    def __str__(self) -> str:
        return " ".join(filter(None, (redis_url.without_password(self.server()[0]), self.server()[1])))


current: ContextVar[Destination] = ContextVar("where")


def connect(*, creates: bool = False, into: bool = False) -> Client:
    """A client of the server that is meant, until the command ends. `creates`: a namespace may be new."""
    from jqmaster.cli.clients import Client

    where = current.get()
    level = logging.DEBUG if where.verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    url, namespace = where.server(into=into)
    client = Client(url, creates=creates, namespace=namespace, key_file=where.key_file)
    where.stack.callback(client.close)
    return client


def as_json() -> bool:
    return current.get().json


# -- what is told ---------------------------------------------------------------------------------


def tell(replies: Replies) -> int:
    """Print what a command gives: documents as JSON, one a line; or what stands beside them for people. The exit
    code."""
    from jqmaster.cli import show, values

    while True:
        try:
            documents, shown = next(replies)
        except StopIteration as ended:
            return int(ended.value or EXIT_OK)
        if as_json():
            is_one = isinstance(documents, Mapping) or not isinstance(documents, Iterable)
            for document in [documents] if is_one else documents:
                print(values.as_json(document))
        elif isinstance(shown, show.Table):
            shown.print()
        elif callable(shown):
            shown()
        else:
            print("\n".join(map(show.plain, shown.split("\n"))))


def agreed(question: str, *, yes: bool) -> bool:
    """Whether somebody at the terminal says yes, or --yes did. Raises Refused where there is nobody."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise Refused(f"stdin is no terminal: give --yes to {question}", "INVALID")
    print(f"{question}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
