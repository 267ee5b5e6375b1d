"""Random operations for the model test: queues that fill and drain, and all that may go wrong."""

import random

import msgpack

from driving.random_limits import WEIGHTS as CONSTRAINT_WEIGHTS
from driving.random_limits import ConstraintGenerator
from driving.random_more import API_KEYS, MoreGenerator
from driving.random_plain import PlainGenerator
from jqmaster.manifest.manifest import operations
from model.common import WEBHOOKS

NAMES = ["a", "b", "mail.jp", "mail.de", "a b é"]
PRIORITIES = [0] * 8 + [1, 1, -1, -5, 7, 2**31 - 1, -(2**31)]
CHANNELS = {
    "all": {"queues": "*"}, "mail": {"queues": "mail.*"}, "a": {"queues": "a"}, "two": {"queues": ["mail.jp", "b"]},
    "some": {"queues": "*", "without": ["a", "mail.de"]}, "one": {"queues": "b", "without": ["b"]},
}  # fmt: skip

QUEUES = ["a", "b", "mail.jp", "mail.de", "mail.us", "z[0-9]?"]
ENTRIES = [*QUEUES, *QUEUES, *("*", "mail.*") * 2, "*.de", "m*l.*", "a*", "nowhere", "z[0-9]?*", "*a*"]
VALUES = [None, 0, -7, 1.0, "text", b"\xff bin", [], {}, {"to": ["x"] * 3}, 2**63, msgpack.ExtType(5, b"ext")]
ARGUMENTS = [*map(msgpack.packb, VALUES), b"\x81\xa1k" + b"\x91" * 3 + b"\xc0"]
WORKERS = ["w1", "w2", "rakuten-host:1"]
SETTINGS = {
    "retry_base": [0, 0.5, 1, 10], "retry_cap": [0, 2, 3600], "retry_jitter": [0, 0.1, 0.9],
    "result_ttl": [1, 30, 3600], "result_grace": [0, 0, 5, 60], "request_ttl": [60, 600],
    "done_ttl": [0, 2, 60, 86400], "done_max": [0, 1, 5, 20], "error_ttl": [0, 2, 60, 86400],
    "error_max": [0, 1, 5, 20], "cancelled_ttl": [0, 2, 60, 86400], "cancelled_max": [0, 1, 5, 20],
    "cancel_running": [True, True, False], "worker_ttl": [5, 30, 300],
}  # fmt: skip

# How often each operation comes, while queues fill, drain, or neither.
WEIGHTS = {
    "enqueue": (30, 4, 12), "pick": (8, 25, 15), "finish": (8, 30, 18), "heartbeat": (4, 6, 5),
    "release": (3, 5, 4), "cancel": (3, 4, 4), "result": (4, 6, 5), "get": (3, 3, 3), "watch": (3, 3, 3),
    "tick": (3, 4, 4), "queue": (2, 2, 2), "queues": (1, 1, 1), "register": (2, 2, 2),
    "unregister": (0.4, 0.4, 0.4), "workers": (0.5, 0.5, 0.5), "assign": (4, 10, 8),
    "refuse": (1.5, 2, 2), "config": (0.5, 0.5, 1), "wake": (3, 4, 4), "clock": (8, 12, 16),
    "repeat": (4, 4, 4), "check": (4, 4, 4), "settle": (0.3, 0.5, 0.5),
}  # fmt: skip

# What is said of certain jobs may be said twice.
REPEATABLE = {
    script for script, one in operations().items()
    if one.flags != "read" and {"ids", "jobs", "outcomes"} & {argument.name for argument in one.arguments}
} - {"enqueue", "watch"}  # fmt: skip


