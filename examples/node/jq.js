// A client for JQ, written from docs/protocol.md: call, enqueue, wait.
// The worker is in worker.js.
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { decode, encode } from '@msgpack/msgpack';
import { createClient, ErrorReply, RESP_TYPES } from 'redis';

const ENDED = new Set(['done', 'error', 'cancelled', 'skipped']);
const PASSES = /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY) /; // a restart, a failover
const REPEAT_FOR_MS = 30_000;

/** One argument as MessagePack: a spec, or a blob. */
export const pack = (value) => Buffer.from(encode(value, { ignoreUndefined: true }));
export const unpack = (bytes) => decode(bytes);

/** An error reply: `CODE path: message`. */
export class JQError extends Error {
  constructor(text) {
    super(text);
    this.code = text.split(' ', 1)[0];
  }
}

export class JQ {
  /**
   * namespace: where the jobs are. manifest: the namespace whose scripts are called, mostly the same.
   * form: 'scripts' calls all by EVALSHA, else what the manifest names as functions is called by FCALL.
   */
  constructor(redis, namespace = '{jq}', { manifest = namespace, form = process.env.JQ_FORM } = {}) {
    Object.assign(this, { redis, namespace, manifest, form, named: new Map(), waiting: new Map() });
    this.buffers = redis.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  }

  static async connect(url, namespace) {
    // RESP 2: replies have the shapes that the page names. A lost connection is not an end: `repeated` sees to it.
    return new JQ(
      await createClient({ url, RESP: 2 })
        .on('error', () => {})
        .connect(),
      namespace,
    );
  }

  async close() {
    (await this.subscriber)?.destroy();
    await this.redis.close();
  }

  // -- Calling an operation ----------------------------------------------------------------------------

  /** Any Redis command; bulk strings are Buffers. */
  command(...parts) {
    return this.buffers.sendCommand(parts);
  }

  /** Calls an operation. Arguments are texts (ids) and Buffers (what `pack` gives). Safe to repeat, so it is. */
  async call(operation, ...parts) {
    try {
      return await this.repeated(() => this.evaluate(operation, parts));
    } catch (error) {
      if (!(error instanceof ErrorReply)) throw error;
      if (!error.message.startsWith('VERSION ')) throw new JQError(error.message);
    }
    // Another version may have set the namespace up since: its manifest names scripts that know the schema.
    this.named.delete(operation);
    return this.evaluate(operation, parts).catch((error) => {
      throw new JQError(error.message);
    });
  }

  /** How an operation is called, and what it is loaded from: a library of functions, or a script. */
  async name(operation) {
    const fields = [operation, 'library', 'functions'];
    const [sha, library, functions] = await this.redis.hmGet(`${this.manifest}:manifest`, fields);
    if (!sha) throw new Error(`no script ${operation} in ${this.manifest}:manifest`);
    const isFunction = this.form !== 'scripts' && functions?.split(' ').includes(operation);
    const how = isFunction
      ? { call: ['FCALL', `${library}_${operation}`], load: ['FUNCTION', 'LOAD', 'REPLACE'], from: library }
      : { call: ['EVALSHA', sha], load: ['SCRIPT', 'LOAD'], from: sha };
    this.named.set(operation, how);
    return how;
  }

  /** What a library or script is loaded from: it is kept compressed by gzip. */
  async source({ from }) {
    const key = await this.redis.hGet(`${this.manifest}:manifest`, 'sources');
    const kept = await this.command('HGET', key, from);
    return kept && gunzipSync(kept).toString();
  }

  async evaluate(operation, parts) {
    const send = ({ call }) => this.command(...call, '2', this.namespace, `${this.namespace}:meta`, ...parts);
    let how = this.named.get(operation) ?? (await this.name(operation));
    try {
      return await send(how);
    } catch (error) {
      if (!/^(NOSCRIPT|ERR Function not found)/.test(error.message)) throw error;
    }
    let source = await this.source(how);
    if (!source) {
      how = await this.name(operation); // an old version that was taken away
      source = await this.source(how);
    }
    await this.redis.sendCommand([...how.load, source]);
    return send(how);
  }

  /** A lost connection says nothing about whether a call was carried out: the same call again. */
  async repeated(call) {
    const until = Date.now() + REPEAT_FOR_MS;
    for (let wait = 50; ; wait = Math.min(2 * wait, 2000)) {
      try {
        return await call();
      } catch (error) {
        const isAnswer = error instanceof ErrorReply && !PASSES.test(error.message);
        if (isAnswer || !this.redis.isOpen || Date.now() > until) throw error;
        await pause(wait);
      }
    }
  }

  // -- Enqueue, look, wait [3, 4] ----------------------------------------------------------------------

  /** jobs: [[spec, argument], ...]. The request token makes the call safe to repeat. */
  async enqueueMany(jobs, request = randomUUID()) {
    const parts = jobs.flatMap(([spec, argument]) => [pack(spec), pack(argument)]);
    const reply = await this.call('enqueue', pack({ request }), ...parts);
    return jobs.map((_, i) => ({ id: reply[2 * i].toString(), created: reply[2 * i + 1] === 1 }));
  }

  async enqueue(name, argument = null, options = {}) {
    return (await this.enqueueMany([[{ ...options, name }, argument]]))[0].id;
  }

  async get(id) {
    const [bytes] = await this.call('get', id);
    return bytes && unpack(bytes);
  }

  async cancel(id, options = {}) {
    return (await this.call('cancel', pack({ ...options, ids: [id] })))[0].toString();
  }

  async result(id) {
    const [state, bytes] = await this.call('result', id);
    return { state: state.toString(), result: bytes && unpack(bytes) };
  }

  /** Waits until a job has ended; gives its document, also when the time is up before. */
  async wait(id, ms = 30_000) {
    this.subscriber ??= this.listen(); // one for all that wait
    await this.subscriber;
    const until = Date.now() + ms;
    for (;;) {
      let wake;
      const woken = new Promise((resolve) => (wake = resolve));
      const wakes = this.waiting.get(id) ?? new Set();
      this.waiting.set(id, wakes.add(wake));
      try {
        const [state] = await this.call('watch', id);
        const left = until - Date.now();
        if (!state || ENDED.has(state.toString()) || left <= 0) return await this.get(id);
        // What is published while we are not connected is lost: look again now and then.
        const timer = new AbortController();
        const time = pause(Math.min(left, 5000), undefined, timer).catch(() => {});
        await Promise.race([woken, time]);
        timer.abort();
      } finally {
        wakes.delete(wake);
        if (wakes.size === 0) this.waiting.delete(id);
      }
    }
  }

  async listen() {
    const subscriber = await this.redis
      .duplicate()
      .on('error', () => {})
      .connect();
    await subscriber.sSubscribe(`${this.namespace}:ended`, (message) => {
      const [id] = message.split(' ');
      for (const wake of this.waiting.get(id) ?? []) wake();
    });
    return subscriber;
  }
}
