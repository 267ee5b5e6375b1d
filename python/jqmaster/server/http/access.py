"""Who a request comes from, and whether they may do what it asks: looked at before its body is read. And the handlers
that create keys of this API, and those of sessions, which browsers have instead.

`identify` is the one place that answers who it is: by the key shown, by a session, or by a proxy that knows them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from jqmaster.engine import packform, secret
from jqmaster.engine.calling import contract_of
from jqmaster.manifest.contract import ANYBODY as NO_ROLE
from jqmaster.manifest.contract import ROLES, ROLES_OF, Operation
from jqmaster.server import session
from jqmaster.server.http.calls import run
from jqmaster.server.http.own import own
from jqmaster.server.http_error import HttpError
from jqmaster.server.keyring import ANYBODY, Identity
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request
from jqmaster.server.reader import check, members, unpacked

Scope = Mapping[str, Any]
_SCHEME = b"bearer "
_ASKS = b'Bearer realm="jq"'


def is_closed(master: Master) -> bool:
    """Whether a key is asked for."""
    return master.keyring is not None and master.keyring.is_required


def admit(master: Master, operation: Operation, path: str, scope: Scope) -> Identity:
    """Who may ask for an operation by this path. Raises 401, 403 and 429."""
    keyring = master.keyring
    if keyring is None or not keyring.is_required or operation.roles == (NO_ROLE,):
        return ANYBODY
    who = identify(master, scope)
    wait_s = keyring.wait_s(who)
    if wait_s > 0:
        raise _too_fast("rate limit exceeded for this key", wait_s)
    if needed := operation.lacking(who.roles):
        why = f"{scope['method']} {path} needs a key with the role {' or '.join(needed)}"
        raise HttpError(403, "FORBIDDEN", why)
    return who


def identify(master: Master, scope: Scope) -> Identity:
    """Who sends this. Raises 401 where that cannot be told."""
    assert master.keyring is not None
    shown = next((value for name, value in scope["headers"] if name == b"authorization"), None)
    if shown is None:
        who = master.proxies.find(scope) or session.find(master.keyring, scope, master.session_idle_s)
        if who is not None:
            return who
        raise _unknown("this master asks for a key: Authorization: Bearer jq_…", _ASKS)
    is_key = shown[: len(_SCHEME)].lower() == _SCHEME
    identity = master.keyring.find(shown[len(_SCHEME) :].strip().decode("latin-1")) if is_key else None
    if identity is None:
        raise unknown_key()
    return identity


def unknown_key() -> HttpError:
    """401 for a key that lets nobody in."""
    return _unknown("the key is unknown, has expired or was revoked", _ASKS + b', error="invalid_token"')


def _too_fast(message: str, wait_s: float) -> HttpError:
    return HttpError(429, "RATE", message, more=((b"retry-after", b"%d" % math.ceil(wait_s)),))


def _unknown(message: str, asks: bytes) -> HttpError:
    return HttpError(401, "UNAUTHORIZED", message, more=((b"www-authenticate", asks),))


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
    check(request.body)
    own = {"id": packform.pack(new.id), "digest": packform.pack(new.digest)}
    document = await run(master, request, contract_of("grant"), [packform.raw_map(members(request.body) | own)])
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
    identity = identify(master, request.scope)
    headers = []
    logged_in = session.find(keyring, request.scope, master.session_idle_s)
    if b"authorization" not in request.headers and logged_in == identity:
        renewed = session.make(keyring, identity.key_id)
        headers = [session.set_cookie(renewed, request.scope, master.proxies)]
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
    check(request.body)
    shown = unpacked(members(request.body).get("key", b""))
    keyring = master.keyring
    identity = keyring.find(shown) if keyring is not None and isinstance(shown, str) else None
    if keyring is None or identity is None:
        raise unknown_key()
    made = session.make(keyring, identity.key_id)
    document = await _told(master, identity, asks=True, has_session=True)
    return Reply(200, document, headers=[session.set_cookie(made, request.scope, master.proxies)])


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
    return Reply(204, headers=[session.set_cookie("", request.scope, master.proxies)])


async def _told(master: Master, identity: Identity, *, asks: bool, has_session: bool = False) -> bytes:
    rights = {right for role in identity.roles for right in ROLES_OF[role]}
    queues = None if identity.queues is None else list(identity.queues)
    return packform.pack(
        {
            "name": identity.name,
            "roles": [role for role in ROLES if role in rights],
            "queues": queues,
            "asks": asks,
            "session": has_session,
            "master": await master.about(),
        }
    )
