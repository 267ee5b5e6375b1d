"""Constraints: whose key has room, for whom, and when.

Nothing is counted but looked up anew at every question: the jobs that hold a key among all jobs, the starts
of the window in a list.
"""

import math
from collections import Counter
from dataclasses import dataclass, field

from model.common import DEAR, WAITING, Refused, expect, ms, same, there
from model.matcher import MISSING, decode, key_part, matches_job, pack, value_at
from model.part import Part

FIELDS = ("by", "concurrency", "rate")


@dataclass
class Constraint:
    id: str
    given: dict
    blob: bytes
    declared: str | None = None  # what tells a program's declaration
    starts: dict = field(default_factory=dict)  # key -> moments in ms
    held_until_ms: dict = field(default_factory=dict)  # key -> closed by hand until then
    earlier: set = field(default_factory=set)  # ids of those that it matched only after they had started
    keys: dict = field(default_factory=dict)  # job id -> its key, or None where the matcher does not hold
    values: dict = field(default_factory=dict)  # key -> the values it was made of

    def __post_init__(self):
        self.match = decode(self.blob)
        self.concurrency = self.given.get("concurrency")
        self.rate = self.given.get("rate")
        self.period_ms = self.rate and self.rate["period"] * 1000

    @property
    def definition(self):
        """What must stay the same for starts to be counted further."""
        period = self.rate and self.rate["period"]
        return self.blob, self.given.get("by"), period

    @property
    def paths(self):
        by = self.given.get("by", [])
        return [by] if isinstance(by, str) else by

    def key_of(self, job):
        if job.id not in self.keys:
            self.keys[job.id] = None
            if matches_job(self.match, job):
                values = [value_at(job, path) for path in self.paths]
                self.keys[job.id] = self.key_for([None if v is MISSING else v for v in values])
        return self.keys[job.id]

    def key_for(self, values):
        key = tuple(map(key_part, values))
        self.values.setdefault(key, values)
        return key

    # ---- rate ----

    def window(self, key, now):
        """Moments of the starts in the window that ends now."""
        return [start for start in self.starts.get(key, []) if start > now - self.period_ms]

    def started(self, job, now):
        key = self.key_of(job)
        if key is None:
            return
        if self.rate:
            self.starts[key] = [*self.window(key, now), now]

    def opens_ms(self, key, now):
        """The first moment, now or later, at which hold and rate let a start pass."""
        moment = max(now, self.held_until_ms.get(key, 0))
        starts = self.window(key, now) if self.rate else []
        if not self.rate or len(starts) < self.rate["limit"]:
            return moment
        return max(moment, math.ceil(starts[-self.rate["limit"]] + self.period_ms))

    def hold_shown(self, key, now):
        """Until when the key is on hold, as documents tell it."""
        held_ms = self.held_until_ms.get(key, 0)
        return held_ms if held_ms > now else None


