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
from jqmaster.server import session
from jqmaster.server.http import within
from jqmaster.server.http.calls import run
from jqmaster.server.http.own import own
from jqmaster.server.http_error import HttpError
from jqmaster.server.keyring import ANYBODY, Identity, Keyring
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request
from jqmaster.server.reader import map_with, members, unpacked


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
        who = master.proxies.find(request) or session.find(keyring, request.headers, master.session_idle_s)
        if who is None:
            raise _unknown("this master asks for a key: Authorization: Bearer jq_…")
        return who
    scheme, _, key = shown.decode("latin-1").partition(" ")
    return known(keyring.find(key.strip()) if scheme.lower() == "bearer" else None)


def known(who: Identity | None) -> Identity:
    """Who has shown a key. Raises 401 where it is none that is good."""
    if who is None:
        raise _unknown("the key is unknown, has expired or was revoked", b', error="invalid_token"')
    return who


def _unknown(message: str, more: bytes = b"") -> HttpError:
    return HttpError(401, "UNAUTHORIZED", message, more=((b"www-authenticate", b'Bearer realm="jq"' + more),))


# -- handlers ---------------------------------------------------------------------------------------


@own(
    "create_key",
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
@http POST /keys""",
)
async def create_key(master: Master, request: Request) -> Reply:
    """`POST /keys`."""
    new = secret.new()
    spec = map_with({**members(request.body), "id": new.id, "digest": new.digest})
    document = await run(master, request, contract_of("grant"), [spec])
    return Reply(200, packform.extend_map(document, {"key": packform.pack(new.text)}))


@own(
    "session",
    """Who this is, what they may, and of what server.
@reply Session
@errors UNAUTHORIZED
@role anybody
@http GET /session""",
)
async def who(master: Master, request: Request) -> Reply:
    """`GET /session`: who asks, what they may, and of what master. Puts off the end of a session."""
    keyring = master.keyring
    if keyring is None or not keyring.is_required:
        return Reply(200, await _told(master, ANYBODY, asks=False))
    identity = identify(master, keyring, request)
    headers = []
    logged_in = session.find(keyring, request.headers, master.session_idle_s)
    if b"authorization" not in request.headers and logged_in == identity:
        headers = [session.set_cookie(session.make(keyring, identity.key_id), request, master.proxies)]
    return Reply(200, await _told(master, identity, asks=True, has_session=bool(headers)), headers=headers)


@own(
    "log_in",
    """Log in with a key, in a browser.
@arg key text 1..200
@reply Session
@errors INVALID, UNAUTHORIZED
@role anybody
@http POST /session""",
)
async def log_in(master: Master, request: Request) -> Reply:
    """`POST /session`: a session for who shows a key."""
    shown = unpacked(members(request.body).get("key", b""))
    keyring = master.keyring
    identity = known(keyring.find(shown) if keyring is not None and isinstance(shown, str) else None)
    assert keyring is not None
    cookie = session.set_cookie(session.make(keyring, identity.key_id), request, master.proxies)
    return Reply(200, await _told(master, identity, asks=True, has_session=True), headers=[cookie])


@own(
    "log_out",
    """Log out.
@reply nothing
@errors INTERNAL
@role anybody
@http DELETE /session""",
)
async def log_out(master: Master, request: Request) -> Reply:
    """`DELETE /session`: the browser forgets it."""
    return Reply(204, headers=[session.set_cookie("", request, master.proxies)])


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
        "asks": asks, "session": has_session, "master": await master.about(),
    }  # fmt: skip
    return packform.pack(document)
