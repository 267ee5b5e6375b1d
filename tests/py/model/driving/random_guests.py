"""Random workers of other partitions, and jobs of others that have slots here."""


class GuestGenerator:
    def guests(self):
        """What `assign` is told of them."""
        if self.chance(0.85):
            return {}
        return {"guests": [self.guest_pool(number) for number in range(self.rng.choice((0, 1, 1, 2)))]}

    def guest_pool(self, number):
        """Workers that another partition has."""
        most = self.rng.choice((1, 2, 10))
        names = ["a"] if self.chance(0.1) else []
        return [self.entries(), names, [[f"guest {number}", self.rng.randint(1, most), most]]]

    def slots(self):
        """For jobs of another partition."""
        if self.chance(0.1):
            return {"worker": self.registered()}
        tokens = [f"{attempt}-{digit * 12}" for attempt in (1, 2) for digit in "0f"]
        choices = (self.rng.choice(tokens), self.rng.choice((0, 1, 500, 1000, 30000, 10**6)))
        ids = [f"{self.rng.randint(1, 6):014x}07" for _ in range(self.rng.choice((0, 1, 1, 3)))]
        jobs = [[self.registered(), job, *choices] for job in ids]
        return {"jobs": jobs, **({"limit": self.rng.choice((0, 1, 100))} if self.chance(0.5) else {})}
