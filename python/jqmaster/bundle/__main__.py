"""``python -m jqmaster.bundle [--clock settable] OUTDIR`` writes the built scripts and their ``manifest.json``."""

import argparse
from pathlib import Path

from jqmaster.bundle.build import build, builtin, dump, version_of

parser = argparse.ArgumentParser(prog="jqmaster.bundle", description="Build the Lua scripts.")
parser.add_argument("--clock", choices=["server", "settable"], default="server")
parser.add_argument("--sources", type=Path, help="directory that holds scripts/ and jqlua/; default: this checkout")
parser.add_argument("outdir", type=Path)
options = parser.parse_args()
scripts = build(options.sources, options.clock) if options.sources else builtin(options.clock)
dump(scripts, options.outdir)
print(f"{len(scripts)} scripts, version {version_of(scripts)}, in {options.outdir}")
