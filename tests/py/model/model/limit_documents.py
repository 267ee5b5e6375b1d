"""What the documents of constraints say: `constraints`, `usage` and `explain`."""

from model.common import WAITING, Refused, expect, listed, same, there
from model.limits import FIELDS
from model.matcher import as_text, key_part, kind, shown_part
from model.part import Part


def begins(value, prefix):
    """Whether a key's value is text that begins so, or a number that is written so. Long ones have no text."""
    if kind(value) == "text" and len(value.encode("utf-8", "surrogateescape")) > 64:
        return False
    return (as_text(value) or "").startswith(prefix)


class LimitDocuments(Part):
    # ---- constraints ----

    def list_constraints(self, reply, ids=None, count=None):
        listed(reply, self.limits.constraints, ids)
        for doc in reply:
            self.check_constraint(doc, doc["id"])

    def check_constraint(self, doc, id):
        constraint = self.limits.constraints[id]
        given = {field: doc.pop(field) for field in FIELDS if field in doc}
        same(given, constraint.given, "a constraint as it was given")
        same((doc.pop("id"), doc.pop("match")), (id, constraint.match), "id and matcher of a constraint")
        holders = self.limits.holders()
        keys = doc.pop("keys")
        least, most = len(self.keys_at_work(constraint, holders)), len(self.keys_ever(constraint))
        expect(least <= keys <= most, "keys of a constraint", keys, least, most)
        if "by" not in constraint.given:
            same(doc.pop("running"), holders.get((id, ()), 0), "jobs that run under a constraint")
            self.check_use(doc, constraint, (), holders)
        same(doc, {}, "unknown fields of a constraint")

    def keys_at_work(self, constraint, holders):
        """Those that jobs hold, and those with starts in the window."""
        starts = {key for key in constraint.starts if constraint.rate and constraint.window(key, self.now)}
        return {key for id, key in holders if id == constraint.id} | starts

    def keys_ever(self, constraint):
        for job in self.jobs.values():
            constraint.key_of(job)
        return set(constraint.values)

    def by_shown(self, constraint):
        """Key as `usage` shows it -> key."""
        return {tuple(map(shown_part, constraint.values[key])): key for key in self.keys_ever(constraint)}

    def shown(self, doc, constraint):
        """Of a document of `usage`."""
        if not isinstance(constraint.given.get("by"), list):
            return (key_part(doc["by"]),) if "by" in doc else ()
        return tuple(map(key_part, doc["by"]))

    def usage(self, reply, id, prefix=None, count=None):
        """All the pages, one after the other."""
        there(id, self.limits.constraints)
        if prefix is not None and "by" not in self.limits.constraints[id].given:
            raise Refused("INVALID", "prefix")
        constraint, holders = self.limits.constraints[id], self.limits.holders()
        by_shown, seen = self.by_shown(constraint), []
        for doc in reply:
            shown = self.shown(doc, constraint)
            key = by_shown.get(shown)
            doc.pop("by", None)
            expect(key is not None and key not in seen, "a key that is not used, or twice", shown, by_shown)
            seen.append(key)
            expect(prefix is None or begins(constraint.values[key][0], prefix), "a key that begins otherwise", shown)
            same(doc.pop("running"), holders.get((id, key), 0), "jobs that run under a key")
            self.check_use(doc, constraint, key, holders)
            same(doc, {}, "unknown fields of a key")
        missing = self.keys_at_work(constraint, holders) - set(seen)
        if prefix is not None:
            missing = {key for key in missing if begins(constraint.values[key][0], prefix)}
        expect(not missing, "keys in use that are not shown", missing)

    def check_use(self, doc, constraint, key, holders):
        """Takes what `usage` says of a key, besides `running`, out of the document."""
        most = constraint.concurrency
        is_full = most is not None and holders.get((constraint.id, key), 0) >= most
        self.check_window(doc, constraint, key, is_full)
        queued = [j for j in self.jobs.values() if j.status == "queued" and constraint.key_of(j) == key]
        lanes, held = doc.pop("lanes"), doc.pop("held")
        expect(lanes >= 0 and 0 <= held <= len(queued), "lanes and jobs held", lanes, held, len(queued))
        following = doc.pop("next", None)
        same(following is not None, held > 0, "whether a job is next")
        expect(following is None or following in [job.id for job in queued], "the job that is next", following)

    def check_window(self, doc, constraint, key, is_full):
        """`hold_ms`, `starts`, `opens_ms`. When the key has no room to run in either, `opens_ms` may be left out."""
        same(doc.pop("hold_ms", None), constraint.hold_shown(key, self.now), f"hold_ms of {constraint.id}")
        starts, opens_ms = doc.pop("starts", None), doc.pop("opens_ms", None)
        same(starts, len(constraint.window(key, self.now)) if constraint.rate else None, "starts")
        expect(opens_ms is None or opens_ms > self.now, "opens_ms is over", opens_ms, self.now)
        expected = constraint.opens_ms(key, self.now)
        if not is_full or opens_ms is not None:
            same(opens_ms, expected if expected > self.now else None, f"opens_ms of {constraint.id} at {self.now}")

    # ---- explain ----

    def explain(self, reply, id):
        job = self.life.named(reply, id)
        doc = dict(reply)
        for name in ("id", "status", "queue", "name"):
            same(doc.pop(name), getattr(job, name), "explain: " + name)
        if job.status not in WAITING:
            return same(doc, {}, "explain: fields of a job that does not wait")
        same(doc.pop("paused"), self.queues.records[job.queue]["paused"], "explain: paused")
        holders = self.limits.holders()
        self.explain_constraints(doc.pop("constraints"), job, holders)
        is_held = self.limits.is_held(job, holders)
        same(doc.pop("held"), is_held, "explain: held")
        self.explain_start(doc.pop("start_ms", None), job, holders)
        self.explain_place(doc, job)
        if job.status == "blocked":
            same(sorted(doc.pop("waits_for", job.waits_for)), sorted(job.waits_for), "explain: waits_for")
        same(doc, {}, "explain: unknown fields")

    def explain_constraints(self, shown, job, holders):
        matching = {constraint.id: (constraint, key) for constraint, key in self.limits.keys_of(job)}
        same(sorted(doc["id"] for doc in shown), sorted(matching), "explain: constraints that match")
        for doc in map(dict, shown):
            constraint, key = matching[doc.pop("id")]
            has_place = self.limits.has_place(constraint, key, holders)
            same(doc.pop("open"), has_place and self.limits.is_in_time(constraint, key), "explain: open")
            same(doc.pop("running"), holders.get((constraint.id, key), 0), "explain: running")
            self.check_window(doc, constraint, key, not has_place)
            expect(("by" in doc) == ("by" in constraint.given), "explain: by", doc)
            by = doc.pop("by", [])
            by = by if isinstance(constraint.given.get("by"), list) else [by] if "by" in constraint.given else []
            same(tuple(map(key_part, by)), tuple(map(shown_part, constraint.values[key])), "explain: by")
            limits = {name: doc.pop(name) for name in ("concurrency", "rate") if name in doc}
            given = {name: constraint.given[name] for name in ("concurrency", "rate") if name in constraint.given}
            same(limits, given, "explain: limits")
            same(doc, {}, "explain: unknown fields of a constraint")

    def explain_start(self, start_ms, job, holders):
        """Now, its due time, or when its constraints open; absent when that depends on other jobs."""
        if job.status == "blocked":
            return same(start_ms, None, "explain: start_ms of a blocked job")
        opening_ms = self.limits.opening_ms(job, holders)
        if opening_ms is None:
            return same(start_ms, None, "explain: start_ms of what depends on other jobs")
        earliest = max(self.now, job.due_ms or 0)
        if not (start_ms is None and self.queues.records[job.queue]["paused"]):
            same(start_ms, max(earliest, opening_ms), f"explain: start_ms at {self.now}")

    def explain_place(self, doc, job):
        waiting = [j for j in self.jobs.values() if j.queue == job.queue and j.status in WAITING]
        queued = [j for j in waiting if j.status == "queued"]
        before = sum((j.priority, j.id) < (job.priority, job.id) for j in queued)
        ahead, workers, channels = doc.pop("ahead"), doc.pop("workers"), doc.pop("waiting")
        if job.status != "queued":
            expect(0 <= ahead < len(waiting), "explain: ahead of a job that is not queued", ahead, waiting)
        elif self.order.has_lanes():
            expect(0 <= ahead <= before, "explain: ahead", ahead, before)
        else:
            same(ahead, before, "explain: ahead")
        same(workers, len(self.workers.serving(job.queue)), "explain: workers")
        expect(isinstance(channels, int | list), "explain: waiting", channels)
        is_unknown, told_unknown = self.workers.is_unknown(job.queue, job.name), doc.pop("unknown", False)
        expect(is_unknown in (None, told_unknown), "explain: unknown", told_unknown, is_unknown)
        running = sum(j.status == "running" and j.queue == job.queue for j in self.jobs.values())
        same(doc.pop("running"), running, "explain: running jobs of the queue")
