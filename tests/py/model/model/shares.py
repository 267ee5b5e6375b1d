"""Shares of constraints that the partitions of a system share: the share is the limit in force."""

from model.common import Refused, accepted, expect, same
from model.part import Part


class Shares(Part):
    operations = ("share",)

    def __init__(self, model):
        super().__init__(model)
        self.seen = ("", 0)  # the latest epoch, and its turn
        self.until_ms = 0
        self.told = {}  # id of a constraint -> (concurrency, rate)
        self.digests = {}  # id -> what tells its definition, as the engine says

    def own(self, constraint):
        """(concurrency, rate) as they are in force; None for a constraint of this partition alone."""
        if "shared" not in constraint.given:
            return None
        return self.told.get(constraint.id, (0, 0)) if self.model.now < self.until_ms else (0, 0)

    def may_be_over(self, constraint):
        """A share that was over, and is not since the clock went back: what it closed opens when shares are told."""
        return "shared" in constraint.given and self.model.now < self.until_ms <= self.model.latest

    def is_closed(self, constraint):
        own = self.own(constraint)
        return own is not None and bool((constraint.concurrency and not own[0]) or (constraint.rate and not own[1]))

    def most_at_once(self, constraint):
        own = self.own(constraint)
        if own is None:
            return constraint.concurrency
        if self.is_closed(constraint):
            return 0
        return own[0] if constraint.concurrency else constraint.concurrency

    def most_in_time(self, constraint):
        own = self.own(constraint)
        return constraint.rate["limit"] if own is None or self.is_closed(constraint) else own[1]

    def shown(self, constraint):
        """The share as documents tell it; None without one."""
        own = self.own(constraint)
        fields = (("concurrency", constraint.concurrency), ("rate", constraint.rate))
        return None if own is None else {name: one for (name, there), one in zip(fields, own, strict=True) if there}

    def constrained(self, old, new):
        """Another definition has no share; the same again keeps it."""

        def facts(constraint):
            rate = constraint.rate and constraint.rate["limit"]
            return constraint.definition, constraint.concurrency, rate, "shared" in constraint.given

        if not old or facts(old) != facts(new):
            self.forget(new.id)

    def forget(self, id):
        self.told.pop(id, None)
        self.digests.pop(id, None)

    def share(self, reply, epoch, turn, until_ms=None, shares=None):
        if (epoch, turn) < self.seen or (shares is not None and epoch != self.seen[0]):
            raise Refused("CONFLICT", "epoch")
        accepted(reply)
        self.seen = (epoch, turn)
        constraints = self.model.limits.constraints
        now_ms, moved, settled, *documents = reply
        for doc in documents:
            same(doc["definition"], self.digests.setdefault(doc["id"], doc["definition"]), "share: definition")
        if shares is not None:
            self.until_ms = until_ms
            known = {id: one for id, one in shares.items() if id in constraints and one[0] == self.digests.get(id)}
            self.told = {id: tuple(one[1:]) for id, one in known.items()}
        same((now_ms, moved), (self.model.now, 0), "share: the moment, and whether it is another server")
        expect(settled or self.model.limit_documents.is_still_counting(), "share: settled", settled)
        wanted = sorted((id for id, one in constraints.items() if "shared" in one.given), key=str.encode)
        same([doc["id"] for doc in documents], wanted, "share: constraints that are shared")
        holders = self.model.limits.holders()
        for doc in documents:
            self.check(doc, constraints[doc["id"]], holders)

    def check(self, doc, constraint, holders):
        limits = constraint.concurrency or 0, constraint.rate["limit"] if constraint.rate else 0
        same((doc["concurrency"], doc["rate"]), limits, "share: the whole limits")
        same(doc["share"], self.shown(constraint), "share: the share")
        running = holders.get((constraint.id, ()), 0)
        if doc["running"] >= running or not self.model.limit_documents.is_still_counting():
            same(doc["running"], running, "share: running")
        same(doc["starts"], constraint.spent((), self.model.now) if constraint.rate else 0, "share: starts")
        queued = [j for j in self.model.jobs.values() if j.status == "queued" and constraint.key_of(j) == ()]
        expect(0 <= doc["waiting"] <= len(queued), "share: waiting", doc["waiting"], len(queued))
        expect(doc["full_ms"] <= self.model.now, "share: full_ms", doc["full_ms"])
