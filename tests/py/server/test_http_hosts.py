"""By which names a master may be asked: a page whose site's name was made to lead here reads nothing."""

import asyncio
import logging

import pytest
import requests

from jqmaster.bundle.build import builtin
from jqmaster.manifest.manifest import operations
from jqmaster.server.http.access import is_foreign
from jqmaster.server.http.routes import find
from jqmaster.server.server import ServeOptions, Server

OWN = ["localhost", "LOCALHOST:8400", "jq.localhost", "localhost.", "127.0.0.1:1", "10.1.2.3", "[::1]:8400"]
OTHERS = ["evil.example", "evil.example:8400", "127.0.0.1.evil.example", "notlocalhost", "[evil]", "é"]


def options(redis_url: str, namespace: str, **more: object) -> ServeOptions:
    return ServeOptions(redis_url=redis_url, namespace=namespace, port=0, **more)


async def statuses(server: Server, names: list[str]) -> set[int]:
    def ask() -> set[int]:
        found = set()
        for name in names:
            headers = {"host": name, "accept": "text/html,*/*;q=0.8"}
            for method, path in (("GET", "/queues"), ("POST", "/queue/a"), ("GET", "/ui/")):
                told = requests.request(method, server.url + path, headers=headers, timeout=60)
                if told.status_code == 403:
                    error = told.json()["error"]
                    assert error["code"] == "FORBIDDEN" and "--allowed-hosts" in error["message"]
                    assert told.headers["content-type"] == "application/json"
                found.add(told.status_code)
        return found

    return await asyncio.to_thread(ask)


NETWORK = {"host": "0.0.0.0", "insecure": True}


@pytest.mark.parametrize(
    ("more", "answered", "refused"),
    [
        ({}, OWN, OTHERS),
        ({"allowed_hosts": ("JQ.example", "other.example")}, ["jq.example", "JQ.example:443", *OWN], OTHERS),
        ({"allowed_hosts": ("*",)}, [*OWN, *OTHERS], []),
        (NETWORK, [*OWN, *OTHERS], []),
        (NETWORK | {"allowed_hosts": ("jq.example",)}, ["jq.example"], ["evil.example"]),
    ],
)
async def test_a_server_answers_to_its_names_alone(
    redis_url: str, namespace: str, more: dict[str, object], answered: list[str], refused: list[str]
) -> None:
    async with Server(options(redis_url, namespace, **more)) as server:
        assert await statuses(server, answered) == {200}
        assert await statuses(server, refused) <= {403}


async def test_a_refusal_has_an_id_a_line_and_is_counted(
    redis_url: str, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="jqmaster.request")
    async with Server(options(redis_url, namespace)) as server:
        for given in ({"host": "evil.example"}, {"origin": "http://evil"}):
            headers = {**given, "x-request-id": "mine"}
            told = await asyncio.to_thread(requests.post, server.url + "/job", headers=headers, timeout=60)
            assert (told.status_code, told.headers["x-request-id"]) == (403, "mine")
        lines = [vars(one) for one in caplog.records if one.name == "jqmaster.request"]
        assert [(line["id"], line["path"], line["status"]) for line in lines] == [("mine", "/job", 403)] * 2
        labels = {"method": "POST", "path": "/job", "status": "403"}
        registry = server.master.meters.registry
        assert registry.get_sample_value("jq_http_request_seconds_count", labels) == 2


async def test_pages_of_other_sites_do_not_shorten_a_results_life(redis_url: str, namespace: str) -> None:
    async with Server(options(redis_url, namespace)) as server:

        def ask(path: str, **headers: str) -> int:
            return requests.get(server.url + path, headers=headers, timeout=60, stream=True).status_code

        job = {"name": "a", "keep_result": True}
        told = await asyncio.to_thread(requests.post, server.url + "/job", json=job, timeout=60)
        at = f"/job/{told.json()['job_id']}"
        for path in (f"{at}/result", f"{at}/polling?timeout=0"):
            assert await asyncio.to_thread(ask, path, origin="http://evil") == 403
            assert await asyncio.to_thread(ask, path, **{"sec-fetch-site": "cross-site"}) == 403
            assert await asyncio.to_thread(ask, path, **{"sec-fetch-site": "same-origin"}) in (200, 408, 409)
        for path in (at, "/queues", "/alerts"):  # what only looks
            assert await asyncio.to_thread(ask, path, origin="http://evil") == 200


async def test_every_get_that_may_change_something_is_known() -> None:
    looks = {name for name, script in builtin().items() if "no-writes" in script.source.partition("\n")[0]}
    changing = {
        name for name, one in operations().items() if any(route.method == "GET" for route in one.routes)
    } - looks
    assert changing == {"result"}
    jobs, result = find("GET", "/jobs")[0], find("HEAD", "/job/0687f9c2718400/result")[0]
    assert jobs and result and jobs.reads and not result.reads


async def test_a_look_at_a_job_writes_nothing(redis_url: str, namespace: str) -> None:
    async with Server(options(redis_url, namespace)) as server:

        def poll() -> int:
            return requests.get(f"{server.url}/job/{job_id}/polling?timeout=0", timeout=60).status_code

        told = await asyncio.to_thread(requests.post, server.url + "/job", json={"name": "a"}, timeout=60)
        job_id = told.json()["job_id"]
        key = f"{namespace}:j:{job_id}"
        client = server.master.engine.redis
        before = await client.get(key)
        assert before and await asyncio.to_thread(poll) == 408
        assert await client.get(key) == before


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
        ({"origin": "http://[", "host": "jq:8400"}, True),
    ],
)
def test_pages_of_other_sites_are_told_apart(headers: dict[str, str], expected: bool) -> None:
    assert is_foreign({name.encode(): value.encode() for name, value in headers.items()}) is expected
