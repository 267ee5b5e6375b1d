"""Who uses the web UI: somebody who has logged in with a key, or whom a proxy in front of the master knows.

A session is a cookie that names a key and says when it was last used, signed with a secret that masters alone know
(`keyring`). Every master of the namespace can check it, nothing is stored, and with the key it is gone.
"""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import time
from collections.abc import Collection, Mapping

from itsdangerous import BadSignature, TimestampSigner
from werkzeug.http import dump_cookie, parse_cookie

from jqmaster.manifest.contract import ROLES
from jqmaster.server.keyring import Identity, Keyring
from jqmaster.server.message import Request
from jqmaster.server.origin import is_address

COOKIE = "jq_session"
IDLE_S = 3600
_MOST_NAME = 100  # bytes, as names of keys, and in the trail

Headers = Mapping[bytes, bytes]
Networks = Collection[ipaddress.IPv4Network | ipaddress.IPv6Network]
"""Of proxies that say who somebody is, since they have asked. What others send in these headers counts nothing."""


def trusts(proxies: Networks, request: Request) -> bool:
    """Whether a request comes straight from one of them."""
    client = request.scope.get("client")
    if not proxies or not client or not is_address(client[0]):
        return False
    return any(ipaddress.ip_address(client[0]) in network for network in proxies)


def named(proxies: Networks, request: Request) -> Identity | None:
    """Whom the proxy names. Without roles, which stand with commas between, a user is a `viewer`."""
    user = _name_of(_text(request.headers, "x-forwarded-user"))
    if not user or not trusts(proxies, request):
        return None
    roles = _text(request.headers, "x-forwarded-roles") or "viewer"
    wanted = {role_name.strip().lower() for role_name in roles.split(",")}
    return Identity(user, frozenset(role for role in ROLES if role in wanted))


def _signer(seal: bytes) -> TimestampSigner:
    return TimestampSigner(seal, salt="jq session", digest_method=hashlib.sha256)


def find(keyring: Keyring, headers: Headers) -> Identity | None:
    """Who has logged in; None without a session, or when it has not been used for `IDLE_S`."""
    cookie = parse_cookie(_text(headers, "cookie")).get(COOKIE, "")
    who = keyring.identity(cookie.partition(".")[0])
    if who is None:
        return None
    try:
        _, used = _signer(keyring.seal_of(who)).unsign(cookie, return_timestamp=True)
    except BadSignature:
        return None
    # Not by its `max_age`, which refuses what a master made whose clock is ahead of this one's.
    return who if time.time() - used.timestamp() <= IDLE_S else None


def set_cookie(keyring: Keyring, who: Identity | None, request: Request, proxies: Networks) -> tuple[bytes, bytes]:
    """The header that has a browser keep a session of who has shown a key, from now on; of nobody it ends."""
    scheme = _text(request.headers, "x-forwarded-proto") if trusts(proxies, request) else ""
    is_secure = (scheme or request.scope.get("scheme")) == "https"
    session = _signer(keyring.seal_of(who)).sign(who.key_id).decode() if who else ""
    age = None if session else 0
    cookie = dump_cookie(COOKIE, session, max_age=age, secure=is_secure, httponly=True, samesite="Strict")
    return b"set-cookie", cookie.encode("ascii")


def _name_of(user: str) -> str:
    """A user as the trail takes one, or none. Most proxies send UTF-8; what is none, they mean as Latin-1."""
    with contextlib.suppress(UnicodeDecodeError):
        user = user.encode("latin-1").decode()
    if any(c < " " or c == "\x7f" for c in user):
        return ""
    return user.encode()[:_MOST_NAME].decode(errors="ignore")


def _text(headers: Headers, name: str) -> str:
    return headers.get(name.encode("latin-1"), b"").decode("latin-1")
