"""Queues and settings."""

from model.common import DEFAULTS, STATES, expect, listed, same, there
from model.part import Part

MOST_LOOKED_AT = 50


class Queues(Part):
    def __init__(self, model):
        super().__init__(model)
        self.records = {}  # name -> {paused, max_waiting}
        self.own_settings = {}  # queue -> settings of its own

    def transition(self, job, was, event=None):
        if job.status == "queued" and was != "queued":
            job.again_ms = self.now

    def oldest_ready_ms(self, jobs):
        """Since when the oldest of these waits: before its first attempt since it was enqueued, or its time came."""
        ready = [(j.again_ms if j.attempt else j.ready_ms) or 0 for j in jobs]
        return min((min(max(j.created_ms, ms), self.now) for j, ms in zip(jobs, ready, strict=True)), default=None)

    def most_kept(self, queue, state):
        """Of how many jobs that end so the records are kept."""
        return self.kept(queue, state, "max") if self.kept(queue, state, "ttl") else 0

    def kept(self, queue, state, limit):
        """Of retention; for skipped jobs that of cancelled ones holds."""
        return self.setting(queue, f"{'cancelled' if state == 'skipped' else state}_{limit}")

    def setting(self, queue, name):
        own = self.own_settings.get(queue, {})
        return own.get(name, self.settings[name])

    def queue(self, reply, name, paused=None, max_waiting=None, fair=None, set=None, unset=(), known=False):
        if known:
            there(name, self.records, "name")
        record = self.records.setdefault(name, {"paused": False, "max_waiting": 0})
        if paused is not None:
            record["paused"] = paused
        if max_waiting is not None:
            record["max_waiting"] = max_waiting
        if fair is not None:
            self.order.set_fair(name, fair)
        own = self.own_settings.setdefault(name, {})
        own.update(set or {})
        for setting in unset:
            own.pop(setting, None)
        self.check_queue(reply, name)

    def check_queue(self, doc, name):
        same(doc.pop("settings", {}), self.own_settings.get(name, {}), "settings of a queue")
        same(doc.pop("fair", {}), self.order.sharing_of(name), "by what a queue is shared")
        queued = [j for j in self.jobs.values() if (j.queue, j.status) == (name, "queued")]
        oldest_ms, shown_ms = self.oldest_ready_ms(queued), doc.pop("oldest_ready_ms", None)
        # Of very many, those are looked at that are likely to wait longest.
        expect(
            shown_ms == oldest_ms or (len(queued) > MOST_LOOKED_AT and shown_ms >= oldest_ms),
            "since when the oldest ready job waits", name, shown_ms, oldest_ms,
        )  # fmt: skip
        counts = {k: v for k, v in doc.items() if k not in ("name", "paused", "max_waiting")}
        same({k: v for k, v in doc.items() if k not in counts}, {"name": name, **self.records[name]}, "queue")
        for state in STATES:
            jobs = [j for j in self.jobs.values() if (j.queue, j.status) == (name, state)]
            least = sum(not j.may_be_gone for j in jobs)
            expect(least <= counts.pop(state, -1) <= len(jobs), f"count of {state}", doc, least, len(jobs))
        same(counts, {}, "unknown fields of a queue")

    def list_queues(self, reply, names=None, count=None):
        listed(reply, self.records, names, "name")
        for doc in reply:
            self.check_queue(doc, doc["name"])

    def config(self, reply, set=None, unset=(), describe=False):
        if describe:
            shown = {setting["name"]: (setting["value"], setting["default"]) for setting in reply}
            return same(shown, {k: (v, DEFAULTS[k]) for k, v in self.settings.items()}, "settings described")
        self.settings.update(set or {})
        self.settings.update({name: DEFAULTS[name] for name in unset})
        same(reply, self.settings, "settings")
