"""`JQ`: one object to define jobs, enqueue them, wait for their results, and run workers (docs/python.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jqmaster.client.link import Link
from jqmaster.client.registry import Registry
from jqmaster.worker.notes import outside_of_loops

if TYPE_CHECKING:
    from jqmaster.client.worker import AppWorker


class JQ(Registry):
    """Jobs of one namespace. Works from any thread and any event loop, and after a fork.

    `url`: a Redis (`redis://`, `unix://`, `redis+sentinel://`, `redis+cluster://`, with TLS `rediss…`) or a
    JQ master (`http://`, several with commas); default: the variable `JQ_URL`, or the master on this machine.
    `namespace` is for Redis; a master has its own, and what is asked with both raises ValueError. So is
    `recreate`: whether a namespace that has vanished is set up again, empty;
    default: the variable `JQ_RECREATE`, or calls raise Vanished. A master that asks for keys gets `key`, or what
    the file `key_file` has; default: the variables `JQ_KEY`, `JQ_KEY_FILE`. `actor`: who changes things, for the
    trail of a namespace that is asked straight. All else are options for all jobs, such as `max_runtime`; `timeout` is
    one of these, the lease of a job, and no bound of a call. That is `wait`: how long a call may take where Redis or
    the master does not answer, in seconds; default: the variable `JQ_WAIT`, or `socket_timeout` in the URL of a Redis,
    or 5. Nothing is connected before it is needed.
    """

    # -- working ----------------------------------------------------------------------------------

    def worker(self, queues: Sequence[str] | None = None, *, concurrency: int = 8, **options: Any) -> AppWorker:
        """A worker for this object's jobs: `.run()` until SIGTERM, or `await .serve(stop)`.

        `queues`: default all those of its jobs. `options`: fields of `AppWorker`, such as `push`, `host`, `port`,
        `order`, `name`, `register`, `drain_timeout_s`; and `process_jobs`, after how many jobs a process of
        `process=True` makes room for a fresh one. Raises ValueError for what cannot be, and where there are no jobs.
        """
        from jqmaster.client.worker import AppWorker

        return AppWorker(self, queues, concurrency=concurrency, **options)

    def run(self, queues: Sequence[str] | None = None, **options: Any) -> int:
        """Run a worker until SIGTERM or SIGINT; returns the process's exit code. As `worker`."""
        return self.worker(queues, **options).run()

    def burst(self, queues: Sequence[str] | None = None, **options: Any) -> int:
        """Work until nothing is left to run, retries included, which come at once; returns the number of attempts
        that were not given back. For tests: raises what made a job fail for good, several as an ExceptionGroup.

        `concurrency`: jobs at a time, 8. `delayed`: also what is due later. `raises`: whether to raise.
        """
        return outside_of_loops(self.aburst(queues, **options))

    async def aburst(self, queues: Sequence[str] | None = None, **options: Any) -> int:
        """As `burst`."""
        from jqmaster.client.worker import aburst

        return await aburst(self, queues, **options)

    @contextmanager
    def immediate(self) -> Iterator[None]:
        """Within it a job runs at once, in the caller, when it is enqueued; no server is asked. What it raises comes
        out of `enqueue`."""
        from jqmaster.client.immediate import Memory

        memory = Memory(self)
        with self.using(self.url, self.target.namespace, Link(lambda: memory, self.serializer)):
            yield
