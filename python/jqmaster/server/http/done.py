"""Handlers for outcomes: what became of jobs, and what follows from that."""

from __future__ import annotations

import re
from typing import Any

import msgpack

from jqmaster.engine import packform
from jqmaster.server import logs
from jqmaster.server.http.asking import ask
from jqmaster.server.http.jobs import enqueued
from jqmaster.server.http.work import NOTHING, attempt_of, jobs_of, picked_ids, poke, states, worker_of
from jqmaster.server.http_error import STATUS, HttpError, draining, invalid
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, follow_of, refuse_unknown, unknown_field
from jqmaster.server.reader import Reader, pack_spec

PICK_FIELDS = ("queues", "count", "order", "without", "request")
BLOBS = frozenset(("result", "error"))
_BLOB_OF = {"success": "result", "failure": "error"}


async def done(master: Master, request: Request) -> Reply:
    """`POST /done`: one outcome as the body, or `{outcomes: [...], pick?}`."""
    reader = Reader(request.body)
    kinds: list[str] = []

    def read_follow(path: str) -> list[bytes]:
        return follow_of(reader, path)

    def read_outcomes(path: str) -> list[list[bytes]]:
        special = {"enqueue": read_follow}
        return [_outcome(reader.map(item, BLOBS, special), f"{item}.", kinds) for item in reader.items(path)]

    body = reader.map("", BLOBS, {"outcomes": read_outcomes, "enqueue": read_follow})
    many: list[list[bytes]] | None = body.pop("outcomes", None)

    def rename(path: str) -> str:
        match = re.fullmatch(r"outcomes\[(\d+)\](?:\.(.*))?", path)
        if match is None:
            return path
        index, name = int(match[1]), match[2]
        if name == "blob":
            name = kinds[index]
        if many is None:
            return name or ""
        return f"outcomes[{index}]" + (f".{name}" if name else "")

    request.rename = rename
    worker = worker_of(request, body)
    if many is not None:
        return await _done_many(master, request, worker, body, many)
    has_followers = "enqueue" in body
    outcome = _outcome(body, "", kinds)
    [answer] = await ask(master, request.who, "finish", pack_spec({"worker": worker}), *outcome)
    poke(master, worker)
    request.told = lambda: _told(worker, [outcome], [answer])
    state = answer if isinstance(answer, bytes) else answer[0]
    if has_followers and not state.isupper():
        # Nothing follows an outcome that is repeated, whose state comes alone.
        return Reply(200, packform.pack({"job_ids": [[]], **_answers([answer])}))
    return _single_answer(state.decode("ascii"))


def _outcome(body: dict[str, Any], prefix: str, kinds: list[str]) -> list[bytes]:
    """An outcome's spec, its blob, and the jobs that follow. The blob is called `result` or `error` by the
    outcome's type."""
    kind = str(body.get("type"))
    blob_name = _BLOB_OF.get(kind, "result")
    other = "error" if blob_name == "result" else "result"
    if "blob" in body:
        # The engine's word for either; in its error paths it would be taken for the result.
        raise unknown_field(f"{prefix}blob", ())
    if kind in _BLOB_OF and other in body:
        raise invalid(f"{prefix}{other}", f"an outcome of type {kind} has {blob_name}, not {other}")
    kinds.append(blob_name)
    body.pop(other, None)
    blob = body.pop(blob_name, packform.NIL)
    follow = body.pop("enqueue", [])
    if follow:
        body["enqueue"] = len(follow) // 2
    return [pack_spec(body), blob, *follow]


def _answers(answers: list[Any]) -> dict[str, Any]:
    """States, and where jobs followed, their ids: one list for each outcome."""
    by_state = states([answer[0] if isinstance(answer, list) else answer for answer in answers])
    if not any(isinstance(answer, list) for answer in answers):
        return {"states": by_state}
    followed = [enqueued(answer[1:])["job_ids"] if isinstance(answer, list) else [] for answer in answers]
    return {"states": by_state, "job_ids": followed}


def _told(worker: str, outcomes: list[list[bytes]], answers: list[Any]) -> dict[str, Any]:
    specs = [msgpack.unpackb(outcome[0]) for outcome in outcomes]
    by_state = states([answer[0] if isinstance(answer, list) else answer for answer in answers])
    jobs = logs.ids(attempt_of(spec["id"], spec["token"]) for spec in specs)
    return {"worker": worker, **jobs, "became": by_state[: logs.MOST_IDS]}


async def _done_many(
    master: Master, request: Request, worker: str, body: dict[str, Any], outcomes: list[list[bytes]]
) -> Reply:
    refuse_unknown(body, ("outcomes", "pick", "worker"))
    spec: dict[str, Any] = {"worker": worker}
    wanted = body.get("pick")
    # A stopping master still takes outcomes; it only starts nothing new.
    picking = wanted is not None and not master.draining.is_set()
    if isinstance(wanted, dict):
        refuse_unknown(map(str, wanted), PICK_FIELDS, "pick.")
    elif wanted is not None:
        raise invalid("pick", f"expected a map, got {type(wanted).__name__}")
    if picking:
        spec["pick"] = wanted
    elif wanted is not None and not outcomes:
        raise draining()
    args = [part for outcome in outcomes for part in outcome]
    reply = await ask(master, request.who, "finish", pack_spec(spec), *args)
    poke(master, worker)
    answers, picked = reply[: len(outcomes)], reply[len(outcomes) :]
    request.told = lambda: {
        **_told(worker, outcomes, answers),
        **({"picked": picked_ids(picked)} if len(picked) > 1 else {}),
    }
    pairs = {name: packform.pack(value) for name, value in _answers(answers).items()}
    if wanted is not None:
        pairs |= jobs_of(picked or NOTHING)
    return Reply(200, packform.raw_map(pairs))


def _single_answer(state: str) -> Reply:
    if not state.isupper():
        return Reply(204)
    messages = {
        "LOST": "this attempt no longer holds the job: its lease ran out or it was given back",
        "CANCELLED": "the job was cancelled while it ran; its outcome is not kept",
        "NOTFOUND": "no such job",
        "CONFLICT": "the attempt was already finished with another outcome",
    }
    raise HttpError(STATUS.get(state, 409), state, messages.get(state, state), "id")
