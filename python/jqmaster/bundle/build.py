"""Bundles ``scripts/*.lua`` and the modules in ``jqlua/`` into one self-contained chunk per script.

The operations of a job's life become a library of Redis functions as well.

The same sources give the same bytes, and so the same shas, on any machine.
``python -m jqmaster.bundle.build [--clock settable] OUTDIR`` writes the chunks and their ``manifest.json``.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from jqmaster import __version__
from jqmaster.bundle.library import link_library
from jqmaster.bundle.script import Chunk
from jqmaster.bundle.source import BuildError, Module, ScriptBody, parse_module, parse_script
from jqmaster.manifest.manifest import written

__all__ = ["BuildError", "Script", "build", "dump", "version_of"]

Clock = Literal["server", "settable"]

# ``write`` is refused whole when Redis is out of memory; ``drain`` runs all the same, so that a full
# system can be emptied; ``read`` may run on replicas.
SHEBANGS = {"write": "#!lua", "drain": "#!lua flags=allow-oom", "read": "#!lua flags=no-writes"}
_KEPT_BUILDS = 4  # of a checkout: another process may still read from the last ones


@dataclass(frozen=True, slots=True)
class Script:
    """A script as Redis gets it. ``sha`` is the SHA-1 of ``source`` in hex; flags: write, drain or read."""

    name: str
    kept: str | Path = field(compare=False)  # the source, or the file that has it; the sha says which
    sha: str
    flags: str

    @property
    def source(self) -> str:
        """Raises ValueError when its file has been changed."""
        source = _source(self.kept)
        if isinstance(self.kept, Path) and hashlib.sha1(source.encode()).hexdigest() != self.sha:
            raise ValueError(f"{self.kept} is not what its manifest says: build it again")
        return source


@dataclass(frozen=True, slots=True)
class Library:
    """A library of Redis functions. The one for an operation is called ``<name>_<operation>``."""

    name: str
    kept: str | Path = field(compare=False)
    functions: frozenset[str]  # operations

    @property
    def source(self) -> str:
        return _source(self.kept)


def _source(kept: str | Path) -> str:
    # Sources are read when Redis lacks them: all together are some MB, which each worker would hold.
    return kept if isinstance(kept, str) else kept.read_bytes().decode()


class Bundle(dict[str, Script]):
    """The scripts by name, and the library. Both are built from the same modules."""

    library: Library | None = None


def checkout() -> Path:
    """The root of the repository this package runs from."""
    return Path(__file__).resolve().parents[3]


def build(source_dir: Path | None = None, clock: Clock = "server") -> Bundle:
    """Build every script of ``source_dir`` (its ``scripts/`` and ``jqlua/``; default: this repository).

    ``clock="settable"`` puts ``jqlua/base/clock_settable.lua`` in the place of ``jqlua/base/clock.lua``:
    tests then set the time. Raises BuildError, with file and line, for sources outside the supported subset.
    """
    return Builder(source_dir or checkout(), clock).build()


def library_of(scripts: Mapping[str, Script]) -> Library | None:
    """The library of a Bundle; None for any other map of scripts."""
    return getattr(scripts, "library", None)


def version_of(scripts: Mapping[str, Script]) -> str:
    """The version of scripts and their library: the package's, and a digest, as ``0.1.0+3f2a9c1d``."""
    lines = "".join(f"{name} {scripts[name].sha} {scripts[name].flags}\n" for name in sorted(scripts))
    if library := library_of(scripts):
        lines += f"{library.name} {hashlib.sha1(library.source.encode()).hexdigest()}\n"
    return f"{__version__}+{hashlib.sha1(lines.encode()).hexdigest()[:8]}"


def make_script(name: str, source: str, flags: str) -> Script:
    return Script(name, source, hashlib.sha1(source.encode()).hexdigest(), flags)


def build_cached(clock: Clock = "server") -> Bundle:
    """As ``build``, for this repository. Keeps the last results in ``build/``, so that each is built once."""
    root = checkout()
    sources = [*root.glob("scripts/*.*"), *root.glob("jqlua/**/*.lua")]
    sources += Path(__file__).parent.glob("*.py")
    digest = hashlib.sha1()
    for path in sorted(sources):
        digest.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    built = root / "build" / f"scripts-{clock}-{digest.hexdigest()[:16]}"
    if (built / "manifest.json").is_file():
        return read_built(built)
    scripts = build(root, clock)
    try:
        built.parent.mkdir(exist_ok=True)
        others = sorted(built.parent.glob("scripts-*"), key=lambda path: path.stat().st_mtime)
        for old in others[:-_KEPT_BUILDS]:
            shutil.rmtree(old, ignore_errors=True)
        # Written beside and moved: another process sees all of it or nothing.
        with tempfile.TemporaryDirectory(dir=built.parent, ignore_cleanup_errors=True) as beside:
            dump(scripts, Path(beside) / built.name)
            (Path(beside) / built.name).rename(built)
    except OSError:
        pass  # Another process was quicker; or the checkout cannot be written to, which works too.
    return scripts


