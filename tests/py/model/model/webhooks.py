"""Webhooks: docs/webhooks.md. Of each end that one matches, exactly one notification is made."""

from model.common import ENDED, WEBHOOKS, expect, same, there
from model.life import Job
from model.matcher import decode, matches_job
from model.part import Part

OWN = "notify"
ENDS = ["cancelled", "done", "error", "skipped"]
TOLD_BYTES = 200  # of a message


class Webhooks(Part):
    def __init__(self, model):
        super().__init__(model)
        self.defined = {}  # id -> document
        self.secrets = {}
        self.last_id = ""  # when the operation began
        self.last_of_all = ""  # notifications
        self.found = None  # notifications that it made and that belong to no end yet: id -> what they tell

    # ---- ends ----

    def transition(self, job, was, event=None):
        if job.status not in ENDED or job.webhook:
            return
        told = self.told(job)
        if job.notify:
            self.made({"url": job.notify, "event": told})
        for id, doc in self.defined.items():
            if id != OWN and job.status in doc["on"] and matches_job(doc["match"], job):
                self.made({"id": id, "event": told})

    def told(self, job):
        fields = ["id", "name", "queue", "status", "attempt", "retry_count", "created_ms", "started_ms"]
        told = {field: getattr(job, field) for field in fields} | {"ended_ms": self.now}
        if job.status == "error":
            told |= {"reason": job.reason, "message": job.message, "group": job.group}
            if type(job.message) is str:
                told["message"] = job.message.encode()[:TOLD_BYTES].decode(errors="ignore")
        return {field: value for field, value in told.items() if value is not None}

    def look(self):
        if self.found is None:
            docs = {id: self.engine.look(id) for id in self.engine.ids_after(self.last_id)}
            self.found = {id: doc["webhook"] for id, doc in docs.items() if doc and "webhook" in doc}

    def end_to_come(self, job_id):
        """A job that ended, as a notification of this operation tells it, or None."""
        if not self.defined:
            return None
        self.look()
        return next((found["event"] for found in self.found.values() if found["event"]["id"] == job_id), None)

    def made(self, webhook):
        """A notification that this operation has made."""
        self.look()
        id = next((id for id, found in self.found.items() if found == webhook), None)
        expect(id, "no notification of an end", webhook, self.found)
        del self.found[id]
        self.last_of_all = max(self.last_of_all, id)
        created_ms = self.arrival.created(id)
        job = Job(id=id, argument=b"\xc0", name=WEBHOOKS, queue=WEBHOOKS, created_ms=created_ms)
        job.max_retry, job.timeout, job.webhook = 20, 30, webhook
        job.status, job.due_ms = "scheduled", self.now
        self.jobs[id] = job
        self.queues.records.setdefault(WEBHOOKS, {"paused": False, "max_waiting": 0})
        self.model.transition(job, None, "enqueued")

    def after_operation(self):
        if self.defined or self.found is not None:
            self.look()
            expect(not self.found, "notifications of no end", self.found)
        arrival = self.arrival
        arrival.last_id = self.last_id = max(self.last_id, self.last_of_all, arrival.last_id)
        arrival.least_id, self.found = arrival.next_id, None

    # ---- operations ----

    def subscribe(self, reply, id, match, url=None, on=None, secrets=None):
        if secrets:
            self.secrets[id] = secrets
        doc = {"id": id} if id == OWN else {"id": id, "url": url, "match": decode(match), "on": sorted(on or ENDS)}
        self.defined[id] = doc
        same(reply, self.document(doc, False), "subscribe")

    def document(self, doc, is_told):
        secrets = self.secrets.get(doc["id"], [])
        return doc | {"secrets": secrets if is_told else len(secrets)}

    def unsubscribe(self, reply, id):
        there(id, self.defined)
        same(reply, 1, "unsubscribe")
        del self.defined[id]
        self.secrets.pop(id, None)

    def webhooks(self, reply, secrets=False):
        docs = [self.document(self.defined[id], secrets) for id in sorted(self.defined, key=str.encode)]
        same(reply, docs, "webhooks")
