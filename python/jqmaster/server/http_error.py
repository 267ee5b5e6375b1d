"""Errors as HTTP shows them: `{error: {code, message, field?}}` with a fitting status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from redis.exceptions import ResponseError

from jqmaster.errors import JQError, Unavailable, Vanished

STATUS = {
    "INVALID": 400, "UNAUTHORIZED": 401, "FORBIDDEN": 403, "NOTFOUND": 404, "METHOD": 405, "TIMEOUT": 408,
    "CONFLICT": 409, "LOST": 409, "CANCELLED": 409, "EXPIRED": 410, "TOOLARGE": 413, "UNSUPPORTED": 415,
    "FULL": 429, "RATE": 429, "INTERNAL": 500,
    # VERSION is no 500: the server is well, its Redis is not (yet) what it serves.
    "BUSY": 503, "DRAINING": 503, "UNAVAILABLE": 503, "VERSION": 503,
}  # fmt: skip


@dataclass(eq=False)
class HttpError(Exception):
    """An answer that is an error. `field` names the part of the request at fault, in its own terms; `more`: headers."""

    code: str
    message: str
    field: str | None = None
    more: Sequence[tuple[bytes, bytes]] = ()

    @property
    def status(self) -> int:
        """Of the answer."""
        return STATUS.get(self.code, 500)

    def headers(self) -> Sequence[tuple[bytes, bytes]]:
        """Response headers beside the content's: when it makes sense to try again, and after how long."""
        return self.more or ([(b"retry-after", b"1")] if self.status in (429, 503) else [])

    def body(self) -> dict[str, dict[str, str]]:
        """The response's body, to be packed."""
        field = {"field": self.field} if self.field else {}
        return {"error": {"code": self.code, "message": self.message, **field}}


def invalid(field: str | None, message: str) -> HttpError:
    """400 for a request that is wrong in `field`."""
    return HttpError("INVALID", f"{field}: {message}" if field else message, field)


def from_engine(error: JQError, field: str | None) -> HttpError:
    """What the engine refused or could not do, its path already translated into `field`."""
    message = f"{field}: {error.message}" if field else error.message
    if error.code == "INTERNAL":
        message = "an operation failed inside Redis; this server's log has the details"
    elif error.code == "FORBIDDEN":
        message = f"Redis does not let this server's user do that: {error.message}"
    elif isinstance(error, Unavailable) and not isinstance(error, Vanished):
        # Not redis-py's own words for a lost connection: they tell the world where Redis is.
        place = f"{error.place}: " if error.place else ""
        message = f"{place}Redis cannot be reached or is starting; after a moment try again"
        if isinstance(error.cause, ResponseError) and not str(error.cause).startswith("LOADING"):
            message = f"Redis refused: {error.message}"
    return HttpError(error.code, message, field)
