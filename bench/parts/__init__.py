"""One module per part of the bench; each has ``run(options) -> dict`` and ``table(result) -> str``."""
