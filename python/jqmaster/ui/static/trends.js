// What came to an end over time, by outcome, queue or name, out of statistics; how many ran and had not ended.
import { all, api } from './api.js';
import { now } from './format.js';
import { STEP_MS } from './view.js';

const OUTCOMES = ['done', 'failed', 'lapsed', 'error', 'cancelled'];
const KEPT = { minute: 180, hour: 192, day: 400 };
export const MOST_PAIRS = 1000;
const MOST_RUNNING = 1000;

const total = (values) => values.reduce((sum, value) => sum + value, 0);
const ended = (bucket) => total(OUTCOMES.map((kind) => bucket[kind]));
const growth = ({ enqueued, done, error, cancelled, skipped }) => enqueued - done - error - cancelled - skipped;

/** The finest buckets that are still kept of a moment. */
export function levelOf(ms) {
  const isKept = (by) => Math.floor(ms / STEP_MS[by]) > Math.floor(now() / STEP_MS[by]) - KEPT[by];
  return Object.keys(KEPT).find(isKept) || 'day';
}

function spread(begins, buckets, value) {
  const known = new Map(buckets.map((bucket) => [bucket.begin_ms, value(bucket)]));
  return begins.map((begin) => known.get(begin) || 0);
}

const series = (name, values) => ({ name, count: total(values), values });

/** The largest queues or names, and all others together. */
async function split(by, { period, begins, whole, top, signal }) {
  const { found, isAll } = await all('/stats/series', { ...period, brief: true }, { signal }, MOST_PAIRS);
  const sums = new Map();
  for (const pair of found) sums.set(pair[by], (sums.get(pair[by]) || 0) + ended(pair));
  const names = [...sums].filter(([, sum]) => sum).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const rows = await Promise.all(
    names.slice(0, top).map(async ([name]) => {
      const { stats } = await api.get('/stats', { ...period, brief: true, [by]: name }, { signal });
      return series(name, spread(begins, stats, ended));
    }),
  );
  const rest = whole.map((sum, at) => Math.max(0, sum - total(rows.map(({ values }) => values[at]))));
  return { series: rows, rest, pairs: found.length, more: !isAll };
}

/**
 * → {by, step_ms, split, begins, series: [{name, count, values}], rest, pairs, more, running, running_is_exact, grown}.
 * `running`: attempts that ran at each begin; `grown`: by how much more jobs have not ended now than had then.
 */
export async function trends(by, { from_ms, to_ms, top }, signal) {
  const level = levelOf(from_ms);
  const step_ms = STEP_MS[level];
  const first = Math.floor(from_ms / step_ms) * step_ms;
  const end = Math.min(to_ms, now());
  const begins = Array.from({ length: Math.max(0, Math.ceil((end - first) / step_ms)) }, (_, i) => first + i * step_ms);
  const [{ stats }, running] = await Promise.all([
    api.get('/stats', { by: level, from_ms: first, brief: true }, { signal }),
    all('/jobs', { status: 'running', brief: true }, { signal }, MOST_RUNNING),
  ]);
  const since = (begin, value) => total(stats.filter(({ begin_ms }) => begin_ms >= begin).map(value));
  const whole = spread(begins, stats, ended);
  const period = { by: level, from_ms: first, to_ms: Math.ceil(end) };
  const parts =
    by === 'outcome'
      ? {
          series: OUTCOMES.map((kind) =>
            series(
              kind,
              spread(begins, stats, (bucket) => bucket[kind]),
            ),
          ),
          rest: [],
        }
      : await split(by, { period, begins, whole, top, signal });
  const started = running.found.map((job) => job.started_ms);
  return {
    ...parts,
    by: level,
    step_ms,
    split: by,
    begins,
    running: begins.map(
      (begin) => started.filter((ms) => ms < begin).length - since(begin, ({ net_starts }) => net_starts),
    ),
    running_now: started.length,
    running_is_exact: running.isAll,
    grown: begins.map((begin) => since(begin, growth)),
  };
}
