// Drives BullMQ for the bench. One command per line on stdin, one JSON reply per line on stdout, so that the
// bench can read the server's CPU time around each step.
//   add N · addPipelined N · addBulk N (100 a call) · drain N (a worker, concurrency 32)
//   spaced N (10 to 30 ms apart; a job has the moment) · serve (a worker from now on) · waits N (of the jobs it started)

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { Queue, Worker } from 'bullmq';

const connection = { path: process.argv[2], maxRetriesPerRequest: null };
const payload = { p: 'a'.repeat(200 - JSON.stringify({ p: '' }).length) };
const options = { removeOnComplete: true };
const queue = new Queue('mail.send1', { connection });
const BULK = 100;
const CONCURRENCY = 32;

async function add(jobs) {
  for (let i = 0; i < jobs; i++) await queue.add('mail.send1', payload, options);
}

async function addPipelined(jobs) {
  for (let i = 0; i < jobs; i += BULK) {
    const calls = [];
    for (let k = 0; k < BULK; k++) calls.push(queue.add('mail.send1', payload, options));
    await Promise.all(calls);
  }
}

async function addBulk(jobs) {
  const bulk = Array.from({ length: BULK }, () => ({ name: 'mail.send1', data: payload, opts: options }));
  for (let i = 0; i < jobs; i += BULK) await queue.addBulk(bulk);
}

async function drain(jobs) {
  let left = jobs;
  let finished;
  const all = new Promise((resolve) => {
    finished = resolve;
  });
  const worker = new Worker('mail.send1', async () => undefined, { connection, concurrency: CONCURRENCY });
  worker.on('completed', () => {
    if (--left === 0) finished(performance.now());
  });
  worker.on('error', (error) => {
    console.error(error);
    process.exit(1);
  });
  await worker.waitUntilReady();
  const started = performance.now();
  const ended = await all;
  await worker.close();
  return { ms: ended - started };
}

async function spaced(jobs) {
  for (let i = 0; i < jobs; i++) {
    await pause(10 + 20 * Math.random());
    await queue.add('mail.send1', { at: String(process.hrtime.bigint()) }, options);
  }
}

const waited = [];
let told;

async function serve() {
  const work = async (job) => {
    waited.push(Number(process.hrtime.bigint() - BigInt(job.data.at)) / 1e6);
    told?.();
  };
  await new Worker('mail.send1', work, { connection, concurrency: CONCURRENCY }).waitUntilReady();
}

async function waits(jobs) {
  while (waited.length < jobs)
    await new Promise((resolve) => {
      told = resolve;
    });
  return { waits: waited.splice(0) };
}

const steps = { add, addPipelined, addBulk, drain, spaced, serve, waits };
await queue.waitUntilReady();
const { version } = createRequire(import.meta.url)('bullmq/package.json');
console.log(JSON.stringify({ ready: true, version }));
for await (const line of createInterface({ input: process.stdin })) {
  const [step, jobs] = line.trim().split(' ');
  const started = performance.now();
  const before = process.cpuUsage();
  const found = await steps[step](Number(jobs));
  const { user, system } = process.cpuUsage(before);
  console.log(JSON.stringify({ ms: performance.now() - started, cpu_us: user + system, ...found }));
}
process.exit(0);
