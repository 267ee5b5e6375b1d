"""The operations by way of a JQ server: `POST /call/<operation>` takes what the script does, and gives its reply."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgpack

from jqmaster.connection.url import without_password
from jqmaster.engine import replies
from jqmaster.engine.calling import Argument, contract_of, given, packed
from jqmaster.engine.engine import Operations
from jqmaster.engine.http_connection import CONNECT_S, HttpConnections, NotSent
from jqmaster.engine.packform import MSGPACK
from jqmaster.engine.replies import Picked
from jqmaster.engine.secret import shown
from jqmaster.errors import CLASSES, Internal, Invalid, NotFound, Unavailable, Vanished, Version

TIMEOUT_S = 30.0
POLL_MARGIN_S = 5.0
SILENT_S = 10.0  # a server that says nothing for longer hangs: it would say by then that Redis does
SLOWEST = 1 << 20  # bytes a second that come through to it
_TAKEN = {"unregister": 0}  # what to say when a request was sent again, and the first one has taken it away
_HEADERS = {"content-type": MSGPACK, "accept": MSGPACK}


class Answer(NamedTuple):
    """`is_repeat`: the request was sent before, and what came of that is not known."""

    status: int
    content: bytes
    is_repeat: bool

    @property
    def body(self) -> bytes:
        """Raises JQError for an error."""
        if self.status < 400:
            return self.content
        try:
            refusal = msgpack.unpackb(self.content)["error"]
            code, message, field = refusal["code"], refusal["message"], refusal.get("field")
        except (ValueError, TypeError, KeyError, msgpack.UnpackException):
            code, message, field = "", f"the server answered {self.status}", None
        if code == "VERSION":
            raise (Vanished if "has vanished" in message else Version)(message)
        if self.status in (502, 503, 504):
            raise Unavailable(message)
        kind = CLASSES.get(code, Invalid if self.status < 500 else Internal)
        raise kind(message.removeprefix(f"{field}: "), field)


class HttpEngine(Operations):
    """Asks the first of `urls`; when it does not answer, or cannot serve, the next one from then on.

    Raises what `jqmaster.errors` has.
    """

    def __init__(self, urls: Sequence[str], key: str | None = None, timeout_s: float = TIMEOUT_S) -> None:
        """`timeout_s`: how long a call may take, with all that is tried."""
        self._timeout_s = timeout_s
        self._urls = [url.rstrip("/") for url in urls]
        self._connections = HttpConnections({**_HEADERS, **shown(key)})
        self._is_closed = False

    async def raw(self, operation: str, *arguments: Argument) -> Any:
        return await self._raw(operation, arguments)

    async def _raw(self, operation: str, arguments: Sequence[Argument], wait_s: float = 0) -> Any:
        path = f"/call/{operation}" + (f"?timeout={wait_s:g}" if wait_s else "")
        timeout_s = wait_s + POLL_MARGIN_S if wait_s else None
        repeats = _repeats(operation, arguments)
        answer = await self.send("POST", path, msgpack.packb(arguments), repeats=repeats, timeout_s=timeout_s)
        try:
            return msgpack.unpackb(answer.body, raw=True)
        except NotFound:
            is_gone = operation in _TAKEN or contract_of(operation).replies[0].type == "nothing"
            if answer.is_repeat and is_gone:
                return _TAKEN.get(operation, 1)
            raise

    async def pick_waiting(self, wait_s: float, **wish: Any) -> Picked:
        """As `pick`, which waits for a job so many seconds."""
        return replies.picked(await self._raw("pick", packed(contract_of("pick"), given(**wish)), wait_s))

    # -- requests ----------------------------------------------------------------------------------------------

    async def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        timeout_s: float | None = None,
        repeats: bool = True,
    ) -> Answer:
        """One request. `repeats`: it does no harm to send it again when the answer was lost. Raises Unavailable."""
        tries, is_repeat = max(2, len(self._urls)), False
        until = time.monotonic() + (timeout_s or self._timeout_s)
        silent_s = timeout_s or SILENT_S + len(body) / SLOWEST
        tried: dict[str, str] = {}
        while True:
            url, left_s = self._urls[0], max(0.001, until - time.monotonic())
            connect_s = min(CONNECT_S, left_s / tries)
            tries -= 1
            if self._is_closed:
                raise Unavailable("the connections to the server were closed")
            try:
                response = await self._connections.request(
                    method, url, path, body, most_s=left_s, connect_s=connect_s, silent_s=silent_s
                )
            except OSError as error:
                tried[without_password(url)] = str(error) or type(error).__name__
                self._leave(url)
                was_sent = not isinstance(error, NotSent)
                is_late = was_sent and isinstance(error, TimeoutError)
                is_repeat = is_repeat or was_sent
                if not tries or is_late or (was_sent and method == "POST" and not repeats):
                    hint = "" if was_sent else "; is a server running (jqmaster serve)?"
                    raise _away(tried, error, hint) from error
            else:
                if response.status >= 500:
                    self._leave(url)
                if response.status in (200, 201) and response.content_type != MSGPACK:  # such as the page of a proxy
                    what = f"{response.status} and {len(response.content)} bytes of {response.content_type}"
                    raise Unavailable(f"{without_password(url)} answers {what}: is it a JQ server?")
                return Answer(response.status, response.content, is_repeat)

    async def close(self) -> None:
        """Close the connections. What is asked later raises Unavailable."""
        self._is_closed = True
        self._connections.close()

    def _leave(self, url: str) -> None:
        """Ask the next one from now on."""
        if self._urls[0] == url:
            self._urls.append(self._urls.pop(0))


def _away(tried: Mapping[str, str], error: Exception, hint: str) -> Unavailable:
    problems = "; ".join(f"{url} does not answer: {problem}" for url, problem in tried.items())
    return Unavailable(problems + hint, error)


def _repeats(operation: str, arguments: Sequence[Argument]) -> bool:
    """Whether it does no harm to send a call again when the answer was lost."""
    if operation == "enqueue":
        return len(arguments) % 2 == 1  # there is a request token
    if operation not in ("pick", "finish"):
        return not contract_of(operation).is_once
    spec = msgpack.unpackb(arguments[0])
    wish = spec if operation == "pick" else spec.get("pick")
    return wish is None or "request" in wish  # outcomes go by their tokens
