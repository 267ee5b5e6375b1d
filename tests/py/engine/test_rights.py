"""A user of Redis for each role: what it may call, and that all of it then works, in both forms."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis as redis_py
from redis.exceptions import NoPermissionError, ResponseError

from driving.driver import NAMESPACE, Connection, Driver
from driving.run import run
from http_support import Api, mastering
from jqmaster import JQ
from jqmaster.bundle.build import builtin
from jqmaster.engine import rights
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from jqmaster.errors import Forbidden
from jqmaster.manifest.contract import ROLES, Role
from jqmaster.server.http.app import App
from processes import MasterProcess, Process
from servers import RedisServer

SECRET = {"audit", "export", "keys", "trail", "webhooks"}  # what only reads, and not all may read
MAY = {role: set(rights.scripts_of(role, builtin())) for role in ROLES}


def test_who_may_what() -> None:
    """As the heads say it, of all that a script can do; some of it again."""
    assert MAY["admin"] == set(builtin())
    assert MAY["viewer"] == {name for name in MAY["operator"] if builtin()[name].flags == "read"} - SECRET
    assert MAY["worker"] == {"pick", "finish", "heartbeat", "release", "register", "unregister", "tick"}
    assert {"enqueue", "get", "cancel", "result"} <= MAY["pusher"] <= MAY["operator"] | {"enqueue"}
    assert MAY["operator"].isdisjoint({"grant", "revoke", "keys", "config", "export", "import", "pick", "enqueue"})


def grant(admin: redis_py.Redis, role: Role, namespace: str = "{jq}", clock: str = "server") -> None:
    """Make the user `jq-<role>`, as the line says that `jqmaster acl` prints."""
    scripts = builtin(clock)  # type: ignore[arg-type]
    words = shlex.split(rights.line(f"jq-{role}", rights.rules(role, namespace, scripts), replace=True))
    admin.execute_command(*words, ">secret")


def url_of(server: RedisServer, role: Role) -> str:
    return f"unix://jq-{role}:secret@{server.socket}"


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """With all users, and a namespace that is loaded."""
    with RedisServer() as server:

        async def prepare() -> None:
            async with connect(server.url) as client:
                await load(client, "{jq}")

        asyncio.run(prepare())
        with server.client() as admin:
            for script in builtin().values():
                admin.script_load(script.source)
            for role in ROLES:
                grant(admin, role)
        yield server


def refused(client: redis_py.Redis, *command: object) -> str:
    """What the refusal says; "" where there is none."""
    try:
        client.execute_command(*command)
    except (NoPermissionError, ResponseError) as problem:
        return str(problem) if "permission" in str(problem) or "can't run this" in str(problem) else ""
    return ""


@pytest.mark.parametrize("role", ROLES)
def test_each_script_and_each_function(server: RedisServer, role: Role) -> None:
    scripts = builtin()
    library = scripts.library
    assert library
    keys = (2, "{jq}", "{jq}:meta")
    with redis_py.Redis.from_url(url_of(server, role)) as client:
        called = {name for name in scripts if not refused(client, "EVALSHA", scripts[name].sha, *keys)}
        functions = {name for name in library.functions if not refused(client, "FCALL", f"{library.name}_{name}", 0)}
        upper = {name for name in scripts if not refused(client, "EVALSHA", scripts[name].sha.upper(), *keys)}
    assert called == upper == MAY[role]
    assert functions == MAY[role] & library.functions


async def test_what_a_masters_user_may_not_is_403_by_way_of_it(server: RedisServer) -> None:
    async with connect(url_of(server, "viewer")) as client:
        async with mastering(Engine(client)) as master:
            answer = await Api(App(master), master).post("/job", {"name": "a"})
        assert (answer.status, answer.error["code"]) == (403, "FORBIDDEN")
        assert "this server's user" in answer.error["message"] and "NOPERM" in answer.error["message"]


@pytest.mark.parametrize("role", ROLES)
def test_no_script_of_its_own(server: RedisServer, role: Role) -> None:
    other = "return 1"
    with redis_py.Redis.from_url(url_of(server, role)) as client:
        sha = client.script_load(other)
        for command in (
            ("EVAL", other, 0), ("EVAL_RO", other, 0), ("EVALSHA", sha, 0), ("EVALSHA_RO", sha, 0),
            ("FCALL", "another", 0), ("FCALL_RO", "another", 0), ("FLUSHALL",), ("SCRIPT", "FLUSH"), ("KEYS", "*"),
            ("CONFIG", "GET", "*"), ("ACL", "LIST"), ("FUNCTION", "FLUSH"), ("SHUTDOWN",), ("MONITOR",),
            ("GET", "{other}:meta"), ("GET", "{jq}x"), ("HSET", "jq:scripts2", "a", "b"),
        ):  # fmt: skip
            assert refused(client, *command), command
        for command in (
            ("FUNCTION", "LOAD", ""), ("INFO", "commandstats"), ("HSET", "jq:scripts", "probe", "x"),
            ("GET", "{jq}/sessions"),
        ):  # fmt: skip
            assert bool(refused(client, *command)) == (role != "admin"), command


def test_a_viewer_can_write_nothing(server: RedisServer) -> None:
    """Whatever it sends, with the scripts or without."""
    with server.client() as admin:
        found = rights.rules("viewer", "{jq}", builtin())
        words = [rule[1:] for rule in found if rule[0] == "+" and not rule.startswith("+evalsha|")]
        for word in words:
            [told] = admin.execute_command("COMMAND", "INFO", word.split("|")[0]).values()
            assert "write" not in told["flags"], word
        shas = {rule[9:] for rule in found if rule.startswith("+evalsha|")}
    scripts = builtin().values()
    assert all(script.flags == "read" for script in scripts if script.sha in shas)


def test_the_commands_are_those_within_the_scripts(server: RedisServer) -> None:
    with server.client() as admin:
        told = {name.upper(): set(one["flags"]) for name, one in admin.command().items()}
    words = {word for one in builtin().values() for word in re.findall("[\"']([A-Z]+)[\"']", one.source)}
    called = {word: bool(told[word] & {"write", "pubsub"}) for word in words & told.keys()}
    assert {word.lower() for word in called if not called[word]} == rights.READS, "engine/rights.py has the commands"
    assert {word.lower() for word in called if called[word]} == rights.WRITES


class ByRole(Driver):
    """Calls each script as the user of the least role that may."""

    def __init__(self, server: RedisServer, form: str) -> None:
        self.users: dict[Role, Connection] = {}
        super().__init__(server.socket, form)
        with server.client() as admin:
            for role in ROLES:
                grant(admin, role, NAMESPACE, "settable")
                self.users[role] = Connection(server.socket)
                self.users[role].send("AUTH", f"jq-{role}", "secret")

    def caller(self, script: str) -> Connection:
        least: Role = min(rights.roles_of(self.scripts[script]), key=ROLES.index)
        return self.users.get(least, self.redis)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", ["functions", "scripts"])
def test_what_is_granted_is_enough(form: str) -> None:
    """The random life of the model test, each script called by a user that may call no more than it must."""
    with RedisServer() as server:
        driver = ByRole(server, form)
        run(driver, f"rights {form}", 1200)
        with server.client() as admin:
            assert admin.acl_log() == []
        for user in driver.users.values():
            user.close()
        driver.close()


def test_processes_under_their_users(tmp_path: Path) -> None:
    """A master that loads and sets up, a worker, a program that enqueues, and one that looks."""
    (tmp_path / "jobs.py").write_text("from jqmaster import JQ\njq = JQ()\n@jq.job\ndef echo(value): return value\n")
    with RedisServer() as server, server.client() as admin:
        for role in ROLES:
            grant(admin, role)
        works = ("work", "jobs:jq", "--redis", url_of(server, "worker"), "--register")
        with (
            MasterProcess("--redis", url_of(server, "admin")) as master,
            Process("jqmaster.cli", *works, folder=tmp_path) as worker,
        ):
            jq = JQ(url_of(server, "pusher"))
            handles = [jq.enqueue("echo", number, keep_result=True) for number in range(20)]
            assert [handle.result(timeout=60) for handle in handles] == list(range(20))
            with pytest.raises(Forbidden, match="NOPERM"):
                jq.operations.retry([handles[0].id])
            jq.close()
            viewer = JQ(url_of(server, "viewer"))
            assert [one["name"] for one in viewer.each("queues")] == ["echo"]
            viewer.close()
            for process in (worker, master):
                process.signal()
                assert process.ends() == 0
                assert "NOPERM" not in process.text and "Traceback" not in process.text, process.text
        denied = {(one["username"], one["object"]) for one in admin.acl_log(128)}
        assert denied == {("jq-pusher", "evalsha")}
