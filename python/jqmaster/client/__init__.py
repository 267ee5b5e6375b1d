"""Clients of the HTTP API: `Client` blocks, `AsyncClient` does not; both do the same.

with Client("http://127.0.0.1:8400") as jq:
    job = jq.enqueue("add", [1, 2], keep_result=True)
    jq.wait(job)
    jq.result(job)
"""

from jqmaster.client.aio import AsyncClient
from jqmaster.client.asks import Document, Enqueued, Event
from jqmaster.client.blocking import Client

__all__ = ["AsyncClient", "Client", "Document", "Enqueued", "Event"]
