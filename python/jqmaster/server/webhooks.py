"""Notifications of ends, which a server carries to the URLs of webhooks (docs/webhooks.md).

They are jobs of a queue that servers pick from as any worker does, so a notification is lost with no server, and has
retries. It is signed, and goes only where this server may push. Of an answer nothing is read but its head.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

import aiohttp

from jqmaster import __version__
from jqmaster.engine import replies
from jqmaster.engine.engine import Engine
from jqmaster.engine.waiting import Waiting
from jqmaster.server.egress import Egress
from jqmaster.server.message import JSON
from jqmaster.server.meters import Meters
from jqmaster.server.sender import Answer, Push, Sender, failure

QUEUE = "jq.webhooks"
OWN = "notify"  # the webhook that has the secrets for jobs' own URLs
MOST_EACH = 50  # notifications under way to one receiver
BATCH = 20
ANSWER_S = 15.0  # half of their lease
WAIT_S = 3600.0
# A namespace that never had a notification is not waited on, which would cost it a connection and each enqueueing a
# look: only now and then it is asked whether it has one.
LOOK_EVERY_S = 10.0
AGAIN_S = (10.0, 30.0)  # when to try one again that was not sent


class Webhooks(Sender):
    """Delivers notifications. `start`, then `stop`, which needs `waiting` drained."""

    what = "receiver"
    most = 4 * MOST_EACH
    headers: ClassVar = {"content-type": JSON, "user-agent": f"jqmaster/{__version__}", "connection": "close"}

    def __init__(self, engine: Engine, master: str, egress: Egress, meters: Meters, waiting: Waiting) -> None:
        super().__init__(engine, master, egress, meters)
        self._waiting = waiting
        self._is_used = False  # the namespace has had notifications

    async def take(self) -> list[Push]:
        """Pick notifications, and wait for them."""
        if not self._is_used and not (await self.engine.queues([QUEUE])).documents:
            await self.pause(LOOK_EVERY_S)
            return []
        self._is_used = True
        reply = await self._waiting.pick({"worker": self.master, "queues": QUEUE, "count": BATCH}, WAIT_S)
        if len(reply) == 1:
            await self.pause(0.1)  # others that wait are told to stop a moment earlier, and answered at once
            return []
        hooks = {hook["id"]: hook for hook in await self.engine.webhooks(secrets=True)}
        return [self._push(replies.plain_value(packed), hooks) for packed in reply[1::2]]

    def _push(self, job: Mapping[str, Any], hooks: Mapping[str, Any]) -> Push:
        """Where it goes, as its webhook is now."""
        webhook = job.get("webhook") or {}
        hook = hooks.get(webhook.get("id", OWN), {})
        url = webhook.get("url") or hook.get("url") or ""
        receiver = url.partition("://")[2].partition("/")[0].partition("?")[0].lower()  # the rest may be a secret
        return Push(
            id=job["id"], token=job["token"], worker=self.master, receiver=receiver, url=url,
            secrets=hook.get("secrets") or [], request_id=job["id"],
            body=body_of(webhook["event"]) if url else b"", within_s=ANSWER_S,
        )  # fmt: skip

    async def send(self, push: Push) -> Answer:
        """As `Sender.send`, but no more at a time to one receiver than leaves room for others."""
        if not push.url:
            return failure("there is no such webhook", should_retry=False)
        before = itertools.takewhile(lambda other: other is not push, self.under_way.values())
        if sum(other.receiver == push.receiver for other in before) >= MOST_EACH:
            return Answer("held", f"{push.receiver} has enough of them", random.uniform(*AGAIN_S))
        return await super().send(push)

    async def judge(self, push: Push, response: aiohttp.ClientResponse) -> Answer:
        if 200 <= response.status < 300:
            return Answer("success", spec={"type": "success"})
        return failure(f"the receiver answered {response.status}", should_retry=response.status != 410)


def body_of(event: Mapping[str, Any]) -> bytes:
    """What is posted, as Standard Webhooks has it."""
    ended = datetime.fromtimestamp(event["ended_ms"] / 1000, UTC).isoformat(timespec="milliseconds")
    document = {"type": f"job.{event['status']}", "timestamp": ended.replace("+00:00", "Z"), "data": event}
    return json.dumps(document, ensure_ascii=False).encode()
