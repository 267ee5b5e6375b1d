"""`keys`, `trail`, and how the command line comes by its own key."""

from __future__ import annotations

import getpass
import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli_support import Cli, Said, call, cli_, straight
from http_live import Live, live_server
from jqmaster import JQ
from jqmaster.engine import secret

__all__ = ["call", "cli_", "straight"]

ME = f"{getpass.getuser()}@{socket.gethostname()}"


@pytest.fixture
def keyed(redis_url: str, namespace: str) -> Iterator[Live]:
    with live_server(redis_url, namespace) as live:
        yield live


def on_redis(redis_url: str, namespace: str) -> list[str]:
    return ["--redis", redis_url, "--namespace", namespace]


def test_a_key_is_created_listed_and_revoked(cli_: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli_.ok("keys").out.startswith("there are no keys")
    monkeypatch.setenv("JQ_KEY", cli_.engine(lambda it: it.grant("root", ["admin"]))["key"])
    made = cli_.ok("keys", "create", "ann", "--role", "pusher", "--role", "viewer", "--queue", "mail.*",
                   "--expires", "90d", "--rate", "2.5")  # fmt: skip
    key_id, _ = secret.split(made.out.strip())
    assert f"key {key_id} of ann" in made.err
    shown = cli_.ok("keys").out
    assert all(word in shown for word in (key_id, "ann", "pusher, viewer", "mail.*", "2.5"))
    [document] = [one for one in cli_.ok("keys", "--json").documents if one["id"] == key_id]
    assert document["roles"] == ["pusher", "viewer"] and "digest" not in document
    assert document["expires_ms"] - document["created_ms"] == 90 * 86_400_000
    assert cli_.ok("call", "revoke", key_id).out == "done\n"
    assert key_id not in cli_.ok("keys").out
    assert cli_.run("call", "revoke", key_id).code == 3


class TestTheKeyOfTheCommandLine:
    """It is taken from the command line's file, then `JQ_KEY`, then the file that `JQ_KEY_FILE` names."""

    @pytest.fixture
    def key(self, keyed: Live, call: Callable[..., Said], redis_url: str, namespace: str) -> str:
        """Of an admin: the first one is made straight on Redis."""
        made = call("keys", "create", "root", "--role", "admin", *on_redis(redis_url, namespace))
        assert made.code == 0, made.err
        deadline = time.monotonic() + 60
        while not keyed.master.keyring.is_required and time.monotonic() < deadline:
            time.sleep(0.01)
        return made.out.strip()

    def test_is_asked_for(self, keyed: Live, key: str, call: Callable[..., Said]) -> None:
        said = call("queues", "--url", keyed.url)
        assert said.code == 1
        assert "this server asks for a key" in said.err and "JQ_KEY" in said.err and "--key-file" in said.err

    def test_comes_from_the_environment_or_a_file(
        self, keyed: Live, key: str, call: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file, wrong = tmp_path / "key", tmp_path / "wrong"
        file.write_text(key + "\n")
        wrong.write_text(secret.new().text)
        ask = ["queues", "--json", "--url", keyed.url]
        monkeypatch.setenv("JQ_KEY_FILE", str(file))
        assert call(*ask).code == 0
        monkeypatch.setenv("JQ_KEY_FILE", str(wrong))
        assert call(*ask).code == 1
        monkeypatch.setenv("JQ_KEY", key)
        assert call(*ask).code == 0
        assert call(*ask, "--key-file", str(wrong)).code == 1

    def test_names_who_did_it(
        self, keyed: Live, key: str, call: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("JQ_KEY", key)
        made = json.loads(call("keys", "create", "bob", "--role", "operator", "--json", "--url", keyed.url).out)
        monkeypatch.setenv("JQ_KEY", made["key"])
        assert call("call", "queue", "mail", "--max-waiting", "5", "--url", keyed.url).code == 0
        refused = call("call", "config", "--set", "done_max=5", "--url", keyed.url)
        assert refused.code == 1 and "needs a key with the role admin" in refused.err
        who = [one["actor"] for one in JQ(keyed.url, key=key).each("trail")]
        assert who == ["bob", "root", ME]

    def test_that_is_none_is_refused_and_not_shown(
        self, keyed: Live, call: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("JQ_KEY", "jq_0123456789ab_short")
        said = call("queues", "--url", keyed.url)
        assert said.code == 2 and "expected a key such as" in said.err and "short" not in said.err
