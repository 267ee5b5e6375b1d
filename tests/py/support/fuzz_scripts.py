"""The fuzzer's direct half: calls of all scripts, and what must hold whatever they are called with."""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from redis.exceptions import ResponseError

from driving.driver import NAMESPACE, START_MS, Driver
from fuzz_values import Values, opened, packed
from jqmaster.manifest.manifest import operations
from refusal_values import Raw, show, wrong
from refusals import TARGETS, Target
from servers import RedisServer

CODES = ("INVALID", "NOTFOUND", "CONFLICT", "EXPIRED", "LOST", "FULL", "VERSION")
LUA = re.compile(r"user_(script|function)|attempt to |script: |stack traceback|Traceback|bad argument")
CONTROL = re.compile("[\0-\x1f\x7f]")
KEYS = (NAMESPACE, NAMESPACE + ":meta")
OTHER = "{copy}"
BARE = {name for name, one in operations().items() if one.positions in (("id",), ("ids...",))}
COMMON = ("enqueue", "pick", "finish", "assign", "change", "constrain", "heartbeat", "release")
# How often anything was written, whatever it was: a refused call writes nothing, and not the same again.
WRITES = ("INFO", "persistence")
AT_ONCE = 16
LONGEST_S = 2.0  # for one call
MOST_BYTES = 200 << 20
ROUND = 2000  # inputs, each round in an empty namespace
TEMPLATES: dict[str, list[Target]] = {}
for _target in TARGETS:
    TEMPLATES.setdefault(_target.script, []).append(_target)


class Fault(AssertionError):
    """Something that must not be, and after which inputs."""


@dataclass
class Report:
    """What was tried."""

    inputs: int = 0
    refused: int = 0
    longest_ms: float = 0.0
    expired: int = 0  # calls that cannot be judged, as a key expired meanwhile
    by: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        codes = ", ".join(f"{name} {count}" for name, count in self.by.most_common(12))
        return f"{self.inputs} inputs, {self.refused} refused ({codes}); longest {self.longest_ms:.0f} ms"


Call = tuple[str, tuple[str, ...], list[Any]]


