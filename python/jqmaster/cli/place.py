"""A server that a command asks."""

from __future__ import annotations

from typing import Literal, NamedTuple

from jqmaster.connection import url as redis_url

LOCAL = "http://127.0.0.1:8400"
NAMESPACE = "{jq}"
Form = Literal["auto", "functions", "scripts"]


class Place(NamedTuple):
    """A server: its URL, and where it is a Redis the namespace. `key_file` has the key of a master, unless the
    environment has it."""

    url: str
    namespace: str
    form: Form
    key_file: str | None

    @property
    def is_redis(self) -> bool:
        return redis_url.is_redis(self.url)

    @property
    def shown(self) -> str:
        """The URL, fit for a log."""
        return redis_url.without_password(self.url)

    def __str__(self) -> str:
        return f"{self.shown} {self.namespace}" if self.is_redis else self.shown
