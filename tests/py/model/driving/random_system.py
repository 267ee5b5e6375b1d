"""Random operations for a system of partitions, and for one of them where the system has no such operation."""

from driving.random_jobs import WEIGHTS, Generator
from driving.random_limits import WEIGHTS as CONSTRAINT_WEIGHTS

# What is asked of one partition, by its namespace.
OF_ONE = ("pick", "finish", "heartbeat", "release", "assign", "slots", "refuse", "register", "unregister", "worker",
          "wake", "take_over", "tick", "kick")  # fmt: skip
BOUNDS = ("queues_max", "names_max", "tags_max", "keys_max", "all_keys_max")
# How often each comes, as in random_jobs.
MAIL = {"outbox": (14, 14, 14), "deliver": (20, 20, 20), "carry": (2, 2, 2), "direct": (12, 20, 16)}

LIMITS = {"constrain": (3, 3, 3), "unconstrain": (0.5, 0.5, 0.5), "hold": (1, 1, 1), "constraints": (1, 1, 1),
          "usage": (1, 1, 1), "balance": (9, 9, 9)}  # fmt: skip


class PartitionGenerator(Generator):
    """Of one partition: nothing that has to be alike in all, or belongs to another."""

    refuses, policies = False, ("wait", "fail", "run")  # systems are to go, and learn nothing new

    def __init__(self, seed, driver):
        super().__init__(seed, driver)
        self.weights = {script: weight for script, weight in self.weights.items() if script in OF_ONE}
        self.is_constrained = False


class SystemGenerator(Generator):
    refuses, policies = False, ("wait", "fail", "run")

    def __init__(self, seed, driver):
        super().__init__(seed, driver)
        self.is_constrained = self.is_crowded = False
        # Bounds and shared limits are each partition's own: module test_balance has them.
        self.features -= {"bounds", "versions"}
        self.settings = {name: values for name, values in self.settings.items() if name not in BOUNDS}
        if self.chance(0.8) and "depends" not in self.features:  # what most mail comes of
            self.features.add("depends")
            self.weights["depend"] = (3, 3, 3)
        left_out = {"assign", "slots", "refuse", "wake", "system", "meet", "take_over", *CONSTRAINT_WEIGHTS} - {"queue"}
        left_out |= self.plain_weights(*WEIGHTS).keys()
        self.most, self.likes_costs = 2, False
        self.weights = {script: weight for script, weight in self.weights.items() if script not in left_out}
        self.weights |= MAIL | {"explain": (3, 3, 3)}
        if self.chance(0.4):
            self.weights |= LIMITS
        self.of_one = [one.generator(f"{seed} {one.number}") for one in driver.partitions]

    def direct(self):
        number = self.rng.randrange(len(self.of_one))
        generator = self.of_one[number]
        generator.count, generator.features = self.count, self.features
        script, fields, _ = generator.next()
        return {"partition": number, "script": script, "fields": fields}

    # ---- mail ----

    def outbox(self):
        """Letters are taken from a partition, with some of the answers to earlier ones."""
        fields = {"partition": self.partition(), "keep": self.chance(0.2), "answers": self.rng.choice((0, 1, 100))}
        if self.chance(0.2):
            fields["count"] = self.rng.choice((1, 2, 5))
        if self.chance(0.1):
            fields["except"] = [self.partition()]
        return fields

    def deliver(self):
        """Some letters are brought: in any order, some lost, some twice."""
        places = [self.rng.randrange(1000) for _ in range(self.rng.choice((1, 1, 2, 5)))]
        return {"places": places, "fate": self.rng.choice(("brought", "brought", "brought", "twice", "lost"))}

    def carry(self):
        return {}

    def partition(self):
        return self.rng.randrange(len(self.driver.partitions))

    # ---- limits ----

    def constrain(self):
        """What partitions can share."""
        fields = super().constrain()
        for field in ("by", "cost", "order", "shared", "expires_in"):
            fields.pop(field, None)
        fields.get("rate", {}).pop("smooth", None)
        return fields

    def balance(self):
        return {"who": self.rng.randrange(2)}

    # ---- what differs over a system ----

    def worker(self):
        return self.rng.choice(("w1", "w2", "rakuten-host:1"))

    def enqueue(self):
        fields = super().enqueue()
        if fields["options"]:
            fields["options"].pop("generation", None)
        return fields

    def pick_spec(self):
        return {name: value for name, value in super().pick_spec().items() if name != "wait"}

    def register(self):
        fields = super().register()
        kept = ("name", "queues", "host", "pid", "version", "knows", "max_jobs")
        fields = {name: value for name, value in fields.items() if name in kept}
        return {**fields, "announce": True, "running": self.distinct(4, "running")}
