"""Keys that are bound to queues, where jobs go from one queue to another."""

from __future__ import annotations

from http_support import master
from keys_support import Keyed, keyed

__all__ = ["keyed", "master"]


async def test_both_queues_must_be_within_the_key(keyed: Keyed) -> None:
    api = await keyed.grant("viewer", "pusher", "operator", queues=["mail.*"])
    mine, other = [one.id for one in await keyed.engine.enqueue([({"name": n}, b"\xc0") for n in ("mail.de", "other")])]
    for job_id, queue, status in ((mine, "other", 403), (other, "mail.jp", 403), (mine, "mail.jp", 200)):
        assert (await api("PATCH", f"/job/{job_id}", {"queue": queue})).status == status, (job_id, queue)
        many = [{"id": mine, "priority": 1}, {"id": job_id, "queue": queue}]
        assert (await api.post("/jobs/change", {"jobs": many})).status == status, (job_id, queue)
        assert (await api.post("/jobs/change", many)).status in (status, 400), (job_id, queue)
    assert [doc["queue"] for doc in await keyed.engine.get([mine, other])] == ["mail.jp", "other"]
    await keyed.engine.cancel([mine, other])
    for job_id, queue, status in ((mine, "other", 403), (other, "mail.de", 403), (mine, "mail.de", 200)):
        answer = await api.post("/jobs/retry", {"ids": [job_id], "queue": queue})
        assert answer.status == status, (job_id, queue)
        await keyed.engine.cancel([mine])
        assert (await api.post(f"/job/{job_id}/retry", {"queue": queue})).status == status, (job_id, queue)
        await keyed.engine.cancel([mine])
    for where, queue, status in (("mail.de", "other", 403), ("other", "mail.de", 403), ("mail.de", "mail.x", 200)):
        answer = await api.post("/jobs/retry", {"where": {"queue": where}, "queue": queue})
        assert answer.status == status, (where, queue)
    assert [doc["queue"] for doc in await keyed.engine.get([mine, other])] == ["mail.x", "other"]
