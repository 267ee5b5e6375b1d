"""Schedules: docs/schedules.md."""

from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from model.common import DEFAULTS, Refused, entries, expect, listed, matches, ms, same, there
from model.cron import Cron
from model.part import Part

RECENT_MS = 60_000
MOST_RUNS = 20
TIMING = ("every", "cron", "tz")
DEFAULTS = {"catch_up": True, "paused": False}


@dataclass
class Schedule:
    id: str
    given: dict
    job: dict
    argument: bytes
    made: int = 0
    next_ms: int | None = None
    last_ms: int | None = None
    last_id: str | None = None
    runs: list = field(default_factory=list)  # ids of its last jobs, the latest first

    def __post_init__(self):
        zone = ZoneInfo(self.given.get("timezone", "UTC"))
        self.cron = Cron(self.given["cron"], zone) if "cron" in self.given else None
        self.every_ms = ms(self.given.get("every", 0))
        self.is_paused = self.given.get("paused", False)
        self.declared = self.given.pop("declared", None)  # what tells a program's declaration

    @property
    def timing(self):
        return [self.given.get(field) for field in TIMING]

    def after(self, moment_ms):
        """The first moment after this one; None if there is none."""
        return self.cron.after(moment_ms) if self.cron else (moment_ms // self.every_ms + 1) * self.every_ms

    def wanted(self, now):
        """The moment that gets a job, of those that passed since the last sweep."""
        moment_ms = self.next_ms
        if not self.given.get("catch_up", True):
            moment_ms = max(moment_ms, self.after(now - RECENT_MS - 1))
        return [moment_ms] if moment_ms <= now else []


class Schedules(Part):
    def __init__(self, model):
        super().__init__(model)
        self.defined = {}
        self.keys = set()  # unique keys of the jobs that schedules make, or made

    def is_schedule_due(self, schedule):
        next_ms = self.awaits_ms(schedule)
        return next_ms is not None and next_ms <= self.now

    def awaits_ms(self, schedule):
        """When it is looked at."""
        return None if schedule.is_paused else schedule.next_ms

    def due_count(self):
        due = [schedule for schedule in self.defined.values() if self.is_schedule_due(schedule)]
        return sum(1 + len(schedule.wanted(self.now)) for schedule in due)

    def queue_of(self, schedule):
        return schedule.job.get("queue", schedule.job["name"])

    def is_full(self, spec):
        queue = spec.get("queue", spec["name"])
        limit = self.queues.records.get(queue, {}).get("max_waiting")
        return bool(limit) and self.life.waiting(queue) >= limit

    # ---- the sweep ----

    def before_sweep(self):
        """Unique keys that are taken, and how many jobs wait in each queue."""
        queues = self.queues.records if self.defined else ()
        return set(self.arrival.keys), {queue: self.life.waiting(queue) for queue in queues}

    def make_jobs(self, left_some, taken_before, waiting_before):
        due = {s.id for s in self.defined.values() if self.is_schedule_due(s)}
        made = {id: [] for id in due}
        for job_id in self.engine.ids_after(self.arrival.last_id) if due else ():
            doc = self.engine.look(job_id)
            if "webhook" in doc:
                continue
            expect(doc.get("schedule") in due, "a job out of nowhere", doc)
            schedule = self.defined[doc["schedule"]]
            made[schedule.id].append(doc["schedule_ms"])
            unique = schedule.job.get("unique")
            expect(unique is None or self.arrival.owner(unique) is None, "a schedule's job in spite of its key", doc)
            self.arrival.last_id = job_id
            job = self.arrival.add(job_id, schedule.job, schedule.argument)
            job.schedule, job.schedule_ms = schedule.id, doc["schedule_ms"]
            schedule.last_ms, schedule.last_id = job.schedule_ms, job_id
            schedule.runs = [job_id, *schedule.runs[: MOST_RUNS - 1]]
        for id in due:
            queue = self.queue_of(self.defined[id])
            came = sum(len(made[other.id]) for other in map(self.defined.get, due) if self.queue_of(other) == queue)
            limit = self.queues.records.get(queue, {}).get("max_waiting")
            was_full = limit and max(waiting_before.get(queue, 0) + came, self.life.waiting(queue)) >= limit
            self.check_made(self.defined[id], made[id], left_some, taken_before, was_full)

    def check_made(self, schedule, made, left_some, taken_before, was_full):
        """taken_before: unique keys. was_full: at some time in the sweep the queue may have been."""
        wanted = schedule.wanted(self.now)
        same(made, [moment for moment in wanted if moment in made], f"jobs of a schedule at {self.now}")
        schedule.made += len(made)
        doc = self.engine.look_at_schedule(schedule.id) if left_some else {}
        if left_some and doc.get("next_ms") == schedule.next_ms:
            wanted = []
        else:
            schedule.next_ms = schedule.after(self.now)
        if len(made) < len(wanted):
            unique = schedule.job.get("unique")
            has_reason = unique in taken_before or unique in self.arrival.keys or was_full
            expect(has_reason, "moments without jobs", wanted, made, schedule, self.now)

    def may_have_met(self, event):
        """Whether it tells that a job was met which has the key of a schedule's jobs, or had it, or is gone by now. How
        often is not known: a sweep may leave some for the next."""
        job = self.jobs.get(event["id"])
        return event.get("event") == "met" and (job.unique in self.keys if job and job.unique else bool(self.keys))

    def moments(self):
        return [at_ms for s in self.defined.values() if (at_ms := self.awaits_ms(s)) is not None]

    def moments_for(self, queues):
        """Those at which jobs come to these queues."""
        found = []
        for schedule in self.defined.values():
            queue = self.queue_of(schedule)
            is_paused = self.queues.records.get(queue, {}).get("paused") or schedule.is_paused
            at_ms = self.awaits_ms(schedule)
            if at_ms is not None and not is_paused:
                if any(matches(entry, queue) for entry in entries(queues)):
                    found.append(at_ms)
        return found

    # ---- operations ----

    def run_now(self, reply, id):
        there(id, self.defined)
        schedule = self.defined[id]
        if self.is_full(schedule.job):
            raise Refused("FULL", "job.queue")
        self.arrival.create([(schedule.job, schedule.argument)], [reply])
        if reply[1]:
            job = self.jobs[reply[0]]
            job.schedule, job.schedule_ms = id, self.now
            schedule.runs = [job.id, *schedule.runs[: MOST_RUNS - 1]]

    def schedule(self, reply, id, job=None, argument=None, run=False, **given):
        if run:
            return self.run_now(reply, id)
        if job is None:
            there(id, self.defined)
            old = self.defined[id]
            return self.schedule(reply, id, old.job, old.argument, **old.given | {"declared": None} | given)
        timing = Schedule(id, given, job, argument)
        if timing.cron and timing.cron.after(self.now) is None:
            raise Refused("INVALID", "cron")
        if not timing.cron and not timing.every_ms:
            raise Refused("INVALID", "every")
        new, old = timing, self.defined.get(id)
        if old and new.declared and old.declared == new.declared:
            self.check_schedule(dict(reply), id)
            return
        if old:
            if new.declared and "paused" not in given:
                new.is_paused = given["paused"] = old.is_paused
            new.declared = new.declared or old.declared
            new.made, new.last_ms, new.last_id, new.runs = old.made, old.last_ms, old.last_id, old.runs
        new.next_ms = new.after(self.now)
        if old and old.timing == new.timing and not old.is_paused and old.next_ms is not None:
            new.next_ms = old.next_ms
        self.defined[id] = new
        if "unique" in job:
            self.keys.add(job["unique"])
        self.check_schedule(dict(reply), id)

    def unschedule(self, reply, id):
        there(id, self.defined)
        same(reply, 1, "unschedule")
        del self.defined[id]

    def list_schedules(self, reply, ids=None, count=None, next=0, runs=0):
        listed(reply, self.defined, ids)
        for doc in reply:
            self.check_schedule(dict(doc), doc["id"], next, runs)

    def check_runs(self, shown, wanted):
        same([run["id"] for run in shown], wanted, "last jobs of a schedule")
        for run in shown:
            job = self.jobs.get(run["id"])
            if "status" in run:
                same(run["status"], job.status if job else None, "what became of a schedule's job")
            else:
                expect(not job or job.may_be_gone, "a schedule's job is not gone", run)

    def check_schedule(self, doc, id, next=0, runs=0):
        schedule = self.defined[id]
        self.check_runs([dict(run) for run in doc.pop("runs", [])], schedule.runs[:runs])
        self.check_moments(doc.pop("next", []), schedule, next)
        shown_next = doc.pop("next_ms", None)
        next_ms = None if schedule.is_paused else schedule.next_ms
        same(shown_next, next_ms, f"next_ms of a schedule at {self.now}")
        for name in ("made", "last_ms", "last_id"):
            same(doc.pop(name, None), getattr(schedule, name), f"{name} of a schedule")
        same(doc.pop("argument"), schedule.argument, "argument of a schedule")
        same(doc.pop("job"), schedule.job, "job of a schedule")
        given = {k: v for k, v in schedule.given.items() if DEFAULTS.get(k) != v}
        same({k: v for k, v in doc.items() if DEFAULTS.get(k) != v}, {"id": id, **given}, "a schedule as it was given")

    def check_moments(self, shown, schedule, count):
        if schedule.is_paused:
            return same(shown, [], "next moments of a schedule that is paused")
        firsts = {schedule.next_ms, schedule.after(self.now)}
        lists = [self.moments_from(schedule, first, count) for first in firsts]
        expect(shown in lists, "next moments of a schedule", shown, lists)

    def moments_from(self, schedule, first, count):
        moments = []
        while first is not None and len(moments) < count:
            moments.append(first)
            first = schedule.after(first)
        return moments
