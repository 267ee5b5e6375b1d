"""Whose turn it is: order of priority, fair queues, picks.

Starting a job takes room and moves the turns of a fair queue, so an answer of several jobs is followed one by
one. A *world* is a list of the jobs that may start; there are several where a sweep may not have come to all keys.
"""

from itertools import combinations

from model.common import ALL, DEAR, entries, expect, matches
from model.matcher import MISSING, as_text, key_part, value_at
from model.part import Part

DAY_MS = 86_400_000
SIGHT = 100  # jobs of a queue among which those are looked for whose name is not refused
MOST_EXPIRED = 100  # a pick or assign that met more goes on in the next call


def rank(job):
    return job.priority, job.id


class Turns:
    """The turns of a fair queue at one priority."""

    def __init__(self, clock=0.0):
        self.clock = clock
        self.finish = {}  # value -> F
        self.used_ms = 0

    def next(self, values):
        """Those whose turn it is; of equals the least id decides."""
        least = min(map(self.of, values))
        return {value for value in values if self.of(value) == least}

    def of(self, value):
        return max(self.clock, self.finish.get(value, 0.0))

    def started(self, value, weight, now):
        self.clock = self.of(value)
        self.finish[value] = self.clock + 1 / weight
        self.used_ms = max(self.used_ms, now)


class Fair:
    """The turns of one queue. After a day without a start they may begin anew, or not: two readings."""

    def __init__(self, sharing):
        self.sharing = sharing
        self.turns = {}  # priority -> readings

    def go_on(self, before):
        """Another path: all values begin anew, where the clock of the queue stands."""
        for priority, readings in before.turns.items():
            self.turns[priority] = [Turns(turns.clock) for turns in readings]

    def value(self, job):
        return value_at(job, self.sharing["by"])

    def readings(self, priority, now):
        readings = self.turns.setdefault(priority, [Turns()])
        if all(turns.finish and now - turns.used_ms >= DAY_MS for turns in readings):
            readings.append(Turns())
        return readings

    def heads(self, jobs, now):
        """The jobs that may be next, of jobs that may start: mostly one."""
        best, groups = min(job.priority for job in jobs), {}
        for job in jobs:
            if job.priority == best:
                groups.setdefault(key_part(self.value(job)), []).append(job)
        return [
            min((job for value in turns.next(groups) for job in groups[value]), key=rank)
            for turns in self.readings(best, now)
        ]

    def started(self, job, now):
        value = self.value(job)
        weight = self.sharing.get("weights", {}).get(as_text(None if value is MISSING else value), 1)
        for turns in self.readings(job.priority, now):
            turns.started(key_part(value), weight, now)


