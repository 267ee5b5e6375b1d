"""The whole of JQ at work, in under a minute, with its outcome checked: `python -m jqmaster.demo`."""

from jqmaster.demo.show import main

__all__ = ["main"]
