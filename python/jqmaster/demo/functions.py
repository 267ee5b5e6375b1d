"""What the demo's workers can do: stand-ins for the work that job queues are used for."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from jqmaster.worker.worker import JobFailed, current_job, no_renewal


async def thumbnail(argument: dict[str, Any]) -> None:
    """Quick, and nobody asks for a result."""


async def invoice(argument: dict[str, Any]) -> dict[str, Any]:
    """Gives a result that is kept."""
    return invoice_result(argument)


def invoice_result(argument: dict[str, Any]) -> dict[str, Any]:
    """What `invoice` must return for `argument`."""
    total = sum(item["price"] * item["count"] for item in argument["items"])
    seal = hashlib.sha256(f"{argument['number']}:{total}".encode()).digest()[:8]
    return {"number": argument["number"], "total": total, "seal": seal}


async def sync_account(argument: dict[str, Any]) -> None:
    """The other side is flaky: it fails until it has failed `fails` times."""
    await asyncio.sleep(0.002)
    if current_job.get().retry_count < argument["fails"]:
        raise ConnectionError(f"account {argument['account']} is away")


async def charge_card(argument: dict[str, Any]) -> None:
    """Fails for good: at once when the card is refused, else after the last retry."""
    if argument["refused"]:
        raise JobFailed("the card is refused", retry=False, error={"card": argument["card"]})
    raise TimeoutError("the bank does not answer")


@no_renewal
async def export(argument: dict[str, Any]) -> int:
    """The first attempt hangs until the job's timeout has passed."""
    if current_job.get().retry_count == 0:
        await asyncio.Event().wait()
    return int(argument["rows"])


async def reminder(argument: dict[str, Any]) -> None:
    """Starts later."""


async def report(argument: dict[str, Any]) -> None:
    """Takes its time, and no customer may have many running at once."""
    await asyncio.sleep(argument["pages"] * 0.01)


async def text_message(argument: dict[str, Any]) -> None:
    """Goes through a gateway that takes only so many in a second."""
    await asyncio.sleep(0.002)


FUNCTIONS = {
    "thumbnail": thumbnail,
    "invoice": invoice,
    "sync-account": sync_account,
    "charge-card": charge_card,
    "export": export,
    "reminder": reminder,
    "report": report,
    "text-message": text_message,
}
