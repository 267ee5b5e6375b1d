// No-op jobs through one BullMQ worker process: node worker.js <socket> <jobs> <concurrency>
import { Queue, Worker } from 'bullmq';
import Redis from 'ioredis';

const [path, jobs, concurrency] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const connect = () => new Redis(path, { maxRetriesPerRequest: null });
const queue = new Queue('bench', { connection: connect() });
for (let first = 0; first < jobs; first += 500) {
  await queue.addBulk(
    Array.from({ length: Math.min(500, jobs - first) }, () => ({
      name: 'noop',
      data: null,
      opts: { removeOnComplete: true },
    })),
  );
}
let done = 0;
let began = 0n;
new Worker(
  'bench',
  async () => {
    began ||= process.hrtime.bigint();
    done += 1;
    if (done === jobs) {
      console.log(JSON.stringify({ seconds: Number(process.hrtime.bigint() - began) / 1e9 }));
      process.exit(0);
    }
  },
  { connection: connect(), concurrency },
);
