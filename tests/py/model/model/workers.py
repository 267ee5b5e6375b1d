"""Registered workers, and what is pushed to them: docs/push.md."""

import re
from dataclasses import dataclass, field

from model.common import ALL, DEAR, Refused, entries, expect, matches, ms, same, there
from model.order import rank
from model.part import Part

WORKER_ID = re.compile("w[0-9a-f]{14}(?:[0-9a-f]{2})?")

MOST_SHOWN = 100  # jobs in the document of a worker
SILENT_MS, KEPT_MS = 180_000, 3_600_000  # who announces himself is gone then, and forgotten then


@dataclass
class Worker:
    id: str
    name: str
    queues: list
    url: str | None
    max_jobs: int
    seen_ms: int
    since_ms: int
    noted_ms: int  # the sign of life that was noted last
    request: str = ""  # quiet or stop
    lapsed: int = 0
    failures: int = 0  # in a row: it could not be reached, or let a lease run out
    key: str = ""  # of the HTTP API, with which it was registered
    secrets: str = ""  # with a blank between; nobody is shown them but who pushes
    resting: str | None = None  # why it gets nothing until resting_until_ms: busy or unreachable
    resting_until_ms: int = 0
    refused: set = field(default_factory=set)
    about: dict = field(default_factory=dict)  # host, pid, version, names
    named: set = field(default_factory=set)  # ids of jobs that it said it runs


@dataclass
class Other:
    """One that announced itself."""

    queues: list
    refused: list
    seen_ms: int