class Limits(Part):
    def __init__(self, model):
        super().__init__(model)
        self.constraints = {}
        self.matching = {}  # job id -> what `matches` gives, until the next change of a constraint
        self.steps_left = 0  # of placing jobs again, at most: the engine may say next_ms 0 so often

    # ---- the states of a job ----

    def started(self, job):
        for constraint in self.constraints.values():
            constraint.earlier.discard(job.id)
            constraint.started(job, self.now)

    def transition(self, job, was, event=None):
        if job.status in WAITING:
            self.look_anew(job)

    def look_anew(self, job):
        """Changed facts of a job count from when it waits (again)."""
        if job.has_other_facts:
            job.has_other_facts = False
            self.matching.pop(job.id, None)
            for constraint in self.constraints.values():
                constraint.keys.pop(job.id, None)

    # ---- whose key has room ----

    def keys_of(self, job):
        """The constraints that match a job, each with its key."""
        return (self.matching.get(job.id) or self.matches(job))[0]

    def names_of(self, job):
        """The same, each as (constraint id, key): jobs with the same are held alike."""
        return (self.matching.get(job.id) or self.matches(job))[1]

    def matches(self, job):
        keys = [(constraint, constraint.key_of(job)) for constraint in self.constraints.values()]
        found = [(constraint, key) for constraint, key in keys if key is not None]
        self.matching[job.id] = found, frozenset((constraint.id, key) for constraint, key in found)
        return self.matching[job.id]

    def holders(self):
        """(constraint id, key) -> how many run under it, of those that started since it is there."""
        return Counter(
            (constraint.id, key)
            for job in self.jobs.values() if job.status == "running"
            for constraint, key in self.keys_of(job) if job.id not in constraint.earlier
        )  # fmt: skip

    def has_place(self, constraint, key, holders):
        """As far as concurrency goes."""
        most = constraint.concurrency
        return most is None or holders.get((constraint.id, key), 0) < most

    def is_in_time(self, constraint, key):
        now = self.now
        if not constraint.rate:
            return constraint.held_until_ms.get(key, 0) <= now
        return constraint.opens_ms(key, now) <= now

    def is_held(self, job, holders):
        for constraint, key in self.keys_of(job):
            if not self.has_place(constraint, key, holders) or not self.is_in_time(constraint, key):
                return True
        return False

    def opening_ms(self, job, holders):
        """When time alone lets a waiting job start, at the latest; None if time alone does not."""
        moments = [self.now]
        for constraint, key in self.keys_of(job):
            if not self.has_place(constraint, key, holders):
                return None
            moments.append(constraint.opens_ms(key, self.now))
        return max(moments)

    def openings(self, queues, suits=lambda job: True):
        """The moments at which constraints let a job of these queues start by time alone."""
        if not self.constraints:
            return []
        holders = self.holders()
        jobs = [j for j in self.jobs.values() if j.status == "queued" and self.life.is_open(j, queues) and suits(j)]
        moments = [self.opening_ms(j, holders) for j in {self.names_of(j): j for j in jobs}.values()]
        return [moment for moment in moments if moment is not None and moment > self.now]

    # ---- operations; the documents are checked in limit_documents.py ----

    def constrain(self, reply, id, match, **given):
        old, declared = self.constraints.get(id), given.pop("declared", None)
        if old and declared and old.declared == declared:
            return self.limit_documents.check_constraint(reply, id)
        new = Constraint(id, given, pack(match), declared or (old and old.declared))
        if old and new.definition == old.definition:
            for name in ("starts", "held_until_ms", "earlier", "keys", "values"):
                setattr(new, name, getattr(old, name))
        else:
            new.earlier = {job.id for job in self.jobs.values() if job.status == "running"}
        if not old or (old.given, old.blob) != (new.given, new.blob):
            self.note_change()
        self.constraints[id] = new
        self.matching.clear()
        self.limit_documents.check_constraint(reply, id)

    def unconstrain(self, reply, id):
        there(id, self.constraints)
        same(reply, 1, "unconstrain")
        del self.constraints[id]
        self.matching.clear()
        self.note_change()

    def hold(self, reply, id, seconds, by=MISSING):
        there(id, self.constraints)
        constraint = self.constraints[id]
        values = by if isinstance(by, list) else [] if by is MISSING else [by]
        if isinstance(by, list) != isinstance(constraint.given.get("by"), list) or len(values) != len(constraint.paths):
            raise Refused("INVALID", "by")
        key = constraint.key_for(values)
        if seconds:
            constraint.held_until_ms[key] = self.now + ms(seconds)
            same(reply, constraint.held_until_ms[key], "hold")
        else:
            constraint.held_until_ms.pop(key, None)
            expect(reply <= self.now, "hold of 0 seconds", reply)

    def note_change(self):
        alive = sum(job.status in ("queued", "running") for job in self.jobs.values())
        self.steps_left += 5 + alive // 5  # ten of them in a step, and where they were moved to once more

    def close_keys_of(self, job, hold):
        for id, constraint in self.constraints.items():
            seconds = max(hold.get(id, 0), hold.get("*", 0))
            if not {id, "*"} & hold.keys():
                continue
            key = constraint.key_of(job)
            if key is not None and job.id not in constraint.earlier:
                until_ms = constraint.held_until_ms.get(key, 0)
                constraint.held_until_ms[key] = max(until_ms, self.now + ms(seconds))

    def may_have_left_work(self):
        """A change is carried out in steps; and a pick that has cost enough leaves the rest."""
        self.steps_left = max(0, self.steps_left - 1)
        return self.steps_left > 0 or sum(job.status == "queued" for job in self.jobs.values()) > DEAR
