"""The operations by way of a JQ server: `POST /call/<operation>` takes what the script does, and gives its reply."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgpack

from jqmaster.connection import plainly
from jqmaster.connection.url import without_password
from jqmaster.connection.wake import backoff_s
from jqmaster.engine import replies
from jqmaster.engine.calling import Argument, contract_of, given, packed
from jqmaster.engine.engine import Operations
from jqmaster.engine.http_connection import Answer, HttpConnection, NotSent
from jqmaster.engine.packform import MSGPACK
from jqmaster.engine.replies import Picked
from jqmaster.errors import Unavailable

TIMEOUT_S = 30.0
POLL_MARGIN_S = 5.0
CONNECT_S = 5.0
SILENT_S = 10.0  # a server that says nothing for longer hangs: it would say by then that Redis does
SLOWEST = 1 << 20  # bytes a second that come through to it
MOST_IDLE = 32  # connections to one server


class HttpEngine(Operations):
    """Asks the first of `urls`; when it does not answer, or cannot serve, the next one from then on.

    As over Redis, a call that was sent and not answered may have been carried out, and is not sent again, unless it
    only reads. One that is refused for a moment is sent until its time is over. Raises what `jqmaster.errors` has.
    """

    def __init__(self, urls: Sequence[str], key: str | None = None, timeout_s: float = TIMEOUT_S) -> None:
        """`timeout_s`: how long a call may take, with all that is tried."""
        self._timeout_s = timeout_s
        self._urls = [url.rstrip("/") for url in urls]
        self._headers = {"content-type": MSGPACK, "accept": MSGPACK}
        if key is not None:
            self._headers["authorization"] = f"Bearer {key}"
        self._idle: Mapping[str, list[HttpConnection]] = {url: [] for url in self._urls}
        self._is_closed = False

    async def raw(self, operation: str, *arguments: Argument, wait_s: float = 0) -> Any:
        waits = {"wait_s": wait_s, "timeout_s": wait_s + POLL_MARGIN_S} if wait_s else {}
        is_read = contract_of(operation).flags == "read"
        answer = await self.send("POST", f"/call/{operation}", msgpack.packb(arguments), **waits, is_read=is_read)
        return msgpack.unpackb(answer.body, raw=True)

    async def pick_waiting(self, wait_s: float, **wish: Any) -> Picked:
        """As `pick`, which waits for a job so many seconds."""
        return replies.picked(await self.raw("pick", *packed(contract_of("pick"), given(**wish)), wait_s=wait_s))

    # -- requests ----------------------------------------------------------------------------------------------

    async def send(
        self, method: str, path: str, body: bytes = b"", *,
        wait_s: float | None = None, timeout_s: float | None = None, is_read: bool = True,
    ) -> Answer:  # fmt: skip
        """One request. `wait_s`: how long the server may wait before it answers. `is_read`: it changes nothing, so it
        may be sent to another server when the answer was lost. Raises Unavailable."""
        most_s = timeout_s or self._timeout_s
        began, refusals = time.monotonic(), 0
        until = began + most_s
        silent_s = timeout_s or SILENT_S + len(body) / SLOWEST
        async with plainly.within(most_s):
            while True:
                left = "" if wait_s is None else f"?timeout={max(0.0, began + wait_s - time.monotonic()):.3f}"
                answer = await self._answer(until, method, path + left, body, silent_s, is_read=is_read)
                pause_s = backoff_s(refusals)
                if not answer.is_not_now or time.monotonic() + pause_s >= until:
                    return answer
                await plainly.pause(pause_s)
                refusals += 1

    async def close(self) -> None:
        """Close the connections, those in use when they are answered."""
        self._is_closed = True
        for idle in self._idle.values():
            with suppress(IndexError):  # another thread may take the last one
                while True:
                    idle.pop().close()

    async def _answer(self, until: float, *request: Any, is_read: bool) -> Answer:
        """Of the first server that answers."""
        tried: dict[str, str] = {}
        for left in range(len(self._urls), 0, -1):
            url = self._urls[0]
            try:
                return self._checked(url, await self._ask(url, (until - time.monotonic()) / left, *request))
            except OSError as error:
                problem = error
                tried[without_password(url)] = str(error) or type(error).__name__
                self._leave(url)
                if not (is_read or isinstance(error, NotSent)) or time.monotonic() >= until:
                    break
        hint = "; is a server running (jqmaster serve)?" if isinstance(problem, NotSent) else ""
        problems = "; ".join(f"{url} does not answer: {why}" for url, why in tried.items())
        raise Unavailable(problems + hint, problem) from problem

    async def _ask(self, url: str, connect_s: float, *request: Any) -> Answer:
        """By a connection that was used before, if there is one: of several the one that was used last."""
        idle = self._idle[url]
        try:
            connection = idle.pop()
        except IndexError:
            connection = HttpConnection(url, self._headers)
        try:
            await connection.ready(min(CONNECT_S, connect_s))
            return await connection.ask(*request)
        finally:
            if self._is_closed or len(idle) >= MOST_IDLE:
                connection.close()
            elif connection.is_kept:
                idle.append(connection)

    def _checked(self, url: str, answer: Answer) -> Answer:
        """Raises Unavailable for what no server of ours says, such as the page of a proxy."""
        if answer.status >= 500:
            self._leave(url)
        if answer.status in (200, 201) and answer.content_type != MSGPACK:
            what = f"{answer.status} and {len(answer.content)} bytes of {answer.content_type}"
            raise Unavailable(f"{without_password(url)} answers {what}: is it a JQ server?")
        return answer

    def _leave(self, url: str) -> None:
        """Ask the next one from now on."""
        first, *others = self._urls  # which is never changed, but replaced: other threads read it
        if first == url:
            self._urls = [*others, url]
