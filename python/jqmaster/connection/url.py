"""URLs of Redis, wherever one is taken: one server, one that Sentinels know, or a cluster.

Imports nothing of redis-py, for commands that need none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

SCHEMES = (
    "unix://",
    *(f"{base}{kind}://" for base in ("redis", "rediss") for kind in ("", "+sentinel", "+cluster")),
)
FORMS = "redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://"

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:@/]+))(?::(\d{1,5}))?")
_SECRET = re.compile(r"\b(jq_|whsec_)[\w+/=-]+")  # keys, and what pushes are signed with
_OPTION = re.compile(r"([?&][^=&]*)=[^&]*")
_OWN = "sentinel_"
ENCODED = "in user and password /, ?, # and @ are percent-encoded"
_PORTS = {"sentinel": 26379, "cluster": 6379}

Address = tuple[str, int]


class RedisUrl(NamedTuple):
    """What a URL names. `url` is in redis-py's form; its host is only the first of `hosts`."""

    kind: Literal["server", "sentinel", "cluster"]
    url: str
    hosts: tuple[Address, ...] = ()
    service: str = ""
    sentinel: Mapping[str, str] = {}  # username and password that the Sentinels themselves ask for


def is_redis(url: str) -> bool:
    """Whether a URL is that of a Redis."""
    return url.startswith(SCHEMES)


def parse(url: str) -> RedisUrl:
    """Raises ValueError, which does not show the password."""
    if not is_redis(url):
        raise ValueError(f"expected a URL that begins with {FORMS}")
    parts = urlsplit(url)
    scheme, _, kind = parts.scheme.partition("+")
    if parts.scheme != "unix" and not _is_whole(url, parts, bool(kind)):
        raise ValueError(f"no host and port found; {ENCODED}")
    if kind not in ("sentinel", "cluster"):
        _check_database("" if parts.scheme == "unix" else parts.path.strip("/"), parts.query)
        return RedisUrl("server", url)
    user, at, listed = parts.netloc.rpartition("@")
    hosts = tuple(_address(host, _PORTS[kind]) for host in listed.split(","))
    path = parts.path.strip("/")
    service, _, database = path.partition("/") if kind == "sentinel" else ("", "", path)
    if kind == "sentinel" and not service:
        raise ValueError("expected the name of the service behind the hosts: redis+sentinel://a,b,c/mymaster")
    if kind == "cluster" and database not in ("", "0"):
        raise ValueError("a cluster has no databases: nothing may follow the hosts but options")
    _check_database(database, parts.query)
    options = parse_qsl(parts.query, keep_blank_values=True)
    own = {name.removeprefix(_OWN): value for name, value in options if name.startswith(_OWN)}
    if not own.keys() <= {"username", "password"} or (own and kind == "cluster"):
        raise ValueError("options for Sentinels are sentinel_username and sentinel_password")
    query = urlencode([pair for pair in options if not pair[0].startswith(_OWN)])
    first = re.sub(r",.*", "", listed)
    plain = urlunsplit((scheme, f"{user}{at}{first}", "", query, ""))
    return RedisUrl(kind, plain, hosts, service, own)  # type: ignore[arg-type] # looked at above


def _check_database(path: str, query: str) -> None:
    """Pub/Sub knows no databases: who waits in one would be told of ends of jobs of another, whose ids may be the
    same."""
    for number in (path, *(value for name, value in parse_qsl(query) if name == "db")):
        if number.isdecimal() and int(number):
            raise ValueError(
                f"database {number}: JQ works in database 0 alone, since Redis' Pub/Sub knows no databases; "
                "leave the number out, and keep programs apart by namespaces, such as {shop} and {mail}"
            )


def _is_whole(url: str, parts: SplitResult, has_hosts: bool) -> bool:
    """Whether user and password end where they should: else a part of them would be taken for an address."""
    _, at, host = parts.netloc.rpartition("@")
    if has_hosts:
        return bool(at) or "@" not in url
    return "@" not in parts.path and re.fullmatch(r"(\[[^\[\]@]*\]|[^\[\]:@]*)(:\d*)?", host) is not None


def without_password(url: str) -> str:
    """`url`, of Redis or of HTTP, or several with commas, fit for a log; also what is none."""
    return ",".join(map(_hidden, re.split(r",(?=https?://)", url)))


def without_passwords(text: str) -> str:
    """A message in which URLs may stand, or secrets of ours."""
    return re.sub(r"\S*(?:://|@)\S*", lambda match: without_password(match[0]), _SECRET.sub(r"\1***", text))


def _hidden(url: str) -> str:
    url = _OPTION.sub(lambda match: f"{match[1]}=***" if "password" in unquote(match[1]).lower() else match[0], url)
    before, mark, rest = url.partition("://")
    if not mark:
        before, rest = "", url
    user, at, hosts = rest.rpartition("@")
    name, colon, _ = user.partition(":")
    if before.endswith(("http", "https")):
        return f"{before}{mark}***@{hosts}" if at else url  # a token may stand there alone
    if at:
        return f"{before}{mark}{name}:***@{hosts}" if colon else url
    # Whoever did not encode their password may have what looks like an option in it.
    listed = re.split("[/?#]", rest, maxsplit=1)[0]
    is_whole = ":" not in listed or all(map(_HOST.fullmatch, listed.split(",")))
    return url if is_whole else f"{before}{mark}***"


def _address(text: str, port: int) -> Address:
    match = _HOST.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r}: expected host or host:port, several with commas; {ENCODED}")
    return match[1] or match[2], int(match[3] or port)
