"""Handlers of one job: to enqueue it, to see it, and to wait for its end; whether this server is well; the API's own
description; keys, and sessions, which browsers have instead."""

from __future__ import annotations

from functools import cache

from msgspec.msgpack import encode

from jqmaster import __version__
from jqmaster.engine import secret, tracing
from jqmaster.engine.calling import contract_of
from jqmaster.engine.ended import ENDED, soon
from jqmaster.manifest.contract import ROLES, rights_of
from jqmaster.manifest.manifest import PACKAGE, operations
from jqmaster.server.http import access, within
from jqmaster.server.http.calls import Own, refuse_draining, run, timeout_s
from jqmaster.server.http_error import HttpError, invalid
from jqmaster.server.keyring import ANONYMOUS, Identity
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, no_such_job
from jqmaster.server.reader import extended, item, members, unpacked

READY_S = 1.0


@Own
async def enqueue_one(master: Master, request: Request) -> Reply:
    """Enqueue a job.

    @arg body NewJob
    @arg request token?  the same token gives the same job again: repeating is harmless
    @reply {job_id: job}
    @errors INVALID field, FULL queue, NOTFOUND depends[i], CONFLICT depends
    @role pusher
    @bound any
    @http POST /job
    """
    request.rename = lambda path: path.removeprefix("options.").removeprefix("jobs[0]").removeprefix(".")
    arguments = item(request.body, "NewJob", tracing.carried(request.headers))
    if (token := request.header("Idempotency-Key")) is not None:
        arguments.insert(0, encode({"request": token}))
    job_id, is_new = await run(master, request, contract_of("enqueue"), arguments)
    return Reply(201 if is_new else 200, encode({"job_id": job_id.decode()}))


@Own
async def job(master: Master, request: Request) -> Reply:
    """A job as it is now.

    @arg id job
    @reply Job
    @errors NOTFOUND id
    @role viewer, pusher
    @bound any
    @http GET /job/{id}
    """
    [document] = await run(master, request, contract_of("get"), [request.params["id"].encode()])
    if document is None:
        raise no_such_job(request.params["id"])
    return Reply(200, document)


@Own
async def poll_job(master: Master, request: Request) -> Reply:
    """Wait for a job's end: its document, or 408 when the time is up before.

    @arg id job
    @arg timeout seconds? 0..300 = 5  how long to wait, at most
    @reply Job
    @errors INVALID timeout, NOTFOUND id, TIMEOUT
    @role viewer, pusher
    @bound any
    @http GET /job/{id}/polling
    """
    wait_s = timeout_s(request.query.get("timeout", 5))
    job_id = request.params["id"].encode()
    await within.check(master.engine, request.who, contract_of("watch"), {"ids": [job_id]})
    state = await master.ended.wait(job_id, wait_s)
    if state is None:
        raise no_such_job(request.params["id"])
    if state in ENDED:
        return await job.answer(master, request)
    refuse_draining(master)
    raise HttpError("TIMEOUT", f"the job has not ended within {wait_s:g} s; it is {state}")


@Own
async def alive(_master: Master, _request: Request) -> Reply:
    """Whether this server runs; asks nobody.

    @reply {status: text}
    @errors INTERNAL
    @role anybody
    @http GET /alive
    """
    return Reply(200, encode({"status": "ok"}))


@Own
async def health(master: Master, _request: Request) -> Reply:
    """Whether this server can serve.

    @reply {status: text, form: text}
    @errors UNAVAILABLE
    @role anybody
    @http GET /health
    """
    refuse_draining(master)
    await soon(master.engine.config(), READY_S)  # which also finds a namespace that is missing, or of another schema
    return Reply(200, encode({"status": "ok", "form": master.engine.engines[0].form_in_use}))


@cache
def document(name: str) -> bytes:
    """An OpenAPI document (`master.yaml`, `worker.yaml`), from the installed package or the source tree."""
    built = PACKAGE / "openapi"
    return ((built if built.is_dir() else PACKAGE.parents[1] / "openapi") / name).read_bytes()


@Own
async def openapi(_master: Master, _request: Request) -> Reply:
    """This document.

    @reply yaml
    @errors INTERNAL
    @role anybody
    @http GET /openapi.yaml
    """
    return Reply(200, document("master.yaml"), "application/yaml")


@Own
async def worker_openapi(_master: Master, _request: Request) -> Reply:
    """The API that a worker offers, to which jobs are pushed.

    @reply yaml
    @errors INTERNAL
    @role anybody
    @http GET /worker/openapi.yaml
    """
    return Reply(200, document("worker.yaml"), "application/yaml")


@Own
async def create_key(master: Master, request: Request) -> Reply:
    """Create a key of this API, which is told this once.

    @arg name name  whose it is; the trail has it
    @arg roles set<viewer|pusher|worker|operator|admin> 1..5
    @arg queues set<name>? 1..100  queues and patterns that it is bound to
    @arg ttl seconds? 1..1e10  when it expires
    @arg rate number? 0.001..1e6  requests a second, of each server; more are refused (429)
    @reply NewKey
    @errors INVALID field, FULL id
    @role admin
    @bound any
    @http POST /keys
    """
    new = secret.new()
    spec = encode({**members(request.body), "id": new.id, "digest": new.digest})
    document = await run(master, request, contract_of("grant"), [spec])
    return Reply(200, extended(document, key=encode(new.text)))


@Own
async def session(master: Master, request: Request) -> Reply:
    """Who this is, what they may, and of what server.

    @reply Session
    @errors UNAUTHORIZED
    @role anybody
    @http GET /session
    """
    who = access.identify(master, request) if master.keyring.is_required else ANONYMOUS
    shows_key = b"authorization" in request.headers
    has_session = not shows_key and access.logged_in(master.keyring, request) is who
    return _session(master, request, who, has_session=has_session)


@Own
async def log_in(master: Master, request: Request) -> Reply:
    """Log in with a key, in a browser.

    @arg key text 1..200
    @reply Session
    @errors INVALID, UNAUTHORIZED
    @role anybody
    @http POST /session
    """
    shown = unpacked(members(request.body).get("key", b""))
    if not isinstance(shown, str):
        raise invalid("key", "expected a key")
    return _session(master, request, access.known(master.keyring.find(shown)), has_session=True)


@Own
async def log_out(master: Master, request: Request) -> Reply:
    """Log out.

    @reply nothing
    @errors INTERNAL
    @role anybody
    @http DELETE /session
    """
    return Reply(204, headers=[access.cookie_for(master, None, request)])


def _session(master: Master, request: Request, who: Identity, *, has_session: bool) -> Reply:
    """The document, and with it the cookie of who has one from now on."""
    document = {
        "name": who.name, "roles": [role for role in ROLES if role in rights_of(who.roles)],
        "queues": None if who.queues is None else list(who.queues),
        "refused": [
            route.path
            for operation in operations().values()
            for route in operation.routes
            if route.method == "GET" and (operation.lacking(who.roles) or not within.may_ask(who, operation))
        ],
        "asks": master.keyring.is_required, "session": has_session,
        "master": {
            "version": __version__, "namespace": master.engine.namespace, "redis": master.redis,
            "environment": master.environment, "color": master.color,
        },
    }  # fmt: skip
    cookies = [access.cookie_for(master, who, request)] if has_session else []
    return Reply(200, encode(document), headers=cookies)
