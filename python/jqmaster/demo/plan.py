"""What the demo sends, and what must become of each job."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

FLOODING = "globex"  # the customer that sends more than its share
OTHERS = tuple(f"customer-{number}" for number in range(1, 13))


@dataclass
class Sent:
    """A job: what is sent, and what is expected of it."""

    name: str
    argument: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    ends: str = "done"
    failures: int = 0  # more only where a worker was killed
    result: Any = None
    id: str = ""


def make_plan(jobs: int) -> list[Sent]:
    """About so many jobs, the same each time: the limited ones first, the others in random order."""
    dice = random.Random(1)
    limited = list(_limited(jobs, dice))
    return limited + [_usual(number, dice) for number in range(jobs - len(limited))]


def _limited(jobs: int, dice: random.Random) -> Iterator[Sent]:
    """Reports, urgent, so that nothing but their limit makes them wait. Of a hundred jobs ten."""
    flood = max(40, jobs * 7 // 100)
    for customer in [FLOODING] * flood + [OTHERS[number % len(OTHERS)] for number in range(jobs * 3 // 100)]:
        yield Sent("report", {"customer": customer, "pages": dice.randint(10, 20)})


def _usual(number: int, dice: random.Random) -> Sent:
    match dice.choices(("thumbnail", "invoice", "flaky", "charge", "later", "cancelled"), (40, 28, 17, 7, 7, 1))[0]:
        case "invoice":
            prices = [dice.randint(1, 9999) for _ in range(dice.randint(1, 4))]
            seal = hashlib.sha256(f"{number}:{sum(prices)}".encode()).hexdigest()
            return Sent("invoice", {"number": number, "prices": prices}, {"priority": -10}, result=seal)
        case "flaky":
            fails = dice.choice((0, 0, 1, 1, 2, 3))
            return Sent("sync_account", {"fails": fails}, failures=fails)
        case "charge":
            refused = dice.random() < 0.5
            return Sent("charge_card", {"refused": refused}, ends="error", failures=1 if refused else 3)
        case "later":
            return Sent("reminder", {}, {"delay": round(dice.uniform(1, 8), 3)})
        case "cancelled":
            return Sent("reminder", {}, {"delay": 3600}, ends="cancelled")
        case _:
            return Sent("thumbnail", {"width": dice.choice((64, 128, 256))}, {"priority": dice.choice((-5, 0, 5, 20))})
