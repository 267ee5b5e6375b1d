"""Notifications of ends, which a master carries to the URLs of webhooks (docs/webhooks.md).

They are jobs of a queue that masters pick from as any worker does, so a notification is lost with no master, and has
retries. It is signed, and goes only where this master may push. Of an answer nothing is read but its head.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import aiohttp

from jqmaster import __version__
from jqmaster.engine import packform, replies
from jqmaster.engine.engine import Engine
from jqmaster.engine.waiting import Waiting
from jqmaster.errors import JQError, Unavailable
from jqmaster.server import delivery, signing
from jqmaster.server.answers import retry_after_s
from jqmaster.server.breakers import Breakers
from jqmaster.server.egress import Egress
from jqmaster.server.message import JSON
from jqmaster.server.meters import Meters

log = logging.getLogger("jqmaster.webhooks")

QUEUE = "jq.webhooks"
OWN = "notify"  # the webhook that has the secrets for jobs' own URLs
MOST = 100  # notifications under way
BATCH = 20
ANSWER_S = 15.0  # half of their lease
WAIT_S = 3600.0
# A namespace that never had a notification is not waited on, which would cost it a connection and each enqueueing a
# look: only now and then it is asked whether it has one.
LOOK_EVERY_S = 10.0
AGAIN_S = (10.0, 30.0)  # when to try one again whose receiver has enough under way
MOST_ATTEMPTS = 100  # one that is put off by its receiver again and again comes to an end


class Notification(NamedTuple):
    """A job of the queue: where it goes, and the event that it tells of."""

    id: str
    token: str
    attempt: int
    url: str
    secrets: list[str]
    event: Mapping[str, Any]


class WebhookAnswer(NamedTuple):
    """What came of one attempt; `problem` "" when it was delivered. `delay_s`: it is to be put off for so long, and
    loses nothing. `is_trouble`: the receiver does not answer as one that is well."""

    problem: str = ""
    should_retry: bool = True
    delay_s: float | None = None
    is_trouble: bool = False


class Webhooks(delivery.Deliverer):
    """Delivers notifications, at most `MOST` at a time. `start`, then `stop`."""

    log = log
    takes = "take notifications"

    def __init__(
        self, engine: Engine, waiting: Waiting, *, master: str, egress: Egress, meters: Meters | None = None
    ) -> None:
        super().__init__(MOST, egress)
        self._engine = engine
        self._waiting = waiting
        self._master = master
        self._breakers = Breakers(MOST, meters or Meters(), self._room.set, "webhook")
        self._is_used = False  # the namespace has had notifications

    async def stop(self, timeout_s: float = delivery.STOP_TIMEOUT_S) -> None:
        """As `Deliverer.stop`. The pick that waits gives back what it took."""
        if self._loop_task is not None:
            self._loop_task.cancel()
        await super().stop(timeout_s)

    async def take(self, room: int) -> None:
        """Pick notifications, and wait for them."""
        if not await self._has_begun():
            return
        wish = {"worker": self._master, "queues": QUEUE, "count": min(room, BATCH)}
        reply = await self._waiting.pick(wish, WAIT_S)
        for packed in reply[1::2]:
            document = replies.plain_value(packed)
            self.begin(self._carry(document), f"notify {document['id']}")

    async def _has_begun(self) -> bool:
        """Whether to wait for notifications; if not, that is said after a while."""
        if not self._is_used:
            self._is_used = bool((await self._engine.queues([QUEUE])).documents)
            if not self._is_used:
                await asyncio.sleep(LOOK_EVERY_S)
        return self._is_used

    # -- one notification -------------------------------------------------------------------------

    async def _carry(self, document: Mapping[str, Any]) -> None:
        try:
            notification = await self._read(document)
            answer = notification if isinstance(notification, WebhookAnswer) else await self._bounded(notification)
            await self._tell(document, answer)
        except Unavailable as error:  # its lease runs out
            log.warning(
                "notification %s: its outcome is not reported, its lease will run out: %s", document["id"], error
            )
        except JQError as error:
            log.warning("notification %s: %s", document["id"], error)

    async def _read(self, document: Mapping[str, Any]) -> Notification | WebhookAnswer:
        """Where it goes, as its webhook is now."""
        webhook = document.get("webhook")
        if not isinstance(webhook, dict):
            return WebhookAnswer(f"only the engine makes jobs of {QUEUE}", should_retry=False)
        hooks = {hook["id"]: hook for hook in await self._engine.webhooks(secrets=True)}
        hook = hooks.get(webhook.get("id", OWN), {})
        url = webhook.get("url") or hook.get("url")
        if url is None:
            return WebhookAnswer("there is no such webhook any more", should_retry=False)
        return Notification(
            document["id"], document["token"], document["attempt"], url, hook.get("secrets") or [], webhook["event"]
        )  # fmt: skip

    async def _bounded(self, job: Notification) -> WebhookAnswer:
        """One receiver has no more of them under way than all others could, and after failures none for a while."""
        host = _host_of(job.url)
        out_s = self._breakers.out_s(host)
        if out_s is not None or not self._breakers.take(host, host):
            return WebhookAnswer(
                f"{host} has enough of them, or failed often", delay_s=(out_s or 0.0) + random.uniform(*AGAIN_S)
            )
        answer = WebhookAnswer("cancelled")
        try:
            answer = await self._post(job)
        finally:
            self._breakers.done(host, answer.problem if answer.is_trouble else "")
        return answer

    async def _post(self, job: Notification) -> WebhookAnswer:
        exchange = delivery.Exchange()
        body = body_of(job.event)
        headers = {"content-type": JSON, "user-agent": f"jqmaster/{__version__}", "connection": "close"}
        try:
            headers |= signing.signed(job.secrets, job.id, body)
            async with delivery.post(self.session, job.url, body, headers, exchange, ANSWER_S) as response:
                return answer_of(response.status, response.headers.get("retry-after"), job.attempt)
        except TimeoutError:
            return WebhookAnswer(f"no answer within {ANSWER_S:g} s", is_trouble=True)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if exchange.denied:
                return WebhookAnswer(f"{exchange.denied}: see --push-to")
            if delivery.is_ours(error):
                return WebhookAnswer("the master could open no connection", delay_s=random.uniform(*AGAIN_S))
            log.info("notification %s to %s: %s: %s", job.id, exchange.host, type(error).__name__, error)
            return WebhookAnswer(f"the receiver could not be reached, or broke the connection: {type(error).__name__}",
                          is_trouble=True)  # fmt: skip

    async def _tell(self, document: Mapping[str, Any], answer: WebhookAnswer) -> None:
        """Say to the engine what came of it."""
        held = document["id"], document["token"]
        if answer.delay_s is not None:
            await self._engine.release(self._master, [held], delay=answer.delay_s, message=answer.problem)
            return
        outcome: dict[str, Any] = {"id": held[0], "token": held[1], "type": "success"}
        if answer.problem:
            outcome |= {"type": "failure", "message": answer.problem, "should_retry": answer.should_retry}
        await self._engine.finish(self._master, [(outcome, packform.NIL)])


def answer_of(status: int, retry_after: str | None, attempt: int) -> WebhookAnswer:
    """What a receiver's answer means."""
    if 200 <= status < 300:
        return WebhookAnswer()
    if status == 410:
        return WebhookAnswer("the receiver wants nothing more (410)", should_retry=False)
    wait_s = retry_after_s(retry_after)
    if wait_s is not None and attempt < MOST_ATTEMPTS:
        return WebhookAnswer(f"the receiver asks for a pause ({status})", delay_s=wait_s)
    return WebhookAnswer(f"the receiver answered {status}", is_trouble=status >= 500)


def body_of(event: Mapping[str, Any]) -> bytes:
    """What is posted, as Standard Webhooks has it."""
    ended = datetime.fromtimestamp(event["ended_ms"] / 1000, UTC).isoformat(timespec="milliseconds")
    document = {"type": f"job.{event['status']}", "timestamp": ended.replace("+00:00", "Z"), "data": event}
    return json.dumps(document, ensure_ascii=False).encode()


def _host_of(url: str) -> str:
    """The receiver, without what may be a secret."""
    return url.partition("://")[2].partition("/")[0].partition("?")[0].lower()
