"""What the parts of the model have in common."""


class Part:
    """Owns what it knows, and asks the other parts by way of the model."""

    operations = ()  # those of the engine that it checks: `model.operation` finds them

    def __init__(self, model):
        self.model = model
