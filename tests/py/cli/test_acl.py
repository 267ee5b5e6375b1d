"""`jqmaster acl`: what it prints makes users, by way of redis-cli as it is."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
import redis
from redis.exceptions import NoPermissionError

from cli_support import Said, call
from jqmaster.bundle.build import builtin
from jqmaster.manifest.contract import ROLES
from servers import RedisServer

__all__ = ["call"]
ODD = "{a*'\"b?[c]\\x}"


def read_by_redis_cli(server: RedisServer, lines: str) -> None:
    said = subprocess.run(
        ["redis-cli", "-s", str(server.socket), "-e"], input=lines, capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == ["OK"] * lines.count("\n"), said


def test_a_user_for_each_role(call: Callable[..., Said], fresh_server: RedisServer) -> None:
    said = call("acl", "--namespace", ODD)
    read_by_redis_cli(fresh_server, said.out)
    with fresh_server.client() as admin:
        assert {name for name in admin.acl_users() if name != "default"} == {f"jq-{role}" for role in ROLES}
        admin.execute_command("ACL", "SETUSER", "jq-viewer", ">secret")
        with redis.Redis.from_url(f"unix://jq-viewer:secret@{fresh_server.socket}") as viewer:
            assert viewer.get(f"{ODD}:meta") is None
            for key in ("{abcd'\"b?[c]\\x}:meta", f"{ODD}x", ODD.replace("\\", "") + ":meta", "{jq}:meta"):
                with pytest.raises(NoPermissionError):
                    viewer.get(key)


def test_a_line_adds_and_replace_takes_away(call: Callable[..., Said], fresh_server: RedisServer) -> None:
    def rules() -> str:
        return str(admin.execute_command("ACL", "LIST"))

    with fresh_server.client() as admin:
        admin.execute_command("ACL", "SETUSER", "jq-pusher", ">secret", "~{old}:*", "+evalsha|" + "a" * 40, "+keys")
        read_by_redis_cli(fresh_server, call("acl", "--role", "pusher").out)
        added = rules()
        assert "{old}" in added and "a" * 40 in added and "+keys" in added and builtin()["enqueue"].sha in added
        read_by_redis_cli(fresh_server, call("acl", "--role", "pusher").out)
        assert rules() == added
        read_by_redis_cli(fresh_server, call("acl", "--role", "pusher", "--replace").out)
        left = rules()
        assert not any(gone in left for gone in ("{old}", "a" * 40, "+keys")) and builtin()["enqueue"].sha in left
        assert admin.execute_command("AUTH", "jq-pusher", "secret")


def test_what_it_refuses(call: Callable[..., Said]) -> None:
    assert call("acl", "--user", "x").code == 2
    assert '"viewer", "pusher"' in call("acl", "--role", "boss").err
    assert call("acl", "--namespace", "jq").code == 2
