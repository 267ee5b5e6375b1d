"""Queues and settings."""

from model.common import DEFAULTS, STATES, Refused, accepted, expect, same, there
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
        return min((max(j.created_ms, ms) for j, ms in zip(jobs, ready, strict=True)), default=None)

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
        if self.bounds.no_queue(name):
            raise Refused("FULL", "name")
        accepted(reply)
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

    def check_queue(self, doc, name, minutes=None, held=None):
        same(doc.pop("settings", {}), self.own_settings.get(name, {}), "settings of a queue")
        same(doc.pop("fair", {}), self.order.sharing_of(name), "by what a queue is shared")
        queued = [j for j in self.jobs.values() if (j.queue, j.status) == (name, "queued")]
        oldest_ms, shown_ms = self.oldest_ready_ms(queued), doc.pop("oldest_ready_ms", None)
        # Of very many, those are looked at that are likely to wait longest.
        expect(
            shown_ms == oldest_ms or (len(queued) > MOST_LOOKED_AT and shown_ms >= oldest_ms),
            "since when the oldest ready job waits", name, shown_ms, oldest_ms,
        )  # fmt: skip
        if held is not None:
            self.check_held(doc.pop("held"), queued, held)
        if minutes is not None:
            self.check_standing(doc, name, queued, shown_ms, minutes)
        counts = {k: v for k, v in doc.items() if k not in ("name", "paused", "max_waiting")}
        same({k: v for k, v in doc.items() if k not in counts}, {"name": name, **self.records[name]}, "queue")
        for state in STATES:
            jobs = [j for j in self.jobs.values() if (j.queue, j.status) == (name, state)]
            least = sum(not j.may_be_gone for j in jobs)
            expect(least <= counts.pop(state, -1) <= len(jobs), f"count of {state}", doc, least, len(jobs))
        same(counts, {}, "unknown fields of a queue")

    def check_held(self, doc, queued, most):
        """Those that stand under constraints; who was counted in before is not there yet."""
        limits = self.limits
        holders = limits.holders()
        held = sum(limits.is_held(job, holders) or bool(limits.unsure_keys(job)) for job in queued)
        expect(doc["jobs"] <= doc["looked"] <= min(most, len(queued)), "held: looked at", doc, most, len(queued))
        expect(doc["jobs"] <= held, "held: jobs", doc, held)
        counts = [one["jobs"] for one in doc["by"]]
        same(counts, sorted(counts, reverse=True), "held: order")
        expect(max(counts, default=0) <= doc["jobs"] <= sum(counts), "held: by constraint", doc)

    def check_standing(self, doc, name, queued, oldest_ms, minutes):
        now = self.now
        recent, active = doc.pop("recent", None), False
        if self.settings["stats"]:
            active = self.statistics.check_recent(dict(recent), name, minutes)
            left = sum(recent[kind] for kind in ("done", "error", "cancelled", "skipped", "moved")) - recent["enqueued"]
            empties_ms = len(queued) * recent["span_ms"] / left if left > 0 and queued else None
            same(doc.pop("empties_ms", None), empties_ms, "empties_ms")
        else:
            same(recent, None, "recent, where nothing is counted")
        workers, channels, running = doc.pop("workers"), doc.pop("channels"), doc["running"]
        same(workers, len(self.workers.serving(name)), "workers of a queue")
        cause, held_by, unknown = doc.pop("cause", None), doc.pop("held_by", []), doc.pop("unknown", None)
        expect((unknown is None) == (cause != "unknown job"), "unknown", cause, unknown)
        expect(bool(held_by) == (cause == "constraint"), "held_by", cause, held_by)
        if not queued:
            return same(cause, None, "cause of nothing")
        if self.records[name]["paused"]:
            return same(cause, "paused", "cause")
        late = "slow" if active or workers or channels or running or name == "jq.webhooks" else "no worker"
        limits = self.limits
        holders, allowed = limits.holders(), set()
        for job in queued:
            if self.oldest_ready_ms([job]) == oldest_ms:
                is_held, is_unsure = limits.is_held(job, holders), bool(limits.unsure_keys(job))
                allowed |= {"constraint"} if is_held or is_unsure else set()
                if not is_held and now - oldest_ms >= self.setting(name, "late_after") * 1000:
                    is_unknown = self.workers.is_unknown(name, job.name)
                    allowed |= {late} if not is_unknown else set()
                    allowed |= {"unknown job"} if is_unknown is not False and unknown in (None, job.name) else set()
                elif not is_held:
                    allowed.add(None)
        expect(cause in allowed, "cause", name, cause, allowed)

    def list_queues(self, reply, names=None, count=None, minutes=None, held=None):
        """Without names: all the pages, one after the other."""
        accepted(reply)
        known = sorted(self.records, key=str.encode)
        wanted = known if names is None else [n for n in names if n in self.records]
        same([doc["name"] for doc in reply], wanted, "names of queues")
        for doc in reply:
            self.check_queue(doc, doc["name"], minutes, held)

    def config(self, reply, set=None, unset=(), describe=False):
        accepted(reply)
        if describe:
            shown = {setting["name"]: (setting["value"], setting["default"]) for setting in reply}
            return same(shown, {k: (v, DEFAULTS[k]) for k, v in self.settings.items()}, "settings described")
        self.settings.update(set or {})
        self.settings.update({name: DEFAULTS[name] for name in unset})
        same(reply, self.settings, "settings")
