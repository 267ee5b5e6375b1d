"""Which server a command asks, a client of it, and how what it tells is printed. Nothing is imported here that
would make `--help` slow."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jqmaster.cli import show, values
from jqmaster.cli.options import Options, Replies
from jqmaster.cli.places import LOCAL, NAMESPACE, Place
from jqmaster.cli.status import EXIT_OK, Refused
from jqmaster.connection import url as redis_url
from jqmaster.errors import Unavailable

if TYPE_CHECKING:
    from jqmaster.cli.clients import Client


def url_of(options: Options, *, into: bool = False) -> str | None:
    """The URL that the options and the environment mean; of masters several, with commas. `into`: `--namespace` is
    where records go, and may be said of a master as well. Raises Refused, ValueError."""
    # What is in the environment is already in the options; only what differs from it was said here.
    url, redis = options.url, options.redis
    if url is not None and redis is not None:
        said_url, said_redis = url != os.environ.get("JQ_URL"), redis != os.environ.get("JQ_REDIS")
        if said_url and said_redis:
            raise Refused("give --url or --redis, not both", "INVALID")
        if said_redis:
            url = None
    chosen = url or redis or None
    if chosen and not redis_url.is_redis(chosen):
        if not url or not chosen.startswith(("http://", "https://")):
            forms = "http://, https://, redis://, …" if url else redis_url.FORMS
            shown = redis_url.without_password(chosen)
            raise Refused(f"{shown}: expected a URL that begins with {forms}", "INVALID")
        from jqmaster.engine.secret import masters_of

        masters_of(chosen, None if into else said_namespace(options))
    return chosen


def place(options: Options, *, into: bool = False) -> Place:
    """The server that is meant, as `url_of`. Raises Refused, ValueError."""
    url = url_of(options, into=into) or LOCAL
    first = url if redis_url.is_redis(url) else url.split(",")[0]
    return Place(first, options.namespace or NAMESPACE, options.form or "auto", said_key_file(options))


def said_namespace(options: Options) -> str | None:
    """The namespace that was named here: the variable is for whoever asks a Redis."""
    namespace: str | None = options.namespace
    return namespace if namespace != os.environ.get("JQ_NAMESPACE") else None


def said_key_file(options: Options) -> str | None:
    """What is said here wins over the environment, where the key itself may stand as well."""
    file: str | None = options.key_file
    return file if file != os.environ.get("JQ_KEY_FILE") else None


def redis_place(options: Options, command: str) -> Place:
    """For commands that need Redis itself. Raises Refused."""
    where = place(options)
    if not where.is_redis:
        raise Refused(f"{command} needs Redis itself: give --redis URL, or JQ_REDIS", "INVALID")
    return where


@contextmanager
def client_of(where: Place, *, creates: bool = False) -> Iterator[Client]:
    """A client of this server."""
    from jqmaster.cli.clients import Client

    client = Client(where, creates=creates)
    try:
        yield client
    except Unavailable as error:
        if isinstance(getattr(error.cause, "os_error", None), OSError):
            start = "Start one with `jqmaster serve`, or name another (--url), or a Redis (--redis)"
            raise Unavailable(f"no master answers at {where.shown}. {start}") from error
        raise
    finally:
        client.close()


# -- what is told ---------------------------------------------------------------------------------


def tell(replies: Replies, *, as_json: bool) -> int:
    """Print what a command gives: documents as JSON, one a line; or what stands beside them for people, which
    is a text, a table, or a function that prints. The exit code."""
    while True:
        try:
            documents, shown = next(replies)
        except StopIteration as ended:
            return int(ended.value or EXIT_OK)
        if as_json:
            is_one = isinstance(documents, Mapping) or not isinstance(documents, Iterable)
            for document in [documents] if is_one else documents:
                print(values.as_json(document))
        elif isinstance(shown, show.Table):
            shown.print()
        elif callable(shown):
            shown()
        else:
            print("\n".join(map(show.plain, shown.split("\n"))))


def complain(message: str, code: str, path: str | None = None, *, as_json: bool) -> None:
    """One line on stderr: for people, or with --json for scripts."""
    error = {"code": code, "message": message} | ({"path": path} if path else {})
    print(json.dumps({"error": error}) if as_json else f"jqmaster: {show.plain(message)}", file=sys.stderr, flush=True)


def agreed(question: str, *, refusal: str) -> bool:
    """Whether somebody at the terminal says yes. Raises Refused where there is none."""
    if not sys.stdin.isatty():
        raise Refused(f"nobody can be asked: give --yes to {refusal}", "INVALID")
    print(f"{question}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
