"""What workers ask for: which queues, in which order, without which names; and how they sleep and wake."""

NAMES = ["a", "b", "mail.jp", "mail.de", "a b é"]
PRIORITIES = [0] * 8 + [1, 1, -1, -5, 7, 2**31 - 1, -(2**31)]
CHANNELS = {
    "all": {"queues": "*"}, "mail": {"queues": "mail.*"}, "a": {"queues": "a"}, "two": {"queues": ["mail.jp", "b"]},
    "some": {"queues": "*", "without": ["a", "mail.de"]}, "one": {"queues": "b", "without": ["b"]},
}  # fmt: skip


class PickGenerator:
    """Needs what random_jobs.Generator has."""

    refuses = True
    policies = ("wait", "fail", "run", "only", "only")  # of `if_failed`

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
            "order": (0.4, ("priority", "ordered", "round_robin")),
        })  # fmt: skip
        if self.refuses and self.chance(0.15):
            fields["without"] = self.rng.sample(NAMES, self.rng.choice((1, 2, 4)))
        if self.chance(0.25):
            fields["request"] = self.token()
        if self.chance(0.35):
            channel = self.rng.choice([name for name in CHANNELS if self.refuses or "without" not in CHANNELS[name]])
            wait = {"on": channel, "ms": self.rng.choice((1, 1000, 1000, 5000, 60000))}
            fields = {name: value for name, value in fields.items() if name != "without"} | CHANNELS[channel]
            fields["wait"] = wait
        return fields
