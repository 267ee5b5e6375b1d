"""What is published of tracked jobs, for those who follow one (docs/finding.md)."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from jqmaster.connection.subscriptions import Messages, Subscriptions
from jqmaster.engine.engine import Engine


class JobEvents:
    """One connection for all who listen. `stop` ends everybody's."""

    def __init__(self, engine: Engine) -> None:
        self._of_job = f"{engine.namespace}:job:"
        self._subscriptions = Subscriptions(engine.redis)

    def of_job(self, job_id: str) -> AbstractAsyncContextManager[Messages]:
        """What is published of a tracked job. None among it: look how it stands, something may be missed."""
        return self._subscriptions.listen(self._of_job + job_id)

    def drain(self) -> None:
        """Have all who listen look, also whether the server stops."""
        self._subscriptions.tell_all()

    async def stop(self) -> None:
        """Close the connection; bounded."""
        await self._subscriptions.stop()
