"""The whole of JQ at work, in under a minute, with its outcome checked: `jqmaster demo`."""

from jqmaster.demo.show import run

__all__ = ["run"]
