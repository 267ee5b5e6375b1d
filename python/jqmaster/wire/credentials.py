"""How a client comes by its key of the HTTP API, and shows it. No message here tells the key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from jqmaster.wire import secret


def key_of(key: str | None = None, file: str | os.PathLike[str] | None = None) -> str | None:
    """The key given, or that in the file given, or in `JQ_KEY`, or in the file that `JQ_KEY_FILE` names; None: none.
    Raises ValueError for what is no key, OSError for a file that cannot be read."""
    if key is None and file is None:
        key = os.environ.get("JQ_KEY") or None
        file = os.environ.get("JQ_KEY_FILE") or None
    if key is None and file is not None:
        key = Path(file).read_text().strip()
    if key is not None and secret.parse(key) is None:
        where = f"{os.fspath(file)}" if file is not None else "the key given, or JQ_KEY"
        raise ValueError(f"{where}: expected a key such as jq_0123456789ab_…")
    return key


def shown(key: str | None) -> Mapping[str, str]:
    """The headers that show a key."""
    return {} if key is None else {"authorization": f"Bearer {key}"}


def masters_of(url: str, namespace: str | None = None) -> list[str]:
    """The masters that a URL names, with commas between. Raises ValueError as `check_master`, and for a `namespace`
    that was named as well."""
    if namespace is not None:
        raise ValueError(f"namespace {namespace} is for a Redis: a master has its own")
    urls = url.split(",")
    for one in urls:
        check_master(one)
    return urls


def check_master(url: str) -> None:
    """Raise ValueError for a master's URL with user or password in it."""
    if "@" in urlsplit(url).netloc:
        raise ValueError(
            "the URL of a master has no user or password: URLs are logged and shown. Its key is given by JQ_KEY, "
            "JQ_KEY_FILE, --key-file or JQ(…, key=…)"
        )
