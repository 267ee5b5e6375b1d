"""The scripts of this package, built: in a wheel they lie as files, a checkout builds them once."""

from __future__ import annotations

import functools
from pathlib import Path

from jqmaster.bundle.build import Bundle, Clock, build_cached, read_built


@functools.cache
def builtin(clock: Clock = "server") -> Bundle:
    """The scripts of this package, by name. A wheel carries them built; a checkout builds them once."""
    built = Path(__file__).parents[1] / "lua"
    if clock == "server" and (built / "manifest.json").is_file():
        return read_built(built)
    return build_cached(clock)
