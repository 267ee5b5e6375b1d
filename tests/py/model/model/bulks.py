"""What is done to many jobs by masters: who does it, and how far it is. docs/finding.md."""

from model.common import Refused, accepted, same
from model.part import Part

HELD_MS, KEPT_MS = 10_000, 3_600_000
MOST_OPEN, MOST = 20, 100
OPTIONS = ("total", "force", "dependents", "queue")


class Bulks(Part):
    def __init__(self, model):
        super().__init__(model)
        self.all = {}

    def listed(self):
        ended_since = self.now - KEPT_MS
        kept = [one for one in self.all.values() if one.get("ended_ms", self.now) > ended_since]
        return sorted(kept, key=lambda one: one["id"], reverse=True)

    def bulk(self, reply, id=None, what=None, where=None, holder=None, stop=False, **fields):
        if id is None:
            return self.begin(reply, what, where, fields)
        known = self.all.get(id)
        if known is None:
            raise Refused("NOTFOUND", "id")
        if stop and not known.get("ended_ms"):
            known.update(ended_ms=self.now, stopped=True)
        elif not stop:
            self.step(known, holder, **fields)
        accepted(reply)
        self.check(reply, known)

    def begin(self, reply, what, where, fields):
        under_way = [one for one in self.listed() if "ended_ms" not in one]
        if any(one["where"].get("queue") == where.get("queue") for one in under_way):
            raise Refused("CONFLICT", "where.queue")
        if len(under_way) >= MOST_OPEN:
            raise Refused("FULL", "where")
        accepted(reply)
        self.arrival.created(reply["id"][1:])
        kept = [one for place, one in enumerate(self.listed(), 1) if "ended_ms" not in one or place < MOST]
        options = {name: fields[name] for name in OPTIONS if name in fields}
        new = {"id": reply["id"], "what": what, "where": where, "begun_ms": self.now, "changed": 0, "cursor": ""}
        new |= {"resumed": 0, "stopped": False, **options}
        self.all = {one["id"]: one for one in [*kept, new]}
        self.check(reply, new)

    def step(self, known, holder, cursor=None, changed=0, ended=False, problem=None):
        is_anothers = known.get("holder") not in (None, holder)
        if known.get("ended_ms") or (is_anothers and known["until_ms"] > self.now):
            raise Refused("CONFLICT", "id")
        known["resumed"] += is_anothers
        known.update(holder=holder, until_ms=self.now + HELD_MS, changed=known["changed"] + changed)
        if cursor is not None:
            known["cursor"] = cursor
        if ended:
            known["ended_ms"] = self.now
            known.update({} if problem is None else {"problem": problem})

    def check(self, shown, known):
        shown = {name: value for name, value in shown.items() if name != "actor"}
        shown["where"] = shown["where"] or {}  # an empty map may be a list
        same(shown, {name: value for name, value in known.items() if name != "holder"}, "a bulk operation")

    def bulks(self, reply):
        accepted(reply)
        same([one["id"] for one in reply], [one["id"] for one in self.listed()], "bulk operations")
        for shown, known in zip(reply, self.listed(), strict=True):
            self.check(shown, known)
