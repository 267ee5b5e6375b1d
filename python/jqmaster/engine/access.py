"""Keys of the HTTP API, and the trail of what operators changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from jqmaster.engine.calls import Calling
from jqmaster.engine.options import Bounds, Steps
from jqmaster.engine.replies import Document, Page
from jqmaster.wire import secret

SEAL = "/sessions"
"""Behind the namespace: the key with the secret that masters seal sessions with. It is none of the namespace's own, so
no script reads it, no export has it, and of users by role only an admin may."""


class AccessCalls(Calling):
    """Who may do what by way of masters, and who did."""

    async def grant(self, name: str, roles: Sequence[str], **bounds: Unpack[Bounds]) -> Document:
        """Create a key; its document, and in it the key itself as ``key``, which nobody can ask for again.

        ``roles``: some of ``viewer``, ``pusher``, ``worker``, ``operator``, ``admin``. Raises Invalid, and Full when
        there are 1000.
        """
        new = secret.new()
        fields = {"id": new.id, "digest": new.digest, "name": name, "roles": roles, **bounds}
        return {**await self._document("grant", **fields, actor=self.actor), "key": new.text}

    async def keys(self, *, digests: bool | None = None, **steps: Unpack[Steps]) -> Page:
        """A page of all keys; ``digests``: with the SHA-256 of each one's secret, which only Redis itself tells."""
        return await self._page("keys", digests=digests, **steps)

    async def touch(self, ids: Sequence[str]) -> int:
        """Note that keys were used; how many of them there are."""
        return int(await self._ask("touch", ids=ids))
