"""What must hold at any time, beside the replies."""

from collections import Counter

from driving.wire import plain_document, text
from model import Mismatch, expect


class Checks:
    """Needs what driver.Driver has."""

    def hear(self):
        """What was published since the last time."""
        self.listener.say(("PING",))
        ended, heard = [], []
        while (message := self.listener.read())[0] != b"pong":
            if message[0] != b"smessage":
                continue
            kind, _, id = message[1].decode().removeprefix(self.namespace + ":").partition(":")
            if kind == "ended":
                ended.append(tuple(message[2].decode().split(" ")))
            elif kind == "worker":
                heard.append((id, message[2].decode()))
            else:
                heard.append((id or None, plain_document(message[2])))
        self.heard_ended += ended
        self.heard_events += heard

    def check(self):
        """Every document, every count, everything published, and the engine's own audit."""
        model = self.model
        known = list(model.jobs)
        for first in range(0, len(known), 1000):
            chunk = known[first : first + 1000]
            model.work.get(self.call("get", ids=chunk), chunk)
        model.queues.list_queues(self.pages("queues"))
        model.workers.list_workers(self.pages("workers"))
        model.access.list_keys(self.pages("keys", digests=True), digests=True)
        self.check_constraints()
        self.check_heard()
        self.check_records()
        problems = self.audit()
        expect(not problems, "audit", *problems)

    def audit(self):
        """All that the engine's own finds."""
        cursor, problems = "", []
        while True:
            cursor, *found = text(self.call("audit", cursor=cursor))
            problems += found
            if not cursor:
                return problems

    def check_heard(self):
        model = self.model
        self.hear()
        # Ends of jobs that others wait for, or that were retried, may be published though nobody watches.
        missing = Counter(model.life.published) - Counter(self.heard_ended)
        expect(not missing, "not published to watchers", missing)
        unknown = [id for id, _ in self.heard_ended if id not in model.links.ended]
        expect(not unknown, "published ends of jobs that did not end", unknown)
        self.heard_ended, model.life.published = [], []
        model.trace.check_events(self.heard_events)
        self.heard += [event for about, event in self.heard_events if about is None]
        self.heard_events = []
        if self.heard:
            stream = [
                plain_document(fields[1])
                for _, fields in self.redis.send("XRANGE", self.namespace + ":events", "-", "+")
            ]
            expect(stream == self.heard[len(self.heard) - len(stream) :], "the stream of events")

    def check_records(self):
        """The model knows all jobs there are."""
        records = set(self.ids_after(""))
        unknown = records - set(self.model.jobs)
        expect(not unknown, "records of unknown jobs", unknown)
        missing = [job for job in self.model.jobs.values() if not job.may_be_gone and job.id not in records]
        expect(not missing, "no records of jobs", missing)

    def ids_after(self, id):
        """The ids of all jobs that have a record and were made after this one, in order."""
        prefix = f"{self.namespace}:j:"
        keys = [key.decode().removeprefix(prefix) for key in self.redis.send("KEYS", prefix + "*")]
        return sorted(key for key in keys if key > id)

    def check_constraints(self):
        model = self.model
        if model.limits.constraints:
            model.limit_documents.list_constraints(self.pages("constraints"))
        for id in model.limits.constraints:
            model.limit_documents.usage(self.pages("usage", id=id), id)
        if model.order.has_lanes():
            for job in [job for job in model.jobs.values() if job.status == "queued"][:20]:
                model.limit_documents.explain(self.call("explain", id=job.id), job.id)

    def settle(self):
        """Six seconds later, everything due done: no record is left that was to go when they began."""
        model = self.model
        old = {job.id for job in model.life.beyond_limits()}
        self.move_clock(6000)
        for _ in range(200):
            reply = self.call("tick")
            model.work.tick(reply)
            model.after_operation()
            if reply[0] != 0:
                break
        else:
            raise Mismatch("tick never comes to an end")
        model.settled(old)
        self.check()
