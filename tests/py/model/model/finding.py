"""What finds jobs: docs/finding.md.

Operations that go on from page to page are run to their end, so here they are one step.
"""

from model.common import ENDED, SOME_TEXT, STATES, WAITING, ErrorReply, Refused, expect, same, there
from model.matcher import decode, matches_job, pack
from model.part import Part

RETRIED = ("error", "cancelled", "skipped", "retrying")


def is_in(state, wanted):
    return state in ([wanted] if isinstance(wanted, str) else wanted)


class Finding(Part):
    def found(self, where, newest=False):
        """The jobs that a listing gives, in order."""
        jobs = [job for job in self.jobs.values() if self.is_found(job, where)]
        turn = -1 if newest else 1
        if "tag" in where:
            return sorted(jobs, key=lambda j: j.id)[::turn]
        if "group" in where:
            return sorted(jobs, key=lambda j: (j.ended_ms, j.id))[::turn]
        places = sorted({self.endpoint_of(job) for job in jobs})
        of_place = [[job for job in jobs if self.endpoint_of(job) == place] for place in places]
        return [job for some in of_place for job in sorted(some, key=self.rank_in_state)[::turn]]

    def endpoint_of(self, job):
        """Done jobs with a result come before the others."""
        return job.queue.encode(), STATES.index(job.status), not self.life.has_result(job)

    def rank_in_state(self, job):
        if job.status == "queued":
            return job.priority, job.id
        if job.status in ENDED:
            return (job.result_until_ms if self.life.has_result(job) else job.ended_ms), job.id
        return (0, job.id) if job.status == "blocked" else (job.due_ms, job.id)

    def is_found(self, job, where):
        equal = all(where.get(field, getattr(job, field)) == getattr(job, field) for field in ("queue", "name"))
        if not equal or not is_in(job.status, where.get("status", STATES)):
            return False
        if "group" in where and (job.status != "error" or job.group != where["group"]):
            return False
        if "message" in where and where["message"] not in self.message_of(job):
            return False
        if "tag" in where and where["tag"] not in (job.tags or ()):
            return False
        if "worker" in where and (not job.attempt or job.worker_id != where["worker"]):
            return False
        if "slower_ms" in where and not self.ran_ms(job) > where["slower_ms"]:
            return False
        if "argument" in where and where["argument"].encode() not in job.argument:
            return False
        if "match" in where and not matches_job(decode(pack(where["match"])), job):
            return False
        return where.get("from_ms", 0) <= job.created_ms < where.get("to_ms", float("inf"))

    def ran_ms(self, job):
        """From its last start to its end, or until now; of one that waits nothing."""
        if not job.attempt or job.status not in (*ENDED, "running"):
            return -1
        return (self.now if job.status == "running" else job.ended_ms) - job.started_ms

    def message_of(self, job):
        """What the engine says about failures of its own finding is its own choice."""
        return (self.engine.look(job.id) or {}).get("message", "") if job.message is SOME_TEXT else job.message or ""

    def tied(self, id):
        """Where results whose time is over may still be stored, or are for dependents, the order of done jobs is not
        known."""
        job = self.jobs[id]
        return (job.queue, "done") if job.status == "done" else id

    def list_jobs(self, reply, where=None, newest=False, brief=False, count=None):
        expected = self.found(where or {}, newest)
        shown = [doc["id"] for doc in reply]
        wanted = [job.id for job in expected if not job.may_be_gone or job.id in shown]
        if any(job.result is not None and self.now >= job.result_until_ms for job in expected):
            shown, wanted = ([self.tied(id) for id in ids] for ids in (shown, wanted))
        same(shown, wanted, "jobs")
        for doc in reply:
            job = self.jobs[doc["id"]]
            document = self.life.document(job)
            if brief:
                document = {
                    k: v
                    for k, v in document.items()
                    if k not in ("argument", "result", "error", "dependents", "dependents_in")
                }
            self.life.check_document(doc, document, "jobs")

    # ---- retry, discard, cancel ----

    def each(self, what, do, reply, ids, where, **more):
        """Jobs by their ids, or all that fit."""
        if ids is None:
            return self.each_found(do, reply, where, **more)
        for id, answer in zip(ids, reply, strict=True):
            job = self.life.present(id, answer == "NOTFOUND")
            same(answer, do(job, answer, **more) if job else "NOTFOUND", what)

    def each_found(self, do, reply, where, **more):
        least = most = 0
        for job in self.found(where):
            is_unsure, before = job.may_be_gone and not self.engine.look(job.id), job.status
            if is_unsure and do != self.discard_one:  # it was gone before
                self.jobs.pop(job.id)
                continue
            if do(job, None, **more) != "CONFLICT" and (job.id not in self.jobs or job.status != before):
                most += 1
                least += not is_unsure
            if is_unsure:
                self.jobs.pop(job.id, None)
        expect(least <= reply <= most, "jobs changed", reply, least, most)

    def retry(self, reply, ids=None, where=None, count=None, queue=None):
        is_asked = where is None or "status" in where
        self.each("retry", self.retry_one, reply, ids, where, queue=queue, is_asked=is_asked)

    def retry_one(self, job, answer, queue=None, is_asked=True):
        """`is_asked`: what was skipped is retried only by who says so."""
        if job.status not in RETRIED or (job.status == "skipped" and not is_asked):
            return "CONFLICT"
        if job.status in ENDED and job.unique is not None and job.unique_within is None:
            refused = answer == "CONFLICT" or (
                not answer and (self.engine.look(job.id) or {}).get("status") != "queued"
            )
            key = self.arrival.keys.get(job.unique)
            if key and self.arrival.owner(job.unique, key.id if refused else None) not in (None, job.id):
                return "CONFLICT"
            self.arrival.take_key(job)
        job.ended_ms, job.may_be_gone = None, False
        self.life.begin_anew(job)
        self.life.go_to(job, queue or job.queue)
        self.life.requeue(job)
        doc = self.engine.look(job.id) or {}
        if job.attempt == 0:
            job.ready_ms = self.now
        if job.expires_ms is not None:
            expect(doc.get("expires_ms") in (None, job.expires_ms), "expires_ms of a job that is retried", doc)
            job.expires_ms = doc.get("expires_ms")
        return "queued"

    def discard(self, reply, ids=None, where=None, count=None):
        self.each("discard", self.discard_one, reply, ids, where)

    def discard_one(self, job, answer):
        before = job.status
        if before == "running":
            return "CONFLICT"
        if before in WAITING:
            self.life.end(job, "cancelled", None)
        key = self.arrival.keys.get(job.unique)
        is_gone = job.may_be_gone and key and self.engine.holders(job.unique)  # its record went before
        if key and key.id == job.id and not is_gone:  # it is kept
            del self.arrival.keys[job.unique]
        del self.jobs[job.id]
        return before

    def cancel(self, reply, ids=None, where=None, count=None, **more):
        if ids is not None:
            return self.links.cancel_named(reply, ids, **more)
        self.each_found(self.cancel_found, reply, where, **more)

    def cancel_found(self, job, _, force=False, dependents="leave"):
        if job.status in ENDED or (job.status == "running" and not (force or self.settings["cancel_running"])):
            return "CONFLICT"
        self.links.cancel_one(job, job.status, force)
        if dependents == "cancel":
            job.is_doomed = True
            self.links.doom_dependents(job)
        return job.status

    # ---- failures, tags ----

    def list_failures(self, reply, group=None, count=None):
        groups = {}
        for job in self.jobs.values():
            if job.status == "error":
                groups.setdefault(job.group, []).append(job)
        groups = {name: jobs for name, jobs in groups.items() if group in (None, name)}
        sure = sorted(g for g, jobs in groups.items() if not all(j.may_be_gone for j in jobs))
        shown = [doc["group"] for doc in reply]
        same(shown, sorted(shown, key=str.encode), "failures: order")
        expect(set(sure) <= set(shown) <= set(groups), "failures: groups", shown, sure)
        for doc in reply:
            jobs = sorted(groups[doc["group"]], key=lambda j: (j.ended_ms, j.id))
            there = [j for j in jobs if not j.may_be_gone or self.engine.look(j.id)]
            first, last = there[0], there[-1]
            expected = {"group": doc["group"], "count": len(there), "first_ms": first.ended_ms,
                        "last_ms": last.ended_ms, "id": last.id, "name": last.name, "queue": last.queue,
                        "message": last.message}  # fmt: skip
            same(doc, expected, "failures")

    def list_tags(self, reply, count=None):
        least, most = {}, {}
        for job in self.jobs.values():
            for tag in job.tags or ():
                most[tag] = most.get(tag, 0) + 1
                least[tag] = least.get(tag, 0) + (not job.may_be_gone)
        shown = dict(reply)
        expect(len(shown) == len(reply), "tags: one twice", reply)
        for tag, number in shown.items():
            expect(number > 0 and least.get(tag, 0) <= number <= most.get(tag, 0), "tags", tag, number, least.get(tag))
        same([tag for tag, _ in reply], sorted(shown, key=str.encode), "tags: order")
        expect({tag for tag in least if least[tag]} <= set(shown), "tags: missing", shown, least)

    def forget(self, reply, name):
        there(name, self.queues.records, "name")
        jobs = [job for job in self.jobs.values() if job.queue == name]
        refused = isinstance(reply, ErrorReply) and reply.code == "CONFLICT"
        if any(not job.may_be_gone for job in jobs) or (refused and jobs):
            raise Refused("CONFLICT", "name")
        same(reply, 1, "forget")
        for job in jobs:
            del self.jobs[job.id]
        del self.queues.records[name]
        self.queues.own_settings.pop(name, None)
        self.order.set_fair(name, {})
        self.statistics.forget_counts(name)
