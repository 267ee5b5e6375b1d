"""Keys of the HTTP API: `jq_<id>_<secret>`. Who has one shows it; Redis keeps only a digest of the secret."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

_FORM = re.compile(r"jq_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


class NewKey(NamedTuple):
    """`text` is the key itself, for its owner alone."""

    id: str
    digest: str
    text: str

    def __repr__(self) -> str:
        return f"<NewKey {self.id}>"


def new() -> NewKey:
    """A key that nobody has yet, its secret of 256 random bits."""
    key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    return NewKey(key_id, digest_of(secret), f"jq_{key_id}_{secret}")


def parse(text: str) -> tuple[str, str] | None:
    """Id and secret; None for what is no key."""
    match = _FORM.fullmatch(text)
    return (match[1], match[2]) if match else None


def split(text: str) -> tuple[str, str]:
    """The same of any text: what is no key has an id that no key has. It is done for every request."""
    return (text[3:15], text[16:]) if text[:3] == "jq_" and text[15:16] == "_" else ("", "")


def digest_of(secret: str) -> str:
    """The SHA-256 of a secret's text. It is random and long, so nothing slower is needed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def fits(secret: str, digest: str) -> bool:
    """Whether this is the digest's secret; as long for any that is not."""
    return hmac.compare_digest(digest_of(secret), digest)