class ScriptFuzzer:
    """Rounds of calls on a server of its own. The same seed makes the same calls, but for tokens."""

    def __init__(self, server: RedisServer, form: str, seed: object) -> None:
        self.driver = Driver(server.socket, form)
        self.redis = self.driver.redis
        self.seed = f"{seed} {form}"
        self.report = Report()
        self.scripts = [*sorted(self.driver.scripts), *COMMON * 4]
        self.redis.send("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        self.redis.send("CONFIG", "SET", "slowlog-log-slower-than", int(LONGEST_S * 1e6))

    def round(self, number: int, inputs: int = ROUND) -> None:
        """Raises Fault."""
        self.values = Values(f"{self.seed} {number}")
        self.random = self.values.random
        self.now_ms = START_MS
        self.begin()
        self.changes = number_in("rdb_changes_since_last_save", self.redis.send(*WRITES))
        cpu_before_s = self.cpu_s()
        for first in range(0, inputs, AT_ONCE):
            self.send([self.call() for _ in range(min(AT_ONCE, inputs - first))])
            if self.values.chance(0.3):
                self.now_ms += self.random.choice((1, 50, 1000, 31_000, 3_700_000, 90_000_000, -1, -3000, -40_000))
                self.redis.send("SET", NAMESPACE + ":clock", self.now_ms)
                self.changes = number_in("rdb_changes_since_last_save", self.redis.send(*WRITES))
        # On a busy machine others may have had the processor while a call waited for it.
        slow = self.redis.send("SLOWLOG", "GET", "5")
        if slow and self.cpu_s() - cpu_before_s > LONGEST_S:
            raise Fault(f"round {number}: a call took longer than {LONGEST_S} s: {slow!r}"[:2000])
        self.end(number)

    def begin(self) -> None:
        self.redis.send("SLOWLOG", "RESET")
        self.redis.send("FLUSHALL")
        self.redis.send("SET", NAMESPACE + ":clock", self.now_ms)
        send = self.driver.send
        send("setup")
        jobs = [packed({"name": name}) for name in ("a", "a", "a", "b", "mail", "limited")]
        self.learn("enqueue", send("enqueue", *itertools.chain.from_iterable((job, b"\xc0") for job in jobs)))
        worker = {"name": "w", "queues": "*", "url": "http://w/", "max_jobs": 9}
        self.learn("register", send("register", packed(worker)))
        self.learn("pick", send("pick", packed({"worker": "w", "queues": "a", "count": 2})))
        send("queue", packed({"name": "full", "max_waiting": 1}))
        send("constrain", packed({"id": "known", "by": "argument.a", "concurrency": 1}), packed({"name": "limited"}))
        send("schedule", packed({"id": "known", "every": 60, "job": {"name": "a"}}), b"\xc0")
        self.records = send("export", packed({"count": 1000}))[1:]

    # -- inputs -----------------------------------------------------------------------------------

    def call(self) -> Call:
        """A script, its keys and its arguments."""
        script = self.random.choice(self.scripts)
        keys: tuple[str, ...] = (OTHER, OTHER + ":meta") if script == "import" else KEYS
        arguments = self.arguments(script)
        for _ in range(self.random.choice((0, 0, 0, 0, 1, 1, 2))):
            arguments = self.spoilt(arguments)
        if self.values.chance(0.01):
            keys = self.random.choice(((), (NAMESPACE,), ("{nowhere}", "{nowhere}:meta"), KEYS[::-1], ("", "")))
        return script, keys, arguments

    def arguments(self, script: str) -> list[Any]:
        if script == "import":
            return [self.random.choice(self.records) for _ in range(self.random.randint(1, 4))]
        if script in BARE:
            return [self.values.job()[0] for _ in range(self.random.randint(1, 3) if script != "history" else 1)]
        if script not in TEMPLATES:
            return []
        target = self.random.choice(TEMPLATES[script])
        spec = self.values.refer(dict(target.base))
        if target.base == {"name": "a"} or (script == "enqueue" and self.values.chance(0.3)):
            spec = self.values.of_job()
        elif target.fields and self.values.chance(0.25):
            one = self.random.choice(target.fields)
            refused = [value for place, value in wrong(one) if not isinstance(value, str) or len(value) < 100_000]
            spec[one.name] = self.random.choice(refused or [1])
        if script in ("pick", "assign") and self.values.chance(0.5):
            spec["count" if script == "pick" else "limit"] = self.random.randint(1, 5)
        return [opened(one) for one in target.wrap(packed(spec))]

    def spoilt(self, arguments: list[Any]) -> list[Any]:
        chance = self.random.random()
        if not arguments or chance < 0.1:
            return [*arguments, self.values.odd()]
        at = self.random.randrange(len(arguments))
        one = arguments[at]
        if chance < 0.15:
            return arguments[:at] + arguments[at + 1 :]
        if chance < 0.2:
            return arguments * self.random.choice((2, 3, 50))
        if chance < 0.4:
            changed: Any = Raw(self.values.broken(one if isinstance(one, bytes) else packed(one)))
        else:
            changed = self.values.changed(one)
        return [*arguments[:at], changed, *arguments[at + 1 :]]

    # -- what must hold ---------------------------------------------------------------------------

    def send(self, calls: list[Call]) -> None:
        commands: list[Any] = []
        for script, keys, arguments in calls:
            is_raw = bytes if script == "import" else str if script in BARE else ()
            raw = [one if isinstance(one, is_raw) and one is not True else packed(one) for one in arguments]
            commands += [(*self.driver.called[script], len(keys), *keys, *raw), WRITES]
        began = time.monotonic()
        self.redis.say(*commands)
        replies = [(self.read(), self.read()) for _ in calls]
        self.report.longest_ms = max(self.report.longest_ms, (time.monotonic() - began) * 1000)
        for call, (reply, info) in zip(calls, replies, strict=True):
            self.report.inputs += 1
            changes = number_in("rdb_changes_since_last_save", info)
            if isinstance(reply, ResponseError):
                self.refused(call, str(reply), changes)
            else:
                self.learn(call[0], reply)
            self.changes = changes

    def read(self) -> Any:
        try:
            return self.redis.read()
        except ResponseError as problem:
            return problem

    def refused(self, call: Call, text: str, changes: int) -> None:
        code, _, _ = text.partition(" ")
        self.report.refused += 1
        self.report.by[code] += 1
        if code not in CODES or LUA.search(text) or len(text) > 2000 or CONTROL.search(text):
            raise Fault(f"says {text[:500]!r} to {shown(call)}")
        if changes != self.changes:
            expired = number_in("expired_keys", self.redis.send("INFO", "stats"))
            if expired == self.report.expired:
                raise Fault(f"refused with {text[:200]!r}, and something has changed, by {shown(call)}")
            self.report.expired = expired

    def learn(self, script: str, reply: Any) -> None:
        """Ids, tokens and workers that calls to come may name."""
        if script == "enqueue":
            for job_id in reply[:20:2]:
                self.values.knows_job(job_id.decode())
        elif script in ("pick", "assign"):
            for document in (opened(part) for part in reply[1:] if isinstance(part, bytes)):
                if isinstance(document, dict) and {"token", "id"} <= document.keys():
                    self.values.knows_job(document["id"], document["token"])
        elif script == "register":
            self.values.workers = [*self.values.workers[-5:], reply.decode()]

    def cpu_s(self) -> float:
        """What the server has computed so far."""
        info = self.redis.send("INFO", "cpu")
        return sum(float(part) for part in re.findall(rb"used_cpu_(?:user|sys):([\d.]+)", info))

    def end(self, number: int) -> None:
        """The namespace is sound and can be walked."""
        if problems := self.driver.audit():
            raise Fault(f"round {number}: audit: {problems[:5]}")
        for script in ("queues", "workers", "constraints", "schedules", "jobs", "failures", "tags"):
            self.driver.send(script, packed({}))
        if (used := number_in("used_memory", self.redis.send("INFO", "memory"))) > MOST_BYTES:
            raise Fault(f"round {number}: {used >> 20} MB are used")


def number_in(name: str, info: bytes) -> int:
    found = re.search(rb"\b%s:(\d+)" % name.encode(), info)
    assert found
    return int(found[1])


def shown(call: Call) -> str:
    script, keys, arguments = call
    return f"{script} {keys if keys != KEYS else ''} {[show(one) for one in arguments[:6]]} {arguments!r}"[:3000]
