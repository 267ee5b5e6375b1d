"""The pictures of docs/: each is what its text makes, and can be read, on a light and on a dark page."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser

from ui_support import browser  # noqa: F401 - a fixture

ROOT = Path(__file__).resolve().parents[3]
SOURCES = sorted((ROOT / "docs" / "pictures").glob("*.txt"))
drawn = runpy.run_path(str(ROOT / "tools" / "pictures.py"))["drawn"]

# What is where, as the browser has it: boxes with a text of their own, texts, points every few pixels of arrows.
LOOK = """() => {
  const svg = document.documentElement
  const rect = e => { const {x, y, width, height} = e.getBBox(); return [x, y, x + width, y + height] }
  const fill = e => getComputedStyle(e).fill
  const named = e => e.nextElementSibling?.classList.contains('title')
  const way = e => Array.from({length: e.getTotalLength() / 2}, (_, n) => e.getPointAtLength(2 * n + 1))
  return {
    size: [0, 0, svg.viewBox.baseVal.width, svg.viewBox.baseVal.height],
    paper: fill(svg.querySelector('.paper')),
    boxes: [...svg.querySelectorAll('rect.box')].map(e => ({at: rect(e), fill: fill(e), named: named(e)})),
    texts: [...svg.querySelectorAll('text')].map(e => ({at: rect(e), fill: fill(e), text: e.textContent})),
    arrows: [...svg.querySelectorAll('path.way')].map(e => way(e).map(p => [p.x, p.y])),
  }
}"""
Rect = list[float]


def inside(inner: Rect, outer: Rect, margin: float = 0) -> bool:
    return all(a - b >= margin for a, b in zip(inner[:2], outer[:2], strict=True)) and all(
        b - a >= margin for a, b in zip(inner[2:], outer[2:], strict=True)
    )


def meets(a: Rect, b: Rect) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    r, g, b = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: str, other: str) -> float:
    least, most = sorted((luminance(one), luminance(other)))
    return (most + 0.05) / (least + 0.05)


def faults(seen: dict[str, Any]) -> list[str]:
    found = []
    for at, text in enumerate(seen["texts"]):
        name, place = text["text"], text["at"]
        if not inside(place, seen["size"], 4):
            found.append(f"{name!r} is cut by the edge")
        ground = seen["paper"]
        for box in seen["boxes"]:
            if inside(place, box["at"], 3):
                ground = box["fill"] if box["fill"] != "none" else ground
            elif meets(place, box["at"]):
                found.append(f"{name!r} does not fit its box, or lies on the edge of one")
        if contrast(text["fill"], ground) < 4.5:
            found.append(f"{name!r} can hardly be seen")
        found += [f"{name!r} lies on {o['text']!r}" for o in seen["texts"][:at] if meets(place, o["at"])]
        if any(inside([x, y, x, y], place, 1) for arrow in seen["arrows"] for x, y in arrow):
            found.append(f"an arrow goes through {name!r}")
    for box in seen["boxes"]:
        through = any(inside([x, y, x, y], box["at"], 3) for arrow in seen["arrows"] for x, y in arrow)
        if box["named"] and through:
            found.append(f"an arrow goes through the box at {box['at'][:2]}")
    return found


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_picture_is_what_its_text_makes(source: Path) -> None:
    """`python tools/pictures.py` draws them anew."""
    assert source.with_suffix(".svg").read_text() == drawn(source.read_text())


UNREADABLE = """
size 200 100: What must not be
box narrow 10 10 40 40: wider than its box
box through 80 10 40 40: x
arrow 60,45 150,45
text 70 80: on each
text 90 82: other
text 160 80: cut by the edge
arrow 60,76 100,76
"""


def test_what_cannot_be_read_is_found(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "bad.svg"
    path.write_text(drawn(UNREADABLE))
    page = browser.new_page()
    page.goto(path.as_uri())
    found = "\n".join(faults(page.evaluate(LOOK)))
    page.close()
    for what in (
        "cut by the edge",
        "not fit its box",
        "'other' lies on 'on each'",
        "through 'on each'",
        "through the box",
    ):
        assert what in found, found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_picture_can_be_read(browser: Browser, source: Path, scheme: Literal["light", "dark"]) -> None:
    page = browser.new_page(color_scheme=scheme)
    page.goto(source.with_suffix(".svg").as_uri())
    seen = page.evaluate(LOOK)
    page.close()
    assert (luminance(seen["paper"]) > 0.5) == (scheme == "light")
    assert faults(seen) == []


def test_every_picture_is_on_a_page() -> None:
    pages = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    assert [path.stem for path in SOURCES if f"(pictures/{path.stem}.svg)" not in pages] == []
