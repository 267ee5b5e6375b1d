"""What can go wrong when a script is called, as exceptions. docs/protocol.md has the codes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

_REPLY = re.compile(r"(INVALID|NOTFOUND|CONFLICT|EXPIRED|LOST|FULL|VERSION)(?: ([^\s:]+):)?(?: (.*))?\Z", re.DOTALL)
_CODE = re.compile(r"[A-Z]+ ")
_LUA_ERROR = re.compile(r"user_(script|function):\d+:")

CLASSES: dict[str, type[JQError]] = {}
"""By their codes."""


class JQError(Exception):
    """An operation was refused, and nothing has changed.

    ``code`` is the reply's first word, ``path`` the argument at fault (``jobs[3].priority``) or None,
    ``message`` the rest. ``str()`` gives all of it.
    """

    code = "ERROR"

    def __init_subclass__(cls, code: str = "") -> None:
        cls.code = code or cls.code
        CLASSES.setdefault(cls.code, cls)

    def __init__(self, message: str, path: str | None = None, *, code: str | None = None) -> None:
        self.code = code or type(self).code
        self.path = path
        self.message = message
        super().__init__(message, path)

    def __str__(self) -> str:
        return f"{self.code} {self.path}: {self.message}" if self.path else f"{self.code} {self.message}".rstrip()


class Invalid(JQError, code="INVALID"):
    """An argument is wrong; ``path`` names it."""


class NotFound(JQError, code="NOTFOUND"):
    """There is no such job, worker, …"""


class Conflict(JQError, code="CONFLICT"):
    """It exists, but its state does not allow this."""


class Expired(JQError, code="EXPIRED"):
    """What was kept for some time is gone: the result of a job that is done."""


class Lost(JQError, code="LOST"):
    """The attempt presented is not the one that holds the job."""


class Full(JQError, code="FULL"):
    """A queue's ``max_waiting`` is reached, or another limit of the namespace; the message names it."""


class Version(JQError, code="VERSION"):
    """The namespace is not set up, or holds data of another schema."""


class Unauthorized(JQError, code="UNAUTHORIZED"):
    """A master asks for a key, and got none, or one that is not good (any more)."""


class Forbidden(JQError, code="FORBIDDEN"):
    """The key may not do this; the message says which role it takes, or which queues the key is bound to. Or the
    user of Redis may not: then the message is Redis's own, `NOPERM …`."""


class TooFast(JQError, code="RATE"):
    """The rate limit of the key is exceeded."""


class Internal(JQError, code="INTERNAL"):
    """A script failed with a Lua error: a bug of JQ. Unlike after other errors, writes may have happened."""


class Unavailable(JQError, code="UNAVAILABLE"):
    """Redis could not be asked, or did not carry out the call: connection lost, out of memory, read-only, …

    ``cause`` is the exception of redis-py, ``place`` which partition of a cluster it was. After a lost connection or a
    timeout the call may have been carried out.
    """

    def __init__(self, message: str, cause: Exception | None = None, place: str = "") -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.cause, self.place = cause, place


class Vanished(Unavailable, code="VERSION"):
    """A namespace that was there is not set up any more: Redis was emptied, or is another one.

    Nothing was carried out. It goes on when the namespace is back, from a backup or set up by somebody.
    """


class UnsuitableServer(Unavailable):
    """This Redis cannot carry JQ; the message says why and what to change."""

    def __str__(self) -> str:
        return self.message


class NotInstalled(JQError, code="NOTINSTALLED"):
    """What was asked for needs packages that only an extra of this one brings; the message names it."""

    def __str__(self) -> str:
        return self.message


@contextmanager
def brought_by(extra: str, what: str) -> Iterator[None]:
    """Around imports for `what`. Raises NotInstalled where the packages of `extra` are missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("jqmaster"):
            raise
        raise NotInstalled(f"{what} needs {error.name}: pip install 'jqmaster[{extra}]'") from error


def parse(text: str) -> JQError | None:
    """The exception for a script's error reply ``CODE path: message`` or ``CODE message``; else None.

    A path holds no blanks, so that a colon later in a message is not taken for the end of one.
    """
    match = _REPLY.match(text)
    if match is None:
        return None
    code, path, message = match.groups()
    return CLASSES[code](message or "", path)


def from_redis(problem: Exception) -> JQError:
    """The exception for what a Redis client raised."""
    text = str(problem)
    if known := parse(text):
        return known
    if _LUA_ERROR.search(text):
        return Internal(text)
    if text.startswith("NOPERM"):
        return Forbidden(text)
    word = "" if _CODE.match(text) else f"{type(problem).__name__}: "
    return Unavailable(f"{word}{text}", problem)
