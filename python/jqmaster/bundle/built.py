"""The scripts of this package, built: in a wheel they lie as files, a checkout builds them once."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from jqmaster.bundle.build import Bundle, Clock, Library, build_cached, make_script


@functools.cache
def builtin(clock: Clock = "server") -> Bundle:
    """The scripts of this package, by name. A wheel carries them built; a checkout builds them once."""
    built = Path(__file__).parents[1] / "lua"
    if clock == "server" and (built / "manifest.json").is_file():
        return read_built(built)
    return build_cached(clock)


def read_built(directory: Path) -> Bundle:
    """Read scripts that ``dump`` wrote. Raises ValueError when a file is not what it says."""
    manifest = json.loads((directory / "manifest.json").read_text())
    scripts = Bundle()
    for name, entry in manifest["scripts"].items():
        path = directory / f"{name}.lua"
        script = make_script(name, path.read_bytes().decode(), entry["flags"])
        if script.sha != entry["sha"]:
            raise ValueError(f"{path} has sha {script.sha}, its manifest says {entry['sha']}: build it again")
        scripts[name] = script
    if manifest["library"]:
        source = (directory / "library.lua").read_bytes().decode()
        scripts.library = Library(manifest["library"]["name"], source, frozenset(manifest["library"]["functions"]))
    return scripts
