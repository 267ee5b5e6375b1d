"""A namespace in which whatever bad input is about is there, and whether anything in it has changed."""

import pytest
from redis.exceptions import ResponseError

from driving.driver import NAMESPACE, Driver
from driving.random_jobs import Generator
from driving.wire import parse_error
from refusal_values import DONE, HEAVY, HEAVY_CANCELLED, RUNNING, SCHEDULED, WAITING, WORKER, encode
from servers import RedisServer

KEYS = [NAMESPACE, NAMESPACE + ":meta"]


def debug_server():
    """A server that tells the digest of all its data: within it a change of any key is seen at once."""
    return RedisServer("--enable-debug-command", "yes")


class Data:
    """A namespace with jobs in every state, workers, requests and settings, and what it looked like."""

    def __init__(self, server, form="functions"):
        self.socket, self.form = server.socket, form
        self.driver = driver = Driver(server.socket, form)
        driver.fresh()
        jobs = [[{"name": "a", "keep_result": True, "timeout": 4000000}, b"\xc0"]] * 3
        created = driver.call("enqueue", options={"request": "known"}, jobs=jobs)
        assert [id for id, _ in created] == [RUNNING, DONE, WAITING]
        assert driver.call("register", name="w", queues="a", url="http://worker/") == WORKER
        *_, (job, _) = driver.call("pick", worker=WORKER, queues="a", count=2)
        outcome = {"id": DONE, "token": job["token"], "type": "success"}
        driver.call("finish", worker="w", outcomes=[[outcome, b"\xc0"]])
        driver.call("queue", name="full", max_waiting=1)
        driver.call("grant", id="00000000000a", digest="cd" * 32, name="k", roles=["admin"])
        driver.call("enqueue", options=None, jobs=[[{"name": "full", "delay": 10**9}, b"\xc0"]])
        assert driver.call("get", ids=[SCHEDULED])
        driver.call("queue", name="room for one", max_waiting=1)
        self.constrain()
        self.fill()
        self.driver.call("enqueue", options=None, jobs=[[{"name": "limited", "tags": ["one", "two"]}, b"\xc0"]])
        self.remember()

    def constrain(self):
        """Constraints, of which some hold jobs."""
        limited = encode({"name": "limited"})
        for spec in (
            {"id": "known", "concurrency": 1}, {"id": "keyed", "by": "argument.a", "concurrency": 1},
            {"id": "keyed twice", "by": ["name", "argument.a"], "rate": {"limit": 1, "period": 10**6}},
        ):  # fmt: skip
            self.driver.send("constrain", encode(spec), limited)
        jobs = [[{"name": "limited"}, encode({"a": "x"})]] * 5
        self.driver.call("enqueue", options=None, jobs=jobs)
        self.driver.call("pick", worker="w", queues="limited", count=5)
        match = {"name": "heavy", **{f"argument.f{i}": 1 for i in range(99)}}
        for i in range(4):
            self.driver.send("constrain", encode({"id": f"heavy{i}", "concurrency": 1}), encode(match))
        self.driver.call("queue", name="heavy", paused=True)
        jobs = [[{"name": "heavy"}, b"\xc0"]] * 2
        assert [id for id, _ in self.driver.call("enqueue", options=None, jobs=jobs)] == [HEAVY, HEAVY_CANCELLED]
        self.driver.call("cancel", ids=[HEAVY_CANCELLED])

    def fill(self):
        """Whatever else happens in a namespace; replies are the model test's concern."""
        generator = Generator("errors", self.driver)
        for _ in range(400):
            script, fields, label = generator.next()
            reply = None
            if script == "enqueue":
                reply = self.driver.call(script, **fields)
            elif script in ("pick", "assign", "cancel", "watch", "tick", "register"):
                reply = self.driver.call(script, **self.driver.resolve(fields))
            if script == "enqueue" and isinstance(reply, list):
                self.driver.names |= {f"job:{label}.{i}": id for i, (id, _) in enumerate(reply)}

    def remember(self):
        """How all keys look, with their times to live."""
        self.digest = self.driver.redis.send("DEBUG", "DIGEST")

    def check_unchanged(self):
        before = self.digest
        self.remember()
        assert self.digest == before, "something has changed"

    def refusal(self, script, keys, args):
        """The error reply to a call."""
        try:
            reply = self.driver.send(script, *args, keys=keys)
        except ResponseError as error:
            return parse_error(str(error))
        self.remember()
        raise AssertionError(f"accepted: {reply!r}"[:1000])


@pytest.fixture(scope="module")
def data():
    with debug_server() as server:
        data = Data(server)
        yield data
        data.driver.close()
