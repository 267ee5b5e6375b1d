"""Setups of constraints: what is in force in a namespace, and jobs whose arguments they look into."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import msgpack

from kit.contenders import ARGUMENT, JQ, NAME, WARM, chunks
from kit.wire import Command, Wire

Spec = dict[str, Any]
OPEN = 10_000
"""A concurrency that no bench reaches: what is measured is the keeping of accounts, not the waiting."""
FOREVER_S = 31_000_000
CARRY_OUT = 1_000
"""Calls within which a change of constraints has to be carried out when few jobs are there."""


def argument(customer: int | str = 0, country: str = "DE", size: int = 1_000) -> bytes:
    """About 200 bytes, with values for matchers and keys."""
    head = {"customer": customer, "to": {"country": country}, "size": size}
    packed: bytes = msgpack.packb(head | {"text": "a" * 130})
    return packed


@dataclass
class Setup:
    """``constraints``: pairs of a constraint's spec and its matcher; ``fair``: levels of the queue."""

    name: str
    constraints: list[tuple[Spec, Spec]] = field(default_factory=list)
    argument: Callable[[int], bytes] = lambda number: ARGUMENT
    """of the job with this number"""
    spec: Callable[[int], Spec] = lambda number: {}
    """what else the job with this number is given"""
    wish: Spec = field(default_factory=dict)
    """what else a pick is given"""
    fair: list[Spec] | None = None
    fill: Callable[[Wire, Constrained], None] | None = None
    """brings in what waits before anything is measured"""


class Constrained(JQ):
    """JQ with constraints in force, or a fair queue. Arguments differ from job to job."""

    def __init__(self, setup: Setup, settings: dict[str, Any] | None = None, form: str = "functions") -> None:
        super().__init__(settings, form=form)
        self.setup = setup
        self.wish |= setup.wish
        self.name += f" {setup.name}"
        self.numbers = 0

    def prepare(self, wire: Wire) -> None:
        super().prepare(wire)
        self.numbers = 0
        self.put_in_force(wire)
        if self.setup.fill:
            self.setup.fill(wire, self)

    def warm_up(self, wire: Wire) -> None:
        """The lives in the other namespace are under these constraints, too."""
        namespace, self.namespace = self.namespace, WARM
        wire.send(self.command("setup"))
        self.put_in_force(wire)
        self.namespace = namespace
        super().warm_up(wire)

    def put_in_force(self, wire: Wire) -> None:
        wire.pipelined([self.constrain(spec, match) for spec, match in self.setup.constraints])
        if self.setup.fair is not None:
            wire.send(self.command("queue", msgpack.packb({"name": NAME, "fair": self.setup.fair})))
        self.carry_out(wire)

    def constrain(self, spec: Spec, match: Spec) -> Command:
        return self.command("constrain", msgpack.packb(spec), msgpack.packb(match))

    def carry_out(self, wire: Wire) -> None:
        """Tick until no change of constraints is left to be carried out."""
        for _ in range(CARRY_OUT):
            next_ms, moved = wire.send(self.command("tick", msgpack.packb({})))
            if moved == 0 and not 0 <= next_ms < 100:
                return
        raise RuntimeError(f"{self.name}: the constraints were not carried out within {CARRY_OUT} ticks")

    def jobs(self, arguments: Iterable[bytes], batch: int, **spec: Any) -> list[Command]:
        packed = msgpack.packb({"name": NAME} | spec)
        return self.calls([(packed, one) for one in arguments], batch)

    def calls(self, pairs: list[tuple[bytes, bytes]], batch: int) -> list[Command]:
        return [self.command("enqueue", *[item for pair in part for item in pair]) for part in chunks(pairs, batch)]

    def enqueue(self, jobs: int, batch: int) -> list[Command]:
        numbers = range(self.numbers, self.numbers + jobs)
        self.numbers += jobs
        setup = self.setup
        pairs = [(msgpack.packb({"name": NAME} | setup.spec(n)), setup.argument(n)) for n in numbers]
        return self.calls(pairs, batch)


def by_customer(keys: int, concurrency: int = OPEN, name: str = "") -> Setup:
    """Jobs of so many customers in turn, each with a key of its own."""
    spec = {"id": "customer", "by": "argument.customer", "concurrency": concurrency}
    of_each = [argument(customer) for customer in range(keys)]
    return Setup(name or f"{keys:,} keys", [(spec, {"name": NAME})], lambda number: of_each[number % keys])


