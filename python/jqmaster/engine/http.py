"""The operations by way of a JQ master: `request` says what request a call is."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any, NamedTuple, Unpack
from urllib.parse import urlencode

from jqmaster.connection import plainly
from jqmaster.connection.url import without_password
from jqmaster.engine import packform, replies
from jqmaster.engine import request as requests
from jqmaster.engine.calls import Argument, Holding, Spec, given, pack
from jqmaster.engine.durable import Durable
from jqmaster.engine.engine import Operations
from jqmaster.engine.http_blocking import CONNECT_S, BlockingSession, Bounded, HttpContent, NotSent, Session
from jqmaster.engine.options import Bounds
from jqmaster.engine.packform import MSGPACK
from jqmaster.engine.replies import Beat, Document, Enqueued, Finished, Note, Picked
from jqmaster.engine.request import checked, path_of, value_of, with_argument
from jqmaster.engine.secret import shown
from jqmaster.engine.work import Outcomes
from jqmaster.errors import Conflict, NotFound, Unavailable, brought_by

TIMEOUT_S = 30.0
POLL_MARGIN_S = 10.0
AT_A_TIME = 32  # requests about one job each
_HEADERS = {"content-type": MSGPACK, "accept": MSGPACK}
_NIL_FOR_NOTHING = ("worker_id", "result", "error", "message")
log = logging.getLogger("jqmaster")


def _texts(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(int(value)) if isinstance(value, bool) else value for name, value in options.items()}


class Answer(NamedTuple):
    """`is_repeat`: the request was sent before, and what came of that is not known."""

    status: int
    content: bytes
    is_repeat: bool

    @property
    def body(self) -> bytes:
        """Raises JQError for an error."""
        return checked(self.status, self.content)

    @property
    def value(self) -> Any:
        """The body, unpacked. Raises JQError for an error."""
        return value_of(self.body)


class HttpEngine(Operations):
    """Asks the first of `urls`; when it does not answer, or cannot serve, the next one from then on.

    Raises what `jqmaster.errors` has. Operations for which there is no request raise Unavailable.
    """

    def __init__(self, urls: Sequence[str], key: str | None = None, timeout_s: float = TIMEOUT_S) -> None:
        """`timeout_s`: how long a call may take, with all that is tried."""
        self._timeout_s = timeout_s
        self._urls = [url.rstrip("/") for url in urls]
        self._sent_always = shown(key)
        self._session: Session | None = None
        self._is_closed = False

    async def call(self, operation: str, *arguments: Argument) -> Any:
        request = requests.request_of(operation, arguments)
        if request is None:
            several = requests.apart(operation, arguments)
            if several is None:
                raise requests.no_request(operation, arguments)
            is_page = operation in requests.PAGES
            found = await _together([self.call(operation, *one) for one in several])
            documents = [answer for one in found for answer in (one[1:] if is_page else one)]
            return [b"", *documents] if is_page else documents
        known, path, body, headers = request
        repeats = operation not in requests.ONCE
        answer = await self.send(known.method, path, body, headers={**_HEADERS, **headers}, repeats=repeats)
        try:
            return requests.reply_of(known, answer.body)
        except NotFound:
            if known.reply.shape == "first":
                return [b""]
            if operation == "track":
                return [None]
            if answer.is_repeat and known.method == "DELETE":
                return requests.reply_to_repeat(known)
            raise

    # -- operations whose request the table does not tell ----------------------------------------------------

    async def enqueue(
        self, jobs: Sequence[tuple[Spec, bytes]], *, request: str | None = None, durable: Durable | None = None
    ) -> list[Enqueued]:
        asked = {} if durable is None else {"durable": asdict(durable)}
        bodies = [with_argument({**spec, **asked}, blob, f"jobs[{index}]") for index, (spec, blob) in enumerate(jobs)]
        if len(bodies) == 1 and request is None:
            # Masters put those that come one by one together.
            answer = await self.send("POST", "/job", bodies[0], repeats=False)
            return [Enqueued(str(answer.value["job_id"]), answer.status == 201)]
        body = {"jobs": packform.raw_array(bodies)}
        if request is not None:
            body["request"] = packform.pack(request)
        reply = (await self.send("POST", "/jobs", packform.raw_map(body), repeats=request is not None)).value
        return [Enqueued(*pair) for pair in zip(reply["job_ids"], reply["created"], strict=True)]

    async def change(self, changes: Sequence[tuple[Spec, bytes]]) -> list[str]:
        jobs = [
            with_argument(spec, argument, f"jobs[{index}]") if argument else pack(spec, f"jobs[{index}]")
            for index, (spec, argument) in enumerate(changes)
        ]
        body = packform.raw_map({"jobs": packform.raw_array(jobs)})
        return list((await self.send("POST", "/jobs/change", body)).value["jobs"])

    async def get(self, *ids: str) -> list[Document | None]:
        return await _together([self._get(one) for one in ids])

    async def _get(self, job_id: str) -> Document | None:
        try:
            content = (await self.send("GET", path_of("get", id=job_id))).body
        except NotFound:
            return None
        # A master shows some of what there is nothing of as nil; these documents are those of the script.
        found = replies.document(content)
        for name in _NIL_FOR_NOTHING:
            if found[name] in (None, packform.NIL):
                del found[name]
        return found

    async def result(self, job_id: str) -> tuple[str, bytes | None]:
        try:
            return "done", await self._kept(job_id)
        except Conflict:
            document = await self._get(job_id)
        if document is None:
            raise NotFound(f"no such job: {job_id}")
        if document["status"] == "done" and document["keep_result"]:  # it ended meanwhile
            return "done", await self._kept(job_id)
        return document["status"], None

    async def _kept(self, job_id: str) -> bytes:
        return (await self.send("GET", path_of("result", id=job_id))).body

    async def search(self, text: str, *, count: int = 5) -> Document:
        found: Document = (await self.send("GET", f"/search?{urlencode({'q': text, 'count': count})}")).value
        return found

    async def ranking(self, by: str = "oldest", **options: Any) -> Document:
        found = await self.send("GET", f"/queues/ranking?{urlencode(given(by=by, **_texts(options)))}")
        return replies.plain_document(found.body)

    async def config(self, set: Spec | None = None, unset: Sequence[str] | None = None) -> Document:
        changes = {**(set or {}), **dict.fromkeys(unset or ())}
        method, body = ("GET", b"") if set is None and unset is None else ("PATCH", pack(changes))
        return replies.plain_document((await self.send(method, "/config", body)).body)

    async def describe(self) -> list[Document]:
        return list((await self.send("GET", "/config?describe=1")).value["settings"])

    async def grant(self, name: str, roles: Sequence[str], **bounds: Unpack[Bounds]) -> Document:
        body = pack(given(name=name, roles=roles, **bounds))
        return replies.plain_document((await self.send("POST", "/keys", body, repeats=False)).body)

    async def pick(
        self, worker: str, queues: str | Sequence[str], count: int = 1, *, wait_s: float = 0, **options: Any
    ) -> Picked:
        """As by the scripts; with `wait_s` it waits for a job so many seconds."""
        body = pack(given(queues=queues, count=count, timeout=wait_s or None, **options))
        timeout_s = wait_s + POLL_MARGIN_S if wait_s else None
        answer = await self._work("/pick", worker, body, repeats="request" in options, timeout_s=timeout_s)
        found = requests.read_map(answer.body)
        return Picked(found.get("next_ms", -1), requests.jobs_of(found))

    async def finish(self, worker: str, outcomes: Outcomes = (), *, pick: Spec | None = None) -> Finished:
        body = {"outcomes": packform.raw_array([requests.outcome_map(*one) for one in outcomes])}
        if pick is not None:
            body["pick"] = pack(pick, "pick")
        repeats = pick is None or "request" in pick  # outcomes go by their tokens
        answer = await self._work("/done", worker, packform.raw_map(body), repeats=repeats)
        found = requests.read_map(answer.body)
        followed = {index: [Enqueued(one, True) for one in ids] for index, ids in enumerate(found.get("job_ids", ()))}
        picked = None if pick is None else Picked(found["next_ms"], requests.jobs_of(found))
        return Finished(found["states"], picked, {index: ids for index, ids in followed.items() if ids})

    async def heartbeat(
        self, worker: str, jobs: Sequence[Holding] = (), *, notes: Mapping[Holding, Note] | None = None
    ) -> list[int | str]:
        return (await self.beat(worker, jobs, notes=notes)).answers

    async def beat(
        self, worker: str, jobs: Sequence[Holding] = (), *, notes: Mapping[Holding, Note] | None = None
    ) -> Beat:
        held = [requests.lease(job, (notes or {}).get(job)) for job in jobs]
        body = packform.raw_map({"jobs": packform.raw_array(held)})
        found = (await self._work("/worker/heartbeat", worker, body)).value
        return Beat(found["jobs"], found["request"])

    async def _work(self, path: str, worker: str, body: bytes, **more: Any) -> Answer:
        return await self.send("POST", path, body, headers={**_HEADERS, "worker-id": worker}, **more)

    # -- requests ----------------------------------------------------------------------------------------------

    async def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        timeout_s: float | None = None,
        repeats: bool = True,
        headers: Mapping[str, str] = _HEADERS,
    ) -> Answer:
        """One request. `repeats`: it does no harm to send it again when the answer was lost. Raises Unavailable."""
        tries, is_repeat = max(2, len(self._urls)), False
        until = time.monotonic() + (timeout_s or self._timeout_s)
        tried: dict[str, str] = {}
        while True:
            url, left_s = self._urls[0], max(0.001, until - time.monotonic())
            bounds = Bounded(left_s, min(CONNECT_S, left_s / tries))
            tries -= 1
            try:
                response = await self._connected().request(method, url + path, body, headers, bounds)
            except OSError as error:
                tried[without_password(url)] = str(error) or type(error).__name__
                self._leave(url)
                was_sent = not isinstance(error, NotSent)
                is_late = was_sent and isinstance(error, TimeoutError)
                is_repeat = is_repeat or was_sent
                if not tries or is_late or (was_sent and method == "POST" and not repeats):
                    hint = "" if was_sent else "; is a master running (jqmaster serve)?"
                    raise _away(tried, error, hint) from error
            else:
                answer = Answer(response.status, response.content, is_repeat)
                if answer.status >= 500:
                    self._leave(url)
                _check_is_of_a_master(url, answer, response.content_type)
                return answer

    @asynccontextmanager
    async def stream(self, path: str, headers: Mapping[str, str]) -> AsyncIterator[HttpContent]:
        """An answer that goes on. Raises Unavailable when it is cut off."""
        url = self._urls[0]
        try:
            async with self._connected().stream(url + path, headers) as (status, content):
                if status >= 400:
                    checked(status, await content.read())
                yield content
        except OSError as error:
            tried = {without_password(url): str(error) or type(error).__name__}
            raise _away(tried, error, "; the stream was cut off") from error

    async def close(self) -> None:
        """Close the connections. What is asked later raises Unavailable."""
        self._is_closed = True
        if self._session is not None:
            await self._session.close()

    def _connected(self) -> Session:
        if self._is_closed:
            raise Unavailable("the connections to the master were closed")
        if self._session is None:
            self._session = BlockingSession(self._sent_always) if plainly.is_plain() else _on_a_loop(self._sent_always)
        return self._session

    def _leave(self, url: str) -> None:
        """Ask the next one from now on."""
        if self._urls[0] == url:
            self._urls.append(self._urls.pop(0))


def _check_is_of_a_master(url: str, answer: Answer, content_type: str) -> None:
    """Raise Unavailable for a success that cannot be a master's, such as the page of a proxy."""
    if answer.status in (200, 201) and not requests.is_one_value(answer.content):
        what = f"{answer.status} and {len(answer.content)} bytes of {content_type} that are no MessagePack"
        raise Unavailable(f"{without_password(url)} answers {what}: is it a JQ master?")


def _away(tried: Mapping[str, str], error: Exception, hint: str) -> Unavailable:
    problems = "; ".join(f"{url} does not answer: {problem}" for url, problem in tried.items())
    return Unavailable(problems + hint, error)


def _on_a_loop(headers: Mapping[str, str]) -> Session:
    with brought_by("worker", "the URL of a master"):
        from jqmaster.engine.http_loop import LoopSession

    return LoopSession(headers)


async def _together(asked: Sequence[Any]) -> list[Any]:
    """What each gives, some at a time."""
    found: list[Any] = []
    for start in range(0, len(asked), AT_A_TIME):
        found += await plainly.gather(*asked[start : start + AT_A_TIME])
    return found
