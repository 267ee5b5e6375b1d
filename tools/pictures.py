"""Draws docs/pictures/*.txt: each becomes an SVG beside it, which is light or dark as its reader is.

    python tools/pictures.py

A picture is a list of lines; what stands behind a colon is text, with `|` between its lines.

    size 640 300: what the picture shows, for those who do not see it
    box NAME X Y WIDTH HEIGHT [look …]: text
    arrow POINT POINT … [look …]
    text X Y [look …]: text

A point is `x,y` or a place on a box's edge: `name.right`, or `name.top+20` for 20 beside its middle. Looks of a
box: `good`, `bad`, `busy`, `quiet` (colours), `open` (no fill). Of an arrow: `dashed`, `plain` (without a head),
`bad`. Of a text: `middle`, `end` (where x is), `strong`, `code`, `bad`.
"""

import re
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
LINE = 17  # from one line of text to the next
STYLE = """
svg { --ink: #1f2328; --dim: #59636e; --line: #818b98; --paper: #ffffff; --box: #f6f8fa;
  --good: #dafbe1; --bad: #ffebe9; --busy: #ddf4ff; --quiet: #fff8c5; --alarm: #c1121f }
@media (prefers-color-scheme: dark) { svg { --ink: #f0f6fc; --dim: #9198a1; --line: #656c76;
  --paper: #0d1117; --box: #161b22; --good: #12361f; --bad: #4a1518; --busy: #0c2d4d; --quiet: #3b2f0a;
  --alarm: #ff7b72 } }
.paper { fill: var(--paper) } rect.box { fill: var(--box); stroke: var(--line) }
rect.good { fill: var(--good) } rect.bad { fill: var(--bad) } rect.busy { fill: var(--busy) }
rect.quiet { fill: var(--quiet) } rect.open { fill: none; stroke-dasharray: 4 4 }
path { fill: none; stroke: var(--dim); stroke-width: 1.5 } path.dashed { stroke-dasharray: 5 4 }
path.bad { stroke: var(--alarm) } marker path { fill: var(--dim); stroke: none }
text { font: 13px system-ui, sans-serif; fill: var(--dim) }
text.title, text.strong { fill: var(--ink); font-weight: 600 } text.bad { fill: var(--alarm) }
text.code { font-family: ui-monospace, monospace; font-size: 12px; fill: var(--ink) }
.middle { text-anchor: middle } .end { text-anchor: end }
"""

Point = tuple[float, float]


@dataclass
class Box:
    x: float
    y: float
    width: float
    height: float

    def edge(self, side: str, shift: float) -> Point:
        """A place on an edge, so far from its middle."""
        x, y = self.x + self.width / 2, self.y + self.height / 2
        at = {"left": self.x, "right": self.x + self.width, "top": self.y, "bottom": self.y + self.height}[side]
        return (at, y + shift) if side in ("left", "right") else (x + shift, at)


@dataclass
class Picture:
    about: str = ""
    size: tuple[int, int] = (0, 0)
    boxes: dict[str, Box] = field(default_factory=dict)
    drawn: list[str] = field(default_factory=list)

    def read(self, line: str) -> None:
        shape, _, text = line.partition(": ")
        kind, *words = shape.split()
        if kind == "size":
            self.about, self.size = text, (int(words[0]), int(words[1]))
        elif kind == "box":
            name, *rest = words
            box = self.boxes[name] = Box(*map(float, rest[:4]))
            self.box(box, " ".join(rest[4:]), text.split("|") if text else [])
        elif kind == "arrow":
            points = [word for word in words if "," in word or "." in word]
            self.arrow([self.point(word) for word in points], [word for word in words if word not in points])
        elif kind == "text":
            self.text(float(words[0]), float(words[1]), " ".join(words[2:]), text.split("|"))
        else:
            raise ValueError(f"what is this: {line}")

    def point(self, word: str) -> Point:
        if "," in word:
            x, y = map(float, word.split(","))
            return x, y
        place = re.fullmatch(r"(\w+)\.(\w+?)([+-]\d+)?", word)
        if not place:
            raise ValueError(f"no point: {word}")
        return self.boxes[place[1]].edge(place[2], float(place[3] or 0))

    def box(self, box: Box, looks: str, lines: list[str]) -> None:
        size = f'x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}"'
        self.drawn.append(f'<rect class="{f"box {looks}".strip()}" {size} rx="6"/>')
        x, top = box.x + box.width / 2, box.y + box.height / 2 - LINE * (len(lines) - 1) / 2 + 4.5
        for at, line in enumerate(lines):
            self.text(x, top + LINE * at, "middle" if at else "title middle", [line.strip()])

    def arrow(self, points: list[Point], looks: list[str]) -> None:
        way = "M" + " L".join(f"{x:g} {y:g}" for x, y in points)
        head = "" if "plain" in looks else ' marker-end="url(#head)"'
        self.drawn.append(f'<path class="{" ".join(["way", *looks])}" d="{way}"{head}/>')

    def text(self, x: float, y: float, looks: str, lines: list[str]) -> None:
        for at, line in enumerate(lines):
            place = f'x="{x:g}" y="{y + LINE * at:g}"'
            self.drawn.append(f'<text class="{looks}" {place}>{escape(line.strip(), quote=False)}</text>')

    def svg(self) -> str:
        width, height = self.size
        head = '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
                f"<title>{escape(self.about, quote=False)}</title>",
                f"<style>{STYLE}</style>",
                f'<defs>{head}<path d="M0 0 L8 4 L0 8 Z"/></marker></defs>',
                f'<rect class="paper" width="{width}" height="{height}" rx="8"/>',
                *self.drawn,
                "</svg>\n",
            ]
        )


def drawn(source: str) -> str:
    picture = Picture()
    for line in source.splitlines():
        if line.strip() and not line.startswith("#"):
            picture.read(line.strip())
    return picture.svg()


if __name__ == "__main__":
    for source in sorted(PICTURES.glob("*.txt")):
        source.with_suffix(".svg").write_text(drawn(source.read_text()))
