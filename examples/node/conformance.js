// Runs the conformance suite (tests/protocol, which says what the notation means) with this client.
// node conformance.js <directory of the suite> [URL of Redis] [namespace]      JQ_FORM=scripts: by EVALSHA alone
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { JQ, pack, unpack } from './jq.js';

const [directory, url = 'redis://127.0.0.1:6379', namespace = '{jq}'] = process.argv.slice(2);
const jq = await JQ.connect(url, namespace);

const isMap = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

class Case {
  constructor() {
    this.jq = new JQ(jq.redis, `{suite-${randomUUID()}}`, { manifest: namespace });
    this.captured = new Map();
    this.messages = [];
  }

  async run({ steps, setup = true }) {
    if (setup) await this.jq.call('setup');
    for (const [number, step] of steps.entries()) {
      const until = Date.now() + (step.until || step.message ? 5000 : 0);
      for (;;) {
        try {
          await this.play(step);
          break;
        } catch (error) {
          if (Date.now() >= until) throw new Error(`step ${number}: ${error.message}\n  ${JSON.stringify(step)}`);
          await pause(10);
        }
      }
    }
  }

  async play(step) {
    if (step.subscribe) {
      this.subscriber = await this.jq.redis.duplicate().connect();
      await this.subscriber.sSubscribe(this.full(step.subscribe), (text) => this.messages.push(text), true);
    } else if (step.message) {
      const message = this.messages[0];
      assert(message, 'no message');
      this.compare(step.message, Array.isArray(step.message) ? message.toString().split(' ') : message);
      this.messages.shift();
    } else {
      let reply;
      try {
        reply = step.redis
          ? await this.jq.command(...step.redis.map((part) => this.full(part)))
          : await this.jq.call(step.call, ...step.args.map((argument) => this.argument(argument)));
      } catch (error) {
        const is = step.error && `${error.message} `.startsWith(step.error);
        if (is && ': '.includes(error.message[step.error.length])) return;
        throw error;
      }
      assert(!step.error, `no error, but ${JSON.stringify(reply)}`);
      this.compare(step.reply ?? '$any', reply);
    }
  }

  full(text) {
    return text.replaceAll('{tag}', this.jq.namespace);
  }

  argument(argument) {
    if (typeof argument === 'string') return this.filled(argument);
    return 'hex' in argument ? Buffer.from(argument.hex, 'hex') : pack(this.filled(argument.pack));
  }

  filled(value) {
    if (Array.isArray(value)) return value.map((item) => this.filled(item));
    if (isMap(value)) return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.filled(item)]));
    return typeof value === 'string' && value.startsWith('$') ? this.captured.get(value) : value;
  }

  compare(pattern, value, path = 'reply') {
    if (Buffer.isBuffer(value) && isMap(pattern) && 'pack' in pattern) {
      return this.compare(pattern.pack, unpack(value), path);
    }
    if (isMap(pattern) && 'hex' in pattern) return assert.equal(value?.toString('hex'), pattern.hex, path);
    if (value instanceof Uint8Array) value = Buffer.from(value).toString();
    const isNumber = typeof value === 'number';
    if (pattern === '$absent') return assert(value === undefined, path);
    assert(value !== undefined, `${path} is missing`);
    if (pattern === '$any') return undefined;
    if (pattern === '$number') return assert(isNumber, path);
    if (pattern === '$integer') return assert(Number.isInteger(value), path);
    if (pattern === '$text') return assert(typeof value === 'string', path);
    if (typeof pattern === 'string' && pattern.startsWith('$')) {
      if (!this.captured.has(pattern)) this.captured.set(pattern, value);
      return assert.deepEqual(value, this.captured.get(pattern), path);
    }
    if (isMap(pattern) && '$between' in pattern) {
      const [least, most] = pattern.$between;
      return assert(isNumber && least <= value && value <= most, `${path}: ${value}`);
    }
    if (Array.isArray(pattern) && pattern.length === 0 && isMap(value)) value = Object.keys(value);
    if (Array.isArray(pattern)) {
      assert(Array.isArray(value) && value.length === pattern.length, `${path}: ${JSON.stringify(value)}`);
      for (const [i, item] of pattern.entries()) this.compare(item, value[i], `${path}[${i}]`);
      return;
    }
    if (isMap(pattern)) {
      assert(isMap(value) || value?.length === 0, `${path}: ${JSON.stringify(value)}`);
      for (const [key, item] of Object.entries(pattern)) this.compare(item, value[key], `${path}.${key}`);
      return;
    }
    assert.equal(value, pattern, path);
  }

  async close() {
    this.subscriber?.destroy();
    const [, keys] = await jq.redis.sendCommand(['SCAN', '0', 'MATCH', `${this.jq.namespace}:*`, 'COUNT', '1000000']);
    if (keys.length) await jq.redis.sendCommand(['UNLINK', ...keys]);
  }
}

let [all, failed] = [0, 0];
for (const file of readdirSync(directory)
  .filter((name) => name.endsWith('.json'))
  .sort()) {
  const { topic, cases } = JSON.parse(readFileSync(join(directory, file)));
  for (const each of cases) {
    all += 1;
    const attempt = new Case();
    try {
      await attempt.run(each);
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${topic}: ${each.case}\n  ${error.message}`);
    } finally {
      await attempt.close();
    }
  }
}
console.log(`${all - failed} of ${all} cases passed`);
await jq.close();
process.exitCode = failed ? 1 : 0;
