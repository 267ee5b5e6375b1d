"""What a library of functions remembers is never served in place of the data: servers that have worked on one
world find themselves with the data of another, by failover, restart, reload and copies. The reference model goes
back with the data, and engine and model go on to agree."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from driving.driver import Driver
from servers import RedisServer
from topologies import Node, nodes, until


class Life:
    """A random life on a server that calls functions."""

    def __init__(self, server: RedisServer, seed: str) -> None:
        self.driver = Driver(server.socket, "functions")
        self.generator = self.driver.generator(seed)
        self.driver.run(self.generator.first())

    def goes_on(self, steps: int = 100) -> None:
        for _ in range(steps):
            self.driver.run(self.generator.next())
        self.driver.run(["check", {}, 0])

    def remember(self) -> Any:
        """What is so."""
        driver = self.driver
        return copy.deepcopy((driver.model, driver.names, driver.heard), {id(driver): driver})

    def is_back(self, known: Any) -> None:
        """The data are what they were when that was so; time has passed. No token of what was lost is given again."""
        driver, lost = self.driver, self.driver.model
        driver.model, driver.names, driver.heard = known
        driver.looked_at, before = {}, dict(driver.model.life.tokens)
        driver.listen_anew()
        driver.model.trace.listened, driver.model.trace.listened_workers = set(), set()
        driver.run(["clock", {"delta_ms": max(0, lost.now - driver.model.now) + 1000}, 0])
        self.goes_on()
        given = driver.model.life.tokens.items() - before.items()
        assert not given & (lost.life.tokens.items() - before.items())

    def moves_to(self, server: RedisServer) -> None:
        """Another server has the data, or another process."""
        self.driver.attach(server.socket)
        self.driver.model.trace.listened, self.driver.model.trace.listened_workers = set(), set()


@pytest.fixture(params=range(2))
def seed(request: pytest.FixtureRequest) -> str:
    return f"remembering {request.param}"


class TestOneServer:
    @pytest.mark.parametrize("persistence", ["rdb", "aof"])
    def test_a_restart(self, persistence: str, seed: str) -> None:
        arguments = {"rdb": (), "aof": ("--appendonly", "yes", "--appendfsync", "always")}
        with RedisServer(*arguments[persistence]) as server:
            life = Life(server, seed)
            life.goes_on()
            known = life.remember()
            if persistence == "rdb":
                life.driver.redis.send("SAVE")
                life.goes_on()
            server.kill()
            server.start()
            life.moves_to(server)
            if persistence == "rdb":
                life.is_back(known)
            life.goes_on()

    @pytest.mark.parametrize("way", ["reload", "reload of older data", "restore"])
    def test_other_data_come_into_the_process(self, way: str, seed: str) -> None:
        with RedisServer("--enable-debug-command", "yes") as server:
            life = Life(server, seed)
            send = life.driver.redis.send
            life.goes_on()
            known = life.remember()
            send("SAVE")
            dumps = [(key, send("DUMP", key)) for key in send("KEYS", "*")]
            if way != "reload":
                life.goes_on()
            if way == "restore":
                send("FLUSHALL")
                for key, dump in dumps:
                    send("RESTORE", key, 0, dump)
            else:
                send("DEBUG", "RELOAD", *(["NOSAVE"] if "older" in way else []))
            life.is_back(known)

    def test_two_databases_that_take_turns(self, fresh_server: RedisServer, seed: str) -> None:
        life = Life(fresh_server, seed)
        life.goes_on()
        first = life.remember()
        life.driver.redis.send("SELECT", 1)
        life.driver.begin()
        life.goes_on()
        life.driver.redis.send("SWAPDB", 0, 1)
        life.is_back(first)


@pytest.fixture
def pair() -> Iterator[list[Node]]:
    """A primary, and a replica that nobody has called."""
    with nodes(2) as [one, other]:
        yield [one, other]


def follows(replica: Node, primary: Node | None) -> None:
    """When this returns, it has all data of its primary."""
    replica.follow(primary)
    if primary:
        has_all(replica, primary)


def has_all(replica: Node, primary: Node) -> None:
    until(lambda: replica.has_caught_up() and replica.offset() == primary.offset())


@pytest.mark.faults
class TestFailover:
    def test_to_and_fro(self, pair: list[Node], seed: str) -> None:
        """Each goes on with what it has, its library and what that remembers too, of a world that went on."""
        primary, replica = pair
        life = Life(primary, seed)
        follows(replica, primary)
        for _ in range(4):
            life.goes_on()
            has_all(replica, primary)
            replica.follow(None)
            follows(primary, replica)
            life.moves_to(replica)
            primary, replica = replica, primary

    def test_back_to_who_worked_on_what_was_lost(self, pair: list[Node], seed: str) -> None:
        """The replica was behind when it took over: what the other remembers has never been."""
        one, other = pair
        life = Life(one, seed)
        follows(other, one)
        life.goes_on()
        known = life.remember()
        has_all(other, one)
        other.follow(None)
        life.goes_on()
        follows(one, other)
        one.follow(None)
        life.is_back(known)
