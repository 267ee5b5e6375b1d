"""What the clock does: sweeps, leases, and what calls are told of what is due."""

from model.common import DEAR, SOME_TEXT, SWEEP, WAITING, expect, ms
from model.part import Part

LATE_MS, RESPITE_MS = 2000, 15_000


class Clock(Part):
    def __init__(self, model):
        super().__init__(model)
        self.found_ms = -RESPITE_MS  # when something was last found to be long over
        self.is_new_respite = False  # by the last sweep
        self.expired = 0  # jobs that the last sweep, or the pick behind it, found expired

    def note_respite(self):
        """What was over for long, though nobody looked, gets a respite from when somebody does; nothing else ends then,
        but what this sweep has ended before."""
        before_ms, self.found_ms = self.found_ms, self.engine.respite_ms()
        self.is_new_respite = self.found_ms != before_ms
        if self.is_new_respite:
            ends = [job.due_ms for job in self.jobs.values() if job.status == "running"]
            ends += [worker.seen_ms + ms(self.settings["worker_ttl"]) for worker in self.workers.registered.values()]
            is_late = any(before_ms + RESPITE_MS <= end < self.now - LATE_MS for end in ends)
            expect(is_late and self.found_ms == self.now, "a respite", self.found_ms, before_ms, ends)

    def not_before(self, end_ms, did):
        """When something ends. `did`: whether it has, in the sweep that gives others a respite."""
        if self.found_ms <= self.now < self.found_ms + RESPITE_MS and not (self.is_new_respite and did()):
            return max(end_ms, self.found_ms + RESPITE_MS)
        return end_ms

    def due_of(self, job):
        """When something becomes of a job; of one that runs, when its lease counts as over."""
        return self.not_before(job.due_ms, lambda: self.moved(job)) if job.status == "running" else job.due_ms

    def end_of(self, worker):
        """When a worker counts as dead."""
        end_ms = worker.seen_ms + ms(self.settings["worker_ttl"])
        return self.not_before(end_ms, lambda: not self.engine.look_at_worker(worker.id))

    def dead_workers(self):
        return [worker for worker in self.workers.registered.values() if self.end_of(worker) <= self.now]

    def is_due(self, job):
        if job.status in WAITING and self.has_expired(job):
            return True
        if job.status == "blocked":
            return self.links.is_due(job)
        is_timed = job.status in ("scheduled", "retrying", "running")
        return is_timed and self.due_of(job) <= self.now

    def has_expired(self, job):
        return job.attempt == 0 and job.expires_ms is not None and job.expires_ms <= self.now

    def sweep(self, left_some):
        """Does what is due; when the engine left some of it, exactly as far as the engine got."""
        before = self.schedules.before_sweep()
        self.note_respite()
        self.expired = 0
        for job in list(self.jobs.values()):
            if self.ends_early(job) and not (left_some and not self.moved(job)):
                self.do_due(job)
        self.drop_dead_workers(left_some)
        self.end_rests(left_some)
        again = True
        while again:
            again = False
            for job in list(self.jobs.values()):
                if self.may_be_due(job) and not (left_some and not self.moved(job)):
                    again = self.do_due(job) or again
        self.sleepers.swept(left_some)
        self.links.swept(left_some)
        self.schedules.make_jobs(left_some, *before)

    def drop_dead_workers(self, left_some):
        for worker in self.dead_workers():
            for job in self.workers.slots_taken(worker):
                if not left_some or self.moved(job):
                    self.life.fail(job, "lapse", "timeout", message=SOME_TEXT)
            shown = self.engine.look_at_worker(worker.id) if left_some else None
            if not shown:
                del self.workers.registered[worker.id]
            elif shown["state"] == "unreachable" != worker.resting:  # some of its jobs are left
                self.workers.rest(worker, "unreachable", ms(self.settings["worker_ttl"]))

    def end_rests(self, left_some):
        """Of one that is quiet it is seen when it is so no more."""
        for worker in self.workers.registered.values():
            if worker.resting and worker.resting_until_ms <= self.now:
                doc = left_some and self.engine.look_at_worker(worker.id)
                if not doc or doc["state"] not in (worker.resting, "quiet"):
                    worker.resting = None

    def ends_early(self, job):
        """In a late sweep jobs end queue by queue and state by state: which of a key's jobs ends last, the engine says,
        as the key is then kept for that one, or is free."""
        key = self.arrival.keys.get(job.unique)
        if not key or len(key.ids) < 2 or not self.is_due(job):
            return False
        holders = self.engine.holders(job.unique)
        return job.id not in holders if holders else job.unique_for is not None

    def may_be_due(self, job):
        return self.links.may_be_due(job) if job.status == "blocked" else self.is_due(job)

    def do_due(self, job):
        """Whether something was done."""
        if job.status == "blocked":
            return self.links.do_due(job)
        if self.has_expired(job):
            self.expire(job)
        elif job.status == "running":
            self.life.fail(job, "lapse", "timeout", message=SOME_TEXT)
        else:
            self.life.requeue(job)
        return True

    def expire(self, job):
        if job.status == "blocked":  # the same sweep may have freed it before
            job.ready_ms = (self.engine.look(job.id) or {}).get("ready_ms", job.ready_ms)
        self.expired += 1
        self.life.fail_unstarted(job, "expired")

    def moved(self, job):
        doc = self.engine.look(job.id)
        return doc is None or (doc["status"], doc["attempt"], doc.get("due_ms")) != (
            job.status, job.attempt, job.due_ms)  # fmt: skip

    def check_next(self, next_ms, due_before, limit=SWEEP, also=(), given=0):
        """next_ms never is later than a moment that could make a job ready, and 0 only with a reason."""
        limit = min(limit, DEAR)
        moments = [*also, *self.links.moments(), *self.schedules.moments()]
        for job in self.jobs.values():
            if job.due_ms is not None:
                moments.append(self.due_of(job))
            if job.attempt == 0 and job.expires_ms is not None and job.status in WAITING:
                moments.append(job.expires_ms)
        for worker in self.workers.registered.values():
            if self.workers.slots_taken(worker):
                moments.append(self.end_of(worker))
        wait = max(0, min(moments) - self.now) if moments else None
        expect(isinstance(next_ms, int) and next_ms >= -1, "next_ms", next_ms)
        if moments:
            expect(0 <= next_ms <= wait, "next_ms is later than something that gets due", next_ms, wait)
        # Who was given many does not know whether there are more.
        if next_ms == 0 and wait != 0 and given < DEAR and not self.limits.may_have_left_work():
            expect(due_before >= limit, "next_ms 0, but nothing is left to do at once", due_before, wait)

    def may_leave_some(self):
        """Whether a call that does not tell may leave some of what is due."""
        return self.due_count() >= DEAR or self.order.has_lanes()

    def due_count(self):
        """An upper bound of the steps that are due; to look in vain at a queue's timers counts as well."""
        jobs = self.jobs.values()
        old = sum(j.may_be_gone or (j.result is not None and not self.life.has_result(j)) for j in jobs)
        looks = 3 * len(self.queues.records) + 2
        steps = looks + 2 * old + sum(2 for j in jobs if self.is_due(j)) + 2 * len(self.dead_workers())
        return steps + self.links.due_count() + self.schedules.due_count()
