"""What the demo sends, and what must become of each job."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

RETRY = {"retry_base": 0.2, "retry_cap": 2}
FLOODING = "globex"  # the customer that sends more than its share
OTHERS = tuple(f"customer-{number}" for number in range(1, 13))
LEASE_S = 10  # so that what a killed worker held comes back soon, however it is found out
SMALLEST_FLOOD = 40


@dataclass
class Sent:
    """A job: what is sent, and what is expected of it."""

    spec: dict[str, Any]
    ends: str = "done"
    failures: int = 0  # more only where a worker was killed
    result: Any = None
    id: str = ""

    @property
    def kind(self) -> str:
        return str(self.spec["name"])

    @property
    def customer(self) -> str | None:
        """Whose report it is."""
        customer: str | None = self.spec["argument"].get("customer")
        return customer


def invoice_result(argument: dict[str, Any]) -> dict[str, Any]:
    """What the job `invoice` must return for `argument`."""
    total = sum(item["price"] * item["count"] for item in argument["items"])
    seal = hashlib.sha256(f"{argument['number']}:{total}".encode()).digest()[:8]
    return {"number": argument["number"], "total": total, "seal": seal}


def make_plan(jobs: int, seed: int = 1) -> list[Sent]:
    """About `jobs` jobs, the limited ones first, the others in random order; the same for the same seed."""
    dice = random.Random(seed)
    limited = list(_limited(jobs, dice))
    usual = [_usual(number, dice) for number in range(jobs - len(limited))]
    return limited + usual


def _job(name: str, argument: dict[str, Any], **options: Any) -> dict[str, Any]:
    return {"name": name, "argument": argument, "timeout": LEASE_S, **options}


def _limited(jobs: int, dice: random.Random) -> Iterator[Sent]:
    """Reports, urgent, so that nothing but their limit makes them wait. Of a hundred jobs ten."""
    flood = max(SMALLEST_FLOOD, jobs * 7 // 100)
    for customer in [FLOODING] * flood + [OTHERS[number % len(OTHERS)] for number in range(jobs * 3 // 100)]:
        yield Sent(_job("report", {"customer": customer, "pages": dice.randint(10, 20)}, priority=-30))


def _usual(number: int, dice: random.Random) -> Sent:
    kind = dice.choices(("thumbnail", "invoice", "flaky", "charge", "later", "cancelled"), (40, 28, 17, 7, 7, 1))[0]
    match kind:
        case "invoice":
            items = [{"price": dice.randint(1, 9999), "count": dice.randint(1, 9)} for _ in range(dice.randint(1, 4))]
            argument = {"number": number, "items": items}
            return Sent(_job("invoice", argument, keep_result=True, priority=-10), result=invoice_result(argument))
        case "flaky":
            fails = dice.choice((0, 0, 1, 1, 2, 3))
            return Sent(_job("sync-account", {"account": number, "fails": fails}, **RETRY), failures=fails)
        case "charge":
            argument = {"card": number, "refused": dice.random() < 0.5}
            spec = _job("charge-card", argument, max_retry=2, **RETRY)
            return Sent(spec, ends="error", failures=1 if argument["refused"] else 3)
        case "later":
            return Sent(_job("reminder", {"text": f"no. {number}"}, delay=round(dice.uniform(1, 8), 3)))
        case "cancelled":
            return Sent(_job("reminder", {"text": f"never mind {number}"}, delay=3600), ends="cancelled")
        case _:
            argument = {"image": dice.randbytes(40), "width": dice.choice((64, 128, 256))}
            return Sent(_job("thumbnail", argument, priority=dice.choice((-5, 0, 0, 0, 5, 20))))
