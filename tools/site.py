"""Writes build/site/html: the pages as a site with search, beside all that they link to. A broken link fails.

python tools/site.py <zensical>
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "build" / "site"


def with_lists(text: str) -> str:
    """As Python's Markdown reads lists: behind an empty line, and what belongs to a numbered item four columns in."""
    lines: list[str] = []
    in_code = in_item = False
    for line in text.splitlines():
        is_item = re.match(r"(-|\d+\.) ", line) is not None
        paragraph = "\n".join(lines).rpartition("\n\n")[2]
        is_first = not re.search(r"^(-|\d+\.) ", paragraph, re.MULTILINE)
        if is_item and is_first and not in_code and re.match(r"[^\s#<|-]", lines[-1] if lines else ""):
            lines.append("")
        if line and not line.startswith(" "):
            in_item = line[0].isdigit() and is_item
        in_code ^= line.lstrip().startswith("```")
        lines.append(f" {line}" if in_item and line.startswith("   ") else line)
    return "\n".join(lines) + "\n"


def write_source(target: Path) -> None:
    """All files that git knows, but for what configures tools, and pages for folders that have none."""
    shutil.rmtree(target, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.split("\n") if "/" in name or name.endswith(("md", "LICENSE"))]
    for path in filter(Path.is_file, (ROOT / name for name in names)):
        copy = target / "source" / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            copy.write_text(with_lists(path.read_text()))
        else:
            shutil.copy(path, copy)
    for folder in filter(Path.is_dir, list((target / "source").rglob("*"))):
        if not (folder / "README.md").exists():
            links = [f"- [{path.name}]({path.name})" for path in sorted(folder.iterdir())]
            (folder / "index.md").write_text("\n".join([f"# {folder.name}/", "", *links, ""]))
    shutil.copy(ROOT / "tools" / "site.toml", target / "zensical.toml")


if __name__ == "__main__":
    write_source(SITE)
    subprocess.run([Path(sys.argv[1]).resolve(), "build", "--strict"], cwd=SITE, check=True)
    print(SITE / "html" / "index.html")
