"""Random operations for the model test: keys, webhooks."""

from model.matcher import pack as pack_matcher

ROLES = ["viewer", "pusher", "worker", "operator", "admin"]
API_KEYS = ["00000000000a", "00000000000b", "ffffffffffff"]
WEBHOOK_IDS = ["w1", "w2", "w é", "notify"]
URLS = ["http://127.0.0.1:9/in", "https://hooks.example/x?y=1"]


class AccessGenerator:
    """Needs what random_jobs.Generator has."""

    def grant(self):
        fields = {"id": self.rng.choice(API_KEYS), "digest": self.rng.choice("aaab") * 64}
        fields |= {"name": self.rng.choice(("x", "y é")), "roles": self.rng.sample(ROLES, self.rng.randint(1, 5))}
        more = {"queues": (0.4, [["mail.*", "a"]]), "ttl": (0.4, (1, 0.5 + 60, 1e10)), "rate": (0.4, [0.5])}
        return fields | self.some_of(more)

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
