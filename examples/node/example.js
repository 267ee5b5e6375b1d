// node example.js [URL of Redis] [namespace]
// Enqueues, works, reports progress, fails and retries, and does not mind SCRIPT FLUSH.
import { JQ } from './jq.js';
import { Worker } from './worker.js';

const jq = await JQ.connect(process.argv[2] ?? 'redis://127.0.0.1:6379', process.argv[3]);

const handlers = {
  'node.add': async ([a, b]) => a + b,

  // Three pages, and a failure in the middle. The next attempt goes on where this one stopped.
  'node.print': async ({ pages, from = 0 }, job) => {
    for (let page = from; page < pages; page += 1) {
      console.log(`attempt ${job.attempt} prints page ${page}`);
      await job.progress((page + 1) / pages, `page ${page}`, { pages, from: page + 1 });
      if (page === 1 && job.attempt === 1) throw new Error('out of paper');
    }
    return 'printed';
  },

  'node.never': async () => {
    throw Object.assign(new Error('no such customer'), { name: 'NoSuchCustomer', retry: false });
  },

  'node.long': (_, job) =>
    new Promise((_, reject) => job.signal.addEventListener('abort', () => reject(job.signal.reason))),
};

const worker = new Worker(jq, handlers, { concurrency: 4 });
const working = worker.run();

const sum = await jq.enqueue('node.add', [40, 2], { keep_result: true });
console.log('add:', (await jq.wait(sum)).status, (await jq.result(sum)).result);

await jq.command('SCRIPT', 'FLUSH'); // as a restart or a failover would

const print = await jq.enqueue('node.print', { pages: 3 }, { keep_result: true, retry_base: 0.05 });
const printed = await jq.wait(print);
console.log(`print: ${printed.status} at attempt ${printed.attempt}, ${printed.progress * 100}%: ${printed.result}`);
console.log(`       failed before: ${printed.message}`);

const failed = await jq.wait(await jq.enqueue('node.never'));
console.log(`never: ${failed.status}, ${failed.group}: ${failed.message}, ${failed.attempt} attempt`);

const many = await jq.enqueueMany(Array.from({ length: 100 }, (_, n) => [{ name: 'node.add' }, [n, 1]]));
const documents = await Promise.all(many.map(({ id }) => jq.wait(id)));
console.log('many:', documents.filter((document) => document.status === 'done').length, 'done');

const long = await jq.enqueue('node.long');
while ((await jq.get(long)).status !== 'running') await jq.call('tick', Buffer.of(0x80));
console.log('long: it was', await jq.cancel(long), 'and is', (await jq.wait(long)).status);

worker.stop();
await working;
await jq.close();
