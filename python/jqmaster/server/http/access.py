"""Who a request comes from, and whether they may do what it asks: looked at before its body is read. And the handlers
that create keys of this API, and those of sessions, which browsers have instead.
"""

from __future__ import annotations

import math

from jqmaster.engine import packform, secret
from jqmaster.engine.calling import contract_of
from jqmaster.manifest.contract import ANYBODY as NO_ROLE
from jqmaster.manifest.contract import ROLES, Operation, rights_of
from jqmaster.manifest.manifest import operations
from jqmaster.server import session as sessions
from jqmaster.server.http import within
from jqmaster.server.http.calls import run
from jqmaster.server.http.own import own
from jqmaster.server.http_error import HttpError, invalid
from jqmaster.server.keyring import ANYBODY, Identity
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request
from jqmaster.server.reader import extended, map_with, members, unpacked


async def admit(master: Master, operation: Operation, path: str, request: Request) -> Identity:
    """Who may ask for an operation by this path. Raises 401, 403 and 429."""
    keyring = master.keyring
    if operation.name in ("alive", "health"):
        return ANYBODY
    await keyring.refresh()
    if not keyring.is_required or operation.roles == (NO_ROLE,):
        return ANYBODY
    who = identify(master, request)
    wait_s = who.wait_s()
    if wait_s > 0:
        retry_after = (b"retry-after", b"%d" % math.ceil(wait_s))
        raise HttpError("RATE", "rate limit exceeded for this key", more=(retry_after,))
    if needed := operation.lacking(who.roles):
        why = f"{request.scope['method']} {path} needs a key with the role {' or '.join(needed)}"
        raise HttpError("FORBIDDEN", why)
    if not within.may_ask(who, operation):
        raise within.refused(f"{operation.name} concerns all queues")
    await keyring.note_use(who)
    return who


def identify(master: Master, request: Request) -> Identity:
    """Who sends this: by the key shown, by a session, or by a proxy that knows them. Raises 401 where that cannot be
    told."""
    shown = request.headers.get(b"authorization")
    if shown is None:
        return _known(sessions.named(master.proxies, request) or sessions.find(master.keyring, request.headers))
    scheme, _, key = shown.decode("latin-1").partition(" ")
    return _known(master.keyring.find(key.strip()) if scheme.lower() == "bearer" else None)


def _known(who: Identity | None) -> Identity:
    if who is None:
        why = "this master asks for a key: Authorization: Bearer jq_… There is none, or it is not good any more"
        raise HttpError("UNAUTHORIZED", why, more=((b"www-authenticate", b'Bearer realm="jq"'),))
    return who


# -- handlers ---------------------------------------------------------------------------------------


@own
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
    spec = map_with({**members(request.body), "id": new.id, "digest": new.digest})
    document = await run(master, request, contract_of("grant"), [spec])
    return Reply(200, extended(document, key=packform.pack(new.text)))


@own
async def session(master: Master, request: Request) -> Reply:
    """Who this is, what they may, and of what server.

    @reply Session
    @errors UNAUTHORIZED
    @role anybody
    @http GET /session
    """
    who = identify(master, request) if master.keyring.is_required else ANYBODY
    by_key = b"authorization" in request.headers
    return _session(master, request, who, renews=not by_key and sessions.find(master.keyring, request.headers) is who)


@own
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
    return _session(master, request, _known(master.keyring.find(shown)), renews=True)


@own
async def log_out(master: Master, request: Request) -> Reply:
    """Log out.

    @reply nothing
    @errors INTERNAL
    @role anybody
    @http DELETE /session
    """
    return Reply(204, headers=[sessions.set_cookie(master.keyring, None, request, master.proxies)])


def _session(master: Master, request: Request, who: Identity, *, renews: bool) -> Reply:
    """The document, and with it the cookie of who has one from now on."""
    document = {
        "name": who.name, "roles": [role for role in ROLES if role in rights_of(who.roles)],
        "queues": None if who.queues is None else list(who.queues),
        "refused": [
            route.path
            for operation in operations().values()
            for route in operation.routes
            if route.method == "GET" and not (operation.is_for(who.roles) and within.may_ask(who, operation))
        ],
        "asks": master.keyring.is_required, "session": renews, "master": master.about(),
    }  # fmt: skip
    cookies = [sessions.set_cookie(master.keyring, who, request, master.proxies)] if renews else []
    return Reply(200, packform.pack(document), headers=cookies)
