"""Push dispatch: takes from the engine what is assigned to registered workers, and carries it to them.

Which worker gets which job is decided in Lua (`assign`), so any number of servers share one namespace and
none matters. The same loop is the namespace's clock: `assign` does what is due before it chooses, and the
loop sleeps until the next due moment or a wake marker.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, ClassVar

import aiohttp
import msgpack

from jqmaster.connection.wake import WINDOW_MS, Channel, sleep
from jqmaster.engine.calling import new_request
from jqmaster.engine.engine import Engine
from jqmaster.engine.packform import MSGPACK
from jqmaster.server.egress import Egress
from jqmaster.server.http.within import check_answer
from jqmaster.server.http_error import HttpError
from jqmaster.server.jsonform import to_msgpack
from jqmaster.server.keyring import Keyring
from jqmaster.server.message import JSON
from jqmaster.server.meters import Meters
from jqmaster.server.reader import extended, item, unpacked
from jqmaster.server.sender import Answer, Push, Sender, failure

log = logging.getLogger("jqmaster.dispatch")

CHANNEL = "push"
BATCH = 100
# The next due moment may be known to one server alone. If that one is killed, another looks after this time.
LOOK_EVERY_S = 10.0
LOOK_WITHOUT_S = 1.0  # while workers are left out, of whom no marker tells
MOST_WITHOUT = 200  # that `assign` takes
OUT_S = 5.0  # so long a worker is left to other servers that this one could not reach
MAX_ANSWER_BYTES = 16 * 1024 * 1024
_OUTCOME_FIELDS = frozenset(
    ("type", "result", "error", "message", "reason", "should_retry", "retry_in", "group", "move", "resume", "enqueue")
)
_NO_OUTCOME = (
    "the worker's answer is no outcome: expected a map with type success or failure, and of other fields only "
    + ", ".join(sorted(_OUTCOME_FIELDS - {"type"}))
)
_ANSWERS = {
    202: Answer("accepted"),
    400: failure("the worker refused the job as bad (400)", should_retry=False),
    401: Answer("unreachable", "the worker refuses the server's signature (401)"),
    404: Answer("unknown"),
}


class Dispatch(Sender):
    """Delivers jobs to registered workers. `start`, then `stop`.

    `master`: the server's name. `keyring`: with keys of it workers are registered; what one answers is held to the
    queues of its key.
    """

    what = "worker"
    most = 10_000  # workers' `max_jobs` bound them first
    headers: ClassVar = {"content-type": MSGPACK, "accept": MSGPACK}

    def __init__(self, engine: Engine, master: str, egress: Egress, meters: Meters, keyring: Keyring) -> None:
        super().__init__(engine, master, egress, meters)
        self._channel = Channel(engine.redis, f"{engine.namespace}:wake:{CHANNEL}")
        self._request = new_request()
        self._keyring = keyring
        self._out: dict[str, float] = {}  # workers that are left to other servers, and until when

    async def stop(self, timeout_s: float) -> None:
        """As `Sender.stop`; others look instead."""
        await asyncio.gather(self._channel.stop(), super().stop(timeout_s))

    async def take(self) -> list[Push]:
        """Have jobs assigned, or sleep until there may be some."""
        self._out = {worker: until for worker, until in self._out.items() if until > time.monotonic()}
        wait, without = {"on": CHANNEL, "ms": WINDOW_MS}, list(self._out)[:MOST_WITHOUT] or None
        next_ms, *parts = await self.engine.assign(self.master, BATCH, self._request, wait, without)
        self._request = new_request()  # only now: what an answer brought that was lost comes again
        if not parts and next_ms != 0:
            self._channel.look_in(next_ms)
            await sleep([self._channel], LOOK_WITHOUT_S if without else LOOK_EVERY_S)
        return assigned(parts)

    async def refuse(self, push: Push, answer: Answer) -> None:
        if answer.message:
            log.warning("worker %s: %s", push.receiver, answer.message)
        retry_after_s = answer.retry_after_s
        if not push.is_sent:
            self._out[push.worker] = time.monotonic() + (retry_after_s or OUT_S)
            retry_after_s = None
        if answer.outcome != "lapsed":  # else its lease runs out by itself
            refused = push.worker, [(push.id, push.token)], answer.outcome
            await self.engine.call("refuse", *refused, retry_after_s, answer.message or None)

    async def judge(self, push: Push, response: aiohttp.ClientResponse) -> Answer:
        """What the worker's answer means. Who registers the address of something inside must not read its answers in
        the errors of jobs: what is no outcome is not told."""
        status = response.status
        if status == 200:
            body = bytearray()
            async for chunk in response.content.iter_chunked(65536):
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    return failure("the worker's answer is longer than 16 MiB", should_retry=False)
            return outcome(bytes(body), is_json=response.content_type == JSON)
        if status in (429, 503):
            return Answer("busy", retry_after_s=retry_after_s(response.headers.get("retry-after")))
        return _ANSWERS.get(status) or failure(f"the worker answered {status}")

    async def finish(self, push: Push, answer: Answer) -> None:
        """As `Sender.finish`, if the worker's key may still do what the answer asks for."""
        if push.key:
            who = await self._keyring.of_worker(push.key)
            if who is None:
                why = "the key that the worker was registered with is not good any more"
                return await self.release(push, Answer("held", why))
            try:
                check_answer(who, answer.spec or {}, answer.follow)
            except HttpError as error:
                answer = failure(f"the worker's answer was refused: {error.message}")
        await super().finish(push, answer)
        if answer.outcome == "unreachable":
            await self.refuse(push, answer)


def assigned(parts: list[Any]) -> list[Push]:
    """What `assign` replies behind `next_ms`."""
    pushes = []
    for *texts, document, argument in zip(*(parts[at::6] for at in range(6)), strict=True):
        worker, url, secrets, key = (bytes(text).decode(errors="replace") for text in texts)
        job = msgpack.unpackb(document)
        push = Push(
            id=job["id"], token=job["token"], within_s=job["timeout"],
            worker=worker, receiver=f"{worker} at {url}", url=f"{url.rstrip('/')}/worker-job", key=key,
            secrets=secrets.split(), request_id=f"{job['id']}-{job['token']}",
            body=extended(document, argument=argument),
        )  # fmt: skip
        pushes.append(push)
    return pushes


def outcome(body: bytes, *, is_json: bool) -> Answer:
    """A 200's body; its result or error is cut out, unread. What its fields hold the engine checks."""
    try:
        spec, content, *follow = item(to_msgpack(body) if is_json else body, "Outcome")
    except HttpError:
        return failure(_NO_OUTCOME)
    fields = unpacked(spec) or {}
    if fields.get("type") not in ("success", "failure") or not fields.keys() <= _OUTCOME_FIELDS:
        return failure(_NO_OUTCOME)
    return Answer(fields["type"], spec=fields, blob=content, follow=tuple(follow))


def retry_after_s(header: str | None) -> float | None:
    """`Retry-After` in seconds, within what the engine takes; None if it says none, or a date."""
    if header is None or not header.isdecimal():
        return None
    return min(3600.0, max(1.0, float(header)))
