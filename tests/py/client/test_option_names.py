"""A name that no option has is refused where it is said, with the one that may be meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app_support import jq
from jqmaster import JQ

__all__ = ["jq"]

CALLS: dict[str, Callable[[JQ], Any]] = {
    "condition: limit;": lambda jq: list(jq.jobs(limit=1)),  # type: ignore[call-arg]
    "condition: quueue, did you mean queue?": lambda jq: jq.discard_where(quueue="a"),  # type: ignore[call-arg]
    "condition: tags, did you mean tag?": lambda jq: jq.retry_where(tags="a"),  # type: ignore[call-arg]
    "condition: state, did you mean status?": lambda jq: jq.cancel_where(state="a"),  # type: ignore[call-arg]
    "option: maxretry, did you mean max_retry?": lambda jq: jq.handle("1").change(maxretry=1),  # type: ignore[call-arg]
    "option: evry, did you mean every?": lambda jq: jq.repeat("a", jq.new_job("b"), evry=5),  # type: ignore[call-arg]
    "option: priorty, did you mean priority?": lambda jq: jq.enqueue("a", priorty=5),  # type: ignore[call-arg]
    "option: timout, did you mean timeout?": lambda jq: jq.task("a", timout=5),  # type: ignore[call-arg]
}


@pytest.mark.parametrize("said", CALLS)
def test_it_is_refused_with_what_may_be_meant(jq: JQ, said: str) -> None:
    with pytest.raises(TypeError) as caught:
        CALLS[said](jq)
    assert f"no such {said}" in str(caught.value) and "there are: " in str(caught.value)
