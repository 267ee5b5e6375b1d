"""URLs of Redis: what they name, and what is refused."""

from __future__ import annotations

import pytest

from jqmaster.connection.topology import Sentinels
from jqmaster.connection.url import RedisUrl, parse
from jqmaster.engine.engine import connect


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("redis://host:1/0", RedisUrl("redis://host:1", (("host", 1),))),
        ("unix:///a/b,c.sock", RedisUrl("unix:///a/b,c.sock", ("/a/b,c.sock",))),
        (
            "redis+cluster://a:1,b,[::1]:3?max_connections=10",
            RedisUrl(
                "redis://a:1?max_connections=10", (("a", 1), ("b", 6379), ("::1", 3))
            ),
        ),
        (
            "rediss+cluster://user:p%40ss@a:1,b:2/0",
            RedisUrl("rediss://user:p%40ss@a:1", (("a", 1), ("b", 2))),
        ),
        (
            "redis+sentinel://:secret@a,b:2/jobs",
            RedisUrl("redis://:secret@a", (("a", 26379), ("b", 2)), "jobs"),
        ),
        (
            "rediss+sentinel://a/jobs/0?ssl_check_hostname=no&sentinel_password=other",
            RedisUrl("rediss://a?ssl_check_hostname=no&sentinel_password=other", (("a", 26379),), "jobs"),
        ),
    ],
)  # fmt: skip
def test_what_a_url_names(url: str, target: RedisUrl) -> None:
    assert parse(url) == target
    client = connect(url)
    assert client.login.commands in ((), (("AUTH", "secret"),), (("AUTH", "user", "p@ss"),))
    if "other" in url:
        assert isinstance(client.finder, Sentinels) and client.finder._login.commands == (("AUTH", "other"),)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://host", "http://host: expected .* redis\\+cluster"),
        ("unix://run/redis.sock", "unix:///run/redis.sock"),
        ("unix://", "unix:///run/redis.sock"),
        ("redis+sentinel://a,b", "name of the service"),
        ("redis+cluster://a,b/1", "no databases"),
        ("redis+cluster://user:secret@a:x", "'a:x'"),
        ("redis://host:6379/1", "database 1: .* namespaces"),
        ("redis://host?db=3", "database 3: "),
        ("unix:///run/redis.sock?db=1", "database 1: "),
        ("redis+sentinel://a,b/jobs/1", "database 1: "),
        ("redis://:pass/secret@host:1/0", "percent-encoded"),
        ("redis+cluster://u:secret/x@a:1,b", "percent-encoded"),
        ("redis+cluster://host?nonsense=1", "nonsense"),
        ("redis+sentinel://host/jobs?sentinel_port=1", "sentinel_port"),
        ("redis://localhost:abc", "'localhost:abc': expected host or host:port"),
        ("rediss://host?ssl_ca_certs=/no/such/ca.pem", "/no/such/ca.pem: .*No such file"),
        ("redis://host?max_connections=0", "cannot be used: max_connections=0"),
        ("redis://host?socket_timeout=-1", "cannot be used: socket_timeout=-1"),
    ],
)
def test_a_wrong_url_is_refused(url: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        connect(url)
    assert "secret" not in str(caught.value)
