"""Listings of a system, and its limits: what one reply makes of those of its partitions."""

import json
from itertools import groupby

from jqmaster.system.record import partition_of
from jqmaster.wire.operations import going
from model import expect
from model.common import same


class Merged:
    """Needs what over.Over has."""

    # ---- listings ----

    def check_jobs(self, fields, reply):
        """One partition after the other."""
        by_partition = [(number, list(docs)) for number, docs in groupby(reply, lambda doc: partition_of(doc["id"]))]
        numbers = [number for number, _ in by_partition]
        same(numbers, sorted(set(numbers)), "jobs: the order of partitions")
        found = dict(by_partition)
        for one in self.partitions:
            one.model.finding.list_jobs(found.get(one.number, []), **fields)

    def check_queues(self, fields, reply):
        told = {}
        for number, call in self.calls("queues"):
            told |= {(doc["name"], number): doc for doc in call.reply[1:]}
        for doc in reply:
            self.check_outlook(doc, [one for (name, _), one in told.items() if name == doc["name"]])
        docs = [dict(doc) for doc in reply]
        if "minutes" in fields:
            for doc in docs:
                self.check_recent(doc, fields["minutes"])
        self.model.queues.list_queues(docs, fields.get("names"))

    def check_outlook(self, doc, each):
        """What partitions say of why jobs wait, and for how long."""
        waiting = [one for one in each if "oldest_ready_ms" in one]
        oldest = min(waiting, key=lambda one: one["oldest_ready_ms"], default={})
        same(
            [doc.pop(name, None) for name in ("cause", "held_by")],
            [oldest.get("cause"), oldest.get("held_by")],
            "cause",
        )
        ends = [one.get("empties_ms") for one in waiting]
        same(doc.pop("empties_ms", None), max(ends) if ends and None not in ends else None, "empties_ms")
        held = doc.pop("held", None)
        if held:
            same(held["jobs"], sum(one["held"]["jobs"] for one in each), "held: jobs")

    def check_recent(self, doc, minutes):
        name, recent = doc["name"], doc.pop("recent", None)
        expect((recent is not None) == self.model.settings["stats"], "recent", doc)
        if recent and self.model.now == self.model.latest:  # what is later than now is counted, too
            self.model.statistics.check_recent(dict(recent), name, minutes)
        doc.pop("workers"), doc.pop("channels")

    def check_failures(self, fields, reply):
        """Of several that failed last at the same moment each may be told."""
        for doc in reply:
            jobs = [job for job in self.model.jobs.values() if job.status == "error" and job.group == doc["group"]]
            last = sorted((job for job in jobs if job.ended_ms == doc["last_ms"]), key=lambda job: job.id)
            expect(doc["id"] in [job.id for job in last], "failures: the last", doc)
            for name in ("looked", "names", "queues", "values"):
                doc.pop(name, None)
            told = self.model.jobs[doc["id"]]
            same(doc["message"], told.message, "failures: message")
            there = [job for job in last if not job.may_be_gone or self.model.look(job.id)]
            doc |= {"id": there[-1].id, "message": there[-1].message}
        given = {name: value for name, value in fields.items() if name not in ("count", "sample")}
        self.model.finding.list_failures(reply, **given)

    def check_schedules(self, fields, reply):
        ids = [doc["id"] for doc in reply]
        expect("ids" in fields or ids == sorted(ids, key=str.encode), "schedules: order", ids)
        given = {name: value for name, value in fields.items() if name != "count"}
        for one in self.partitions:
            own = [doc for doc in reply if self.home(doc["id"]) == one.number]
            one.model.schedules.list_schedules(own, **given)

    def check_workers(self, fields, reply):
        ids = [doc["id"] for doc in reply]
        same(ids, sorted(set(ids), key=str.encode), "workers: order")
        for one in self.partitions:
            listed = one.pages("workers", **fields)
            expect({doc["id"] for doc in listed} <= set(ids), "workers", ids, listed)

    # ---- limits ----

    def check_constrain(self, fields, reply):
        answers = [call.reply for _, call in self.calls("constrain")]
        same(len(answers), len(self.partitions), "partitions with a constraint")
        same(reply["running"], sum(one["running"] for one in answers), "jobs that run under a constraint")
        shared = [one.model.limits.constraints[fields["id"]].given.get("shared") for one in self.partitions]
        same(shared, [True] * len(self.partitions), "partitions that share a constraint")

    def check_unconstrain(self, fields, reply):
        same(reply, 1, "unconstrain")
        left = [one.number for one in self.partitions if fields["id"] in one.model.limits.constraints]
        same(left, [], "partitions with a constraint")

    def check_hold(self, fields, reply):
        answers = [call.reply for _, call in self.calls("hold")]
        same((len(answers), reply), (len(self.partitions), max(answers)), "hold")

    def check_constraints(self, fields, reply):
        told = {}
        for number, call in self.calls("constraints"):
            told |= {(number, doc["id"]): doc for doc in call.reply[1:]}
        ids = [doc["id"] for doc in reply]
        known = sorted(self.model.limits.constraints, key=str.encode)
        same(sorted(ids), [id for id in known if id in fields.get("ids", known)], "ids of constraints")
        for doc in reply:
            each = [told[one.number, doc["id"]] for one in self.partitions]
            for name in ("running", "held", "starts"):
                same(doc.get(name, 0), sum(one.get(name, 0) for one in each), f"constraints: {name}")

    def check_usage(self, fields, reply):
        """A key comes once for each partition."""
        found = {one.number: [] for one in self.partitions}
        for number, call in self.calls("usage"):
            found[number] += call.reply[1:]
        same(reply, [doc for docs in found.values() for doc in docs], "usage")
        given = {name: value for name, value in fields.items() if name not in ("count", "cursor")}
        for one in self.partitions:
            one.model.limit_documents.usage(list(map(dict, found[one.number])), **given)

    def check_shares(self):
        """Together they are no more than the limit, whatever balancers do."""
        for id, constraint in self.model.limits.constraints.items():
            there = [one.model for one in self.partitions if id in one.model.limits.constraints]
            shares = [one.shares.own(one.limits.constraints[id]) or (0, 0) for one in there]
            limits = constraint.concurrency, constraint.rate and constraint.rate["limit"]
            for limit, each in zip(limits, zip(*shares, strict=True), strict=True):
                expect(limit is None or sum(each) <= limit, "shares beyond the limit", id, limit, shares)

    def check_trail(self, fields, reply):
        """What was set in all is told as partition 0 has it."""
        entries = [
            entry
            for one in self.partitions
            for entry in one.model.access.trail[::-1]
            if not one.number or entry["what"] not in going("settings", "limits")
        ]
        same(sorted(map(plain_entry, reply)), sorted(map(plain_entry, entries)), "trail")


def plain_entry(entry):
    """Matchers hold values that no other reply gives."""
    change = entry.get("change")
    if entry["what"] in ("constrain", "subscribe"):
        change = None
    told = [entry["time_ms"], entry["what"], entry["actor"], entry.get("on"), change, entry.get("count")]
    return json.dumps(told, sort_keys=True, default=repr).replace(".0,", ",").replace(".0}", "}")
