"""A name as one segment of a URL's path, whatever is in it.

Browsers and many clients take `.` and `..`, percent-encoded or not, for steps within the path. So these names have
a `~` in front there, and for that those that would be mistaken for them (`~.`) one more.
"""

from __future__ import annotations

import re
from urllib.parse import quote

_DOTS = re.compile(r"~*\.\.?")


def segment(name: str) -> str:
    """As it stands in a path: `a/b` is `a%2Fb`, `..` is `~..`, `~.` is `~~.`."""
    return quote(f"~{name}" if _DOTS.fullmatch(name) else name, safe="")


def name_of(text: str) -> str:
    """The name that a segment, percent-decoded already, stands for."""
    return text[1:] if text.startswith("~") and _DOTS.fullmatch(text) else text