def read_built(directory: Path) -> Bundle:
    """Scripts that ``dump`` wrote, each read when it is needed."""
    manifest = json.loads((directory / "manifest.json").read_text())
    scripts = Bundle()
    for name, entry in manifest["scripts"].items():
        scripts[name] = Script(name, directory / f"{name}.lua", entry["sha"], entry["flags"])
    if manifest["library"]:
        name, functions = manifest["library"]["name"], frozenset(manifest["library"]["functions"])
        scripts.library = Library(name, directory / "library.lua", functions)
    return scripts


class Builder:
    """Parses each module once for all scripts."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self.root = root
        self.replaced = {"base.clock": "base.clock_settable"} if clock == "settable" else {}
        self.modules: dict[str, Module | None] = {}  # None while it is parsed
        common = root / "scripts" / "common.txt"
        self.common = frozenset(common.read_text().split()) if common.is_file() else frozenset()

    def scripts(self) -> list[ScriptBody]:
        paths = sorted((self.root / "scripts").glob("*.lua"))
        if not paths:
            raise BuildError(str(self.root / "scripts"), 0, "there are no scripts here")
        return [parse_script(path.stem, _read(path), f"scripts/{path.name}", self.require) for path in paths]

    def build(self) -> Bundle:
        scripts = self.scripts()
        bundle = Bundle((script.name, self.script(script)) for script in scripts)
        functions = [script for script in scripts if script.is_function]
        if functions:
            named = link_library(functions)
            name = f"jq_{hashlib.sha1(named('jq').encode()).hexdigest()[:8]}"
            bundle.library = Library(name, named(name), frozenset(script.name for script in functions))
        return bundle

    def script(self, script: ScriptBody) -> Script:
        return make_script(script.name, f"{SHEBANGS[script.flags]}\n{Chunk(script, self.common).text()}", script.flags)

    def require(self, name: str, file: str, line: int) -> Module:
        if name not in self.modules:
            path = self.root / "jqlua" / f"{self.replaced.get(name, name).replace('.', '/')}.lua"
            if not path.is_file():
                raise BuildError(file, line, f"there is no module jqlua.{name}")
            self.modules[name] = None
            self.modules[name] = parse_module(name, _read(path), str(path.relative_to(self.root)), self.require)
        module = self.modules[name]
        if module is None:
            raise BuildError(file, line, f"modules require each other: jqlua.{name}")
        return module


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8").replace("\r\n", "\n")


def dump(scripts: Mapping[str, Script], directory: Path) -> None:
    """Write each script to ``directory`` as ``<name>.lua``, the library as ``library.lua``, and what they are
    as ``manifest.json``, what their heads say as ``operations.json``. Raises manifest.heads.HeadError."""
    directory.mkdir(parents=True, exist_ok=True)
    for script in scripts.values():
        (directory / f"{script.name}.lua").write_bytes(script.source.encode())
    if library := library_of(scripts):
        (directory / "library.lua").write_bytes(library.source.encode())
    manifest = {
        "version": version_of(scripts),
        "scripts": {name: {"sha": scripts[name].sha, "flags": scripts[name].flags} for name in sorted(scripts)},
        "library": library and {"name": library.name, "functions": sorted(library.functions)},
    }
    (directory / "operations.json").write_text(written(scripts))
    (directory / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


def main(arguments: list[str] | None = None) -> int:
    import argparse

    parser = argparse.ArgumentParser(prog="jqmaster.bundle.build", description="Build the Lua scripts.")
    parser.add_argument("--clock", choices=["server", "settable"], default="server")
    parser.add_argument("--sources", type=Path, help="directory that holds scripts/ and jqlua/")
    parser.add_argument("outdir", type=Path)
    options = parser.parse_args(arguments)
    try:
        scripts = build(options.sources, options.clock) if options.sources else build_cached(options.clock)
    except BuildError as problem:
        parser.exit(1, f"{problem}\n")
    dump(scripts, options.outdir)
    print(f"{len(scripts)} scripts, version {version_of(scripts)}, in {options.outdir}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
