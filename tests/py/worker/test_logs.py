"""One log line for each request, with its id."""

from __future__ import annotations

import json
import logging
import re

import pytest

from http_support import Api, api, master  # noqa: F401
from jqmaster import JsonLines


async def test_a_request_has_a_line_with_its_id_status_and_time(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "jqmaster.request")
    answer = await api.get("/queues", worker_id="a b\n1")
    [record] = caplog.records
    line = json.loads(JsonLines().format(record))
    request_id = answer.headers["x-request-id"]
    assert (line["id"], line["method"], line["path"], line["status"]) == (request_id, "GET", "/queues", 200)
    assert line["ms"] > 0 and line["worker"] == "a b\n1"
    assert record.getMessage() == f"{request_id} GET /queues 200 {line['ms']:g} ms"


@pytest.mark.parametrize("bad", ["", "a b", "x" * 129, "ä", "a\tb"])
async def test_an_id_that_is_not_fit_for_a_log_is_replaced(api: Api, bad: str) -> None:
    answer = await api.get("/queues", x_request_id=bad)
    assert re.fullmatch(r"[0-9a-f]{16}", answer.headers["x-request-id"])
