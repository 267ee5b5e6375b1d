"""A master that asks for keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from http_support import Api, app_of
from jqmaster.engine.engine import Engine
from jqmaster.server.master import Master

ROLES = ("viewer", "pusher", "worker", "operator", "admin")
SOON_S = 2.0  # within which masters know of a change


class Keyed:
    """Its keys, and the API as each of them sees it."""

    def __init__(self, engine: Engine, api: Api) -> None:
        self.engine = engine
        self.api = api

    async def grant(self, *roles: str, name: str = "somebody", **more: Any) -> Api:
        """The API, with a new key of these roles."""
        return self.as_key((await self.create(*roles, name=name, **more))["key"])

    async def create(self, *roles: str, name: str = "somebody", **more: Any) -> dict[str, Any]:
        """A key's document with the key, which the master knows."""
        key = await self.engine.grant(name, roles, **more)
        await self.api.master.keyring.look()
        return key

    def as_key(self, key: str) -> Api:
        """The API, for who shows this key."""
        return Api(self.api.app, self.api.master, {"authorization": f"Bearer {key}"})


@pytest.fixture
async def keyed(master: Master, engine: Engine) -> AsyncIterator[Keyed]:
    """A master whose namespace has no keys yet, and asks for none so far."""
    yield Keyed(engine, Api(app_of(master), master))
