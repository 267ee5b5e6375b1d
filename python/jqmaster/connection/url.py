"""URLs of Redis, wherever one is taken: one server, one that Sentinels know, or a cluster.

Imports nothing of redis-py, for commands that need none.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

SCHEMES = (
    "unix://",
    *(f"{base}{kind}://" for base in ("redis", "rediss") for kind in ("", "+sentinel", "+cluster")),
)
FORMS = "redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://"

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:@/]+))(?::(\d{1,5}))?")
_SECRET = re.compile(r"\b(jq_|whsec_)[\w+/=-]+")  # keys, and what pushes are signed with
_OPTION = re.compile(r"([?&][^=&]*)=[^&]*")
ENCODED = "in user and password /, ?, # and @ are percent-encoded"

Address = tuple[str, int]


class RedisUrl(NamedTuple):
    """One server, nodes of a cluster, or Sentinels that know `service`. `url`: the form for redis-py, with the first
    host alone."""

    url: str
    places: tuple[Address | str, ...]
    service: str = ""


def is_redis(url: str) -> bool:
    """Whether a URL is that of a Redis."""
    return url.startswith(SCHEMES)


def parse(url: str) -> RedisUrl:
    """Raises ValueError, which does not show the password."""
    if not is_redis(url):
        raise ValueError(f"{without_password(url)}: expected a URL that begins with {FORMS}")
    parts = urlsplit(url)
    scheme, _, kind = parts.scheme.partition("+")
    user, at, listed = parts.netloc.rpartition("@")
    if scheme != "unix" and "@" in url and not at:  # else a part of a password would be taken for an address
        raise ValueError(f"no host found; {ENCODED}")
    path = "" if scheme == "unix" else parts.path.strip("/")
    service, _, database = path.partition("/") if kind == "sentinel" else ("", "", path)
    if kind == "sentinel" and not service:
        raise ValueError("expected the name of the service behind the hosts: redis+sentinel://a,b,c/mymaster")
    for number in (database, *(value for name, value in parse_qsl(parts.query) if name == "db")):
        if number not in ("", "0"):  # who waits in one would be told of jobs of another, whose ids may be the same
            raise ValueError(
                f"database {number}: JQ works in database 0 alone, since Redis' Pub/Sub knows no databases; "
                "leave the number out, and keep programs apart by namespaces, such as {shop} and {mail}"
            )
    if scheme == "unix":
        if listed or not parts.path:
            raise ValueError("expected a whole path behind unix://, such as unix:///run/redis.sock")
        return RedisUrl(url, (unquote(parts.path),))
    port = 26379 if service else 6379
    plain = urlunsplit((scheme, f"{user}{at}{listed.partition(',')[0]}", "", parts.query, ""))
    return RedisUrl(plain, tuple(_address(host, port) for host in (listed or "localhost").split(",")), service)


def without_password(url: str) -> str:
    """`url`, of Redis or of HTTP, or several with commas, fit for a log; also what is none."""
    return ",".join(map(_hidden, re.split(r",(?=https?://)", url)))


def without_passwords(text: str) -> str:
    """A message in which URLs may stand, or secrets of ours."""
    return re.sub(r"(?:\S*://|\S+@)(?:\S*[^\s:])?", lambda url: without_password(url[0]), _SECRET.sub(r"\1***", text))


def _hidden(url: str) -> str:
    url = _OPTION.sub(lambda match: f"{match[1]}=***" if "password" in unquote(match[1]).lower() else match[0], url)
    mark = "://" if "://" in url else ""
    scheme, rest = url.split(mark, 1) if mark else ("", url)
    _, at, hosts = rest.rpartition("@")
    if at:
        return f"{scheme}{mark}***@{hosts}"
    # Whoever did not encode their password may have what looks like an option in it.
    listed = re.split("[/?#]", rest, maxsplit=1)[0]
    is_whole = ":" not in listed or all(map(_HOST.fullmatch, listed.split(",")))
    return url if is_whole else f"{scheme}{mark}***"


def _address(text: str, port: int) -> Address:
    match = _HOST.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r}: expected host or host:port, several with commas; {ENCODED}")
    return match[1] or match[2], int(match[3] or port)