class Workers(Part):
    def __init__(self, model):
        super().__init__(model)
        self.registered = {}
        self.others = {}
        self.due_before = 0  # the sweep of this call

    def held(self, worker):
        return [j for j in self.jobs.values() if j.status == "running" and j.worker_id == worker.id]

    def slots_taken(self, worker):
        """Jobs that are pushed to it. Who picks has no slots: the leases of its jobs decide."""
        return self.held(worker) if worker.url else []

    def name_jobs(self, id, ids):
        if worker := self.registered.get(id):
            worker.named = {job.id for job in self.held(worker) if job.id in worker.named} | set(ids)

    def sign_of_life(self, id):
        worker = self.registered.get(id)
        if worker:
            worker.seen_ms = worker.noted_ms = self.now
            if worker.resting == "unreachable" and worker.failures < 5:
                worker.resting = None

    def rest(self, worker, why, least_ms):
        """It gets nothing for a while; the longer the more often in a row it failed."""
        if why == "unreachable":
            worker.failures += worker.resting != why
            left_ms = worker.resting_until_ms - self.now if worker.resting == why else 0
            least_ms = max(least_ms, 1000 * min(2 ** (worker.failures - 1), 300), left_ms)
        worker.resting, worker.resting_until_ms = why, self.now + least_ms

    def came_by(self, id, works=True):
        """Picks and finishes are no new sign of life within a second of one. `works`: what it finished was its own."""
        worker = self.registered.get(id)
        if worker and works and worker.failures:
            worker.failures = 0
            self.sign_of_life(id)
        elif worker and (worker.resting == "unreachable" or self.now - worker.noted_ms >= 1000):
            self.sign_of_life(id)

    def picks_without(self, id, names):
        worker = self.registered.get(id)
        if worker and names and not worker.url:
            worker.refused = set(names)

    def known_worker(self, id):
        if WORKER_ID.fullmatch(id) and id not in self.registered:
            raise Refused("NOTFOUND", "worker")

    def give_back(self, worker):
        jobs = self.slots_taken(worker)
        for job in jobs:
            self.life.requeue(job, by="release")
        del self.registered[worker.id]
        return len(jobs)

    def register(
        self, reply, name, queues, url=None, max_jobs=1, secrets=(), key="", announce=False, running=(), refused=(),
        **about,
    ):  # fmt: skip
        if announce:
            self.others[name] = Other(entries(queues), refused, self.now)
            return same(reply, name, "a worker that announces itself")
        expect(WORKER_ID.fullmatch(reply) and reply not in self.registered, "a new worker id", reply)
        for worker in list(self.registered.values()):
            if url and worker.url == url:
                self.give_back(worker)
        self.registered[reply] = Worker(reply, name, entries(queues), url, max_jobs, *[self.now] * 3)
        self.registered[reply].about, self.registered[reply].refused = about, set(refused)
        self.registered[reply].secrets, self.registered[reply].key = " ".join(secrets), key
        # As that of a job, the moment is part of the id.
        self.registered[reply].since_ms = self.arrival.created(reply[1:])

    def serving(self, queue):
        """The workers of a queue that are registered, or announced themselves."""
        alive = [other for other in self.others.values() if other.seen_ms > self.now - SILENT_MS]
        workers = [*self.registered.values(), *alive]
        return [worker for worker in workers if any(matches(entry, queue) for entry in worker.queues)]

    def is_unknown(self, queue, name):
        """Whether all who serve a queue refused jobs of a name, as far as is sure: None where that depends on who
        sleeps."""
        serving = self.serving(queue)
        if not all(name in worker.refused for worker in serving):
            return False
        return None if self.sleepers.channels or self.sleepers.left else bool(serving)

    def unregister(self, reply, worker):
        other = self.others.get(worker)
        if other and other.seen_ms >= self.now - KEPT_MS:
            same(reply, 0, "jobs given back")
            del self.others[worker]
            return
        there(worker, self.registered, "worker")
        same(reply, self.give_back(self.registered[worker]), "jobs given back")

    def list_workers(self, reply):
        shown = {
            doc["id"]: {**doc, "refused": sorted(doc["refused"]), "running": sorted(doc["running"])} for doc in reply
        }
        expect(len(shown) == len(reply), "a worker twice", reply)
        listed = {id: shown.pop(id)["state"] for id in [*shown] if id not in self.registered}
        for id, other in self.others.items():
            age_ms = self.now - other.seen_ms
            state = "pulling" if age_ms < SILENT_MS else "gone" if age_ms <= KEPT_MS else None
            same(listed.pop(id, None), state, "a worker that announced itself")
        expect(set(listed.values()) <= {"gone"}, "a worker that is not registered", listed)
        expected = {w.id: self.worker_document(w) for w in self.registered.values()}
        for id, doc in expected.items():
            if len(doc["running"]) > MOST_SHOWN and id in shown:
                some = [job for job in doc["running"] if job in shown[id]["running"]]
                expect(len(some) == MOST_SHOWN, "jobs of a worker with many", len(some))
                doc["running"] = some
        same(shown, expected, "workers")

    def worker_document(self, worker):
        doc = {k: getattr(worker, k) for k in ("id", "name", "queues", "max_jobs", "seen_ms")}
        doc["url"] = worker.url
        doc.update({k: getattr(worker, k) for k in ("since_ms", "lapsed", "request")})
        shown = [job for job in self.held(worker) if worker.url or job.id in worker.named]
        running = [[job.id, job.started_ms] for job in shown]
        doc.update(held=len(running), state=self.state_of(worker), refused=sorted(worker.refused))
        doc["running"] = sorted(running)
        return {k: v for k, v in doc.items() if v is not None} | worker.about

    def names_of_workers(self):
        return {job.worker_id for job in self.jobs.values() if job.status == "running"}

    def is_quiet(self, id):
        return self.asked_of(id) != ""

    def asked_of(self, id):
        return self.registered[id].request if id in self.registered else ""

    def worker(self, reply, worker, request):
        """Who is to be quiet or to stop is no sleeper any more that is counted on: another is to be up."""
        there(worker, self.registered, "worker")
        same(reply, 1, "worker")
        self.registered[worker].request = "" if request == "resume" else request
        self.trace.tell(worker, request)
        self.clock.end_rests(left_some=True)
        for channel in self.sleepers.channels.values() if request != "resume" else ():
            if channel.up_ms.pop(worker, None) is not None:
                channel.somebody_left = True

    def transition(self, job, was, event=None):
        worker = self.registered.get(job.worker_id)
        if worker and event in ("failed", "lapsed") and job.reason in ("timeout", "lapses"):
            worker.lapsed += 1
            if worker.url and event == "lapsed":
                self.rest(worker, "unreachable", ms(self.settings["worker_ttl"]))

    def state_of(self, worker):
        if worker.request:
            return "quiet"
        if not worker.url:
            return "pulling"
        if worker.resting:
            return worker.resting
        return "full" if len(self.held(worker)) >= (1 if worker.failures else worker.max_jobs) else "ready"

    def wants(self, worker):
        """The jobs that may be given to a worker right now for certain, best rank first."""
        if worker not in self.with_room():
            return []
        return self.order.in_sight(self.order.ready(worker.queues), worker.refused)

    def openings_for_workers(self, without=()):
        takers = [worker for worker in self.with_room() if worker.id not in without]
        return self.limits.openings(ALL, lambda job: any(self.takes(worker, job) for worker in takers))

    def with_room(self):
        return [
            worker
            for worker in self.registered.values()
            if self.state_of(worker) == "ready" and (not worker.key or self.access.lasts(worker.key))
        ]

    def check_assigned(self, worker, job, doc, leaves_some, without):
        """The best of the next jobs of all workers with room, given to the least loaded who takes it."""
        asked = [w for w in self.with_room() if w.id not in without]
        takers = [w for w in asked if not (leaves_some and self.may_be_passed_over(w, worker))]
        expect(job and worker in takers and self.takes(worker, job), "not a job for this worker", worker, job, doc)
        # Which job a fair queue gives to who does not take all of its jobs is not said.
        is_free = bool(self.order.fair) and any(w.refused for w in takers)
        is_best = False
        for jobs in self.order.worlds(self.order.may_start(), job):
            is_best = is_best or (is_free and job in jobs)
            for sight in (self.order.known, self.order.in_sight):
                nexts = [
                    self.order.heads([j for j in sight(jobs, w.refused) if self.takes(w, j)], w.queues) for w in takers
                ]
                is_best = is_best or self.may_be_least(job, [heads for heads in nexts if heads])
        expect(is_best, "not the best job that can be assigned", job, self.now)
        # Nor whether it is the one whose turn it is for others, among whom the load decides.
        if not (is_free and job.queue in self.order.fair):
            least = min(self.load(w) for w in takers if self.takes(w, job))
            expect(self.load(worker) == least, "not the least loaded worker", worker, least)

    def may_be_passed_over(self, other, worker):
        """While something is left to be looked at, whoever it matters to may wait for the next call."""
        if (other.queues, other.refused, other.key) == (worker.queues, worker.refused, worker.key):
            return False
        fair = [queue for queue in self.order.fair if any(matches(entry, queue) for entry in other.queues)]
        many_due = self.due_before >= DEAR  # which used up what one call may cost
        return bool(fair or self.limits.constraints or self.limits.steps_left or many_due)

    def takes(self, worker, job):
        return self.life.is_open(job, worker.queues) and job.name not in worker.refused

    def may_be_least(self, job, choices):
        """Whether a job is the best of one of each of these choices."""
        latest = [max((self.jobs[id] for id in heads), key=rank) for heads in choices]
        return any(job.id in heads for heads in choices) and all(rank(job) <= rank(other) for other in latest)

    def load(self, worker):
        return len(self.held(worker)) / worker.max_jobs

    def told_of(self, id):
        """What `assign` tells of who gets a job."""
        worker = self.registered.get(id)
        return [worker.url, worker.secrets, worker.key] if worker else ["", "", ""]

    def assign(self, reply, master, limit=100, wait=None, request=None, without=()):
        until_ms, answer = self.work.requests.get(("assign", request), (0, []))
        again = [0, *(pair[4:] for pair in reply[1:])]
        if answer and (self.now < until_ms or self.work.is_repeat(again, answer)):
            jobs = self.work.started_again(answer)
            to = [(job.worker_id, *self.told_of(job.worker_id)) for job in jobs]
            same([tuple(pair[:4]) for pair in reply[1:]], to, "to")
            return self.work.show_again([reply[0], *again[1:]], jobs)
        self.sleepers.gets_up(master, wait)
        self.due_before = self.clock.due_count()
        self.clock.sweep(left_some=reply[0] == 0)
        expect(len(reply) - 1 <= limit, "more than the limit", reply)
        started = []
        for id, *told, doc, argument in reply[1:]:
            worker, job = self.registered.get(id), self.jobs.get(doc["id"])
            expect(worker and self.told_of(id) == told, "an unknown worker", id, told)
            self.check_assigned(worker, job, doc, reply[0] == 0, without)
            self.life.start(job, id)
            self.life.give_token(job, doc)
            started.append(job)
            self.life.check_document(doc, self.life.picked_document(job), "document of an assigned job")
            same(argument, job.argument, "argument of an assigned job")
        self.life.check_tokens(started)
        if len(reply) - 1 < limit and (reply[0] != 0 or not self.order.may_leave_some()):
            asked = [worker for worker in self.registered.values() if worker.id not in without]
            left = [(worker, self.wants(worker)) for worker in asked if self.wants(worker)]
            same(left if reply[0] or self.due_before < DEAR else [], [], "assigned less than possible")
        rests = [w.resting_until_ms for w in self.registered.values() if w.resting]
        # Nothing opens for those who are left out: their master asks anew when they are back.
        openings = self.openings_for_workers(without) if len(reply) - 1 < limit else []
        self.clock.check_next(reply[0], self.due_before, also=rests + openings, given=len(reply) - 1)
        if wait and len(reply) == 1 and reply[0] != 0:
            self.sleepers.goes_to_sleep(master, wait, None, reply[0])
        if request:
            self.work.remember("assign", request, [(job.id, job.token) for job in started])

    def refuse(self, reply, worker, jobs, why, retry_after=1, message=""):
        there(worker, self.registered, "worker")
        refusing = self.registered[worker]
        for (id, token), answer in zip(jobs, reply, strict=True):
            job = self.life.holds(id, token)
            if job:
                self.life.requeue(job, by="release")
                self.trace.note_message(job, message)
                if why == "unknown":
                    refusing.refused.add(job.name)
            same(answer, job.status if job else self.work.over(id, token, "release", answer), "refuse")
        if why != "unknown":
            self.rest(refusing, why, max(1, ms(retry_after)))
