"""The table of replies in docs/protocol.md, beside what the built scripts can say."""

import re
from pathlib import Path

from jqmaster.bundle.built import builtin

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "protocol.md").read_text()
# INVALID and VERSION are all scripts' to say.
CODES = re.compile(r"\b(NOTFOUND|CONFLICT|LOST|FULL|CANCELLED)\b")


def test_each_operation_stands_there_with_its_kind_and_its_codes() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*) \|$", PAGE.split("\n## 19. ")[1].split("\n## ")[0], re.M)
    told = {name: (kind, set(CODES.findall(rest))) for name, kind, rest in rows}
    built = {name: (script.flags, set(CODES.findall(script.source))) for name, script in builtin().items()}
    assert told == built
