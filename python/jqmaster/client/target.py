"""Which server an object is for, and how that is called."""

from __future__ import annotations

import os
from dataclasses import dataclass

from jqmaster.client.transport import RedisTransport, Transport
from jqmaster.connection import url as redis_url
from jqmaster.engine.scripts import Form
from jqmaster.engine.secret import key_of, masters_of
from jqmaster.errors import brought_by


@dataclass(frozen=True)
class Target:
    """A Redis or some masters, by `url`. `names_namespace`: somebody did, and it is not the default one."""

    url: str
    namespace: str
    names_namespace: bool = False
    form: Form = "auto"
    recreate: bool = False
    actor: str | None = None
    key: str | None = None
    key_file: str | os.PathLike[str] | None = None

    @property
    def is_redis(self) -> bool:
        """Whether `url` is that of a Redis."""
        return redis_url.is_redis(self.url)

    @property
    def masters(self) -> list[str]:
        """The URLs of the masters, where `url` is of no Redis. Raises ValueError when it is no URL, or has a user
        or password in it, and when a namespace was named as well."""
        if not self.url.startswith(("http://", "https://")):
            shown = redis_url.without_password(self.url)
            raise ValueError(f"{shown}: expected {redis_url.FORMS}, or http://, https://")
        return masters_of(self.url, self.namespace if self.names_namespace else None)

    def key_of_master(self) -> str | None:
        """The key that masters are shown. Raises ValueError if it is invalid, OSError."""
        return key_of(self.key, self.key_file)

    def transport(self) -> Transport:
        """A way there. Raises ValueError, OSError, NotInstalled."""
        if self.is_redis:
            return RedisTransport(self.url, self.namespace, self.form, recreate=self.recreate, actor=self.actor)
        with brought_by("worker", "the URL of a master"):
            from jqmaster.client.transport_http import HttpTransport

        return HttpTransport(self.masters, self.key_of_master())
