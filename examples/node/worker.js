// A worker for JQ, written from docs/protocol.md.
import { createHash, randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { JQError, pack, unpack } from './jq.js';

const SLEEP_MS = 30_000;
const BEAT_MS = 1000;

export class Worker {
  /**
   * handlers: {name: async (argument, job) => result}. job has the fields of a pick's document, `signal` (aborted when
   * the job is ours no longer) and `progress(fraction, text, checkpoint)`. An error with `retry: false` is final.
   */
  constructor(jq, handlers, { queues = Object.keys(handlers), concurrency = 10, graceMs = 10_000 } = {}) {
    Object.assign(this, { jq, handlers, queues, concurrency, graceMs });
    this.id = `node-${hostname()}-${randomUUID()}`; // unique, or others would answer for it
    const sorted = queues
      .map((name) => Buffer.from(name))
      .sort(Buffer.compare)
      .join('\n');
    this.channel = `q-${createHash('sha1').update(sorted).digest('hex').slice(0, 16)}`;
    this.running = new Set(); // {job, stop: AbortController, done: Promise}
    this.isStopping = false;
  }

  /** Runs jobs until `stop` is called; then waits for those that run, and gives back what is not done in time. */
  async run() {
    this.sleeper = await this.jq.redis
      .duplicate()
      .on('error', () => {})
      .connect();
    const heart = new AbortController();
    const beating = this.beat(heart.signal);
    try {
      while (!this.isStopping) {
        await this.fetch().catch((error) => {
          if (error instanceof JQError || !this.jq.redis.isOpen) throw error;
          console.error(`${this.id}: ${error.message}`); // Redis is away for long; it will come back
        });
      }
      const drained = Promise.all([...this.running].map((slot) => slot.done));
      await Promise.race([drained, pause(this.graceMs, undefined, { ref: false })]);
      await this.giveBack([...this.running]);
    } finally {
      heart.abort();
      if (this.sleeper.isOpen) this.sleeper.destroy();
      await beating;
    }
  }

  stop() {
    this.isStopping = true;
    if (this.sleeper?.isOpen) this.sleeper.destroy();
  }

  /** Fills the slots that are free, or sleeps until there may be something to fill them with. */
  async fetch() {
    const count = this.concurrency - this.running.size;
    if (count <= 0) {
      await Promise.race([...this.running].map((slot) => slot.done));
      return;
    }
    const wait = { on: this.channel, ms: SLEEP_MS };
    const spec = { worker: this.id, queues: this.queues, count, wait, request: randomUUID() };
    const [nextMs, ...parts] = await this.jq.call('pick', pack(spec));
    for (let i = 0; i < parts.length; i += 2) this.start(parts.slice(i, i + 2));
    if (parts.length || this.isStopping) return;
    const marker = `${this.jq.namespace}:wake:${this.channel}`;
    // However it ends, the next thing is to pick again.
    await this.sleeper.sendCommand(['BZPOPMIN', marker, String(nextMs / 1000)]).catch(() => pause(50));
  }

  start(job) {
    const slot = { job };
    this.running.add(slot);
    slot.done = this.serve(slot)
      // When Redis is away for long, the leases end and other attempts follow: nothing is lost.
      .catch((error) => console.error(`${this.id}: ${error.message}`))
      .finally(() => this.running.delete(slot));
  }

  /** One job after the other: each finish brings the next. */
  async serve(slot) {
    while (slot.job) {
      const [document, argument] = slot.job;
      slot.job = unpack(document);
      slot.stop = new AbortController();
      const outcome = await this.attempt(slot.job, argument, slot.stop);
      const pick = this.isStopping ? undefined : { queues: this.queues, request: randomUUID() };
      const outcomes = slot.stop.signal.aborted ? [] : outcome;
      if (!pick && !outcomes.length) return;
      const reply = await this.jq.call('finish', pack({ worker: this.id, pick }), ...outcomes);
      const [, ...picked] = reply.slice(outcomes.length / 2); // behind the answers and next_ms
      slot.job = picked.length ? picked : undefined;
    }
  }

  /** Runs a handler; gives the outcome and its blob. */
  async attempt(job, argument, stop) {
    const outcome = { id: job.id, token: job.token };
    const progress = async (fraction, message, checkpoint) => {
      const blobs = checkpoint === undefined ? [] : [pack(checkpoint)];
      const notes = { progress: fraction, message, argument: blobs.length ? 0 : undefined };
      const spec = { worker: this.id, jobs: [[job.id, job.token, notes]] };
      const [answer] = await this.jq.call('heartbeat', pack(spec), ...blobs);
      if (typeof answer !== 'number') stop.abort(new JQError(answer.toString()));
    };
    try {
      const handler = this.handlers[job.name];
      if (!handler) throw new Error(`no handler for ${job.name}`);
      const result = await handler(unpack(argument), { ...job, signal: stop.signal, progress });
      return [pack({ ...outcome, type: 'success' }), pack(result)];
    } catch (error) {
      const message = String(error?.message ?? error).slice(0, 10_000);
      const failure = { type: 'failure', message, group: error?.name, should_retry: error?.retry !== false };
      return [pack({ ...outcome, ...failure }), pack(null)];
    }
  }

  /** Renews all leases, and tells the handlers of jobs that are ours no longer. */
  async beat(over) {
    while (!over.aborted) {
      const thirds = [...this.running].map((slot) => (slot.job?.timeout ?? 30) * 333);
      await pause(Math.min(BEAT_MS, ...thirds), undefined, { signal: over, ref: false }).catch(() => {});
      const held = [...this.running].filter((slot) => slot.job?.id && !slot.stop.signal.aborted);
      if (!held.length || over.aborted) continue;
      const asked = held.map(({ job, stop }) => ({ job, stop }));
      const spec = { worker: this.id, jobs: asked.map(({ job }) => [job.id, job.token]) };
      const answers = await this.jq.call('heartbeat', pack(spec)).catch(() => []);
      answers.forEach((answer, i) => {
        // What finished meanwhile is LOST, too; nobody looks at its signal any more.
        if (typeof answer !== 'number') asked[i].stop.abort(new JQError(answer.toString()));
      });
    }
  }

  async giveBack(slots) {
    const held = slots.filter((slot) => slot.job?.id && !slot.stop.signal.aborted);
    for (const { stop } of held) stop.abort(new JQError('RELEASED'));
    const jobs = held.map(({ job }) => [job.id, job.token]);
    if (jobs.length) await this.jq.call('release', pack({ worker: this.id, jobs }));
  }
}
