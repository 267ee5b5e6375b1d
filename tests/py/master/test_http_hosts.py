"""By which names a master may be asked: a page whose site's name was made to lead here reads nothing."""

import asyncio

import pytest
import requests

from jqmaster.master.server import ServeOptions, Server
from jqmaster.wire.foreign import is_foreign

OWN = ["localhost", "LOCALHOST:8400", "jq.localhost", "localhost.", "127.0.0.1:1", "10.1.2.3", "[::1]:8400"]
OTHERS = ["evil.example", "evil.example:8400", "127.0.0.1.evil.example", "notlocalhost", "[evil]", "é"]


def options(redis_url: str, namespace: str, **more: object) -> ServeOptions:
    return ServeOptions(redis_url=redis_url, namespace=namespace, port=0, **more)


async def statuses(server: Server, names: list[str]) -> set[int]:
    def ask() -> set[int]:
        found = set()
        for name in names:
            headers = {"host": name, "accept": "text/html,*/*;q=0.8"}
            for method, path in (("GET", "/queues"), ("POST", "/queue/a/pause"), ("GET", "/ui/")):
                told = requests.request(method, server.url + path, headers=headers, timeout=10)
                if told.status_code == 403:
                    error = told.json()["error"]
                    assert error["code"] == "FORBIDDEN" and "--allowed-hosts" in error["message"]
                    assert told.headers["content-type"] == "application/json"
                found.add(told.status_code)
        return found

    return await asyncio.to_thread(ask)


async def test_a_master_on_loopback_answers_to_addresses_and_localhost_alone(redis_url: str, namespace: str) -> None:
    async with Server(options(redis_url, namespace)) as server:
        assert await statuses(server, OWN) == {200}
        assert await statuses(server, OTHERS) == {403}


async def test_it_answers_to_the_names_it_is_told(redis_url: str, namespace: str) -> None:
    more = {"allowed_hosts": ("JQ.example", "other.example")}
    async with Server(options(redis_url, namespace, **more)) as server:
        assert await statuses(server, ["jq.example", "JQ.example:443", *OWN]) == {200}
        assert await statuses(server, OTHERS) == {403}


@pytest.mark.parametrize("more", [{"host": "0.0.0.0", "insecure": True}, {"allowed_hosts": ("*",)}], ids=str)
async def test_it_answers_to_any_on_the_network_or_when_told_so(
    redis_url: str, namespace: str, more: dict[str, object]
) -> None:
    async with Server(options(redis_url, namespace, **more)) as server:
        assert await statuses(server, [*OWN, *OTHERS]) == {200}


async def test_names_given_hold_on_the_network_too(redis_url: str, namespace: str) -> None:
    more = {"host": "0.0.0.0", "insecure": True, "allowed_hosts": ("jq.example",)}
    async with Server(options(redis_url, namespace, **more)) as server:
        assert await statuses(server, ["jq.example"]) == {200}
        assert await statuses(server, ["evil.example"]) == {403}


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, False),
        ({"sec-fetch-site": "same-origin"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"sec-fetch-site": "cross-site"}, True),
        ({"sec-fetch-site": "same-site"}, True),
        ({"origin": "http://jq:8400", "host": "jq:8400"}, False),
        ({"origin": "http://jq", "host": "inner:8400", "x-forwarded-host": "jq"}, False),
        ({"origin": "http://evil", "host": "jq:8400"}, True),
        ({"origin": "null", "host": "jq:8400"}, True),
    ],
)
def test_pages_of_other_sites_are_told_apart(headers: dict[str, str], expected: bool) -> None:
    assert is_foreign([(name.encode(), value.encode()) for name, value in headers.items()]) is expected
