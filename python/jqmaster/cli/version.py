"""What `jqmaster --version` prints, with few imports: programs and probes ask it often."""

from __future__ import annotations

from jqmaster.bundle.build import builtin, version_of


def version_line() -> str:
    """The version, and the forms that there are of it."""
    scripts = builtin()
    functions = f", functions {scripts.library.name}" if scripts.library else ""
    return f"jqmaster {version_of(scripts)} (scripts{functions})"
