// Drives the client of examples/node for the bench: a step for each line on stdin, a line of JSON for each.
//   enqueue N (one job at a time) · work N C (a worker with C slots, until so many jobs have run)
import { createInterface } from 'node:readline';
import { createClient } from 'redis';
import { JQ } from './jq.js';
import { Worker } from './worker.js';

const NAME = 'mail.send1';
const argument = { text: 'a'.repeat(192) };
const redis = await createClient({ socket: { path: process.argv[2] }, RESP: 2 }).connect();
const jq = new JQ(redis);

async function enqueue(jobs) {
  for (let i = 0; i < jobs; i++) await jq.enqueue(NAME, argument);
}

async function work(jobs, concurrency) {
  let left = jobs;
  const handler = async () => {
    if (--left === 0) worker.stop();
  };
  const worker = new Worker(jq, { [NAME]: handler }, { concurrency });
  await worker.run();
}

const steps = { enqueue, work };
console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  const [step, ...numbers] = line.trim().split(' ');
  const started = performance.now();
  await steps[step](...numbers.map(Number));
  console.log(JSON.stringify({ ms: performance.now() - started }));
}
process.exit(0);
