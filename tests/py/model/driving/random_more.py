"""Random operations for the model test beyond a job's own life: unique keys, dependencies, what follows, finding,
schedules, statistics, events, requests to workers, settings of queues, keys of the API, webhooks. Few keys, tags and
groups: they collide."""

from vocabulary import PLAIN

from model.cron import ZONES
from model.life import PASSED
from model.matcher import pack as pack_matcher

ROLES = ["viewer", "pusher", "worker", "operator", "admin"]
API_KEYS = ["00000000000a", "00000000000b", "ffffffffffff"]
WEBHOOK_IDS = ["w1", "w2", "w é", "notify"]
URLS = ["http://127.0.0.1:9/in", "https://hooks.example/x?y=1"]
UNIQUE = ["u1", "u1", "u2", "u é"]
TAGS = ["t1", "t2", "x", "é y"]
GROUPS = ["g1", "g2", "other", "timeout"]
SCHEDULES = ["s1", "s2", "s é"]
CRONS = ["30 2 * * *", "*/20 1,2 * * *", "* * * * *", "*/5 * * * *", "0 0 29 2 *", "30 4 1,15 * 5", "@hourly",
         "@weekly",          "10-50/20 */6 * jan-dec 1-5",
         "0 0 30 2 *", "5/15 23 * * sun,7", "0 0 */2 * mon", "@YEARLY"]  # fmt: skip
# Of a listing: as of a constraint.
MATCHERS = [
    {"argument.c": {"exists": True}}, {"argument.c": ["x", 1]}, {"argument": "text"}, {"argument.n": {"lt": 3}},
    {"tags": "t1"}, {"priority": {"ge": 0}}, {"name": "*a*"}, {"not": {"argument.c": {"exists": True}}},
    {"any": [{"queue": "a"}, {"argument.to.k.1": 2}]},
]  # fmt: skip
STATES = ["queued", "scheduled", "blocked", "running", "retrying", "done", "error", "cancelled", "skipped"]

# Of fields that mean nothing to the engine, by type.
VALUES = {"map<text>": ({"tenant": "é"}, {"traceparent": "00-ab", "empty": ""}), "name": ("x", "é y")}

# What a sequence may use, and how often each operation comes then.
FEATURES = {
    "unique": {"enqueue": 3}, "depends": {}, "following": {"change": 5, "kick": 1.5},
    "finding": {"jobs": 3, "retry": 3, "discard": 1.5, "failures": 1, "tags": 1, "forget": 0.7,
                "history": 2},
    "schedules": {"schedule": 3, "unschedule": 0.3, "schedules": 1},
    "statistics": {"stats": 2},
    "events": {}, "control": {"worker": 2}, "settings": {"queue": 3}, "limits": {},
    "access": {"grant": 2, "revoke": 0.7, "touch": 1, "keys": 0.5},
    "webhooks": {"subscribe": 1.5, "unsubscribe": 0.5, "webhooks": 0.7},
}  # fmt: skip
# And which settings.
SETTINGS = {
    "statistics": {"stats": [True, True, False]},
    "events": {"events_max": [0, 100, 1000]},
}  # fmt: skip


