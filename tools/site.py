"""Writes build/site/html: the pages as a site with search. Each page stays where it is; what pages link to beside each
other, such as tests and examples, becomes a page that shows it. A link that leads nowhere fails."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CODE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<=\]\()([^)\s:#]+)(#[^)\s]*)?(?=\))")
LANGUAGES = {".py": "python", ".js": "javascript", ".sh": "sh", ".json": "json", ".md": "markdown", ".lua": "lua"}
UNSEEN = "---\nsearch:\n  exclude: true\n---\n\n"
LONGEST = 60_000  # of a file that is shown, in characters


def pages() -> list[Path]:
    """Those that are written as pages, from the root on."""
    more = (ROOT / "bench" / "README.md", ROOT / "tests" / "protocol" / "README.md")
    every = (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *more)
    return sorted(path.relative_to(ROOT) for path in every)


def place(path: Path) -> Path:
    """Where something of the checkout is among the site's pages. Raises ValueError if there is no such thing."""
    if path == Path("README.md"):
        return Path("index.md")
    if path in pages() or path.suffix == ".svg":
        return path
    if (ROOT / path).is_dir():
        return path / "README.md" if path / "README.md" in pages() else path / "index.md"
    if (ROOT / path).is_file():
        return path.with_name(path.name + ".md")
    raise ValueError(f"{path} is not there")


def linked(text: str, of: Path) -> Iterator[tuple[re.Match[str], Path]]:
    """The links of a page to what is in the checkout, but for those in code."""
    shown = CODE.sub(lambda block: " " * len(block[0]), text)
    for link in LINK.finditer(shown):
        yield link, Path(os.path.normpath(of.parent / link[1]))


def with_places(text: str, of: Path) -> tuple[str, set[Path]]:
    """The page with links to where things are on the site; and what it links to."""
    parts, end, found = [], 0, set()
    for link, to in linked(text, of):
        there = os.path.relpath(place(to), place(of).parent)
        parts += [text[end : link.start()], there + (link[2] or "")]
        end = link.end()
        found.add(to)
    return "".join([*parts, text[end:]]), found


def with_lists(text: str) -> str:
    """As Python's Markdown reads lists: behind an empty line, and what belongs to an item four columns in."""
    lines: list[str] = []
    in_code = in_item = False
    for line in text.splitlines():
        is_item = re.match(r"(-|\d+\.) ", line) is not None
        if is_item and not in_code and lines and re.match(r"[^\s#<|-]", lines[-1]) and not in_list(lines):
            lines.append("")
        if line and not line.startswith(" "):
            in_item = line[0].isdigit() and is_item
        in_code ^= line.lstrip().startswith("```")
        lines.append(f" {line}" if in_item and line.startswith("   ") else line)
    return "\n".join(lines) + "\n"


def in_list(lines: list[str]) -> bool:
    """Whether the last paragraph began as an item."""
    paragraph = "\n".join(lines).rpartition("\n\n")[2]
    return re.search(r"^(-|\d+\.) ", paragraph, re.MULTILINE) is not None


def shown(path: Path) -> str:
    """A page for something that is none."""
    if (ROOT / path).is_dir():
        known = subprocess.run(["git", "ls-files", str(path)], cwd=ROOT, capture_output=True, text=True).stdout.split()
        return f"{UNSEEN}# {path}/\n\n" + "".join(f"- `{Path(one).relative_to(path)}`\n" for one in known)
    text = (ROOT / path).read_text()[:LONGEST]
    fence = "`" * (2 + max(map(len, re.findall(r"`+", text)), default=1))
    return (
        f"{UNSEEN}# {path}\n\n{fence}{LANGUAGES.get(path.suffix, path.suffix.lstrip('.') or 'text')}\n{text}\n{fence}\n"
    )


def write_source(target: Path) -> None:
    """Write `source/` and the configuration below `target`."""
    shutil.rmtree(target, ignore_errors=True)
    todo, others = pages(), set()
    for path in todo:
        text, found = with_places((ROOT / path).read_text(), path)
        others |= found
        put(target / "source" / place(path), with_lists(text))
    for path in sorted(others - set(todo)):
        if path.suffix == ".svg":
            put(target / "source" / path, (ROOT / path).read_text())
        elif place(path) not in todo:
            put(target / "source" / place(path), shown(path))
    shutil.copy(ROOT / "tools" / "site.toml", target / "zensical.toml")


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--tools", type=Path, required=True, help="where zensical is")
    options = parser.parse_args()
    write_source(options.out)
    subprocess.run([options.tools.resolve() / "zensical", "build", "--strict"], cwd=options.out, check=True)
    print(options.out / "html" / "index.html")


if __name__ == "__main__":
    main()
