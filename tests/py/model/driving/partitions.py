"""Partitions of a system, each with a model beside it, as the system's engine calls them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from redis.exceptions import ResponseError

from driving.driver import Driver
from driving.random_system import PartitionGenerator
from driving.wire import parse_error, read
from jqmaster.engine.engine import Engine
from jqmaster.errors import from_redis
from jqmaster.system.engine import SystemEngine
from model import ErrorReply


class Call:
    """One that the system's engine made."""

    def __init__(self, script, fields, reply):
        self.script, self.fields, self.reply = script, fields, reply

    @property
    def is_refused(self):
        return isinstance(self.reply, ErrorReply)

    def __repr__(self):
        return f"{self.script} {self.fields} -> {self.reply}"


class Partition(Driver):
    def __init__(self, socket, form, namespace, number, names):
        self.number = number
        self.shared_names = names
        self.calls = []  # of the operation that runs
        super().__init__(socket, form, namespace, f"{number:02x}" if number else "")

    def begin(self):
        super().begin()
        self.names = self.shared_names  # those of the system

    def generator(self, seed):
        return PartitionGenerator(seed, self)

    def carry(self, script, arguments):
        """A call of the system's engine. What goes on from page to page its model is told when all is known."""
        problem = raw = None
        try:
            raw = self.send(script, *arguments)
        except ResponseError as refusal:
            problem = refusal
        fields = read(script, arguments)
        reply = parse_error(str(problem)) if problem else self.decoded(script, fields, raw)
        self.calls.append(Call(script, fields, deepcopy(reply)))  # models take documents apart
        is_part = self.model.is_listing(script) or (script == "stats" and fields.get("series"))
        if not is_part and script not in ("usage", "balance") and (script == "bulk" or "where" not in fields):
            self.told(script, fields, reply)
        if problem:
            raise problem
        return raw

    def told(self, script, fields, reply):
        """The model learns of an operation, and checks it."""
        self.agree(script, fields, None, reply)
        self.model.after_operation()
        self.model.sleepers.check_sleepers(self.is_marked)


class CarriedEngine(Engine):
    """Calls of one partition, made and checked at once, so that nothing happens between a call and its check."""

    def __init__(self, redis: Any, partition: Partition) -> None:
        super().__init__(redis, partition.namespace)
        self.partition = partition

    async def _call(self, script: str, arguments: Any, durable: Any = None) -> Any:
        try:
            return self.partition.carry(script, arguments)
        except ResponseError as problem:
            raise from_redis(problem) from problem

    async def pipeline(self, calls: Any) -> list[Any]:
        found: list[Any] = []
        for script, arguments in calls:
            try:
                found.append(self.partition.carry(script, arguments))
            except ResponseError as problem:
                found.append(from_redis(problem))
        return found


class CarriedSystem(SystemEngine):
    def __init__(self, url: str, root: str, drivers: list[Partition]) -> None:
        super().__init__(url, root)
        self.drivers = drivers
        self.carried: list[Engine] = []

    async def partitions(self) -> list[Engine]:
        if not self.carried:
            real = await super().partitions()
            self.carried = [CarriedEngine(one.redis, driver) for one, driver in zip(real, self.drivers, strict=True)]
        return self.carried
