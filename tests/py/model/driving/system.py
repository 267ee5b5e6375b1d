"""Runs operations over the partitions of a system, by its engine, and compares: each call of a partition with that
one's model, the reply with what a system adds to them (module driving.over). Letters between partitions are carried
by operations, which lose, double and reorder them.
"""

import asyncio
import random
from types import SimpleNamespace

import msgpack

from driving.driver import FORM, NAMED, NAMESPACE, START_MS
from driving.labels import NEVER, Labels
from driving.over import Over
from driving.partitions import CarriedSystem, Partition
from driving.random_system import SystemGenerator
from driving.united import United
from driving.wire import ENCODE, spec_only
from jqmaster.engine import calls
from jqmaster.errors import JQError
from jqmaster.system import picking, place, reading, routing
from jqmaster.system.balance import Balancer
from jqmaster.system.record import new
from model import ErrorReply, Mismatch, expect

COUNT = 3
# Whatever else than the operations decides what happens, so that a sequence does the same again: chance, the clock of
# whoever asks, and who is late.
CHANCE = ((reading, "time"), (routing, "secrets"), (calls, "secrets"), (picking, "random"), (place, "LOOK_S"),
          (place, "HEAD_S"))  # fmt: skip


class Chance(random.Random):
    """In the place of module `random`."""

    Random = random.Random


