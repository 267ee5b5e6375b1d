"""Which server an object is for, and how that is called."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from jqmaster.client.transport import RedisTransport, Transport
from jqmaster.connection import url as redis_url
from jqmaster.engine.scripts import Form
from jqmaster.engine.secret import key_of, masters_of


@dataclass(frozen=True)
class Target:
    """A Redis or some servers, by `url`. `namespace`: that of a Redis, if one was named; a server has its own."""

    url: str
    namespace: str | None = None
    form: Form = "auto"
    recreate: bool = False
    actor: str | None = None
    key: str | None = None
    key_file: str | os.PathLike[str] | None = None
    wait_s: float = 5.0

    @property
    def is_redis(self) -> bool:
        """Whether `url` is that of a Redis."""
        return redis_url.is_redis(self.url)

    @property
    def redis_namespace(self) -> str:
        """The one that was named, or by the variable `JQ_NAMESPACE`, or `{jq}`."""
        return self.namespace or os.environ.get("JQ_NAMESPACE") or "{jq}"

    @property
    def masters(self) -> list[str]:
        """The URLs of the servers, where `url` is of no Redis. Raises ValueError when it is no URL, or has a user
        or password in it, and when a namespace was named as well."""
        if not self.url.startswith(("http://", "https://")):
            shown = redis_url.without_password(self.url)
            raise ValueError(f"{shown}: expected {redis_url.FORMS}, or http://, https://")
        return masters_of(self.url, self.namespace)

    def check(self) -> None:
        """Raise ValueError for a URL that cannot be."""
        try:
            _ = redis_url.parse(self.url) if self.is_redis else self.masters
        except ValueError as error:
            raise ValueError(f"{redis_url.without_password(self.url)}: {error}") from None

    def key_of_master(self) -> str | None:
        """The key that servers are shown. Raises ValueError if it is invalid, OSError."""
        return key_of(self.key, self.key_file)

    def transport(self) -> Transport:
        """A way there, for plain calls in one, else for the loop that runs. Raises ValueError, OSError."""
        if self.is_redis:
            how = {"form": self.form, "recreate": self.recreate, "actor": self.actor, "timeout_s": self.wait_s}
            return RedisTransport(self.url, self.redis_namespace, **how)
        from jqmaster.client.transport_http import HttpTransport

        return HttpTransport(self.masters, self.key_of_master(), self.wait_s)


def wait_s(wait: float | None) -> float:
    """How long a call may take, also by the variable `JQ_WAIT`. Raises ValueError."""
    seconds = float(os.environ.get("JQ_WAIT") or Target.wait_s if wait is None else wait)
    if not 0 < seconds < math.inf:
        raise ValueError(f"wait: expected seconds, more than 0, got {seconds:g}")
    return seconds
