"""One job for each key: enqueueing again changes the one that waits. Needs a worker with `tasks:FUNCTIONS`.

python unique.py [URL of the master]
"""

import sys

from jqmaster.client import Client

with Client(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400") as jq:
    # Somebody edits a page three times in a row. It is rendered once, as it is after the last edit.
    for edit in (1, 2, 3):
        page = jq.enqueue_unique(
            "render", "render/home", {"edit": edit}, if_exists="latest", delay=5, keep_result=True
        )
        print("edit", edit, "makes a job" if page.created else "changes the job that waits")
    print("waits with edit", jq.get(page.id)["argument"]["edit"])

    # Nobody waits any longer.
    jq.change(page.id, delay=0)
    jq.wait(page.id)
    print("rendered:", jq.result(page.id))

    # `unique_for`: at most one notice of it in an hour, also after the first was sent.
    for _ in range(2):
        notice = jq.enqueue_unique("add", f"notice/{page.id}", [1], unique_for=3600)
        jq.wait(notice.id)
        print("notice", "sent" if notice.created else "not sent again")
