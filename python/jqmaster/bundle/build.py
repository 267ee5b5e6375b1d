"""Bundles ``scripts/*.lua`` and the modules in ``jqlua/`` into one self-contained chunk per script.

The operations of a job's life become a library of Redis functions as well.

The same sources give the same bytes, and so the same shas, on any machine.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from jqmaster import __version__
from jqmaster.bundle.link import (
    FLAGS,
    BuildError,
    Module,
    link_library,
    link_script,
    parse_module,
    parse_script,
    registered,
)
from jqmaster.manifest.contract import Operation
from jqmaster.manifest.manifest import PACKAGE, comment_of, lua_fields, read

Clock = Literal["server", "settable"]


@dataclass(frozen=True, slots=True)
class _Text:
    name: str
    kept: str | Path = field(compare=False)  # the text, or the file that has it, some MB in all, which few need

    @property
    def source(self) -> str:
        return self.kept if isinstance(self.kept, str) else self.kept.read_bytes().decode()


@dataclass(frozen=True, slots=True)
class Script(_Text):
    """A script as Redis gets it. ``sha`` is the SHA-1 of ``source`` in hex; flags: write, drain or read."""

    sha: str
    flags: str


@dataclass(frozen=True, slots=True)
class Library(_Text):
    """A library of Redis functions. The one for an operation is called ``<name>_<operation>``."""

    functions: frozenset[str]  # operations


class Bundle(dict[str, Script]):
    """The scripts by name, and the library. Both are built from the same modules."""

    library: Library | None = None


def version_of(scripts: Bundle) -> str:
    """The version of scripts and their library: the package's, and a digest, as ``0.1.0+3f2a9c1d``."""
    lines = "".join(f"{name} {scripts[name].sha} {scripts[name].flags}\n" for name in sorted(scripts))
    if scripts.library:
        lines += f"{scripts.library.name}\n"  # which says what it holds
    return f"{__version__}+{hashlib.sha1(lines.encode()).hexdigest()[:8]}"


def make_script(name: str, source: str, flags: str) -> Script:
    return Script(name, source, hashlib.sha1(source.encode()).hexdigest(), flags)


def builtin(clock: Clock = "server") -> Bundle:
    """The scripts of this package, by name; with the variable `JQ_FORM=scripts` without their library."""
    scripts = _builtin(clock)
    return Bundle(scripts) if os.environ.get("JQ_FORM") == "scripts" else scripts


@functools.cache
def _builtin(clock: Clock) -> Bundle:
    """A wheel carries them built; a checkout builds them when they changed."""
    built, root = PACKAGE / "lua", PACKAGE.parents[1]
    if clock == "server" and built.is_dir():
        return read_built(built)
    sources = sorted([*root.glob("scripts/*.*"), *root.glob("jqlua/**/*.lua"), *PACKAGE.glob("bundle/*.py")])
    digest = hashlib.sha1(b"".join(path.name.encode() + path.read_bytes() for path in sources)).digest()
    kept = root / "build" / f"scripts-{clock}.pickle"
    if kept.is_file() and (content := kept.read_bytes()).startswith(digest):
        return cast(Bundle, pickle.loads(content[len(digest) :]))
    bundle = build(root, clock)
    kept.parent.mkdir(exist_ok=True)
    beside = kept.with_suffix(f".{os.getpid()}")  # another process sees all of it
    beside.write_bytes(digest + pickle.dumps(bundle))
    beside.replace(kept)
    return bundle


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


def parsed(root: Path, clock: Clock = "server") -> Iterator[tuple[Operation, str, Module]]:
    """Each script of ``root``: what its head says, the head, the script."""
    modules: dict[str, Module | None] = {}  # None while it is parsed

    def require(name: str) -> Module:
        if name not in modules:
            file = "base.clock_settable" if clock == "settable" and name == "base.clock" else name
            path = root / "jqlua" / f"{file.replace('.', '/')}.lua"
            if not path.is_file():
                raise BuildError(f"there is no module jqlua.{name}")
            modules[name] = None
            modules[name] = parse_module(name, path.read_text(encoding="utf-8"), require)
        if (module := modules[name]) is None:
            raise BuildError(f"modules require each other: jqlua.{name}")
        return module

    for path in sorted((root / "scripts").glob("*.lua")):
        source = path.read_text(encoding="utf-8")
        comment = comment_of(source.splitlines())
        operation = read(path.stem, comment)
        yield operation, comment, parse_script(path.stem, source, require, lua_fields(operation))


def build(root: Path, clock: Clock = "server") -> Bundle:
    """Build every script of ``root`` (its ``scripts/`` and ``jqlua/``).

    ``clock="settable"`` puts ``jqlua/base/clock_settable.lua`` in the place of ``jqlua/base/clock.lua``: tests then
    set the time. Raises BuildError for sources outside the supported subset, ValueError for heads that cannot be read.
    """
    common = root / "scripts" / "common.txt"
    needed = [line.split() for line in common.read_text().splitlines()] if common.is_file() else []
    bundle, functions, flags = Bundle(), [], {}
    for operation, comment, script in parsed(root, clock):
        name = operation.name
        head = "".join(f"--{line}\n" for line in comment.splitlines())
        flag = FLAGS[operation.flags]
        first = {label for label, *operations in needed if name in operations} or {line[0] for line in needed}
        text = f"#!lua{flag and f' flags={flag}'}\n{head}{link_script(script, first)}"
        bundle[name] = make_script(name, text, operation.flags)
        if operation.is_function:
            functions.append(script)
            flags[name] = operation.flags
    if functions:
        library = link_library(functions)
        name = f"jq_{hashlib.sha1(library.encode()).hexdigest()[:8]}"
        bundle.library = Library(name, f"#!lua name={name}\n{library}{registered(name, flags)}", frozenset(flags))
    return bundle


def dump(scripts: Bundle, directory: Path) -> None:
    """Write each script to ``directory`` as ``<name>.lua``, its head in front, the library as ``library.lua``, and
    what they are as ``manifest.json``."""
    directory.mkdir(parents=True, exist_ok=True)
    for script in scripts.values():
        (directory / f"{script.name}.lua").write_bytes(script.source.encode())
    if library := scripts.library:
        (directory / "library.lua").write_bytes(library.source.encode())
    manifest = {
        "version": version_of(scripts),
        "scripts": {name: {"sha": scripts[name].sha, "flags": scripts[name].flags} for name in sorted(scripts)},
        "library": library and {"name": library.name, "functions": sorted(library.functions)},
    }
    (directory / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