class Generator(ConstraintGenerator, MoreGenerator, PlainGenerator):
    """Makes operations that suit the state of a driver's model, so that most of them do something."""

    def __init__(self, seed, driver):
        self.rng = random.Random(seed)
        self.driver = driver
        self.count = 0
        self.phase = 0
        self.tokens = 0
        self.sent = []  # operations worth repeating
        self.weights = {name: list(weights) for name, weights in WEIGHTS.items()}
        self.names, self.queues_used, self.arguments, self.settings = NAMES, QUEUES, ARGUMENTS, SETTINGS
        self.choose_features()
        self.weights |= self.plain_weights(*WEIGHTS, *CONSTRAINT_WEIGHTS)
        self.is_constrained = self.chance(0.6)
        if self.is_constrained:
            self.suit_constraints()
            for name, weight in CONSTRAINT_WEIGHTS.items():
                self.weights[name] = [max(weight, before) for before in self.weights.get(name, (0, 0, 0))]

    def first(self):
        """A sequence begins with settings of its own."""
        chosen = [name for name in self.settings if self.chance(0.6)]
        return ["config", {"set": {name: self.rng.choice(self.settings[name]) for name in chosen}}, 0]

    def next(self):
        self.count += 1
        if self.count % 40 == 1:
            self.phase = self.rng.choice((0, 1, 1, 2))
        weights = [of_phase[self.phase] for of_phase in self.weights.values()]
        script = self.rng.choices(list(self.weights), weights)[0]
        if script == "repeat" and self.sent:
            return [*self.rng.choice(self.sent)[:2], self.count]
        if script in ("repeat", "settle", "check"):
            return ["check" if script == "repeat" else script, {}, self.count]
        operation = [script, getattr(self, script, lambda: self.plain(script))(), self.count]
        if script in REPEATABLE or self.token_of(operation):
            self.sent = [*self.sent[-7:], operation]
        return operation

    # ---- parts ----

    def chance(self, probability):
        return self.rng.random() < probability

    def some_of(self, choices):
        """Of each of these fields one of its values, with its probability: (probability, values)."""
        chosen = {field: values for field, (probability, values) in choices.items() if self.chance(probability)}
        return {field: self.rng.choice(values) for field, values in chosen.items()}

    def some(self, choices, most):
        return [self.rng.choice(choices) for _ in range(self.rng.randint(1, most))]

    def token_of(self, operation):
        fields = operation[1]
        return (fields.get("options") or fields).get("request")

    def token(self):
        self.tokens += 1
        return f"token-{self.tokens}"

    def label(self, id, kind):
        for label, known in self.driver.names.items():
            if known == id:
                return label
        return kind + ":unknown"

    def job(self, *states):
        """The label and the attempt of a job, likely one in these states."""
        jobs = list(self.driver.model.jobs.values())
        if not jobs or self.chance(0.02):
            return self.rng.choice(list(self.driver.names) or ["job:unknown"]).replace("worker", "job"), 1
        fitting = [j for j in jobs if j.status in states]
        job = self.rng.choice(fitting if fitting and self.chance(0.9) else jobs)
        return self.label(job.id, "job"), job.attempt

    def attempts(self, most, *states):
        pairs = []
        for _ in range(self.rng.randint(1, most)):
            label, attempt = self.job(*states)
            attempt = max(1, attempt + (self.rng.choice((-1, 1)) if self.chance(0.05) else 0))
            if label not in [pair[0] for pair in pairs] or self.chance(0.05):
                pairs.append([label, self.wrong_token(attempt) if self.chance(0.05) else attempt])
        return pairs

    def wrong_token(self, attempt):
        """Of this attempt, or of another job: as the driver knows it."""
        return self.rng.choice((f"forged:{attempt}", f"bare:{attempt}", self.job("running", "done")[0]))

    def anyone(self):
        """The name of a worker, or a registered worker's label."""
        registered = list(self.driver.model.workers.registered)
        if registered and self.chance(0.4):
            return self.label(self.rng.choice(registered), "worker")
        return self.rng.choice(WORKERS)

    def registered(self):
        registered = list(self.driver.model.workers.registered)
        if registered and self.chance(0.93):
            return self.label(self.rng.choice(registered), "worker")
        return "worker:unknown"

    def entries(self):
        if self.chance(0.35):
            return "*"
        if self.has("webhooks", 0.3):
            return [WEBHOOKS, *self.rng.sample(ENTRIES, self.rng.randint(0, 2))]
        entries = [*ENTRIES, *self.queues_used * 6] if self.is_constrained else ENTRIES
        if self.chance(0.25):
            return self.rng.choice(entries)
        return self.some(entries, 4)

    # ---- operations ----

    def enqueue(self):
        options = None
        if self.chance(0.3):
            options = {"request": self.token()} if self.chance(0.7) else {}
        size = self.rng.choice((1, 10, 40) if self.is_crowded else (1, 1, 1, 2, 3, 5))
        jobs = [[self.new_job(), self.rng.choice(self.arguments)] for _ in range(size)]
        for before, (spec, _) in enumerate(jobs):
            self.add_more(spec, before)
            if before and self.chance(0.4):
                jobs[before][0] = dict(jobs[before - 1][0])
        return {"options": options, "jobs": jobs}

    def new_job(self):
        spec = {"name": self.rng.choice(self.names)} | self.some_of({
            "priority": (0.7, PRIORITIES), "queue": (0.3, self.queues_used),
            "tags": (0.15, [["t1"], ["t2", "t1"], ["x"]]), "max_retry": (0.4, [0, 1, 2, 2**31 - 1]),
            "keep_result": (0.5, [True, True, False]), "timeout": (0.4, [0.001, 1, 5, 60, 4000000]),
            "expires_in": (0.12, [0.001, 2, 10, 100, 10**10]),
            "retry_base": (0.1, [0, 0.25, 3]), "retry_cap": (0.1, [0, 1, 10**10]), "retry_jitter": (0.1, [0, 0.5]),
            "delay": (0.15, [0, 0.001, 1, 1.5, 20, 4000, 10**10]),
        })  # fmt: skip
        if "delay" not in spec and self.chance(0.08):
            spec["run_at"] = self.driver.model.now // 1000 + self.rng.choice((-1000, -1, 0, 1, 2.5, 500))
        return spec

    def pick(self):
        return {"worker": self.anyone(), **self.pick_spec()}

    def wake(self):
        """Somebody asleep takes the marker of his channel, if it is set, and picks."""
        channels = self.driver.model.sleepers.channels
        channels = {name: channels[name] for name in (*CHANNELS, "push") if name in channels and channels[name].up_ms}
        if not channels:
            return {"on": "all", "pick": self.pick()}
        name = self.rng.choice(list(channels))
        who = self.rng.choice(list(channels[name].up_ms))
        wait = {"on": name, "ms": self.rng.choice((1000, 60000))}
        label = self.label(who, "worker") if who.startswith("w0") else who
        if name == "push":
            return {"on": name, "assign": {"master": who, "wait": wait}}
        return {"on": name, "pick": {"worker": label, **CHANNELS[name], "wait": wait}}

    def pick_spec(self):
        fields = {"queues": self.entries()} | self.some_of({
            "count": (0.7, (1, 2, 3, 5, 5, 40, 300 if self.is_crowded else 2)),
            "order": (0.4, ("priority", "ordered")),
        })  # fmt: skip
        if self.chance(0.15):
            fields["without"] = self.rng.sample(NAMES, self.rng.choice((1, 2, 4)))
        if self.chance(0.25):
            fields["request"] = self.token()
        if self.chance(0.35):
            channel = self.rng.choice(list(CHANNELS))
            wait = {"on": channel, "ms": self.rng.choice((1, 1000, 1000, 5000, 60000))}
            fields = {name: value for name, value in fields.items() if name != "without"} | CHANNELS[channel]
            fields["wait"] = wait
        return fields

    def outcome(self, label, token):
        outcome = {"id": label, "token": token, "type": "success" if self.chance(0.6) else "failure"}
        if outcome["type"] == "failure":
            outcome |= self.some_of({
                "reason": (0.6, ["other", "timeout"]), "should_retry": (0.6, [True, True, False]),
                "message": (0.6, ["", "no such host", "é" * 50]),
            })  # fmt: skip
        return outcome

    def finish(self):
        pairs = self.attempts(5, "running")
        outcomes = [[self.outcome(*pair), self.rng.choice(ARGUMENTS)] for pair in pairs]
        for pair in outcomes:
            self.add_to_outcome(pair)
        fields = {"worker": self.anyone(), "outcomes": outcomes}
        if self.chance(0.4):
            fields["pick"] = self.pick_spec()
            if self.chance(0.1):
                fields["outcomes"] = []
        return fields

    def heartbeat(self):
        jobs = self.attempts(4, "running") if self.chance(0.9) else []
        fields = {"worker": self.anyone() if self.chance(0.95) else "worker:unknown", "jobs": jobs}
        if self.has("following", 0.5):
            self.add_notes(fields)
        if self.has("control", 0.6):
            fields["control"] = self.chance(0.8)
        return fields

    def release(self):
        fields = {"worker": self.anyone(), "jobs": self.attempts(4, "running")}
        if self.driver.model.limits.constraints and self.chance(0.3):
            fields["hold"] = self.holds_of_release()
        return fields | self.some_of({"delay": (0.4, (0, 0.5, 10)), "message": (0.15, ("", "429", "€" * 70))})

    def cancel(self):
        waiting, ended = ["queued", "scheduled", "blocked", "retrying"], ["done", "error", "cancelled", "skipped"]
        states = self.rng.choice((waiting, ["running"], ended))
        fields = {"ids": [self.job(*states)[0] for _ in range(self.rng.randint(1, 3))]}
        if self.chance(0.3):
            fields["force"] = self.rng.choice((True, False))
        return self.cancel_more(fields)

    def queue(self):
        paused = [name for name, record in self.driver.model.queues.records.items() if record["paused"]]
        if paused and self.chance(0.4):
            return {"name": self.rng.choice(paused), "paused": False}
        fields = {"name": self.rng.choice(QUEUES)} | ({"known": True} if self.chance(0.2) else {})
        if self.chance(0.6):
            fields["paused"] = self.chance(0.4)
        if self.chance(0.4):
            fields["max_waiting"] = self.rng.choice((0, 0, 1, 5, 20))
        if self.is_constrained and self.chance(0.5):
            fields = {"name": self.rng.choice(self.queues_used), "fair": self.sharing()}
        return self.own_settings() if self.has("settings", 0.5) else fields

    def register(self):
        fields = {"name": self.rng.choice(WORKERS), "queues": self.entries()}
        if self.chance(0.3):
            fields |= {"host": "h1", "pid": 77, "version": "1 é", "knows": ["a", "b"]}
        if self.chance(0.2):
            fields["refused"] = self.rng.sample(NAMES, self.rng.choice((1, 4, 5)))
        if self.chance(0.25):
            return fields | {"announce": True, "running": self.distinct(4, "running")}
        return fields | self.some_of({
            "url": (0.7, [f"http://worker-{number}:8080/x" for number in range(1, 5)]), "max_jobs": (0.7, (1, 2, 5)),
            "secrets": (0.3, [[f"whsec_{letter * 32}" for letter in letters] for letters in ("A", "b", "Cd")]),
            "key": (0.4 if "access" in self.features else 0, API_KEYS),
        })  # fmt: skip

    def workers(self):
        return {"count": self.rng.choice((1, 2, 100))}

    def assign(self):
        fields = {"master": self.rng.choice(("m1", "m2"))} | self.some_of({"limit": (0.5, (1, 2, 10))})
        if self.chance(0.25):
            fields["request"] = self.token()
        if self.chance(0.4):
            fields["wait"] = {"on": "push", "ms": self.rng.choice((1, 1000, 5000, 60000))}
        elif self.chance(0.3):
            fields["without"] = [self.registered()]
        return fields

    def refuse(self):
        fields = {"worker": self.registered(), "why": self.rng.choice(("unknown", "busy", "unreachable"))}
        id, jobs = self.driver.names.get(fields["worker"]), self.driver.model.jobs.values()
        held = [j for j in jobs if j.status == "running" and j.worker_id == id]
        fields["jobs"] = [[self.label(j.id, "job"), j.attempt] for j in held[:2]]
        if not held or self.chance(0.1):
            fields["jobs"] = self.attempts(2, "running")
        more = {"retry_after": (0.5, (0, 0.5, 3, 60)), "message": (0.15, ("", "no room", "€" * 70))}
        return fields | self.some_of(more)

    def config(self):
        names = self.rng.sample(list(self.settings), self.rng.randint(0, 3))
        unset = self.rng.sample(names, self.rng.randint(0, len(names))) if self.chance(0.3) else []
        fields = {"set": {name: self.rng.choice(self.settings[name]) for name in names if name not in unset}}
        return fields | ({"unset": unset} if unset else {})

    def moments(self):
        """When something happens by time alone."""
        model = self.driver.model
        for job in model.jobs.values():
            yield from filter(None, (job.due_ms, job.expires_ms, job.result_until_ms))
            if job.ended_ms:
                yield job.ended_ms + model.queues.kept(job.queue, job.status, "ttl") * 1000
        for worker in model.workers.registered.values():
            yield from (worker.seen_ms + model.settings["worker_ttl"] * 1000, worker.resting_until_ms)
        for until_ms, _ in model.work.requests.values():
            yield until_ms
        yield from self.opening_moments()
        yield from self.more_moments()

    def clock(self):
        delta = self.rng.choice((1, 1, 10, 100, 500, 1000, 1000, 2500, 6000, 31_000, 70_000))
        if self.is_constrained and self.chance(0.4):
            delta = self.rng.choice((1, 7, 20, 50, 51, 100, 250, 1000))
        if self.is_constrained and self.chance(0.3):
            waits = [moment - self.driver.model.now for moment in self.opening_moments()]
            return {"delta_ms": max(1, min((w for w in waits if w > 0), default=delta) - self.rng.choice((0, 1)))}
        if self.chance(0.04):
            delta = self.rng.choice((4_000_000, 90_000_000))
        elif self.chance(0.25):
            waits = [moment - self.driver.model.now for moment in self.moments()]
            waits = [wait for wait in waits if 0 < wait < 10**9]
            if waits:  # exactly when something happens, or one millisecond before
                delta = self.rng.choice((min(waits), self.rng.choice(waits))) - self.rng.choice((0, 1))
        return {"delta_ms": max(0, delta)}
