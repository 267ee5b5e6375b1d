"""Errors as HTTP shows them: `{error: {code, message, field?}}` with a fitting status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redis.exceptions import ResponseError

from jqmaster.errors import JQError, Unavailable, Vanished

# The engine's codes. VERSION is 503 and not 500: the server is well, its Redis is not (yet) what it serves.
STATUS = {
    "INVALID": 400,
    "FORBIDDEN": 403,
    "NOTFOUND": 404,
    "CONFLICT": 409,
    "EXPIRED": 410,
    "LOST": 409,
    "CANCELLED": 409,
    "FULL": 429,
    "VERSION": 503,
    "UNAVAILABLE": 503,
    "INTERNAL": 500,
}
RETRY_AFTER_S = 1


@dataclass(eq=False)
class HttpError(Exception):
    """An answer that is an error. `field` names the part of the request at fault, in its own terms; `more`: headers."""

    status: int
    code: str
    message: str
    field: str | None = None
    more: Sequence[tuple[bytes, bytes]] = ()

    def __str__(self) -> str:
        return self.message

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Response headers beside the content's: when it makes sense to try again, and after how long."""
        if not self.more and self.status in (429, 503):
            return [(b"retry-after", b"%d" % RETRY_AFTER_S)]
        return list(self.more)

    def body(self) -> dict[str, dict[str, Any]]:
        """The response's body, to be packed."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.field:
            error["field"] = self.field
        return {"error": error}


def invalid(field: str | None, message: str) -> HttpError:
    """400 for a request that is wrong in `field`."""
    return HttpError(400, "INVALID", f"{field}: {message}" if field else message, field)


def draining() -> HttpError:
    """503: this master is about to stop; another one, or this one restarted, will do."""
    return HttpError(503, "DRAINING", "this server is stopping; try again, it or another will answer")


def from_engine(error: JQError, field: str | None) -> HttpError:
    """What the engine refused or could not do, its path already translated into `field`."""
    message = f"{field}: {error.message}" if field else error.message
    if error.code == "INTERNAL":
        message = "an operation failed inside Redis; this server's log has the details"
    elif error.code == "FORBIDDEN":
        message = f"Redis does not let this server's user do that: {error.message}"
    elif isinstance(error, Unavailable) and not isinstance(error, Vanished):
        # Not redis-py's own words for a lost connection: they tell the world where Redis is.
        message = "Redis cannot be reached or is starting; after a moment try again"
        if isinstance(error.cause, ResponseError) and not str(error.cause).startswith("LOADING"):
            message = f"Redis refused: {error.message}"
    return HttpError(STATUS.get(error.code, 500), error.code, message, field)
