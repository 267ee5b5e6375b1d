"""Keys of the HTTP API, and the trail of what operators changed."""

from __future__ import annotations

from collections.abc import Sequence

from jqmaster.engine import replies
from jqmaster.engine.calls import Calling, given, pack
from jqmaster.engine.replies import Document, Page
from jqmaster.wire import secret


class AccessCalls(Calling):
    """Who may do what by way of masters, and who did."""

    async def grant(
        self,
        name: str,
        roles: Sequence[str],
        *,
        queues: Sequence[str] | None = None,
        ttl: float | None = None,
        rate: float | None = None,
    ) -> Document:
        """Create a key; its document, and in it the key itself as ``key``, which nobody can ask for again.

        ``roles``: some of ``viewer``, ``pusher``, ``worker``, ``operator``, ``admin``. ``queues``: names and
        patterns to which it is bound. ``ttl``: seconds until it expires. ``rate``: requests a second. Raises
        Invalid, and Full when there are 1000.
        """
        new = secret.new()
        spec = given(
            id=new.id,
            digest=new.digest,
            name=name,
            roles=list(roles),
            queues=None if queues is None else list(queues),
            ttl=ttl,
            rate=rate,
            actor=self.actor,
        )
        return {**replies.plain_document(await self.call("grant", pack(spec))), "key": new.text}

    async def revoke(self, key_id: str) -> None:
        """Take a key away; masters refuse it from then on. Raises NotFound."""
        await self.call("revoke", pack(given(id=key_id, actor=self.actor)))

    async def keys(self, *, cursor: str | None = None, count: int | None = None, digests: bool | None = None) -> Page:
        """A page of all keys; ``digests``: with the SHA-256 of each one's secret, which only Redis itself tells."""
        spec = given(cursor=cursor, count=count, digests=digests)
        return replies.page(await self.call("keys", pack(spec)))

    async def touch(self, ids: Sequence[str]) -> int:
        """Note that keys were used; how many of them there are."""
        return int(await self.call("touch", pack({"ids": list(ids)})))

    async def trail(self, *, cursor: str | None = None, count: int | None = None) -> Page:
        """A page of what operators changed, newest first: ``time_ms, actor, what, on?, change?, count?``."""
        return replies.page(await self.call("trail", pack(given(cursor=cursor, count=count))))
