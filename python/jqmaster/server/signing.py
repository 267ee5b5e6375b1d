"""Signatures of what is pushed to workers, as Standard Webhooks has them (docs/push.md)."""

from __future__ import annotations

import base64
import hmac
import re
import secrets
import time
from collections.abc import Iterable

PREFIX = "whsec_"
TOLERANCE_S = 300  # how far the sender's clock may be from ours, and how long a push may be on its way
# A timestamp may be five minutes ahead when it comes first, and five minutes old when it comes again.
REMEMBER_S = 2 * TOLERANCE_S
_LEAST_BYTES, _MOST_BYTES = 24, 64
# With a full stop the id could reach into the body, which others than the server write.
_ID = re.compile(rb"[!-\-/-~]{1,255}\Z")
_TIME = re.compile(rb"\d{1,12}\Z")


def new_secret() -> str:
    """A random one."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def key_of(secret: str) -> bytes:
    """The key that a secret stands for. Raises ValueError, which does not show it."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError:
        key = b""
    if not secret.startswith(PREFIX) or not _LEAST_BYTES <= len(key) <= _MOST_BYTES:
        raise ValueError(f"a secret is {PREFIX} and {_LEAST_BYTES} to {_MOST_BYTES} bytes in base64") from None
    return key


def secrets_of(text: str) -> tuple[str, ...]:
    """Secrets with commas between. Raises ValueError, which does not show them."""
    parts = tuple(part.strip() for part in text.split(","))
    for secret in parts:
        key_of(secret)
    return parts


def signature(secret: str, push_id: bytes, timestamp: bytes, body: bytes) -> bytes:
    """`v1,` and the base64 of the HMAC."""
    digest = hmac.digest(key_of(secret), b"%b.%b.%b" % (push_id, timestamp, body), "sha256")
    return b"v1," + base64.b64encode(digest)


def signed(secrets: Iterable[str], push_id: str, body: bytes, now_s: float | None = None) -> dict[str, str]:
    """The headers of a push. Raises ValueError for what is no secret."""
    timestamp = str(int(time.time() if now_s is None else now_s))
    headers = {"webhook-id": push_id, "webhook-timestamp": timestamp}
    signatures = [signature(secret, push_id.encode(), timestamp.encode(), body).decode() for secret in secrets]
    return {**headers, "webhook-signature": " ".join(signatures)} if signatures else headers


def refusal(
    secrets: Iterable[str], headers: Iterable[tuple[bytes, bytes]], body: bytes, now_s: float | None = None
) -> str | None:
    """Why this is no push of a server that knows one of `secrets`; None when it is one. It may be one that was here
    before: who takes it remembers it for `REMEMBER_S`."""
    fields = dict(headers)
    push_id, timestamp = fields.get(b"webhook-id", b""), fields.get(b"webhook-timestamp", b"")
    if not _ID.match(push_id) or not _TIME.match(timestamp):
        return "it has no webhook-id or no webhook-timestamp"
    expected = [signature(secret, push_id, timestamp, body) for secret in secrets]
    signatures = fields.get(b"webhook-signature", b"").split(b" ")
    if not any(hmac.compare_digest(right, shown) for right in expected for shown in signatures):
        return "no signature is right"
    if abs((time.time() if now_s is None else now_s) - int(timestamp)) > TOLERANCE_S:
        return f"its timestamp is more than {TOLERANCE_S} s from this worker's clock"
    return None
