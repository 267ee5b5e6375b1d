"""Which handler answers what."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from jqmaster.manifest.contract import SERVER
from jqmaster.manifest.manifest import operations
from jqmaster.server.http import handlers, metrics
from jqmaster.server.http.calls import Call, Route, Translation
from jqmaster.server.http_error import HttpError, invalid

OWN = (
    handlers.session, handlers.log_in, handlers.log_out, handlers.create_key, handlers.enqueue_one, handlers.job,
    handlers.poll_job, handlers.alive, handlers.health, handlers.openapi, handlers.worker_openapi, metrics.metrics,
)  # fmt: skip
ROUTES: tuple[Route, ...] = (
    *(Translation(one, route) for one in operations().values() for route in one.routes),
    *(Call(one) for one in operations().values() if one.roles != (SERVER,)),
    *OWN,
)
# Those with a parameter have one, between two slashes or at the end: what is before it, its name, what is behind it.
_BY_PARTS = {
    (route.method, before, after): (route, name)
    for route in ROUTES
    for before, name, after in [[*re.split("[{}]", route.path), "", ""][:3]]
}
_METHODS = sorted({"HEAD", *(route.method for route in ROUTES)})
# A name is one segment of a path, whatever is in it. Browsers and many clients take `.` and `..`, percent-encoded or
# not, for steps within the path. So these have a `~` in front there, and what would be mistaken for them one more.
_DOTS = re.compile(r"~*\.\.?")


def name_of(segment: str) -> str:
    """The name that a segment stands for, `~` in front of dots left out. Raises 400 for what is no UTF-8."""
    try:
        name = unquote_to_bytes(segment).decode("utf-8")
    except UnicodeDecodeError:
        raise invalid("path", "expected valid UTF-8") from None
    return name[1:] if name.startswith("~") and _DOTS.fullmatch(name) else name


def find(method: str, path: str) -> tuple[Route | None, dict[str, str]]:
    """Which route a request takes, and the parameter in its path, still percent-encoded. HEAD is GET here."""
    if method == "HEAD":
        method = "GET"
    if fixed := _BY_PARTS.get((method, path, "")):
        return (None, {}) if fixed[1] else (fixed[0], {})
    at = path.find("/", 1) + 1
    value, slash, rest = path[at:].partition("/")
    route, name = _BY_PARTS.get((method, path[:at], slash + rest), (None, ""))
    return (route, {name: value}) if value else (None, {})


def nowhere(method: str, path: str) -> HttpError:
    """404 or 405 for what no route is for."""
    if others := [other for other in _METHODS if find(other, path)[0]]:
        allowed = ", ".join(others)
        problem = f"{method} is not a method of this path, which has {allowed}"
        return HttpError("METHOD", problem, more=((b"allow", allowed.encode("ascii")),))
    return HttpError("NOTFOUND", "no such path; GET /openapi.yaml lists what there is")
