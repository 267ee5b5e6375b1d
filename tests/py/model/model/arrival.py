"""How jobs come: ids, unique keys, `enqueue`. docs/protocol.md and docs/unique.md."""

from dataclasses import dataclass

from model.common import ENDED, WAITING, expect, ms, refuse, same
from model.life import PASSED, Job
from model.part import Part

FIELDS = ("name", "priority", "max_retry", "keep_result", "timeout", "tags", "unique", "unique_for",
          "unique_within", "max_runtime", "max_lapses", "track", "notify")  # fmt: skip


@dataclass
class Key:
    """A unique key and whose it is."""

    ids: list  # of the jobs that have not ended, the latest first; or of the one for which it is kept
    until_ms: int | None = None  # when it is kept after the job's end, or for a time from its enqueueing
    has_record: bool = True  # it goes with that

    @property
    def id(self):
        return self.ids[0]


class Arrival(Part):
    def __init__(self, model):
        super().__init__(model)
        self.least_id = 0  # that there could be next when the operation began
        self.next_id = 0  # and when it is over: not in order, an end may be looked at after what came later
        self.last_id = ""
        self.keys = {}  # unique key -> Key

    def created(self, id):
        """The moment in an id, of a job or a worker: now."""
        number = int(id[:14], 16)
        expect(number >= self.least_id, "an id that was given before, or may have been", id)
        self.next_id = max(self.next_id, number + 1)
        created_ms = number >> 10
        expect(created_ms == self.now, "created_ms", created_ms, self.now)
        return created_ms

    def transition(self, job, was, event=None):
        key = self.keys.get(job.unique)
        if not key or key.until_ms is not None or job.id not in key.ids or job.status not in ENDED:
            return
        if len(key.ids) > 1:
            key.ids.remove(job.id)
        elif job.unique_for is None:
            del self.keys[job.unique]
        else:
            key.until_ms = self.now + ms(job.unique_for)
            key.has_record = not job.goes_at_once

    def owner(self, unique, answer=None):
        """The id of the job whose key it is. `answer` is what the engine says, where both may be."""
        key = self.keys.get(unique)
        if not key or (key.until_ms is not None and key.until_ms <= self.now):
            return None
        if key.until_ms is not None and key.has_record:
            job = self.jobs.get(key.id)
            if not job or (answer != key.id and job.may_be_gone and not self.engine.look(key.id)):
                return None
        return key.id

    def enqueue(self, reply, options, jobs):
        token = (options or {}).get("request")
        if token:
            until_ms, answer = self.work.requests.get(("enqueue", token), (0, None))
            if self.now < until_ms:
                return same(reply, answer, "repeated enqueue")
        unknown = self.links.unknown_dependencies(reply, jobs, "jobs[{}]")
        refuse(reply, *self.over_limits(jobs), *unknown)
        self.create(jobs, reply)
        if token:
            self.work.remember("enqueue", token, reply)

    def over_limits(self, jobs):
        """The jobs for which there is no place in their queues."""
        waiting = {}
        for i, (spec, _) in enumerate(jobs):
            if "unique" in spec and self.owner(spec["unique"]):
                continue
            queue = spec.get("queue", spec["name"])
            waiting[queue] = waiting.get(queue, self.life.waiting(queue)) + 1
            limit = self.queues.records.get(queue, {}).get("max_waiting", 0)
            if limit and waiting[queue] > limit:
                yield "FULL", f"jobs[{i}].queue"

    def create(self, jobs, answers):
        """Does what an accepted call asks for, as the answers say."""
        expect(len(answers) == len(jobs), "as many answers as jobs", answers)
        ids = []
        for (spec, argument), (id, created) in zip(jobs, answers, strict=True):
            owner = self.owner(spec["unique"], id) if "unique" in spec else None
            if owner is None or self.is_succeeded(owner, spec):
                new = created == 1 and len(id) == 14 and id > self.last_id
                expect(new, "a new id, later than all", id, self.last_id, created, owner)
                self.last_id = id
                follows = {"depends": [owner], "if_failed": "run"} if owner else {}
                self.add(id, spec | follows, argument, ids)
            else:
                same([id, created], [owner, 0], "enqueue: a unique key that is taken")
                job = self.jobs.get(owner)
                if job and job.status in WAITING and spec.get("if_exists", "keep") != "keep":
                    changes = ("priority", "delay", "run_at")
                    self.outcomes.apply(job, {k: spec[k] for k in changes if k in spec}, argument)
                if job and not (job.may_be_gone and not self.engine.look(job.id)):
                    self.trace.publish(job, {"event": "met"})
            ids.append(id)

    def is_succeeded(self, owner, spec):
        job = self.jobs.get(owner)
        is_last = job and job.status == "running" and spec.get("if_exists") == "latest"
        return is_last and job.unique_within is None

    def add(self, id, spec, argument, ids=()):
        """`ids`: of the jobs before it in the same call."""
        given = {k: spec[k] for k in FIELDS if k in spec}
        queue = spec.get("queue", spec["name"])
        job = Job(id=id, argument=argument, queue=queue, created_ms=self.created(id), **given)
        job.passed = {k: v for k, v in spec.items() if k in PASSED}
        job.retry = {k: v for k, v in spec.items() if k.startswith("retry_")}
        if "expires_in" in spec:
            job.expires_ms = self.now + ms(spec["expires_in"])
        self.jobs[id] = job
        self.queues.records.setdefault(queue, {"paused": False, "max_waiting": 0})
        if job.unique is not None:
            self.take_key(job)
        start_ms = self.start_ms(spec)
        job.if_failed = spec.get("if_failed", "wait" if "depends" in spec else None)
        if spec.get("depends"):
            job.depends = list(dict.fromkeys(ids[d] if isinstance(d, int) else d for d in spec["depends"]))
            self.links.needs_results(job, job.depends)
            self.links.wait_for(job, job.depends, start_ms)
        else:
            self.life.requeue(job, start_ms, event="enqueued")
        if job.status == "scheduled":
            job.ready_ms = job.due_ms
        return job

    def start_ms(self, spec):
        return ms(spec["run_at"]) if "run_at" in spec else self.now + ms(spec.get("delay", 0))

    def take_key(self, job):
        """One that runs is to be followed by this, if the key is not free."""
        key = self.keys.get(job.unique)
        others = key.ids if key and key.until_ms is None else []
        self.keys[job.unique] = Key([job.id, *others])
        if job.unique_within is not None:
            self.keys[job.unique] = Key([job.id], self.now + ms(job.unique_within), has_record=False)