def with_waiting(setup: Setup, jobs: int) -> Setup:
    """So many jobs of the setup wait."""

    def fill(wire: Wire, jq: Constrained) -> None:
        for _ in range(0, jobs, 10_000):
            wire.pipelined(jq.enqueue(min(jobs, 10_000), 1000), depth=4)

    return replace(setup, fill=fill)


FREE = {"matched by none": argument("free", "DE"), "of an open key": argument("free", "JP")}


def held(jobs: int, free: bytes = FREE["matched by none"], keys: int = 1_000) -> Setup:
    """So many jobs of closed keys wait in front of free ones: half behind one key, half behind the others."""
    closed = [argument(f"closed{number}", "JP") for number in range(keys)]

    def fill(wire: Wire, jq: Constrained) -> None:
        for number in range(keys):
            spec = {"id": "customer", "by": f"closed{number}", "seconds": FOREVER_S}
            wire.send(jq.command("hold", msgpack.packb(spec)))
        for start in range(0, jobs, 10_000):
            part = range(start, min(jobs, start + 10_000))
            wire.pipelined(jq.jobs((closed[n // 2 % keys * (n % 2)] for n in part), 1000), depth=4)
        wire.pipelined(jq.enqueue(1, 1))
        for _ in range(10_000):  # until each lane was looked at once, and is known to be held
            reply = wire.send(jq.pick(1, 1)[0])
            if tokens := jq.picked([reply], 1):
                wire.pipelined(jq.finish(tokens, 1))
                return
        raise RuntimeError("no job came in 10,000 picks")

    spec = {"id": "customer", "by": "argument.customer", "concurrency": OPEN}
    return Setup(f"{jobs:,} held", [(spec, {"argument.to.country": "JP"})], lambda number: free, fill=fill)


def one(concurrency: int = OPEN, name: str = "concurrency") -> Setup:
    return Setup(name, [({"id": "one", "concurrency": concurrency}, {"name": NAME})])


def without(setup: Setup) -> Setup:
    """The same jobs, and nothing in force."""
    return Setup("unconstrained", [], setup.argument)


def other_names(count: int) -> Setup:
    """Constraints on other names: half of them by name, half by pattern, and all with another condition."""
    constraints: list[tuple[Spec, Spec]] = []
    for number in range(count):
        other = f"report{number}" if number % 2 else f"report{number}.*"
        match = {"name": other, "argument.size": {"lt": 1_000_000}}
        constraints.append(({"id": f"other{number}", "concurrency": OPEN}, match))
    setup = two_conditions()
    return Setup(f"{count:,} other names", constraints, setup.argument)


def two_conditions() -> Setup:
    match = {"name": NAME, "argument.to.country": ["JP", "DE"], "argument.size": {"lt": 1_000_000}}
    fits = argument()
    return Setup("two conditions", [({"id": "two", "concurrency": OPEN}, match)], lambda number: fits)


def fair(tenants: int, name: str = "fair") -> Setup:
    of_each = [argument(tenant) for tenant in range(tenants)]
    levels = [{"by": "argument.customer"}]
    return Setup(name, [], lambda number: of_each[number % tenants], fair=levels)


def shaped(name: str, spec: Callable[[int], Spec] = lambda number: {}, **wish: Any) -> Setup:
    """Nothing in force, but jobs or picks are given more."""
    return Setup(name, [], spec=spec, wish=wish)


WAIT = {"on": "channel", "ms": 1000}
SHAPES = {
    "specs": lambda: shaped("a different spec for each job", lambda number: {"timeout": 30 + number / 1000}),
    "tag": lambda: shaped("one tag", lambda number: {"tags": ["t"]}),
    "list": lambda: shaped("list of three queues", queues=[NAME, "b", "c"]),
    "wait": lambda: shaped("with wait", wait=WAIT),
}
SETUPS: dict[str, Callable[[], Setup]] = {
    "concurrency": one,
    "customer": lambda: by_customer(10, name="customer"),
    "customers": lambda: by_customer(10_000, name="customers"),
    "two-conditions": two_conditions,
    "other-names": lambda: other_names(1_000),
    "held": lambda: held(10_000),
    "rate": lambda: Setup("rate", [({"id": "rate", "rate": {"limit": 1_000_000, "period": 60}}, {"name": NAME})]),
    "fair": lambda: fair(10),
    **SHAPES,
}
"""What ``ir.py --constraint`` knows: each costs one kind of thing, in an otherwise plain namespace."""
