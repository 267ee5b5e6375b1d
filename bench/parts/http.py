"""What a request costs the server: its CPU, beside a bare Quart handler on the same Hypercorn settings."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial

import msgpack
from kit.engine import ARGUMENT, NAME
from kit.load import post
from kit.programs import Driver, Program, driver, free_port, jq_server, wait_for_http
from kit.server import Server
from kit.tables import Figures, Options, Table

JOB = {"name": NAME, "argument": msgpack.unpackb(ARGUMENT)}
NOTE = (
    "µs of the server's CPU for one request, 32 keep-alive connections, MessagePack, arguments of 200 bytes, one "
    "process. Jobs/s: one POST at a time over one connection, by the clock."
)


class Side:
    def __init__(self, server: Program, port: int, requests: int) -> None:
        self.server, self.port, self.requests = server, port, requests

    def cost(self, path: str, bodies: Sequence[bytes]) -> tuple[list[bytes], float]:
        """The answers, and µs for a request."""
        before = self.server.cpu_s()
        answers, _ = post(self.port, path, bodies)
        return answers, 1e6 * (self.server.cpu_s() - before) / len(bodies)

    def rate(self, path: str, body: bytes, requests: int) -> float:
        return requests / post(self.port, path, [body] * requests, connections=1)[1]


def echo(side: Side) -> Figures:
    return {"POST /job": side.cost("/job", [msgpack.packb(JOB)] * side.requests)[1]}


def jq(side: Side) -> Figures:
    job, jobs = msgpack.packb(JOB), msgpack.packb({"jobs": [JOB] * 100})
    found = {"POST /job": side.cost("/job", [job] * side.requests)[1]}
    answers, found["POST /pick"] = side.cost("/pick", [msgpack.packb({"queues": NAME, "count": 1})] * side.requests)
    picked = [document for answer in answers for document in msgpack.unpackb(answer)["jobs"]]
    outcomes = [{"id": document["id"], "token": document["token"], "type": "success"} for document in picked]
    _, found["POST /done"] = side.cost("/done", [msgpack.packb({"outcomes": [outcome]}) for outcome in outcomes])
    _, found["POST /jobs, 100"] = side.cost("/jobs", [jobs] * (side.requests // 10))
    found["jobs/s, singly"] = side.rate("/job", job, side.requests // 4)
    found["jobs/s, 100 in a POST"] = 100 * side.rate("/jobs", jobs, side.requests // 10)
    return found


def library(side: Side, client: Driver, worker: Driver) -> Figures:
    found = {}
    for what, program, step in (("enqueue", client, "enqueue"), ("a job's work", worker, "work")):
        before = side.server.cpu_s()
        told = program.step(step, side.requests)
        found[f"{what}: client"] = told["cpu_us"] / side.requests
        found[f"{what}: server"] = 1e6 * (side.server.cpu_s() - before) / side.requests
    return found


def tables(options: Options, stack: ExitStack) -> Iterator[Table]:
    requests = options.count(4000, 400)
    checkouts = {"JQ": None} | ({f"JQ of {options.against.name}": options.against} if options.against else {})
    raw, driven = {}, {}
    for name, checkout in checkouts.items():
        redis = stack.enter_context(Server())
        side = Side(*stack.enter_context(jq_server(redis.path, checkout)), requests)
        jq(Side(side.server, side.port, 100))
        raw[name] = partial(jq, side)

        redis = stack.enter_context(Server())
        side = Side(*stack.enter_context(jq_server(redis.path, checkout)), requests)
        url = f"http://127.0.0.1:{side.port}"
        both = [stack.enter_context(driver("with_jq.py", url, checkout=checkout)) for _ in range(2)]
        library(Side(side.server, side.port, 100), *both)
        driven[name] = partial(library, side, *both)
    port = free_port()
    bare = stack.enter_context(Program(sys.executable, "drivers/echo.py", str(port)))
    wait_for_http(bare, port)
    yield Table("HTTP", NOTE, raw | {"bare Quart": partial(echo, Side(bare, port, requests))}, "JQ")
    note = "µs of CPU. Enqueues are awaited one at a time; the worker pulls no-op jobs that wait, 32 at a time."
    yield Table("The library by a server", note, driven, "JQ")
