"""One job for each key: enqueueing again changes the one that waits. Needs a worker with `tasks:jq`.

python unique.py [URL of the master]
"""

import sys

from jqmaster import JQ

jq = JQ(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400")

# Somebody edits a page three times in a row. It is rendered once, as it is after the last edit.
for edit in (1, 2, 3):
    page = jq.enqueue("render", {"edit": edit}, unique="render/home", if_exists="latest", delay=5)
    print("edit", edit, "makes a job" if page.created else "changes the job that waits")
print("waits with edit", page.document()["argument"]["edit"])

# Nobody waits any longer.
page.change(delay=0)
print("rendered:", page.result())

# `unique_for`: at most one notice of it in an hour, also after the first was sent.
for _ in range(2):
    notice = jq.enqueue("add", [1], unique=f"notice/{page.id}", unique_for=3600)
    notice.join()
    print("notice", "sent" if notice.created else "not sent again")
