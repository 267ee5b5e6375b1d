"""What the parts of the model have in common."""


class Part:
    """Owns what it knows. Where another part is asked, it is called by its name: `self.life` is the model's."""

    def __init__(self, model):
        self.model = model

    def meet(self, parts, engine):
        """All parts are there."""
        self.engine = engine
        for name, part in parts.items():
            if part is not self and not hasattr(type(self), name):
                setattr(self, name, part)

    @property
    def now(self):
        return self.model.now

    @property
    def jobs(self):
        return self.model.jobs

    @property
    def settings(self):
        return self.model.settings
