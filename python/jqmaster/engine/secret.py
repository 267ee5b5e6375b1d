"""Keys of the HTTP API: `jq_<id>_<secret>`. Who has one shows it; Redis keeps only a digest of the secret. How a client
comes by its key, and shows it. No message here tells the key."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from jqmaster.connection.url import without_password

_FORM = re.compile(r"jq_[0-9a-f]{12}_[A-Za-z0-9_-]{43}")


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


def split(text: str) -> tuple[str, str]:
    """Id and secret of a key. What is no key has an id that no key has; it is done for every request."""
    return (text[3:15], text[16:]) if text[:3] == "jq_" and text[15:16] == "_" else ("", "")


def digest_of(secret: str) -> str:
    """The SHA-256 of a secret's text. It is random and long, so nothing slower is needed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def key_of(key: str | None = None, file: str | os.PathLike[str] | None = None) -> str | None:
    """The key given, or that in the file given, or in `JQ_KEY`, or in the file that `JQ_KEY_FILE` names; None: none.
    Raises ValueError for what is no key, OSError for a file that cannot be read."""
    if key is None and file is None:
        key = os.environ.get("JQ_KEY") or None
        file = os.environ.get("JQ_KEY_FILE") or None
    if key is None and file is not None:
        key = Path(file).read_text().strip()
    if key is not None and not _FORM.fullmatch(key):
        where = f"{os.fspath(file)}" if file is not None else "the key given, or JQ_KEY"
        raise ValueError(f"{where}: expected a key such as jq_0123456789ab_…")
    return key


def masters_of(url: str, namespace: str | None = None) -> list[str]:
    """The servers that a URL names, with commas between. Raises ValueError for what is none, for user or password in
    it, and for a `namespace` that was named as well."""
    urls = url.split(",")
    if not all(one.startswith(("http://", "https://")) for one in urls):
        raise ValueError(f"{without_password(url)}: expected a URL that begins with http://, https://, redis://, …")
    if namespace is not None:
        raise ValueError(f"namespace {namespace} applies to Redis only: a server has its own namespace")
    if any("@" in urlsplit(one).netloc for one in urls):
        raise ValueError(
            "the URL of a server has no user or password: URLs are logged and shown. Its key is given by JQ_KEY, "
            "JQ_KEY_FILE, --key-file or JQ(…, key=…)"
        )
    return urls
