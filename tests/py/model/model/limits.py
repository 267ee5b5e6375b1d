"""Constraints: whose key has room, for whom, and when.

Nothing is counted but looked up anew at every question: the jobs that hold a key among all jobs, the starts
of the window in a list. Two things are the engine's to decide, so the model only knows where they may be: a
job that needs more of a weighted key than there is may have reserved it, and a `smooth` rate may open a
rounding error sooner or later. Such keys are *unsure*: they may be open or closed.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, product

from model.common import DEAR, WAITING, ErrorReply, Refused, accepted, expect, ms, same
from model.matcher import MISSING, decode, key_part, kind, matches_job, pack, value_at
from model.part import Part

MOST = 1000  # constraints of a namespace
FIELDS = ("by", "concurrency", "rate", "cost", "order")
ROUNDING = 1e-6


@dataclass
class Constraint:
    id: str
    given: dict
    blob: bytes
    expires_ms: int | None = None
    declared: str | None = None  # what tells a program's declaration
    starts: dict = field(default_factory=dict)  # key -> [(date in ms, cost), ...]
    next_ms: dict = field(default_factory=dict)  # key -> when `smooth` allows the next start
    doubtful: set = field(default_factory=set)  # keys whose last start, under `smooth`, may be forgotten
    held_until_ms: dict = field(default_factory=dict)  # key -> closed by hand until then
    kept: set = field(default_factory=set)  # ids of those who keep their key between attempts
    keys: dict = field(default_factory=dict)  # job id -> its key, or None where the matcher does not hold
    values: dict = field(default_factory=dict)  # key -> the values it was made of
    shares: object = None  # the part of the model that knows the limits in force

    def __post_init__(self):
        self.match = decode(self.blob)
        self.concurrency = self.given.get("concurrency")
        self.rate = self.given.get("rate")
        self.is_smooth = bool(self.rate and self.rate.get("smooth"))
        self.is_strict = "order" in self.given
        self.cost = self.given.get("cost", 1)
        self.period_ms = self.rate and self.rate["period"] * 1000
        self.may_be_unsure = self.is_smooth or self.is_weighted()

    @property
    def definition(self):
        """What must stay the same for starts to be counted further."""
        period = self.rate and self.rate["period"]
        return self.blob, self.given.get("by"), self.cost, self.is_strict, period, self.is_smooth

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

    def cost_of(self, job):
        cost = self.cost
        if isinstance(cost, str):
            cost = value_at(job, cost)
            cost = cost if kind(cost) == "number" and cost >= 0 else 1
        return min(cost, self.rate["limit"])

    # ---- rate ----

    def date(self, key, now):
        """The date of a start at this moment: also when the clock went back, no earlier than the latest."""
        return max(now, self.starts[key][-1][0]) if self.starts.get(key) else now

    def window(self, key, now):
        """Dates and costs of the starts in the window that ends now."""
        begin = self.date(key, now) - self.period_ms
        return [start for start in self.starts.get(key, []) if start[0] > begin]

    def spent(self, key, now):
        return sum(cost for _, cost in self.window(key, now))

    def started(self, job, now):
        key = self.key_of(job)
        if key is None:
            return
        if self.is_strict:
            self.kept.add(job.id)
        if self.rate:
            if key in self.doubtful and now < self.next_ms[key]:
                del self.starts[key], self.next_ms[key]  # it was forgotten
            self.doubtful.discard(key)
            date, cost = self.date(key, now), self.cost_of(job)
            self.starts[key] = [*self.window(key, now), (date, cost)]
            if self.is_smooth and cost:
                begin = max(date, self.next_ms.get(key, 0))
                self.next_ms[key] = begin + cost * self.period_ms / self.rate["limit"]

    def opens_ms(self, key, cost, now):
        """The first moment, now or later, at which hold and rate let a start of this cost pass."""
        moment = max(now, self.held_until_ms.get(key, 0))
        if not self.rate or key in self.doubtful:
            return moment
        if self.is_smooth:
            due_ms = self.next_ms.get(key, 0)
            return moment if self.date(key, now) >= due_ms - ROUNDING else max(moment, math.ceil(due_ms - ROUNDING))
        left = self.rate["limit"] - cost
        if self.spent(key, now) <= left:
            return moment
        # Later the date of a start is the moment itself, as every start in the window is over by then.
        ends = sorted(date + self.period_ms for date, _ in self.window(key, now))
        return max(moment, math.ceil(next(end for end in ends if self.spent(key, end) <= left or end == ends[-1])))

    def hold_shown(self, key, now):
        """Until when the key is on hold, as documents tell it."""
        held_ms = self.held_until_ms.get(key, 0)
        return held_ms if held_ms > now else None

    def is_weighted(self):
        return isinstance(self.cost, str) and bool(self.rate) and not self.is_smooth

    def is_unsure(self, key, now):
        if self.is_weighted():
            return self.spent(key, now) > 0
        if key in self.doubtful:
            return now < self.next_ms[key]
        return self.is_smooth and abs(self.next_ms.get(key, 0) - self.date(key, now)) < ROUNDING * 2

    def sure_ms(self, key, now):
        """When an unsure key is certain to be open, if nothing starts before."""
        moment = max(now, self.held_until_ms.get(key, 0))
        if self.is_weighted():
            return max(moment, math.ceil(self.window(key, now)[-1][0] + self.period_ms))
        return max(moment, math.ceil(self.next_ms.get(key, 0) + 1))

    # ---- what the engine may have forgotten when the clock goes back ----

    def is_over(self, key, now):
        """Whether something that limited this key does not any more."""
        return 0 < self.held_until_ms.get(key, 0) <= now or self.count_over(key, now) > 0

    def count_over(self, key, now):
        """How many of the starts have left the window by now."""
        if self.is_smooth:
            return int(0 < self.next_ms.get(key, 0) <= now)
        return sum(date + self.period_ms <= now for date, _ in self.starts.get(key, []))

    def forget(self, key, before_ms, doc, now):
        """Keeps of what was over before as much as the engine's document of the key shows."""
        starts, held_ms = self.starts.get(key, []), self.held_until_ms.get(key, 0)
        over = self.count_over(key, before_ms)
        if doc is None:
            if max(held_ms, self.next_ms.get(key, 0)) <= before_ms and (self.is_smooth or over == len(starts)):
                for kept in (self.starts, self.next_ms, self.held_until_ms):
                    kept.pop(key, None)
                self.doubtful.discard(key)
            return
        if self.is_smooth and over and self.starts.get(key):
            self.doubtful.add(key)
        cost = min(1 if isinstance(self.cost, str) else self.cost, self.rate["limit"]) if self.rate else 0
        for drops, hold_ms in product(
            range(1 if self.is_smooth else over + 1), (held_ms, 0) if held_ms <= before_ms else (held_ms,)
        ):
            # Also when all are gone, the date of the latest is known.
            if starts:
                self.starts[key] = starts[drops:] or [(starts[-1][0], 0)]
            self.held_until_ms[key] = hold_ms
            spent = self.spent(key, now) if self.rate and not self.is_smooth else 0
            opens_ms = doc.get("opens_ms", now)
            expected_ms = opens_ms if key in self.doubtful else self.opens_ms(key, cost, now)
            shown = (doc.get("starts", 0), opens_ms, doc.get("hold_ms"))
            if (spent, expected_ms, self.hold_shown(key, now)) == shown:
                return
        if starts:
            self.starts[key] = starts
        self.held_until_ms[key] = held_ms


