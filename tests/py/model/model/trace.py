"""What is written down of what happened: histories of jobs, events, tracking."""

from model.common import SOME_TEXT, expect, same
from model.part import Part

LAST_ENDS = 20  # of which a history tells
OF_ATTEMPTS = ("started", "done", "failed", "lapsed", "released", "moved", "blocked")
# What a history says at least.
TOLD = {"started": ("attempt", "worker_id"), "released": ("attempt", "worker_id", "message"),
        "failed": ("attempt", "reason", "group", "message"),
        "lapsed": ("attempt", "reason", "group")}  # fmt: skip


class Trace(Part):
    def __init__(self, model):
        super().__init__(model)
        self.listened = set()  # ids of jobs on whose channels the driver listens
        self.listened_workers = set()
        self.new_events = []  # as they must be heard: (id of a tracked job or worker, or None for all; what)

    def transition(self, job, was, event=None):
        if event:
            job.events.append(self.told(job, was, event))
        self.publish(job, {"from": was})

    def publish(self, job, more):
        """An event: a transition, or what `event` in `more` says."""
        is_tracked = job.track and job.id in self.listened
        if not is_tracked and not self.settings["events_max"]:
            return
        told = {"id": job.id, "name": job.name, "queue": job.queue, "state": job.status, "attempt": job.attempt,
                "worker": job.worker_id or "", "time_ms": self.now, **more}  # fmt: skip
        told = {k: v for k, v in told.items() if v is not None}
        if self.settings["events_max"]:
            self.new_events.append((None, told))
        if is_tracked:
            self.new_events.append((job.id, told))

    def tell(self, worker, text):
        if worker in self.listened_workers:
            self.new_events.append((worker, text))

    def told(self, job, was, event):
        told = {"event": event, "time_ms": job.created_ms if event == "enqueued" else self.now}
        if event in OF_ATTEMPTS or was == "running":
            told |= {"attempt": job.attempt, "worker_id": job.worker_id}
        if event in ("failed", "lapsed", "expired", "dependency"):
            told |= {"reason": job.reason, "group": job.group, "message": cut(job.message)}
        return {k: v for k, v in told.items() if v is SOME_TEXT or v != ""}

    def note_message(self, job, message):
        """Why a job was given back, which it just was."""
        if message:
            job.events[-1]["message"] = cut(message)

    def history(self, reply, id):
        job = self.life.named(reply, id)
        ends = [n for n, told in enumerate(job.events) if told["event"] not in ("enqueued", "started")]
        gone = ends[:-LAST_ENDS]
        same(reply["id"], id, "history: id")
        same(reply["forgotten"], len(gone), "history: forgotten")
        same(set(reply), {"id", "events", "forgotten"}, "history: fields")
        attempts = {job.events[n].get("attempt") for n in gone} - {None}
        expected = [told for n, told in enumerate(job.events) if n not in gone and told.get("attempt") not in attempts]
        same([told["event"] for told in reply["events"]], [told["event"] for told in expected], "history")
        for told, all in zip(reply["events"], expected, strict=True):
            needed = {"event", "time_ms", *TOLD.get(all["event"], ())} & set(all)
            expect(needed <= set(told) <= set(all), "history: fields of an event", told, all)
            same(told, {k: all[k] for k in told}, "history: an event")

    def states_to_come(self, id, was):
        """To which states the engine has told that a job went from this one, beyond what is known of."""
        known, states = list(self.new_events), []
        for about, told in self.engine.look_at_events():
            if (about, told) in known:
                known.remove((about, told))
            elif about in (None, id) and "event" not in told and (told["id"], told.get("from")) == (id, was):
                states.append(told["state"])
        return states

    def check_events(self, heard):
        """heard: what came on the channels since the last time, as new_events."""
        expected = list(self.new_events)
        for told in heard:
            if told not in expected and self.schedules.may_have_met(told[1]):
                continue
            expect(told in expected, "an event that did not happen", told)
            expected.remove(told)
        expect(not expected, "events that were not published", *expected[:5])
        self.new_events = []


def cut(message):
    """Messages are cut at 200 bytes."""
    if message is SOME_TEXT or len(message.encode()) <= 200:
        return message
    return message.encode()[:200].decode(errors="ignore")
