"""Fan out and in: parts that run side by side, and jobs that go on with their results. Needs a master, but no worker.

python fan.py [URL of the master]
"""

import asyncio
import sys

from jqmaster import JQ, JobError, ResumeAfter, current_job

jq = JQ(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400")


@jq.job(queue="fan", max_retry=0)
async def words(page: str) -> int:
    if not page:
        raise ValueError("an empty page")
    return len(page.split())


@jq.job(queue="fan")
async def total() -> int:
    return sum(await jq.adependency_results())


@jq.job(queue="fan")
async def complain(book: str) -> None:
    results = await jq.adependency_results(return_errors=True)
    print(f"{book}: {sum(isinstance(one, Exception) for one in results)} of {len(results)} jobs were not done")


@jq.job(queue="fan")
async def book(pages: list[str]) -> str:
    # Only the job knows its parts. Its worker lets go of it until they have ended; then it is called again.
    if not current_job.get().depends:
        raise ResumeAfter([words.job(page) for page in pages], if_failed="fail")
    return f"{sum(await jq.adependency_results())} words on {len(pages)} pages"


async def main() -> None:
    stop = asyncio.Event()
    worker = asyncio.create_task(jq.worker(concurrency=1).serve(stop))

    pages = ["It was the best", "of times it was the", "worst of times"]
    counted = await jq.agroup(words.job(page) for page in pages)
    print("each page:", await counted)

    whole = await jq.achord((words.job(page) for page in pages), total.job())
    print("in all:", await whole)
    progress = await whole.aprogress()
    print(f"{progress.ended} of {progress.total} jobs have ended")

    torn = await jq.achord([words.job("one page"), words.job("")], total.job(), failed=complain.job("torn"))
    try:
        await torn
    except JobError as error:
        print("torn:", error)
    for callback in torn.callbacks:
        await callback.ajoin()

    print(await (await book.aenqueue(pages)))
    stop.set()
    await worker


if __name__ == "__main__":
    asyncio.run(main())
