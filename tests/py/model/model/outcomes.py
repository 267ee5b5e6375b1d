"""What follows: outcomes that move a job on or enqueue others, changes, kicks, notes of heartbeats.
docs/protocol.md and docs/dependencies.md.
"""

from model.common import ENDED, SOME_TEXT, ErrorReply, expect, ms, refuse, same
from model.part import Part


class Outcomes(Part):
    # ---- heartbeat ----

    def heartbeat(self, reply, worker, jobs, blobs=(), control=False):
        self.workers.known_worker(worker)
        if control:
            reply, asked = reply
            same(asked, self.workers.asked_of(worker), "heartbeat: what was asked of the worker")
        expect(len(reply) == len(jobs), "as many answers as jobs", reply)
        for (id, token, *notes), answer in zip(jobs, reply, strict=True):
            job = self.life.holds(id, token)
            if job:
                self.beat(job, answer, notes[0] if notes else {}, blobs)
            else:
                job = self.jobs.get(id)
                was_cancelled = self.work.cancelled_at(job, token) and not (job.may_be_gone and answer == "LOST")
                same(answer, "CANCELLED" if was_cancelled else "LOST", "heartbeat")
        self.workers.sign_of_life(worker)  # only now: whose job lapsed by this is not known to hang
        self.workers.name_jobs(worker, [id for id, *_ in jobs])

    def beat(self, job, answer, notes, blobs):
        left = self.life.lease_end(job) - self.now
        if left <= 0:
            same(answer, "LOST", "heartbeat of a job that ran for max_runtime")
            return self.life.fail(job, "lapse", "timeout", message=SOME_TEXT)
        job.due_ms = self.life.lease_end(job)
        same(answer, left, "heartbeat")
        self.note(job, notes, blobs)

    def note(self, job, notes, blobs):
        job.progress = notes.get("progress", job.progress)
        job.progress_message = notes.get("message", job.progress_message)
        if job.track and ("progress" in notes or "message" in notes):
            told = {"event": "progress", "progress": job.progress, "message": job.progress_message}
            self.trace.publish(job, told)
        if "argument" in notes:
            job.argument, job.has_other_facts = blobs[notes["argument"]], True

    # ---- finish ----

    def finish(self, reply, worker, outcomes, pick=None):
        if pick:
            self.workers.known_worker(worker)
        refuse(reply, *self.unknown_in_outcomes(reply, outcomes))
        holds = any(self.life.holds(outcome["id"], outcome["token"]) for outcome, *_ in outcomes)
        self.workers.came_by(worker, works=bool(pick) or holds)
        expect(len(reply) == (2 if pick else 1), "states, and with pick the jobs", reply)
        expect(len(reply[0]) == len(outcomes), "as many answers as outcomes", reply)
        for (outcome, blob, *follows), answer in zip(outcomes, reply[0], strict=True):
            state, *made = answer if isinstance(answer, list) else [answer]
            runs = self.life.holds(outcome["id"], outcome["token"])
            expect(isinstance(answer, list) == bool(runs and follows), "what follows", answer, follows)
            comes_first = runs and "resume" in outcome  # what follows, since it waits for that
            if comes_first and follows:
                self.arrival.create(follows[0], made)
            same(state, self.finish_one(outcome, blob, state, [id for id, _ in made]), "finish")
            if runs and follows and not comes_first:
                self.arrival.create(follows[0], made)
        if pick:
            self.work.pick(reply[1], worker, **pick)

    def unknown_in_outcomes(self, reply, outcomes):
        """Of outcomes that are too late, what follows may be looked at, or not."""
        for i, (outcome, _, *follows) in enumerate(outcomes):
            lists = [(some, f"outcomes[{i}].enqueue[{{}}]") for some in follows]
            lists += [([(outcome["resume"], None)], f"outcomes[{i}].resume")] if "resume" in outcome else []
            errors = [e for some, at in lists for e in self.links.unknown_dependencies(reply, some, at)]
            if self.life.holds(outcome["id"], outcome["token"]) or isinstance(reply, ErrorReply):
                yield from errors

    def finish_one(self, outcome, blob, answer, made):
        id, token, kind = outcome["id"], outcome["token"], outcome["type"]
        job = self.life.holds(id, token)
        if not job:
            before = self.jobs.get(id)
            if "resume" in outcome and before and before.last[1:2] == ("failure",):
                kind = "failure"  # it would have waited for itself
            return self.work.over(id, token, kind, answer)
        if kind == "failure":
            reason, message = outcome.get("reason", "other"), outcome.get("message", "")
            more = {name: outcome[name] for name in ("should_retry", "group", "retry_in") if name in outcome}
            self.life.fail(job, kind, reason, message=message, error=blob, **more)
        elif "move" in outcome:
            self.move(job, blob, **outcome["move"])
        elif "resume" in outcome:
            self.resume(job, blob, made, **outcome["resume"])
        else:
            self.succeed(job, blob)
        return job.status

    def succeed(self, job, blob):
        if job.keep_result:
            job.result, job.result_until_ms = (blob, self.now + ms(self.queues.setting(job.queue, "result_ttl")))
            job.error = None
        self.life.end(job, "done", "success")

    def move(self, job, blob, name=None, queue=None, priority=None, delay=0):
        self.statistics.count(job, "moved")
        self.statistics.count_times(job, "moved")
        job.name, job.argument = name or job.name, blob
        self.life.change_queue(job, queue or job.name)
        self.life.begin_anew(job)
        if priority is not None:
            job.priority = priority
        self.life.requeue(job, self.now + ms(delay), event="moved")
        job.last = (job.attempt, "success", job.status)

    def resume(self, job, blob, made, depends, if_failed="wait", checkpoint=False):
        """It waits for others, which may have been enqueued here, and runs again."""
        links, now = self.links, self.now
        depends = list(dict.fromkeys(made[d] if isinstance(d, int) else d for d in depends))
        if any(links.leads_to(id, job.id) for id in depends):
            return self.life.fail(job, "failure", "other", False, SOME_TEXT)
        if checkpoint:
            job.argument, job.has_other_facts = blob, True
        before, job.depends, job.if_failed = job.depends or (), depends, if_failed
        links.needs_results(job, depends)
        links.needs_no_results(job, [id for id in before if id not in depends])
        links.wait_for(job, depends, 0, event="blocked")
        job.ready_ms = now if job.status == "queued" else None
        job.last = (job.attempt, "success", job.status)

    # ---- change, kick ----

    def change(self, reply, jobs):
        expect(len(reply) == len(jobs), "as many answers as jobs", reply)
        for (spec, argument), answer in zip(jobs, reply, strict=True):
            job = self.life.present(spec["id"], answer == "NOTFOUND")
            if not job:
                same(answer, "NOTFOUND", "change")
            elif (job.status == "running" or job.status in ENDED) and (argument or set(spec) != {"id", "tags"}):
                same(answer, "CONFLICT", "change")
            else:
                self.apply(job, spec, argument)
                same(answer, job.status, "change")

    def apply(self, job, spec, argument):
        """Other facts about a job, see `change`."""
        for field in ("priority", "max_retry", "timeout"):
            if field in spec:
                setattr(job, field, spec[field])
        if "tags" in spec:
            job.tags = spec["tags"] or None
        if argument:
            job.argument = argument
        job.has_other_facts = True
        if self.life.go_to(job, spec.get("queue", job.queue)):
            self.trace.publish(job, {"event": "moved"})
        if "delay" in spec or "run_at" in spec:
            self.put_off(job, self.arrival.start_ms(spec))
        if job.status != "running":
            self.limits.look_anew(job)

    def put_off(self, job, start_ms):
        if job.status == "blocked":
            job.may_start_ms = start_ms if start_ms > self.now else 0
            if start_ms > self.now:
                job.ready_ms = start_ms
            else:
                job.ready_ms = (self.engine.look(job.id) or {}).get("ready_ms")
        elif job.status == "retrying" and start_ms > self.now:
            job.due_ms = start_ms
        else:
            if job.status != "queued" or start_ms > self.now:
                self.life.requeue(job, start_ms)
                if job.attempt == 0:
                    job.ready_ms = max(self.now, start_ms)

    def kick(self, reply, ids=None, where=None, count=None, delay=0):
        self.finding.each("kick", self.kick_one, reply, ids, where, delay=delay)

    def kick_one(self, job, _, delay):
        if job.status != "running":
            return "CONFLICT"
        self.trace.tell(job.worker_id, f"kicked {job.id} {job.attempt}")
        self.life.requeue(job, self.now + ms(delay), event="released")
        job.last = (job.attempt, "kick", job.status)
        return job.status
