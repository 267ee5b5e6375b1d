"""Looking: documents, lists, counts."""

from __future__ import annotations

import msgpack
from kit.contenders import NAME, NIL
from kit.hostile import ALL, Hostile, long

from longest.row import CALLS, ERROR, FAILURE, MANY, TAGS, pages, row


@row("jobs: 1000, plain")
def _(jq: Hostile) -> None:
    jq.many(MANY)
    pages(jq, "jobs")


@row("jobs: 1000 with tags, headers, errors, messages")
def _(jq: Hostile) -> None:
    headers = {f"h{number}": "v" * 50 for number in range(16)}
    jq.many(MANY, tags=TAGS, headers=headers)
    jq.finish(jq.start(MANY), ERROR, **FAILURE, message="m" * 1000)
    pages(jq, "jobs")


@row("jobs: messages of 64 KB looked into")
def _(jq: Hostile) -> None:
    jq.many(MANY // 5)
    jq.finish(jq.start(MANY // 5), NIL, **FAILURE, message="m" * 65_536)
    for _ in range(CALLS):
        jq.measured("jobs", {"where": {"message": "mmmmmmmmx"}, "count": ALL})


@row("jobs: arguments of 100 KB")
def _(jq: Hostile) -> None:
    jq.many(MANY // 5, argument=msgpack.packb(b"a" * 100_000))
    for _ in range(CALLS):
        jq.measured("jobs", {"count": ALL})


@row("jobs: none of 5,000 empty queues")
def _(jq: Hostile) -> None:
    jq.enqueue([{"name": NAME, "queue": long(f"q{number}")} for number in range(MANY)])
    pages(jq, "jobs", where={"status": "retrying"})


@row("jobs: those that have a tag, none of a name")
def _(jq: Hostile) -> None:
    jq.many(MANY, tags=TAGS)
    pages(jq, "jobs", where={"tag": TAGS[31], "name": "none"})


@row("get of 1000 with tags, headers", is_sized=True)
def _(jq: Hostile) -> None:
    ids = jq.many(ALL, tags=TAGS)
    for _ in range(CALLS):
        jq.measured("get", *ids)
