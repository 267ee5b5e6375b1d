"""Operations of which nothing is said but what their heads say, and here from what to choose each argument."""

from driving.random_limits import IDS
from driving.random_more import API_KEYS, FEATURES, SCHEDULES, STATES, UNIQUE, WEBHOOK_IDS
from jqmaster.manifest.manifest import operations

# By argument, or by operation and argument: values, or what gives one.
VALUES = {
    "queue": lambda it: it.rng.choice(it.queues_used), "name": lambda it: it.rng.choice(it.names),
    "worker": lambda it: it.anyone(), "where": lambda it: it.where(), "delay": (0, 0.5, 10),
    "from_ms": lambda it: it.moment_ms(0, 0.5, 60_000, 4_000_000),
    "to_ms": lambda it: it.moment_ms(-1, 0, 0.5, 3_600_000),
    "free.unique": UNIQUE,
    "forget.name": lambda it: it.known(it.driver.model.queues.records), "revoke.id": API_KEYS,
    "touch.ids": lambda it: it.rng.sample(API_KEYS, it.rng.randint(1, 2)),
    "unsubscribe.id": WEBHOOK_IDS,
    "unconstrain.id": lambda it: it.constraint_id(), "usage.id": lambda it: it.constraint_id(),
    "usage.prefix": ("x", "1", "a", "2"), "constraints.ids": lambda it: it.rng.sample([*IDS, "unknown"], 2),
    "queues.names": lambda it: it.some([*it.queues_used, "nowhere"], 3),
    "unregister.worker": lambda it: it.registered(), "worker.worker": lambda it: it.registered(),
    "schedules.ids": lambda it: it.rng.sample([*SCHEDULES, "unknown"], 2),
    "unschedule.id": lambda it: it.known(it.driver.model.schedules.defined),
}  # fmt: skip
# Where arguments exclude each other: the first of one of these, perhaps with others of it.
WAYS = {
    "retry": ("ids queue", "where count queue"), "discard": ("ids", "where count"), "tags": ("count",),
    "constraints": ("ids", "count"), "queues": ("names", "count"),
    "schedules": ("ids next runs", "count next runs"), "jobs": ("where newest brief count",),
    "stats": ("by queue name from_ms to_ms series brief",),
    "kick": ("ids delay", "where count delay"),
}  # fmt: skip
# Of jobs that are named: in which states most of them should be.
FITTING = {
    "retry": ("error", "cancelled", "skipped", "retrying"), "discard": ("error", "cancelled", "done", "queued"),
    "kick": ("running",), "history": ("running", "done", "error", "retrying"), "result": ("done",),
    "explain": ("queued", "scheduled", "retrying"),
    "get": ("running", "done", "error"), "watch": ("queued", "running"),
}  # fmt: skip


class PlainGenerator:
    """Needs what random_jobs.Generator has."""

    def plain_weights(self, *named):
        """Of each whose arguments can be made up, beside those that are named elsewhere."""
        named = {*named, *(script for weights in FEATURES.values() for script in weights)}
        made = {
            script
            for script, one in operations().items()
            if one.positions in (("spec",), ("id",))
            and one.routes
            and all(self.value(script, argument) for argument in one.arguments if not argument.optional)
        } - named
        known = self.driver.model.operations.keys()
        made = {script for script in made if {script, "list_" + script} & known}
        return {script: [0.5, 0.5, 0.5] for script in sorted(made & set(self.driver.scripts))}

    def plain(self, script):
        arguments = {one.name: one for one in operations()[script].arguments}
        needed = [name for name, one in arguments.items() if not one.optional]
        if script in WAYS:
            # What is ended page by page may be told of, and the notifications taken with a later page.
            ways = [way.split() for way in WAYS[script] if not ("webhooks" in self.features and "where c" in way)]
            way = self.rng.choice(ways)
            needed, arguments = way[:1], {name: arguments[name] for name in way}
        values = {
            name: self.value(script, one)
            for name, one in arguments.items()
            if name in needed or (name not in ("cursor", "actor") and self.chance(0.4))
        }
        return {name: value for name, value in values.items() if value is not None}

    def value(self, script, argument):
        """One for an argument; None where nothing is known of it."""
        called = "queue" if argument.type == "queue" else argument.name
        known = VALUES.get(f"{script}.{argument.name}", VALUES.get(called))
        if known is not None:
            return known(self) if callable(known) else self.rng.choice(known)
        if argument.of.words:
            return self.rng.choice(argument.of.words)
        if argument.type == "integer":
            return self.rng.choice([one for one in (0, 1, 2, 5, 20, 100) if argument.least <= one <= argument.most])
        if argument.type == "flag":
            return self.chance(0.7)
        if argument.type == "job":
            return self.job(*FITTING.get(script, STATES))[0]
        return self.distinct(3, *FITTING.get(script, STATES)) if argument.type == "list<job>" else None

    def known(self, names):
        """One of these, mostly."""
        return self.rng.choice(list(names)) if names and self.chance(0.9) else "unknown"

    def moment_ms(self, *ago_ms):
        return self.driver.model.now - self.rng.choice(ago_ms)
