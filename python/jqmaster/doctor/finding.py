"""What the doctor tells."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Level = Literal["problem", "warning", "note", "ok"]


@dataclass(frozen=True)
class Finding:
    """`check` is a stable name; `about` the queue, constraint, … concerned; `means` and `do` are sentences.

    `problem`: jobs do not run or may be lost. `warning`: somebody should look. `note`: good to know. `ok`:
    the check found nothing.
    """

    check: str
    level: Level
    title: str
    means: str = ""
    do: str = ""
    about: str | None = None
    values: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return asdict(self)
