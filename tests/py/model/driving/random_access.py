"""Random operations for the model test: keys, who changes things, what is done to many jobs, webhooks."""

from model.access import NOTED
from model.matcher import pack as pack_matcher

WEBHOOK_IDS = ["w1", "w2", "w é", "notify"]
URLS = ["http://127.0.0.1:9/in", "https://hooks.example/x?y=1"]


class AccessGenerator:
    """Needs what random_jobs.Generator has."""

    # ---- keys, and who changes things ----

    def add_actor(self, operation):
        script, fields, _ = operation
        if "access" in self.features and script in NOTED and self.chance(0.6):
            fields["actor"] = self.rng.choice(("ann", "ann", "bob é"))

    def api_key(self):
        return self.rng.choice(("00000000000a", "00000000000b", "ffffffffffff"))

    def grant(self):
        fields = {"id": self.api_key(), "digest": self.rng.choice("aaab") * 64, "name": self.rng.choice(("x", "y é"))}
        fields["roles"] = self.rng.sample(["viewer", "pusher", "worker", "operator", "admin"], self.rng.randint(1, 5))
        more = {"queues": ["mail.*", "a"], "ttl": self.rng.choice((1, 0.5 + 60, 1e10)), "rate": 0.5}
        return fields | {field: value for field, value in more.items() if self.chance(0.4)}

    def revoke(self):
        return {"id": self.api_key()}

    def touch(self):
        return {"ids": sorted({self.api_key(), self.api_key()})}

    def keys(self):
        return {"count": self.rng.choice((1, 2, 100))} | ({"digests": True} if self.chance(0.5) else {})

    def trail(self):
        return {"count": self.rng.choice((1, 2, 100))} | ({"what": "queue"} if self.chance(0.3) else {})

    # ---- marks ----

    def mark(self):
        fields = {"text": self.rng.choice(("v1", "v2", "é"))}
        if self.chance(0.3):
            fields["time_ms"] = self.driver.model.now - self.rng.choice((0, 1, 59_999, 500 * 86_400_000, -5000))
        return fields

    def marks(self):
        fields = {"count": self.rng.choice((1, 2, 100))}
        if self.chance(0.3):
            fields["from_ms"] = self.driver.model.now - self.rng.choice((0, 0.5, 60_000))
        if self.chance(0.3):
            fields["to_ms"] = self.driver.model.now - self.rng.choice((-1, 0, 0.5, 30_000))
        return fields

    # ---- webhooks ----

    def subscribe(self):
        fields = {"id": self.rng.choice(WEBHOOK_IDS), "match": b""}
        if fields["id"] != "notify":
            fields |= {"url": self.rng.choice(URLS), "match": pack_matcher(self.matcher())}
            if self.chance(0.6):
                fields["on"] = self.rng.sample(["done", "error", "cancelled", "skipped"], self.rng.randint(1, 4))
        if self.chance(0.4):
            fields["secrets"] = ["whsec_" + self.rng.choice("AB") * 32] * self.rng.randint(1, 2)
        return fields

    def unsubscribe(self):
        return {"id": self.rng.choice(WEBHOOK_IDS)}

    def webhooks(self):
        return {"secrets": True} if self.chance(0.5) else {}

    def bulk(self):
        known = list(self.driver.model.bulks.all)
        if not known or self.chance(0.4):
            fields = {"what": self.rng.choice(("discard", "cancel", "retry")), "where": self.where()}
            return fields | ({"total": 5} if self.chance(0.5) else {})
        fields = {"id": self.rng.choice(known)}
        if self.chance(0.15):
            return {**fields, "stop": True}
        fields["holder"] = self.rng.choice(("m1", "m2"))
        if self.chance(0.6):
            fields |= {"cursor": self.rng.choice(("", "x é")), "changed": self.rng.choice((0, 7, 1000))}
        if self.chance(0.25):
            fields |= {"ended": True} | ({"problem": "no"} if self.chance(0.5) else {})
        return fields

    def bulks(self):
        return {}

    # ---- schedules, statistics, settings ----
