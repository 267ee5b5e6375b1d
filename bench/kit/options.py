"""What a run of the bench was asked for."""

from dataclasses import dataclass, field


@dataclass
class Options:
    quick: bool = False
    rounds: int = 5
    peers: bool = True
    form: str = "functions"
    """how operations are called: functions, or scripts"""
    targets: bool = False
    """only what a target is about"""
    rows: list[str] = field(default_factory=list)
    """of a part that can leave rows out; empty is all"""

    def scaled(self, count: int, quick: int, targets: int | None = None) -> int:
        """``targets``: what is enough for these."""
        return quick if self.quick else targets if self.targets and targets else count
