"""The handlers that create keys of this API, and those of sessions, which browsers have instead of keys."""

from __future__ import annotations

import msgpack

from jqmaster.master import session
from jqmaster.master.http.gate import identify, unknown_key
from jqmaster.master.http.translate import Translation
from jqmaster.master.master import Master
from jqmaster.wire import packform, secret
from jqmaster.wire.message import ANYBODY, Identity, Reply, Request
from jqmaster.wire.operation import ROLES, ROLES_OF
from jqmaster.wire.operations import OPERATIONS

_GRANT = Translation(OPERATIONS["grant"])
_LOG_IN = Translation(OPERATIONS["session.begin"])


async def grant(master: Master, request: Request) -> Reply:
    """`POST /keys`: a new key, which is told this once."""
    new = secret.new()
    asked, _ = _GRANT.read(request)
    spec = packform.extend_map(asked, {"id": packform.pack(new.id), "digest": packform.pack(new.digest)})
    document = await master.engine.call("grant", spec)
    return Reply(201, packform.extend_map(document, {"key": packform.pack(new.text)}))


async def who(master: Master, request: Request) -> Reply:
    """`GET /session`: who asks, what they may, and of what master. Puts off the end of a session."""
    keyring = master.keyring
    if keyring is None or not keyring.is_required:
        return Reply(200, await _told(master, ANYBODY, asks=False))
    identity = identify(master, request.scope)
    headers = []
    if b"authorization" not in request.headers and session.find(keyring, request.scope) == identity:
        renewed = session.make(keyring, identity.key_id, master.session_idle_s)
        headers = [session.set_cookie(renewed, request.scope, master.proxies)]
    return Reply(200, await _told(master, identity, asks=True, has_session=bool(headers)), headers=headers)


async def log_in(master: Master, request: Request) -> Reply:
    """`POST /session`: a session for who shows a key."""
    spec, _ = _LOG_IN.read(request)
    shown = msgpack.unpackb(spec, strict_map_key=False).get("key")
    keyring = master.keyring
    identity = keyring.find(shown) if keyring is not None and isinstance(shown, str) else None
    if keyring is None or identity is None:
        raise unknown_key()
    made = session.make(keyring, identity.key_id, master.session_idle_s)
    told = await _told(master, identity, asks=True, has_session=True)
    return Reply(200, told, headers=[session.set_cookie(made, request.scope, master.proxies)])


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
            "master": await master.standing.told(master.engine),
        }
    )
