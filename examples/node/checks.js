// What tests/protocol/worker.py asks of a worker: python tests/protocol/worker.py node examples/node/checks.js
import { setTimeout as pause } from 'node:timers/promises';
import { JQ } from './jq.js';
import { Worker } from './worker.js';

const jq = await JQ.connect(process.env.JQ_URL, process.env.JQ_NAMESPACE);
const handlers = {
  echo: async ({ value }) => value,
  nap: async ({ seconds }, { signal }) => pause(seconds * 1000, seconds, { signal }),
  fail: async ({ text }) => {
    throw new Error(text);
  },
  garble: async () => {
    throw new Error('a lone surrogate: \ud800');
  },
};
const worker = new Worker(jq, handlers, { queues: ['checks'], concurrency: 10 });
process.once('SIGTERM', () => worker.stop());
await worker.run();
await jq.close();