class SystemDriver(Labels):
    def __init__(self, socket, form=FORM, count=COUNT):
        self.socket, self.names, self.system = socket, dict(NEVER), None
        root = NAMESPACE
        names = [root, *(f"{root[:-1]}:{number}~0a}}" for number in range(1, count))]
        self.record = new(names)
        self.loop = asyncio.new_event_loop()
        self.partitions = [Partition(socket, form, name, number, self.names) for number, name in enumerate(names)]
        self.scripts = self.partitions[0].scripts
        self.model = United(self.partitions)
        self.over = Over(self)
        self.chance = Chance()
        self.brought = 0  # letters, ever
        self.before = [(module, name, getattr(module, name)) for module, name in CHANCE]
        reading.time = SimpleNamespace(time=lambda: self.model.now / 1000)
        routing.secrets = SimpleNamespace(choice=self.chance.choice)
        calls.secrets = SimpleNamespace(token_hex=lambda size: self.chance.randbytes(size).hex())
        picking.random = self.chance
        place.LOOK_S = place.HEAD_S = 600.0
        self.fresh()

    async def end(self):
        """The engine, and what it does aside."""
        await self.system.close()
        aside = asyncio.all_tasks() - {asyncio.current_task()}
        for task in aside:
            task.cancel()
        await asyncio.gather(*aside, return_exceptions=True)

    def close(self):
        for one in self.before:
            setattr(*one)
        self.loop.run_until_complete(self.end())
        self.loop.close()
        for one in self.partitions:
            one.close()

    def generator(self, seed):
        return SystemGenerator(seed, self)

    def fresh(self):
        self.chance.seed(0)
        self.names.clear()
        self.names.update(NEVER)
        self.letters = []  # under way: (from, to, letter)
        self.answers = []  # to be told: (from, letter, answer)
        self.partitions[0].redis.send("FLUSHALL")
        for one in self.partitions:
            one.begin()
            one.run(["system", {"record": msgpack.unpackb(self.record.packed())}, None])
        if self.system:
            self.loop.run_until_complete(self.end())
        self.system = CarriedSystem(f"unix://{self.socket}", self.partitions[0].namespace, self.partitions)
        engines = self.loop.run_until_complete(self.system.partitions())
        self.balancers = [Balancer(engines, generation=1) for _ in range(2)]
        self.model.refresh()
        expect(self.model.now == START_MS, "the clock")

    def run(self, operation):
        """Raises Mismatch. Gives the engine's reply, where there is one."""
        script, fields, label = operation
        reply = None
        if script == "clock":
            for one in self.partitions:
                one.move_clock(fields["delta_ms"])
        elif script == "direct":
            partition = self.partitions[fields["partition"]]
            reply = partition.run([fields["script"], fields["fields"], label])
        elif script in ("outbox", "deliver", "carry", "balance", "settle", "check"):
            getattr(self, script)(**fields)
        else:
            reply = self.compare(script, self.resolve(fields), label)
        self.model.refresh()
        self.over.check_shares()
        return reply

    # ---- operations of the system ----

    def ask(self, script, **fields):
        """The reply of the system's engine."""
        try:
            raw = self.loop.run_until_complete(self.system.call(script, *ENCODE.get(script, spec_only)(**fields)))
        except JQError as problem:
            return ErrorReply(problem.code, problem.path or None, problem.message)
        return self.partitions[0].decoded(script, fields, raw)

    def pages(self, script, **fields):
        cursor, found = "", []
        for _ in range(1000):
            reply = self.ask(script, cursor=cursor, **fields)
            if isinstance(reply, ErrorReply):
                return reply
            cursor, *some = reply
            cursor = cursor.decode() if isinstance(cursor, bytes) else cursor
            if "where" in fields and script != "jobs":
                some = [sum(found) + some[0]]
                found = []
            found += some
            if not cursor:
                return found
        raise Mismatch(script + " comes to no end")

    def compare(self, script, fields, label):
        for one in self.partitions:
            one.calls = []
        is_listing = self.model.is_listing(script) and not NAMED & set(fields)
        is_series = script == "usage" or (script == "stats" and fields.get("series"))
        if is_listing or is_series or ("where" in fields and script != "bulk"):
            reply = self.pages(script, **fields)
        else:
            reply = self.ask(script, **fields)
            if self.model.is_listing(script) and not isinstance(reply, ErrorReply):
                reply = reply[1:]
        self.model.refresh()
        self.over.check(script, fields, reply)
        if not isinstance(reply, ErrorReply):
            self.name(script, label, reply)
        for one in self.partitions:
            one.name_new_jobs()
        return reply

    # ---- mail ----

    def outbox(self, partition, keep=False, answers=100, **fields):
        """Letters are taken, and answers told, of which a courier that keeps them tells again."""
        one = self.partitions[partition]
        told = [answer for answer in self.answers if answer[0] == partition][:answers]
        if not keep:
            self.answers = [answer for answer in self.answers if answer not in told]
        fields = {"courier": "c", "letters": [pair for _, *pair in told], **fields}
        reply = one.run(["outbox", fields, None])
        found = reply[1:]
        self.letters += [(partition, to, letter) for to, letter in zip(found[::2], found[1::2], strict=True)]
        return len(found)

    def deliver(self, places, fate):
        for number in places:
            if not self.letters:
                return
            letter = self.letters[number % len(self.letters)]
            if fate != "twice":
                self.letters.remove(letter)
            if fate != "lost":
                self.bring(*letter)

    def bring(self, number, to, letter):
        self.brought += 1
        [answer] = self.partitions[to].run(["deliver", {"letters": [letter]}, None])
        self.answers.append((number, letter, answer))

    def carry(self):
        """All letters come, and their answers."""
        self.letters, self.answers = [], []  # a courier is gone, with those that it had
        for _ in range(200):
            count = sum(self.outbox(one.number) for one in self.partitions)
            while self.letters:
                self.bring(*self.letters.pop(0))
            if not count and not self.answers:
                return
        raise Mismatch("mail comes to no end")

    # ---- limits ----

    def balance(self, who):
        """A turn of one of two balancers."""
        try:
            self.loop.run_until_complete(self.balancers[who].turn())
        except JQError as problem:
            raise Mismatch("a turn that fails", problem) from problem

    # ---- what must hold at any time ----

    def check(self):
        for one in self.partitions:
            one.check()
        self.over.check_alike()

    def settle(self):
        """All mail has come, and each partition has done what is due."""
        for one in self.partitions:
            one.move_clock(6000)
        for _ in range(20):
            self.carry()
            for one in self.partitions:
                one.settle()
            if not any(
                at_ms <= one.model.now for one in self.partitions for at_ms in one.model.mail.outbox_due.values()
            ):
                break
        else:
            raise Mismatch("what jobs of other partitions wait for comes to no end")
        self.bring_to_one_moment()
        self.model.refresh()
        self.over.check_dependencies()
        self.over.check_homes()
        self.over.check_alike()

    def bring_to_one_moment(self):
        latest = max(one.model.now for one in self.partitions)
        for one in self.partitions:
            if one.model.now < latest:
                one.move_clock(latest - one.model.now)
