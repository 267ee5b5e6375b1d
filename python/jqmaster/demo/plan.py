"""What the demo sends, and what must become of each job."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from jqmaster.demo.functions import invoice_result

RETRY = {"retry_base": 0.2, "retry_cap": 2}
FLOODING = "globex"  # the customer that sends more than its share
OTHERS = tuple(f"customer-{number}" for number in range(1, 13))
LEASE_S = 10  # so that what a killed worker held comes back soon, however it is found out


@dataclass
class Sent:
    """One job: what is sent, and what is expected of it."""

    kind: str
    spec: dict[str, Any]
    ends: str = "done"
    retries: int = 0  # failures it must have had; more only where a worker was killed
    hangs: int = 0  # attempts that never report
    reason: str | None = None
    result: Any = None
    delay_s: float = 0.0
    at_once: bool = False  # sent before all else, in one go
    id: str = ""

    @property
    def keeps_result(self) -> bool:
        return bool(self.spec.get("keep_result"))

    @property
    def customer(self) -> str | None:
        """Whose report it is."""
        return self.spec["argument"]["customer"] if self.kind == "report" else None


def _thumbnail(number: int, dice: random.Random) -> Sent:
    argument = {"image": dice.randbytes(40), "width": dice.choice((64, 128, 256))}
    return Sent("thumbnail", {"argument": argument, "priority": dice.choice((-5, 0, 0, 0, 5, 20))})


def _invoice(number: int, dice: random.Random) -> Sent:
    items = [{"price": dice.randint(1, 9999), "count": dice.randint(1, 9)} for _ in range(dice.randint(1, 4))]
    argument = {"number": number, "items": items}
    spec = {"argument": argument, "keep_result": True, "priority": dice.choice((-20, -10, 0))}
    return Sent("invoice", spec, result=invoice_result(argument))


def _sync_account(number: int, dice: random.Random) -> Sent:
    fails = dice.choice((0, 0, 1, 1, 2, 3))
    return Sent("sync-account", {"argument": {"account": number, "fails": fails}, **RETRY}, retries=fails)


def _charge_card(number: int, dice: random.Random) -> Sent:
    refused = dice.random() < 0.5
    argument = {"card": number, "refused": refused}
    spec = {"argument": argument, "max_retry": 2, **RETRY}
    return Sent("charge-card", spec, ends="error", retries=1 if refused else 3, reason="other")


def _export(number: int, dice: random.Random) -> Sent:
    spec = {"argument": {"rows": number}, "keep_result": True, "timeout": 1.5, **RETRY}
    return Sent("export", spec, retries=1, hangs=1, reason="timeout", result=number)


def _reminder(number: int, dice: random.Random) -> Sent:
    delay_s = round(dice.uniform(1, 8), 3)
    return Sent("reminder", {"argument": {"text": f"no. {number}"}, "delay": delay_s}, delay_s=delay_s)


def _forgotten(number: int, dice: random.Random) -> Sent:
    return Sent("reminder", {"argument": {"text": f"never mind {number}"}, "delay": 3600}, ends="cancelled")


def _report(customer: str, dice: random.Random) -> Sent:
    # Urgent, so that nothing but its limit makes it wait.
    spec = {"argument": {"customer": customer, "pages": dice.randint(10, 20)}, "priority": -30}
    return Sent("report", spec, at_once=customer == FLOODING)


def _flood_report(number: int, dice: random.Random) -> Sent:
    return _report(FLOODING, dice)


def _other_report(number: int, dice: random.Random) -> Sent:
    return _report(OTHERS[number % len(OTHERS)], dice)


def _text_message(number: int, dice: random.Random) -> Sent:
    spec = {"argument": {"to": number, "text": "your parcel is on its way"}, "priority": -30}
    return Sent("text-message", spec, at_once=True)


# Of a hundred jobs; exports hang on to their workers' slots, so there are few. A flood is never small.
_FLOOD = 40
_SHARES = {_thumbnail: 36, _invoice: 25, _sync_account: 15, _charge_card: 6, _reminder: 6, _export: 1, _forgotten: 1}
_SHARES |= {_flood_report: 6, _other_report: 2, _text_message: 2}


def make_plan(jobs: int, seed: int = 1) -> list[Sent]:
    """About `jobs` jobs in random order; the same for the same seed."""
    dice = random.Random(seed)
    plan = []
    for make, share in _SHARES.items():
        least = _FLOOD if make is _flood_report else 1
        plan += [make(number, dice) for number in range(max(least, round(jobs * share / 100)))]
    for sent in plan:
        sent.spec = {"name": sent.kind, "timeout": LEASE_S, **sent.spec}
    dice.shuffle(plan)
    return plan
