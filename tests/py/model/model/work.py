"""What workers and readers ask about jobs: docs/protocol.md."""

import re

from model.common import DEAR, ENDED, ErrorReply, Refused, expect, ms, same
from model.part import Part


def in_path(name):
    """As a name stands in the path of an error: what would end the path is shown as `?`, bytewise."""
    return re.sub(rb"[^\x21-\x7e]|:", b"?", name.encode()).decode()


class Work(Part):
    def __init__(self, model):
        super().__init__(model)
        self.requests = {}  # (operation, token) -> (until when it is remembered, the answer)

    def pick(self, reply, worker, queues, count=1, order="priority", request=None, wait=None, without=()):
        self.workers.known_worker(worker)
        if wait:
            reply = self.without_block(reply, worker, wait)
        self.workers.came_by(worker)
        self.workers.picks_without(worker, without)
        until_ms, answer = self.requests.get(("pick", request), (0, []))
        if answer and (self.now < until_ms or self.is_repeat(reply, answer)):
            if self.workers.is_quiet(worker) and len(reply) == 1:  # who gets nothing may as well sleep
                reply = [0]
            return self.show_again(reply, self.started_again(answer))
        self.sleepers.gets_up(worker, wait)
        due_before = self.clock.due_count()
        is_quiet = self.workers.is_quiet(worker)  # then it is not said whether all was done that is due
        self.clock.sweep(left_some=reply[0] == 0 or bool(wait and is_quiet))
        taken = [self.jobs.get(doc["id"]) for doc, _ in reply[1:]]
        expect(None not in taken and len(taken) <= count, "unknown jobs, or more than asked for", reply)
        if is_quiet:
            return same(reply[1:], [], "jobs for a worker that is to be quiet")
        following = self.order.follow(taken, queues, order, worker, without)
        for job, (doc, argument) in zip(following, reply[1:], strict=True):
            self.life.give_token(job, doc)
            self.life.check_document(doc, self.life.picked_document(job), "document of a picked job")
            same(argument, job.argument, "argument of a picked job")
        self.life.check_tokens(taken)
        openings = []
        if len(taken) < count:
            self.order.check_nothing_left(reply[0], queues, due_before, without)
            openings = self.limits.openings(queues, lambda job: job.name not in without)
        self.clock.check_next(reply[0], due_before, also=openings, given=DEAR if wait else len(reply) - 1)
        if wait and not taken and reply[0] != 0:
            self.sleepers.goes_to_sleep(worker, wait, queues, reply[0], without)
        if request:
            self.remember("pick", request, [(job.id, job.token) for job in taken])

    def without_block(self, reply, worker, wait):
        """A reply as it were without `wait`. With it next_ms is for how long to block: 1 where it does not sleep."""
        block_ms, *jobs = reply
        expect(1 <= block_ms <= max(1, wait["ms"]) and (block_ms == 1 or not jobs), "for how long to block", reply)
        is_up = block_ms == 1 and not (not jobs and self.engine.is_asleep(worker, wait["on"]))
        return [0 if is_up else block_ms, *jobs]

    def show_again(self, reply, jobs):
        same([argument for _, argument in reply[1:]], [job.argument for job in jobs], "repeated pick")
        for job, (doc, _) in zip(jobs, reply[1:], strict=True):
            self.life.check_document(doc, self.life.picked_document(job), "repeated pick")
        expect(reply[0] in (0, 1), "next_ms of a repeated pick", reply[0])  # 1: with `wait`, where it does not sleep

    def started_again(self, answer):
        """Of a request that is repeated, the jobs that still run. Nobody had them: their leases begin anew."""
        running = []
        for id, token in answer:
            job = self.jobs.get(id)
            if self.life.holds(id, token) and self.life.lease_end(job) > self.now:
                job.due_ms = self.life.lease_end(job)
                running.append(job)
            elif self.life.holds(id, token):  # it has no time left to run
                self.life.requeue(job, by="release")
        return running

    def remember(self, operation, token, answer):
        self.requests[operation, token] = (self.now + ms(self.settings["request_ttl"]), answer)

    def is_repeat(self, reply, answer):
        """Whether an old token was still known: a pick that starts jobs would start none that run."""
        held = [job for job in (self.life.holds(id, token) for id, token in answer) if job]
        shown = {(doc["id"], doc["token"]) for doc, _ in reply[1:]}
        if shown != {(job.id, job.token) for job in held if self.life.lease_end(job) > self.now}:
            return False
        return bool(shown) or any(map(self.clock.moved, held))  # they were given back

    def cancelled_at(self, job, token):
        return bool(job) and job.last == (self.life.attempt_of(job, token), "cancel", "cancelled")

    def over(self, id, token, kind, answer):
        """The answer for an attempt that does not run: what it was told before, or why it is gone."""
        job = self.life.present(id, answer == "NOTFOUND")
        if not job:
            return "NOTFOUND"
        attempt = self.life.attempt_of(job, token)
        if kind == "release" and job.last[:2] == (attempt, "kick") and answer != "LOST":
            kind = "kick"  # to be given back twice is as good as to be told so
        if job.last and job.last[:2] == (attempt, kind):
            if kind in ("release", "kick"):  # where it waits now
                return "scheduled" if job.status == "scheduled" else "queued"
            if kind == "success" and job.last[2] != "done" and answer in ("queued", "scheduled", "blocked"):
                return answer  # it was moved, or waits for others: where it waits now, or waited then
            if kind == "failure" and answer == "retrying" and job.status != "error":
                return answer  # it was made to run again
            return job.last[2]
        return "CANCELLED" if self.cancelled_at(job, token) else "LOST"

    def release(self, reply, worker, jobs, delay=0, hold=None, message=""):
        unknown = ["hold." + in_path(id) for id in hold or {} if id not in {"*", *self.limits.constraints}]
        if unknown:
            named = isinstance(reply, ErrorReply) and reply.path in unknown
            raise Refused("NOTFOUND", reply.path if named else unknown[0])
        for (id, token), answer in zip(jobs, reply, strict=True):
            job = self.life.holds(id, token)
            if job:
                self.limits.close_keys_of(job, hold or {})
                self.life.requeue(job, self.now + ms(delay), "release")
                self.trace.note_message(job, message)
                same(answer, job.status, "release")
            else:
                same(answer, self.over(id, token, "release", answer), "release")

    def result(self, reply, id):
        job = self.life.named(reply, id)
        if job.status == "done" and job.keep_result and not self.life.has_result(job):
            raise Refused("EXPIRED", "id")
        if not self.life.has_result(job):
            return same(reply, [job.status], "result")
        same(reply, [job.status, job.result], "result")
        grace = self.queues.setting(job.queue, "result_grace")
        if not job.result_read or not grace:
            job.result_read = True
            job.result_until_ms = self.now + ms(grace)

    def get(self, reply, ids):
        for id, doc in zip(ids, reply, strict=True):
            job = self.life.present(id, doc is None)
            if not job or not doc:
                same(doc, job, "get")
            else:
                self.life.check_document(doc, self.life.document(job), "get")

    def watch(self, reply, ids):
        for id, state in zip(ids, reply, strict=True):
            job = self.life.present(id, state is None)
            same(state, job and job.status, "watch")
            if job and job.status not in ENDED:
                self.life.watched.add(id)

    def tick(self, reply, limit=100):
        due_before = self.clock.due_count()
        self.clock.sweep(left_some=reply[0] == 0)
        expect(0 <= reply[1] <= limit, "moved more than the limit", reply)
        self.clock.check_next(reply[0], due_before, limit=limit)
