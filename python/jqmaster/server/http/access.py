"""Who a request comes from, and whether they may do what it asks: looked at before its body is read. And the handlers
that create keys of this API, and those of sessions, which browsers have instead.

`identify` is the one place that answers who it is: by the key shown, by a session, or by a proxy that knows them.
"""

from __future__ import annotations

import math

from jqmaster.engine import packform, secret
from jqmaster.engine.calling import contract_of
from jqmaster.manifest.contract import ANYBODY as NO_ROLE
from jqmaster.manifest.contract import ROLES, ROLES_OF, Operation
from jqmaster.manifest.manifest import operations
from jqmaster.server import session as sessions
from jqmaster.server.http import within
from jqmaster.server.http.calls import run
from jqmaster.server.http.own import own
from jqmaster.server.http_error import HttpError, invalid
from jqmaster.server.keyring import ANYBODY, Identity, Keyring
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request
from jqmaster.server.reader import extended, map_with, members, unpacked


def is_closed(master: Master) -> bool:
    """Whether a key is asked for."""
    return master.keyring is not None and master.keyring.is_required


async def admit(master: Master, operation: Operation, path: str, request: Request) -> Identity:
    """Who may ask for an operation by this path. Raises 401, 403 and 429."""
    keyring = master.keyring
    if keyring is None or operation.name in ("alive", "health"):
        return ANYBODY
    await keyring.refresh()
    if not keyring.is_required or operation.roles == (NO_ROLE,):
        return ANYBODY
    who = identify(master, keyring, request)
    wait_s = keyring.wait_s(who)
    if wait_s > 0:
        retry_after = (b"retry-after", b"%d" % math.ceil(wait_s))
        raise HttpError(429, "RATE", "rate limit exceeded for this key", more=(retry_after,))
    if needed := operation.lacking(who.roles):
        why = f"{request.scope['method']} {path} needs a key with the role {' or '.join(needed)}"
        raise HttpError(403, "FORBIDDEN", why)
    await keyring.note_use(who)
    return who


def identify(master: Master, keyring: Keyring, request: Request) -> Identity:
    """Who sends this. Raises 401 where that cannot be told."""
    shown = request.headers.get(b"authorization")
    if shown is None:
        return _known(sessions.named(master.proxies, request) or sessions.find(keyring, request.headers))
    scheme, _, key = shown.decode("latin-1").partition(" ")
    return _known(keyring.find(key.strip()) if scheme.lower() == "bearer" else None)


def _known(who: Identity | None) -> Identity:
    if who is None:
        why = "this master asks for a key: Authorization: Bearer jq_… There is none, or it is not good any more"
        raise HttpError(401, "UNAUTHORIZED", why, more=((b"www-authenticate", b'Bearer realm="jq"'),))
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
    keyring = master.keyring
    if keyring is None or not keyring.is_required:
        return Reply(200, await _told(master, ANYBODY, asks=False))
    identity = identify(master, keyring, request)
    if b"authorization" in request.headers or sessions.find(keyring, request.headers) != identity:
        return Reply(200, await _told(master, identity, asks=True))
    return await _logged_in(master, keyring, identity, request)


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
    if master.keyring is None or not isinstance(shown, str):
        raise invalid("key", "expected a key, where keys are asked for")
    return await _logged_in(master, master.keyring, _known(master.keyring.find(shown)), request)


@own
async def log_out(master: Master, request: Request) -> Reply:
    """Log out.

    @reply nothing
    @errors INTERNAL
    @role anybody
    @http DELETE /session
    """
    return Reply(204, headers=[sessions.set_cookie(None, "", request, master.proxies)])


async def _logged_in(master: Master, keyring: Keyring, identity: Identity, request: Request) -> Reply:
    seal = keyring.seal_of(identity.key_id)
    cookie = sessions.set_cookie(seal, identity.key_id, request, master.proxies)
    return Reply(200, await _told(master, identity, asks=True, has_session=True), headers=[cookie])


async def _told(master: Master, identity: Identity, *, asks: bool, has_session: bool = False) -> bytes:
    rights = {right for role in identity.roles for right in ROLES_OF[role]}
    document = {
        "name": identity.name, "roles": [role for role in ROLES if role in rights],
        "queues": None if identity.queues is None else list(identity.queues),
        "refused": [
            route.path
            for operation in operations().values()
            for route in operation.routes
            if route.method == "GET" and not (operation.is_for(identity.roles) and within.may_ask(identity, operation))
        ],
        "asks": asks, "session": has_session, "master": master.about(),
    }  # fmt: skip
    return packform.pack(document)