class Order(Part):
    def __init__(self, model):
        super().__init__(model)
        self.fair = {}  # queue -> Fair
        self.was_fair = {}  # queue -> its last Fair, whether it is fair now or not

    def started(self, job):
        if job.queue in self.fair:
            self.fair[job.queue].started(job, self.now)

    def set_fair(self, queue, sharing):
        old, before = self.fair.pop(queue, None), self.was_fair.get(queue)
        if sharing:
            self.fair[queue] = self.was_fair[queue] = new = Fair(sharing)
            if old and old.sharing["by"] == sharing["by"]:
                new.turns = old.turns
            elif before:
                new.go_on(before)
        if not old or old.sharing != sharing:
            self.limits.note_change()

    def sharing_of(self, queue):
        return self.fair[queue].sharing if queue in self.fair else {}

    # ---- which jobs may start ----

    def ready(self, queues=ALL):
        """The jobs that may start for certain, best rank first."""
        waiting = [job for job in self.jobs.values() if job.status == "queued"]
        open = {job.queue for job in {job.queue: job for job in waiting}.values() if self.life.is_open(job, queues)}
        waiting = sorted((job for job in waiting if job.queue in open), key=rank)
        if not self.limits.constraints:
            return waiting
        limits, holders = self.limits, self.limits.holders()
        alike = {limits.names_of(job): job for job in waiting}
        free = {names for names, job in alike.items() if not limits.is_held(job, holders)}
        return [job for job in waiting if limits.names_of(job) in free]

    def may_start(self, queues=ALL):
        """The same where a sweep left some, each with the keys that may be shut to it: time has opened them since the
        last whole one."""
        late = self.sleepers.opened_by_time
        return [(job, {self.limits.names_of(job)} if job.id in late else set()) for job in self.ready(queues)]

    def note_start(self, found, started, under):
        """Makes of what `may_start`, by id, what is so when one of them has started: that takes room under its own
        keys, and makes none."""
        limits = self.limits
        del found[started.id]
        touched = set().union(*(under[name] for name in limits.names_of(started))) & found.keys()
        holders = limits.holders() if touched else {}
        for id in touched:
            if limits.is_held(found[id][0], holders):
                del found[id]

    def under_keys(self, found):
        """(constraint id, key) -> ids of the jobs under it, of those that `may_start`."""
        under = {}
        for job, _ in found:
            for name in self.limits.names_of(job):
                under.setdefault(name, set()).add(job.id)
        return under

    @staticmethod
    def known(jobs, refused):
        """Those of the jobs whose name is not refused."""
        return [job for job in jobs if job.name not in refused]

    def in_sight(self, jobs, refused):
        """Of these, those among which it is looked for what somebody gets who refused names."""
        if not refused:
            return jobs
        waiting = {}
        for job in sorted((j for j in self.jobs.values() if j.status == "queued"), key=rank):
            waiting.setdefault(job.queue, []).append(job.id)
        seen = {id for ids in waiting.values() for id in ids[:SIGHT]}
        return [job for job in self.known(jobs, refused) if job.id in seen]

    def worlds(self, found, job):
        """What `may_start`, for each set of late keys that may be closed to all but `job`."""
        mine = next((late for other, late in found if other is job), set())
        others = sorted(set().union(*(late for _, late in found)) - mine, key=repr)
        sizes = range(len(others) + 1) if len(others) <= 4 else (0, len(others))
        for closed in (set(keys) for size in sizes for keys in combinations(others, size)):
            yield [other for other, late in found if not late & closed]

    def heads(self, jobs, queues):
        """The jobs that may come next for these queues, of those that may start, which are in order of rank."""
        by_queue = {}
        for job in jobs:
            by_queue.setdefault(job.queue, []).append(job)
        heads = [
            self.heads_of(queue, own)
            for queue, own in by_queue.items()
            if any(matches(entry, queue) for entry in entries(queues))
        ]
        last = [max(map(rank, some)) for some in heads]
        return {
            job.id for n, some in enumerate(heads) for job in some
            if all(rank(job) < worst for m, worst in enumerate(last) if m != n)
        }  # fmt: skip

    def heads_of(self, queue, jobs):
        """The jobs that a queue may give next."""
        return self.fair[queue].heads(jobs, self.now) if queue in self.fair else jobs[:1]

    # ---- following a pick ----

    def may_come(self, job, found, queues, order, without):
        """Whether the job may come next."""
        if not without:
            return self.is_next(job, self.worlds(found, job), queues, order)
        if job.name in without:
            return False
        if self.fair:  # which job a fair queue gives to who does not take all of its jobs is not said
            return True
        worlds = list(self.worlds(found, job))
        return any(
            self.is_next(job, [sight(jobs, without) for jobs in worlds], queues, order)
            for sight in (self.known, self.in_sight)
        )

    def is_next(self, job, worlds, queues, order):
        for jobs in worlds:
            by_entry = [self.heads(jobs, entry) for entry in (entries(queues) if order == "ordered" else [queues])]
            if job.id in next((heads for heads in by_entry if heads), set()):
                return True
        return False

    def follow(self, taken, queues, order, worker, without=()):
        """Starts the picked jobs one by one; yields each when it has started."""
        may_start = self.may_start(queues) if taken else []
        found, under = {job.id: (job, late) for job, late in may_start}, self.under_keys(may_start)
        for job in taken:
            if not self.may_come(job, found.values(), queues, order, without):  # what was expected is dear to tell
                expected = [sorted(self.heads(jobs, queues)) for jobs in self.worlds(found.values(), job)]
                expect(False, "not the next job", job, expected, order, self.now)
            self.life.start(job, worker)
            self.note_start(found, job, under)
            yield job

    def check_nothing_left(self, next_ms, queues, due_before, without=()):
        """Fewer jobs came than were asked for: none may be left, unless next_ms 0 says that some may be."""
        if next_ms != 0 or not self.may_leave_some():
            left = self.in_sight(self.ready(queues), without)
            if next_ms == 0 and max(len(left), due_before) >= DEAR:
                return  # those that are due, or over, used up what one call may cost
            expect(not left, "picked less than possible", left[:3], len(left), self.now)

    def may_leave_some(self):
        return self.has_lanes() or self.clock.expired > MOST_EXPIRED

    def has_lanes(self):
        return bool(self.limits.constraints or self.fair or self.limits.steps_left)
