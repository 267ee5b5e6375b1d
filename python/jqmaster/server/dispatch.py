"""Push dispatch: takes from the engine what is assigned to registered workers, and carries it to them.

Which worker gets which job is decided in Lua (`assign`), so any number of masters share one namespace and
none matters. The same loop is the namespace's clock: `assign` does what is due before it chooses, and the
loop sleeps until the next due moment, a wake marker, or a poke.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import aiohttp
import msgpack

from jqmaster.connection.url import without_password
from jqmaster.connection.wake import WINDOW_MS, Channel
from jqmaster.engine import packform
from jqmaster.engine.calling import new_request
from jqmaster.engine.engine import Engine, pack
from jqmaster.engine.packform import MSGPACK
from jqmaster.server import answers, logs
from jqmaster.server.answers import REFUSED, Answer
from jqmaster.server.egress import Egress
from jqmaster.server.http.within import check_answer
from jqmaster.server.http_error import HttpError
from jqmaster.server.keyring import Keyring
from jqmaster.server.meters import Meters
from jqmaster.server.sender import STOP_TIMEOUT_S, Push, Sender

CHANNEL = "push"
BATCH = 100
# The next due moment may be known to one master alone. If that one is killed, another looks after this time.
LOOK_EVERY_S = 10.0
MOST_WITHOUT = 200  # that `assign` takes
_HEADERS = {"content-type": MSGPACK, "accept": MSGPACK}


class Dispatch(Sender):
    """Delivers jobs to registered workers, at most `max_deliveries` at a time. `start`, then `stop`.

    `master`: its name. `egress`: to where, default loopback and private networks. `keyring`: the keys with which
    workers are registered; what one answers is held to the queues of its key.
    """

    log = logging.getLogger("jqmaster.dispatch")
    takes = "assign jobs"
    what = "worker"

    def __init__(
        self,
        engine: Engine,
        *,
        master: str = "",
        max_deliveries: int = 1000,
        meters: Meters | None = None,
        egress: Egress | None = None,
        keyring: Keyring | None = None,
    ) -> None:
        super().__init__(engine, max_deliveries, egress or Egress(), meters or Meters())
        self._channel = Channel(engine.redis, f"{engine.namespace}:wake:{CHANNEL}")
        self._master = master
        self._request = new_request()
        self._keyring = keyring
        self._poked = False

    def poke(self) -> None:
        """Look for deliverable jobs soon. Cheap; pokes that come together cause one look."""
        self._poked = True
        self._channel.wake_all()

    def drain(self) -> None:
        """Assign nothing more, and have others look; deliveries under way go on."""
        super().drain()
        self._channel.hand_over()

    async def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """As `Sender.stop`, and close what waiting needs."""
        await super().stop(timeout_s)
        await self._channel.stop()

    async def take(self, room: int) -> list[Push]:
        """Have jobs assigned, each counted in the same step, or sleep until there may be some."""
        self._poked = False
        spec: dict[str, Any] = {
            "limit": max(1, min(room // 2, BATCH)),  # or one worker could take all the room at once
            "master": self._master, "wait": {"on": CHANNEL, "ms": WINDOW_MS}, "request": self._request,
        }  # fmt: skip
        if out := self.breakers.without():
            spec["without"] = list(out)[:MOST_WITHOUT]
        next_ms, *parts = await self.engine.raw("assign", pack(spec))
        self._request = new_request()  # only now: what an answer brought that was lost comes again
        if not parts and next_ms != 0 and not self._poked:
            self._channel.look_in(next_ms)
            await self._channel.sleep(LOOK_EVERY_S)
        return assigned(parts)

    async def send(self, push: Push) -> Answer:
        """As `Sender.send`; it is counted and logged."""
        started = time.perf_counter()
        answer = await super().send(push)
        seconds = time.perf_counter() - started
        self.meters.delivery(answer.outcome, seconds)
        if logs.delivery_log.isEnabledFor(logging.INFO):
            pairs = {
                "job": f"{push.id}/{push.attempt}", "name": push.name, "worker": push.worker,
                "url": without_password(push.url), "outcome": answer.outcome, "ms": round(seconds * 1000, 3),
            }  # fmt: skip
            logs.delivery_log.info(logs.Fields("delivery", pairs))
        return answer

    async def judge(self, push: Push, response: aiohttp.ClientResponse) -> Answer:
        return await answers.read(response, push.name)

    async def give_back(self, push: Push, answer: Answer) -> None:
        held, message = [(push.id, push.token)], answer.message or None
        if answer.outcome not in REFUSED:
            await self.engine.release(push.worker, held, message=message)
            return
        self.log.info("worker %s did not take job %s: %s (%s)", push.worker, push.id, answer.outcome, message)
        await self.engine.call(
            "refuse", push.worker, held, answer.outcome, retry_after=answer.retry_after_s, message=message
        )

    async def finish(self, push: Push, answer: Answer) -> None:
        """As `Sender.finish`, if the worker's key may still do what the answer asks for."""
        if push.key and self._keyring is not None:
            who = await self._keyring.of_worker(push.key)
            if who is None:
                why = "the key that the worker was registered with is not good any more"
                return await self.give_back(push, Answer("cancelled", why))
            try:
                check_answer(who, answer.spec or {}, answer.follow)
            except HttpError as error:
                answer = answers.failure(f"the worker's answer was refused: {error.message}")
        await super().finish(push, answer)


def assigned(parts: list[Any]) -> list[Push]:
    """What `assign` replies behind `next_ms`."""
    pushes = []
    for worker, url, secrets, key, document, argument in zip(*(parts[at::6] for at in range(6)), strict=True):
        job = msgpack.unpackb(document)
        worker = bytes(worker).decode()
        push = Push(
            id=job["id"], token=job["token"], attempt=job["attempt"], name=job["name"], within_s=job["timeout"],
            worker=worker, receiver=worker, url=f"{bytes(url).decode(errors='replace').rstrip('/')}/worker-job",
            secrets=bytes(secrets).decode().split(), key=bytes(key).decode(),
            ids=[f"{job['id']}-{job['token']}-{number}" for number in (0, 1)],
            headers=_HEADERS, body=packform.extend_map(document, {"argument": argument}),
        )  # fmt: skip
        pushes.append(push)
    return pushes