class MoreGenerator:
    """Needs what random_jobs.Generator has."""

    def choose_features(self):
        self.features = {feature for feature in FEATURES if self.chance(0.4)} if self.chance(0.9) else set()
        self.settings = dict(self.settings)
        for feature, settings in SETTINGS.items():
            self.settings |= settings if feature in self.features else {}
        scripts = self.driver.scripts
        for feature, weights in FEATURES.items():  # not the set: its order is another in each process
            for script, weight in weights.items():
                if script == "forget" and "statistics" in self.features:
                    continue  # what was not yet in the statistics comes back
                if feature in self.features and script in scripts:
                    old = self.weights.get(script, (0, 0, 0))
                    self.weights[script] = [weight + before for before in old]

    def has(self, feature, probability):
        return feature in self.features and self.chance(probability)

    def distinct(self, most, *states):
        return list(dict.fromkeys(self.job(*states)[0] for _ in range(self.rng.randint(1, most))))

    # ---- fields of jobs ----

    def add_more(self, spec, before):
        """To a spec with so many before it in the same call."""
        if self.has("unique", 0.35):
            spec["unique"] = self.rng.choice(UNIQUE)
            time = self.rng.choice((None, None, None, "unique_for", "unique_for", "unique_within"))
            if time:
                spec[time] = self.rng.choice((0.001, 2, 60, 10**10))
            if self.chance(0.7):
                policies = ("keep", "replace") if time == "unique_within" else ("keep", "replace", "latest", "latest")
                spec["if_exists"] = self.rng.choice(policies)
        if self.has("depends", 0.35) and spec.get("if_exists") != "latest":
            spec["depends"] = self.dependencies(before)
            if self.chance(0.7):
                spec["if_failed"] = self.rng.choice(("wait", "fail", "run", "only", "only"))
                if spec["if_failed"] == "only" and self.chance(0.7):  # of several one fails, mostly
                    spec["depends"] = [self.job("running", "done", "queued", "error", "skipped")[0]]
        some = {
            "max_runtime": ("limits", 0.4, (0.001, 2, 10, 60, 4000000)), "notify": ("webhooks", 0.3, URLS),
            "max_lapses": ("limits", 0.3, (0, 1, 3, 2**31 - 1)), "track": ("events", 0.15, (True, True, True, False)),
        }  # fmt: skip
        of_features = {name: more for name, (feature, *more) in some.items() if feature in self.features}
        passed = {name: (0.1, VALUES.get(field.type) or (PLAIN[field.type].example,)) for name, field in PASSED.items()}
        spec |= self.some_of(of_features | passed)
        if self.features & {"finding", "following"} and self.chance(0.3):
            spec["tags"] = self.tags_of_job()

    def tags_of_job(self):
        return self.rng.sample(TAGS, self.rng.randint(1, 3))

    def dependencies(self, before):
        some = self.distinct(3, "queued", "running", "blocked", "scheduled", "retrying", "error")
        some = list({self.driver.resolve(label): label for label in some}.values())
        if before and self.chance(0.6):
            some.append(self.rng.randrange(before))
        if self.chance(0.02) and "job:never" not in some:
            some.append("job:never")
        return some

    def following_jobs(self):
        jobs = []
        for number in range(self.rng.randint(1, 3)):
            spec = self.new_job()
            self.add_more(spec, number)
            jobs.append([spec, self.rng.choice(self.arguments)])
        return jobs

    def add_to_outcome(self, pair):
        outcome = pair[0]
        if outcome["type"] == "failure":
            if self.features & {"finding", "statistics"} and self.chance(0.6):
                outcome["group"] = self.rng.choice(GROUPS)
            if self.has("following", 0.3):
                outcome["retry_in"] = self.rng.choice((0, 0.5, 3, 60, 10**10))
            return
        if self.has("following", 0.25):
            places = {"name": self.rng.choice(self.names), "queue": self.rng.choice(self.queues_used)}
            dropped = self.rng.choice(("", "name", "queue"))
            outcome["move"] = {field: value for field, value in places.items() if field != dropped}
            outcome["move"] |= self.some_of({"priority": (0.3, (0, -1, 3)), "delay": (0.3, (0, 0.5, 10))})
            pair[1] = self.rng.choice(self.arguments)
        follow = self.following_jobs() if self.has("following", 0.25) else []
        if "move" not in outcome and self.has("depends", 0.35):
            follow = follow or (self.following_jobs() if self.chance(0.5) else [])
            more = {"if_failed": (0.7, ("wait", "fail", "run")), "checkpoint": (0.3, (True, True, True, False))}
            outcome["resume"] = {"depends": self.dependencies(len(follow))} | self.some_of(more)
            pair[1] = self.rng.choice(self.arguments)
        if follow:
            pair.append(follow)

    def add_notes(self, fields):
        """To a heartbeat."""
        blobs = []
        for held in fields["jobs"]:
            if self.chance(0.5):
                notes = {"progress": (0.6, (0, 0.5, 100, -1)), "message": (0.4, ("", "half way é"))}
                held.append(self.some_of(notes | {"argument": (0.4, [len(blobs)])}))
                blobs += [self.rng.choice(self.arguments)] if "argument" in held[-1] else []
        if blobs:
            fields["blobs"] = blobs

    # ---- operations ----

    def change(self):
        jobs = []
        states = self.rng.choice((["queued", "scheduled", "blocked", "retrying"], ["running"], STATES))
        may_change = {
            "priority": (0.3, [0, -3, 5]), "max_retry": (0.3, [0, 1, 5]), "timeout": (0.3, [0.5, 5, 60]),
            "queue": (0.3, self.queues_used), "delay": (0.4, (0, 0.5, 1, 20)),
        }  # fmt: skip
        for label in self.distinct(3, *states):
            spec = {"id": label} | (self.some_of(may_change) if states[0] != "running" else {})
            if self.chance(0.4):
                spec["tags"] = self.tags_of_job() if self.chance(0.8) else []
            has_argument = len(spec) == 1 or (states[0] != "running" and self.chance(0.4))
            jobs.append([spec, self.rng.choice(self.arguments) if has_argument else b""])
        return {"jobs": jobs}

    def where(self):
        some = {
            "queue": self.rng.choice(self.queues_used), "name": self.rng.choice(self.names),
            "status": self.rng.choice([*STATES, self.rng.sample(STATES, 3), ["error", "done"]]),
            "tag": self.rng.choice(TAGS), "group": self.rng.choice([*GROUPS, "expired", "dependency"]),
            "from_ms": self.driver.model.now - self.rng.choice((0, 1000, 60_000)),
            "to_ms": self.driver.model.now - self.rng.choice((0, 1000, 60_000)),
            "message": self.rng.choice(("host", "é", "no such host")),
            "worker": self.anyone(), "slower_ms": self.rng.choice((0, 50, 1000, 20_000)),
            "argument": self.rng.choice(("o", "text", "a")), "match": self.rng.choice(MATCHERS),
        }  # fmt: skip
        fields = self.rng.sample(list(some), self.rng.choice((0, 1, 1, 1, 2, 2, 3)))
        return {field: some[field] for field in fields}

    def cancel_more(self, fields):
        if self.has("depends", 0.6):
            fields["ids"] = self.distinct(2, "queued", "scheduled", "running", "blocked", "error")
            fields["dependents"] = self.rng.choice(("leave", "cancel", "cancel", "refuse"))
            if self.chance(0.4):
                fields["atomic"] = self.chance(0.8)
        elif "webhooks" not in self.features and self.has("finding", 0.3):
            more = {"dependents": self.rng.choice(("leave", "cancel"))} if self.has("depends", 0.5) else {}
            return {"where": self.where(), **more, **{k: v for k, v in fields.items() if k == "force"}}
        return fields

    def failures(self):
        return {"group": "g"} if self.chance(0.2) else {"count": self.rng.choice((1, 2, 100))}

    def schedule(self):
        known = self.driver.model.schedules.defined
        if self.chance(0.2):
            change = {"run": True} if self.chance(0.5) else {"paused": self.chance(0.5)}
            return {"id": self.rng.choice([*known, "unknown"]), **change}
        if known and self.chance(0.3):  # the same with something else about it
            old = known[self.rng.choice(list(known))]
            fields = {"id": old.id, **old.given}
        else:
            fields = {"id": self.rng.choice(SCHEDULES), **self.timing()}
        fields |= self.some_of({
            "catch_up": (0.4, (True, False)), "paused": (0.25, (True, False)), "declared": (0.2, ("one", "two")),
        })  # fmt: skip
        job = self.new_job()
        self.add_more(job, 0)
        job = {k: v for k, v in job.items() if k not in ("run_at", "depends", "if_failed", "if_exists")}
        return {**fields, "job": job, "argument": self.rng.choice(self.arguments)}

    def timing(self):
        if self.chance(0.6):
            return {"every": self.rng.choice((0.1, 1, 1, 7, 60, 3600))}
        fields = {"cron": self.rng.choice(CRONS)}
        if self.chance(0.5):
            fields["timezone"], fields["tz"] = self.rng.choice(ZONES)
        return fields

    def own_settings(self):
        names = [
            name for name in self.settings if name.startswith(("retry_", "result_", "done_", "error_", "cancelled_"))
        ]
        own = list(self.driver.model.queues.own_settings.get(queue := self.rng.choice(self.queues_used), ()))
        fields = {"name": queue}
        if self.chance(0.7):
            fields["set"] = {name: self.rng.choice(self.settings[name]) for name in self.rng.sample(names, 2)}
        if own and self.chance(0.5):
            fields["unset"] = [self.rng.choice(own)]
            fields.get("set", {}).pop(fields["unset"][0], None)
        return fields

    def grant(self):
        fields = {"id": self.rng.choice(API_KEYS), "digest": self.rng.choice("aaab") * 64}
        fields |= {"name": self.rng.choice(("x", "y é")), "roles": self.rng.sample(ROLES, self.rng.randint(1, 5))}
        more = {"queues": (0.4, [["mail.*", "a"]]), "ttl": (0.4, (1, 0.5 + 60, 1e10)), "rate": (0.4, [0.5])}
        return fields | self.some_of(more)

    def subscribe(self):
        fields = {"id": self.rng.choice(WEBHOOK_IDS), "match": b""}
        if fields["id"] != "notify":
            fields |= {"url": self.rng.choice(URLS), "match": pack_matcher(self.matcher())}
            if self.chance(0.6):
                fields["on"] = self.rng.sample(["done", "error", "cancelled", "skipped"], self.rng.randint(1, 4))
        if self.chance(0.4):
            fields["secrets"] = ["whsec_" + self.rng.choice("AB") * 32] * self.rng.randint(1, 2)
        return fields

    def more_moments(self):
        model = self.driver.model
        for schedule in model.schedules.defined.values():
            yield schedule.next_ms or 0
        for job in model.jobs.values():
            if job.status == "running":
                yield job.due_ms
        for key in model.arrival.keys.values():
            yield key.until_ms or 0
