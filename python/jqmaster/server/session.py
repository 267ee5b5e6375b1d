"""Who uses the web UI: somebody who has logged in with a key, or whom a proxy in front of the master knows.

A session is a cookie that names a key and says when it was last used, signed with a secret that masters alone know
(`keyring`). Every master of the namespace can check it, nothing is stored, and with the key it is gone.
"""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from itsdangerous import BadSignature, TimestampSigner
from werkzeug.http import parse_cookie

from jqmaster.manifest.contract import ROLES
from jqmaster.server.keyring import Identity, Keyring

COOKIE = "jq_session"
IDLE_S = 3600.0
_MOST_NAME = 100  # bytes, as names of keys, and in the trail

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Scope = Mapping[str, Any]


class Proxies(NamedTuple):
    """Proxies that say who somebody is, since they have asked. What others send in these headers counts nothing.

    `roles_header` has the roles, with commas between; without it a user is a `viewer`.
    """

    networks: Collection[Network] = ()
    user_header: str = "x-forwarded-user"
    roles_header: str = "x-forwarded-roles"

    def trusts(self, scope: Scope) -> bool:
        """Whether a request comes straight from one of them."""
        client = scope.get("client")
        try:
            address = ipaddress.ip_address(client[0]) if client else None
        except ValueError:
            return False
        return address is not None and any(address in network for network in self.networks)

    def find(self, scope: Scope) -> Identity | None:
        """Whom the proxy names."""
        if not self.networks or not self.trusts(scope):
            return None
        user = _name_of(_header(scope, self.user_header) or "")
        if not user:
            return None
        roles = _header(scope, self.roles_header)
        wanted = {role_name.strip().lower() for role_name in (roles or "viewer").split(",")}
        return Identity(user, frozenset(role for role in ROLES if role in wanted))


NO_PROXIES = Proxies()


def _signer(secret: bytes) -> TimestampSigner:
    return TimestampSigner(secret, salt="jq session", digest_method=hashlib.sha256)


def make(keyring: Keyring, key_id: str) -> str:
    """A session of who has shown this key, from now on."""
    return _signer(keyring.seal_of(key_id) or b"").sign(key_id).decode()


def find(keyring: Keyring, scope: Scope, idle_s: float = IDLE_S) -> Identity | None:
    """Who has logged in; None without a session, or when it has not been used for so long."""
    cookie = _cookie(scope)
    key_id = cookie.partition(".")[0]
    secret = keyring.seal_of(key_id)
    if secret is None:
        return None
    try:
        _signer(secret).unsign(cookie, max_age=round(idle_s))
    except BadSignature:
        return None
    return keyring.identity(key_id)


def set_cookie(session: str, scope: Scope, proxies: Proxies) -> tuple[bytes, bytes]:
    """The header that has a browser keep a session; an empty one ends it."""
    scheme = _header(scope, "x-forwarded-proto") if proxies.trusts(scope) else None
    cookie = [f"{COOKIE}={session}", "Path=/", "HttpOnly", "SameSite=Strict"]
    if (scheme or scope.get("scheme")) == "https":
        cookie.append("Secure")
    if not session:
        cookie.append("Max-Age=0")
    return b"set-cookie", "; ".join(cookie).encode("ascii")


def _name_of(user: str) -> str:
    """A user as the trail takes one, or none. Most proxies send UTF-8; what is none, they mean as Latin-1."""
    with contextlib.suppress(UnicodeDecodeError):
        user = user.encode("latin-1").decode()
    if any(c < " " or c == "\x7f" for c in user):
        return ""
    return user.encode()[:_MOST_NAME].decode(errors="ignore")


def _cookie(scope: Scope) -> str:
    return parse_cookie(_header(scope, "cookie")).get(COOKIE, "")


def _header(scope: Scope, name: str) -> str | None:
    wanted = name.encode("latin-1")
    values = [value.decode("latin-1") for key, value in scope["headers"] if key == wanted]
    return values[-1] if values else None
