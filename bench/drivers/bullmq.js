// BullMQ as common.py has it: a step for each line on stdin, a line of JSON on stdout when it is done.
//   enqueue N (each awaited) · many N (100 in a call) · spaced N (10 to 30 ms apart) · work N
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { Queue, Worker } from 'bullmq';

const connection = { path: process.argv[2], maxRetriesPerRequest: null };
const concurrency = Number(process.argv[3]);
const options = { removeOnComplete: true };
const text = 'a'.repeat(192);
const queue = new Queue('mail.send1', { connection });
const job = () => ({ at: String(process.hrtime.bigint()), text });

async function enqueue(jobs) {
  for (let i = 0; i < jobs; i++) await queue.add('mail.send1', job(), options);
}

async function many(jobs) {
  for (let i = 0; i < jobs; i += 100)
    await queue.addBulk(Array.from({ length: 100 }, () => ({ name: 'mail.send1', data: job(), opts: options })));
}

async function spaced(jobs) {
  for (let i = 0; i < jobs; i++) {
    await pause(10 + 20 * Math.random());
    await enqueue(1);
  }
}

async function work(jobs) {
  const waited_ms = [];
  let started = 0;
  let completed = 0;
  const run = async (job) => {
    started ||= performance.now();
    waited_ms.push(Number(process.hrtime.bigint() - BigInt(job.data.at)) / 1e6);
  };
  const worker = new Worker('mail.send1', run, { connection, concurrency });
  const ended = await new Promise((resolve, reject) => {
    worker.on('completed', () => ++completed === jobs && resolve(performance.now()));
    worker.on('error', reject);
  });
  await worker.close();
  return { waited_ms, run_ms: ended - started };
}

const steps = { enqueue, many, spaced, work };
await queue.waitUntilReady();
console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  const [step, jobs] = line.trim().split(' ');
  const started = performance.now();
  const before = process.cpuUsage();
  const found = await steps[step](Number(jobs));
  const { user, system } = process.cpuUsage(before);
  console.log(JSON.stringify({ ms: performance.now() - started, cpu_us: user + system, ...found }));
}
process.exit(0);
