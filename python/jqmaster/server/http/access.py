"""Who may do what: looked at before a request's body is read.

Who can reach a server that asks for no keys needs no password, and a browser on the same host can. A page of another
site cannot read the answers, as nothing here allows it to; but it could pause a queue or run a job. And where that site
has its own name lead to this host (DNS rebinding), its page counts as the server's own and could read: so it is also
looked by which name the server is asked.

A session of the web UI is a cookie that names a key and says when it was last used, signed with a secret that servers
alone know (`keyring`). Every server of the namespace can check it, nothing is stored, and with the key it is gone.
"""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from itsdangerous import BadSignature, TimestampSigner
from werkzeug.http import dump_cookie, parse_cookie

from jqmaster.manifest.contract import ANYBODY, ROLES, Operation
from jqmaster.server.egress import address_of
from jqmaster.server.http import within
from jqmaster.server.http_error import HttpError
from jqmaster.server.keyring import ANONYMOUS, Identity, Keyring
from jqmaster.server.master import Master
from jqmaster.server.message import Request

COOKIE = "jq_session"
IDLE_S = 3600
_MOST_NAME = 100  # bytes, as names of keys, and in the trail
_PORT = re.compile(r":\d*\Z")


async def admit(master: Master, operation: Operation, path: str, request: Request) -> Identity:
    """Who may ask for an operation by this path. Raises 401, 403 and 429."""
    keyring = master.keyring
    if operation.name in ("alive", "health"):
        return ANONYMOUS
    await keyring.refresh()
    if not keyring.is_required or operation.roles == (ANYBODY,):
        return ANONYMOUS
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
    """Who sends this: by the key shown, by a proxy that knows them, or by a session. Raises 401 where that cannot be
    told."""
    shown = request.header("authorization")
    if shown is None:
        return known(_named_by_proxy(master, request) or logged_in(master.keyring, request))
    scheme, _, key = shown.partition(" ")
    return known(master.keyring.find(key.strip()) if scheme.lower() == "bearer" else None)


def known(who: Identity | None) -> Identity:
    """Raises 401 for nobody."""
    if who is None:
        why = "this server asks for a key: Authorization: Bearer jq_… There is none, or it is not good any more"
        raise HttpError("UNAUTHORIZED", why, more=((b"www-authenticate", b'Bearer realm="jq"'),))
    return who


# -- proxies and sessions -------------------------------------------------------------------------


def _is_trusted(master: Master, request: Request) -> bool:
    """Whether a request comes straight from a proxy that is trusted."""
    client = request.scope.get("client")
    address = address_of(client[0]) if client else None
    return address is not None and any(address in network for network in master.proxies)


def _named_by_proxy(master: Master, request: Request) -> Identity | None:
    """Whom the proxy names. Without roles, which stand with commas between, a user is a `viewer`."""
    user = request.headers.get(b"x-forwarded-user", b"")[:_MOST_NAME].decode(errors="ignore")
    if not (user and user.isprintable() and _is_trusted(master, request)):
        return None
    roles = request.header("x-forwarded-roles") or "viewer"
    wanted = {role_name.strip().lower() for role_name in roles.split(",")}
    return Identity(user, frozenset(role for role in ROLES if role in wanted))


def _signer(seal: bytes) -> TimestampSigner:
    return TimestampSigner(seal, salt="jq session", digest_method=hashlib.sha256)


def logged_in(keyring: Keyring, request: Request) -> Identity | None:
    """Who has logged in; None without a session, or when it has not been used for `IDLE_S`."""
    cookie = parse_cookie(request.headers.get(b"cookie", b"").decode("ascii", "ignore")).get(COOKIE, "")
    who = keyring.identity(cookie.partition(".")[0])
    if who is None:
        return None
    try:
        _, used = _signer(keyring.seal_of(who)).unsign(cookie, return_timestamp=True)
    except BadSignature:
        return None
    # Not by its `max_age`, which refuses what a server made whose clock is ahead of this one's.
    return who if time.time() - used.timestamp() <= IDLE_S else None


def cookie_for(master: Master, who: Identity | None, request: Request) -> tuple[bytes, bytes]:
    """The header that has a browser keep a session of who has shown a key, from now on; of nobody it ends."""
    is_secure = b"https" in (request.headers.get(b"x-forwarded-proto"), request.scope["scheme"].encode())
    session = _signer(master.keyring.seal_of(who)).sign(who.key_id).decode() if who else ""
    age = None if session else 0
    cookie = dump_cookie(COOKIE, session, max_age=age, secure=is_secure, httponly=True, samesite="Strict")
    return b"set-cookie", cookie.encode("ascii")


# -- pages of other sites -------------------------------------------------------------------------


def check_origin(headers: Mapping[bytes, bytes], hosts: frozenset[str] | None, *, reads: bool) -> None:
    """Raise 403 for a request that asks by another name than `hosts`, addresses and localhost (None: any), or for what
    a page of another site makes a browser send, unless it changes nothing."""
    host = headers.get(b"host", b"")
    if hosts is not None and not _is_own(host, hosts):
        why = f"this server does not answer to {host.decode('latin-1')!a}: start it with --allowed-hosts for that"
        raise HttpError("FORBIDDEN", why)
    if not reads and is_foreign(headers):
        raise HttpError("FORBIDDEN", "cross-origin request refused")


@lru_cache(maxsize=1024)
def _is_own(host: bytes, hosts: frozenset[str]) -> bool:
    """Whether a name cannot have been made to lead here by somebody else. No browser asks without one."""
    name = _PORT.sub("", host.decode("latin-1")).lower().removesuffix(".")
    if not name or name == "localhost" or name.endswith(".localhost") or name in hosts:
        return True
    return address_of(name.removeprefix("[").removesuffix("]")) is not None


def is_foreign(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a browser says so. Only browsers send these headers; over plain HTTP, `origin` alone."""
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    if site is not None:
        return site not in (b"same-origin", b"none")
    if origin is None:
        return False
    try:
        host = urlsplit(origin.decode("latin-1")).netloc.encode("latin-1")
    except ValueError:  # such as `http://[`
        return True
    return host not in (headers.get(b"host"), headers.get(b"x-forwarded-host"))
