"""The demo tells the truth, and leaves nothing behind."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from processes import Process

EXAMPLES = Path(__file__).parents[3] / "examples"


def left_over() -> list[str]:
    """Processes of a demo that still run."""
    commands = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            commands.append(place.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return [command for command in commands if "jq-demo-" in command]


@pytest.mark.faults
def test_it_holds_and_leaves_nothing_behind() -> None:
    before = left_over()
    with Process("demo", folder=EXAMPLES) as demo:
        assert demo.ends(280) == 0, demo.text
        assert "nothing was finished twice" in demo.text
        assert "kill -9" in demo.text
    assert left_over() == before


@pytest.mark.faults
def test_ctrl_c_stops_all_it_started() -> None:
    before = left_over()
    with Process("demo", folder=EXAMPLES, ready="two workers") as demo:
        demo.signal(signal.SIGINT)
        assert demo.ends() == 130
    assert left_over() == before