class Limits(Part):
    operations = (
        "constrain",
        "unconstrain",
        "hold",
    )

    def __init__(self, model):
        super().__init__(model)
        self.constraints = {}
        self.matching = {}  # job id -> what `matches` gives, until the next change of a constraint
        self.steps_left = 0  # of carrying out changes, at most: the engine may say next_ms 0 so often

    # ---- the states of a job ----

    def started(self, job):
        for constraint in self.constraints.values():
            constraint.started(job, self.model.now)

    def ended(self, job):
        for constraint in self.constraints.values():
            constraint.kept.discard(job.id)

    def transition(self, job, was, event=None):
        if job.status in WAITING:
            self.look_anew(job)

    def look_anew(self, job):
        """Changed facts of a job count from when it waits (again)."""
        if job.has_other_facts:
            job.has_other_facts = False
            self.matching.pop(job.id, None)
            for constraint in self.constraints.values():
                if job.id not in constraint.kept:
                    constraint.keys.pop(job.id, None)

    # ---- whose key has room ----

    def keys_of(self, job):
        """The constraints that match a job, each with its key."""
        return (self.matching.get(job.id) or self.matches(job))[0]

    def names_of(self, job):
        """The same, each as (constraint id, key)."""
        return (self.matching.get(job.id) or self.matches(job))[1]

    def facts_of(self, job):
        """All that decides whether a waiting job is held, and until when: jobs with the same are alike."""
        keys, names = self.matching.get(job.id) or self.matches(job)
        costs = tuple(constraint.cost_of(job) for constraint, _ in keys if constraint.rate)
        return names, costs, any(job.id in constraint.kept for constraint, _ in keys) and job.id

    def matches(self, job):
        keys = [(constraint, constraint.key_of(job)) for constraint in self.constraints.values()]
        found = [(constraint, key) for constraint, key in keys if key is not None]
        self.matching[job.id] = found, frozenset((constraint.id, key) for constraint, key in found)
        return self.matching[job.id]

    def holders(self):
        """(constraint id, key) -> how many hold it: they run, or keep it in strict order until they end."""
        running = [self.names_of(job) for job in self.model.jobs.values() if job.status == "running"]
        count = Counter(chain.from_iterable(running))
        for constraint in [one for one in self.constraints.values() if one.kept]:
            kept = [job for id in constraint.kept if (job := self.model.jobs.get(id)) and job.status != "running"]
            count.update((constraint.id, key) for job in kept for one, key in self.keys_of(job) if one is constraint)
        return count

    def has_place(self, constraint, key, job, holders):
        """As far as concurrency goes. Who keeps the key has its place already."""
        most = constraint.concurrency
        if most is None or job.id in constraint.kept:
            return True
        return holders.get((constraint.id, key), 0) < most

    def is_in_time(self, constraint, key, job):
        now = self.model.now
        if not constraint.rate:
            return constraint.held_until_ms.get(key, 0) <= now
        return constraint.opens_ms(key, constraint.cost_of(job), now) <= now

    def is_held(self, job, holders):
        for constraint, key in self.keys_of(job):
            if not self.has_place(constraint, key, job, holders) or not self.is_in_time(constraint, key, job):
                return True
        return False

    def unsure_keys(self, job):
        return {
            (c.id, key) for c, key in self.keys_of(job)
            if c.may_be_unsure and c.is_unsure(key, self.model.now)
        }  # fmt: skip

    def opening_ms(self, job, holders):
        """When time alone lets a waiting job start, at the latest; None if time alone does not."""
        moments = [self.model.now]
        for constraint, key in self.keys_of(job):
            if not self.has_place(constraint, key, job, holders):
                return None
            cost = constraint.cost_of(job) if constraint.rate else 0
            moments.append(constraint.opens_ms(key, cost, self.model.now))
            if constraint.is_unsure(key, self.model.now):
                moments.append(constraint.sure_ms(key, self.model.now))
        return max(moments)

    def openings(self, queues, suits=lambda job: True):
        """The moments at which constraints let a job of these queues start by time alone."""
        if not self.constraints:
            return []
        holders = self.holders()
        jobs = [
            j
            for j in self.model.jobs.values()
            if j.status == "queued" and self.model.life.is_open(j, queues) and suits(j)
        ]
        moments = [self.opening_ms(j, holders) for j in {self.facts_of(j): j for j in jobs}.values()]
        return [moment for moment in moments if moment is not None and moment > self.model.now]

    # ---- operations; the documents are checked in limit_documents.py ----

    def constrain(self, reply, id, match, **given):
        if id not in self.constraints and len(self.constraints) >= MOST:
            raise Refused("FULL", "id")
        bounds = self.model.bounds
        if "by" in given and id not in self.constraints and bounds.is_full(bounds.keys_in_use()):
            raise Refused("FULL", "id")
        accepted(reply)
        old, declared = self.constraints.get(id), given.pop("declared", None)
        if old and declared and old.declared == declared:
            return self.model.limit_documents.check_constraint(reply, id)
        expires_in = given.pop("expires_in", None)
        expires_ms = None if expires_in is None else self.model.now + ms(expires_in)
        new = Constraint(id, given, pack(match), expires_ms, declared or (old and old.declared))
        if old and new.definition == old.definition:
            for name in ("starts", "next_ms", "doubtful", "held_until_ms", "kept", "keys", "values"):
                setattr(new, name, getattr(old, name))
        elif new.is_strict:
            running = [job for job in self.model.jobs.values() if job.status == "running"]
            new.kept = {job.id for job in running if new.key_of(job) is not None}
        if not old or (old.given, old.blob) != (new.given, new.blob):
            self.note_change()
        self.constraints[id] = new
        self.matching.clear()
        self.model.limit_documents.check_constraint(reply, id)

    def unconstrain(self, reply, id):
        if id not in self.constraints:
            raise Refused("NOTFOUND", "id")
        accepted(reply)
        same(reply, 1, "unconstrain")
        self.drop(id)

    def drop(self, id):
        del self.constraints[id]
        self.matching.clear()
        self.note_change()

    def expire(self, left_some):
        """Those whose time is over go with the sweep, unless that has left them."""
        for constraint in list(self.constraints.values()):
            if constraint.expires_ms is not None and constraint.expires_ms <= self.model.now:
                if not left_some or isinstance(self.model.look_at_keys(constraint.id), ErrorReply):
                    self.drop(constraint.id)

    def hold(self, reply, id, seconds, by=MISSING):
        if id not in self.constraints:
            raise Refused("NOTFOUND", "id")
        constraint = self.constraints[id]
        values = by if isinstance(by, list) else [] if by is MISSING else [by]
        if isinstance(by, list) != isinstance(constraint.given.get("by"), list) or len(values) != len(constraint.paths):
            raise Refused("INVALID", "by")
        if values and seconds and self.model.bounds.is_new_key(constraint, values):
            raise Refused("FULL", "by")
        accepted(reply)
        key = constraint.key_for(values)
        if seconds:
            constraint.held_until_ms[key] = self.model.now + ms(seconds)
            same(reply, constraint.held_until_ms[key], "hold")
        else:
            constraint.held_until_ms.pop(key, None)
            expect(reply <= self.model.now, "hold of 0 seconds", reply)

    def note_change(self):
        alive = sum(job.status in ("queued", "running") for job in self.model.jobs.values())
        self.steps_left += 5 + alive // 5  # ten of them in a step, and where they were moved to once more

    def close_keys_of(self, job, hold):
        for id, constraint in self.constraints.items():
            seconds = max(hold.get(id, 0), hold.get("*", 0))
            if not {id, "*"} & hold.keys():
                continue
            key = constraint.key_of(job)
            if key is not None:
                until_ms = constraint.held_until_ms.get(key, 0)
                constraint.held_until_ms[key] = max(until_ms, self.model.now + ms(seconds))

    def may_have_left_work(self):
        """A change is carried out in steps; and a pick that has cost enough leaves the rest."""
        self.steps_left = max(0, self.steps_left - 1)
        return self.steps_left > 0 or sum(job.status == "queued" for job in self.model.jobs.values()) > DEAR
