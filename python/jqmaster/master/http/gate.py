"""Who a request comes from, and whether they may do what it asks: looked at before its body is read.

`identify` is the one place that answers who it is: by the key shown, by a session, or by a proxy that knows them.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from jqmaster.master import session
from jqmaster.master.master import Master
from jqmaster.wire.errors import HttpError
from jqmaster.wire.message import ANYBODY, Identity
from jqmaster.wire.operation import Operation

Scope = Mapping[str, Any]
_SCHEME = b"bearer "
_ASKS = b'Bearer realm="jq"'


def is_closed(master: Master) -> bool:
    """Whether a key is asked for."""
    return master.keyring is not None and master.keyring.is_required


def admit(master: Master, operation: Operation, scope: Scope) -> Identity:
    """Who may do this. Raises 401, 403 and 429."""
    keyring = master.keyring
    if keyring is None or not keyring.is_required or operation.role is None:
        return ANYBODY
    who = identify(master, scope)
    wait_s = keyring.wait_s(who)
    if wait_s > 0:
        message = "this key makes more requests than it may"
        raise HttpError(429, "RATE", message, more=((b"retry-after", b"%d" % math.ceil(wait_s)),))
    if not operation.is_for(who.roles):
        needed = " or ".join(operation.roles)
        raise HttpError(403, "FORBIDDEN", f"{operation.name} needs a key with the role {needed}")
    return who


def identify(master: Master, scope: Scope) -> Identity:
    """Who sends this. Raises 401 where that cannot be told."""
    assert master.keyring is not None
    shown = next((value for name, value in scope["headers"] if name == b"authorization"), None)
    if shown is None:
        who = master.proxies.find(scope) or session.find(master.keyring, scope)
        if who is not None:
            return who
        raise _unknown("this master asks for a key: Authorization: Bearer jq_…", _ASKS)
    is_key = shown[: len(_SCHEME)].lower() == _SCHEME
    found = master.keyring.find(shown[len(_SCHEME) :].strip().decode("latin-1")) if is_key else None
    if found is None:
        raise unknown_key()
    return found


def unknown_key() -> HttpError:
    """401 for a key that lets nobody in."""
    return _unknown("the key is unknown, has expired or was revoked", _ASKS + b', error="invalid_token"')


def _unknown(message: str, asks: bytes) -> HttpError:
    return HttpError(401, "UNAUTHORIZED", message, more=((b"www-authenticate", asks),))


async def while_known(
    master: Master, who: Identity, stream: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """A stream that ends when the key it was asked for with is no longer good."""
    async with aclosing(stream):
        async for piece in stream:
            if master.keyring is not None and who.key_id and not master.keyring.holds(who):
                return
            yield piece
