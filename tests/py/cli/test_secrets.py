"""A password is printed nowhere, however a URL carries it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from cli_support import Said, call  # noqa: F401
from jqmaster import JQ
from jqmaster.connection.url import without_password, without_passwords
from processes import MasterProcess
from servers import RedisServer

SECRET = "hush4711"
PUSH_SECRET = "whsec_" + "hush" * 8
NOBODY = "127.0.0.1:1"
OF_REDIS = [
    f"redis://:{SECRET}@{NOBODY}",
    f"redis://user:a@{SECRET}@{NOBODY}",
    f"redis://{NOBODY}/?password={SECRET}",
    f"redis://{NOBODY}/?p%61ssword={SECRET}",
    f"redis://{NOBODY}/?password=a@{SECRET}",
    f"redis://:{SECRET}?password=x@{NOBODY}",
    f"unix:///nowhere.sock?password={SECRET}",
    f"rediss://{NOBODY}?ssl_password={SECRET}",
    f"redis+sentinel://:{SECRET}@{NOBODY}/jobs",
    f"redis+sentinel://{NOBODY}/jobs?sentinel_password={SECRET}",
    f"redis+sentinel://{NOBODY}/jobs?sentinel_port=1&sentinel_password={SECRET}",
    f"redis+cluster://user:{SECRET}@{NOBODY},{NOBODY}",
    # Mistakes.
    f"redis://:a/{SECRET}@{NOBODY}",
    f"redis://{NOBODY}?password={SECRET}&nonsense=1",
    f"redis+cluster://user:{SECRET}@a:x",
    f":{SECRET}@{NOBODY}",
]
OF_MASTERS = [f"http://user:{SECRET}@{NOBODY}", f"http://{SECRET}@{NOBODY}", f"ftp://u:{SECRET}@{NOBODY}",
              f"http://user:{SECRET}@{NOBODY},http://user:{SECRET}@{NOBODY}"]  # fmt: skip
BY_REDIS = ["load --redis", "serve --port 0 --redis"]


@pytest.mark.parametrize("url", [*OF_REDIS, *OF_MASTERS])
def test_what_is_shown_of_a_url_has_no_password(url: str) -> None:
    assert SECRET not in without_password(url)
    assert SECRET not in without_passwords(f"what is {url} for?")
    assert SECRET not in without_passwords(f"cannot use {url}: gone")
    assert without_passwords("cannot use redis://h:1: gone") == "cannot use redis://h:1: gone"
    assert without_passwords("decorate functions with @jq.job") == "decorate functions with @jq.job"
    assert SECRET not in repr(JQ(url))


@pytest.mark.parametrize("url", OF_REDIS)
@pytest.mark.parametrize("words", [*BY_REDIS, "doctor --url"])
def test_commands_that_cannot_reach_redis(call: Callable[..., Said], words: str, url: str) -> None:
    said = call(*words.split(), url)
    assert said.code != 0 and SECRET not in said.out + said.err


@pytest.mark.parametrize("words", [
    f"work a --push-secrets whsec_{SECRET}", f"work a --push-secret whsec_{SECRET}+/==", f"serve whsec_{SECRET}",
    f"work --secret whsec_{SECRET}", f"queues --key=jq_0123456789ab_-{SECRET}_", f"top jq_0123456789ab_{SECRET}",
    f"jq_0123456789ab_{SECRET}",
])  # fmt: skip
def test_secrets_that_stand_in_the_wrong_place(call: Callable[..., Said], words: str) -> None:
    said = call(*words.split())
    assert said.code == 2 and SECRET not in said.out + said.err, said


def test_a_master_its_log_and_its_pages(call: Callable[..., Said], namespace: str) -> None:
    with RedisServer() as redis:
        with redis.client() as client:
            client.config_set("requirepass", SECRET)
        url = f"{redis.url}&p%61ssword={SECRET}"
        with MasterProcess("--redis", url, "--namespace", namespace, "--access-log") as master:

            def ask(method: str, path: str, body: object = None) -> str:
                sent = None if body is None else json.dumps(body).encode()
                headers = {"content-type": "application/json", "accept": "application/json, */*"}
                with urlopen(Request(master.url + path, sent, headers, method=method), timeout=60) as answer:
                    return str(answer.read().decode())

            worker = {"name": "box", "queues": "*", "url": f"http://user:{SECRET}@{NOBODY}/x?password={SECRET}"}
            with pytest.raises(HTTPError) as refused:
                ask("POST", "/worker", worker)
            told = [refused.value.read().decode()]
            ask("POST", "/worker", worker | {"url": f"http://{NOBODY}/x", "secrets": [PUSH_SECRET]})
            told.append(ask("POST", "/job", {"name": "mail"}))
            job_id = json.loads(told[-1])["job_id"]
            deadline = time.monotonic() + 60
            while 'outcome="unreachable"' not in ask("GET", "/metrics"):
                assert time.monotonic() < deadline, master.text
                time.sleep(0.05)
            pages = ["/workers", "/alerts", "/health", "/metrics", "/queues", f"/job/{job_id}"]
            told += [ask("GET", path) for path in [*pages, f"/job/{job_id}/history", f"/job/{job_id}/explain"]]
            for words in ("doctor", "workers", "queues", "load"):
                for where in (["--redis", url, "--namespace", namespace], ["--url", master.url]):
                    if words != "load" or "--redis" in where:
                        said = call(*words.split(), *where)
                        assert said.code in (0, 1), said
                        told.append(said.out + said.err)
            everything = "".join(told) + master.text
            assert SECRET not in everything and PUSH_SECRET not in everything
