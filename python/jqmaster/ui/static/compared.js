// What is different since a moment, such as a deploy: each pair of queue and name in equal times before and after, out
// of statistics.
import { all } from './api.js';
import { now } from './format.js';
import { levelOf, MOST_PAIRS } from './trends.js';
import { STEP_MS } from './view.js';

const FAILING = ['failed', 'lapsed', 'error'];
const ENDED = ['done', ...FAILING, 'cancelled'];
// Added to counts that are compared: three failures instead of one say little.
const SMOOTH = 5;
const SMOOTH_MS = 20;
const ENOUGH = 5; // runs, before a percentile of theirs is compared
const NONE = { ended: 0, failing: 0, failing_share: null, run_p95: null };

const sum = (pair, kinds) => kinds.reduce((all, kind) => all + pair[kind], 0);

function figures(pair, minutes) {
  const ended = sum(pair, ENDED);
  const failing = sum(pair, FAILING);
  return {
    ended: ended / minutes,
    failing: failing / minutes,
    failing_share: ended ? failing / ended : null,
    run_p95: pair.run.count >= ENOUGH ? pair.run.p95 : null,
  };
}

function times(before, after, more) {
  const ratio = (after + more) / (before + more);
  return Math.max(ratio, 1 / ratio);
}

/** How many times as large or as small the most changed figure is, and which that is. */
function row(queue, name, before, after, minutes) {
  const changes = ['ended', 'failing'].map((of) => [of, times(before[of], after[of], SMOOTH / minutes)]);
  if (before.run_p95 !== null && after.run_p95 !== null)
    changes.push(['run', times(before.run_p95, after.run_p95, SMOOTH_MS)]);
  const [of, change] = changes.sort((a, b) => b[1] - a[1])[0];
  return { queue, name, of, change, before, after };
}

/** → {by, before: {from_ms, to_ms}, after, rows, pairs, more}; the step of the moment itself is left out: it is both. */
export async function changes(since_ms, span_s, signal) {
  const by = levelOf(since_ms - span_s * 1000);
  const step = STEP_MS[by];
  const middle = Math.floor(since_ms / step) * step;
  const span = Math.max(step, Math.floor((span_s * 1000) / step) * step);
  const from_ms = middle + step;
  const sides = [
    { from_ms: middle - span, to_ms: middle },
    { from_ms, to_ms: Math.round(Math.min(from_ms + span, Math.max(now(), from_ms))) },
  ];
  const minutes = sides.map((side) => (side.to_ms - side.from_ms) / STEP_MS.minute);
  const rows = new Map();
  let pairs = 0;
  let more = false;
  for (const [at, side] of minutes[1] ? sides.entries() : []) {
    const { found, isAll } = await all('/stats/series', { ...side, by, brief: true }, { signal }, MOST_PAIRS);
    pairs = Math.max(pairs, found.length);
    more = more || !isAll;
    for (const pair of found) {
      const key = JSON.stringify([pair.queue, pair.name]);
      if (!rows.has(key)) rows.set(key, [NONE, NONE, pair.queue, pair.name]);
      rows.get(key)[at] = figures(pair, minutes[at]);
    }
  }
  const compared = [...rows.values()].map(([before, after, queue, name]) =>
    row(queue, name, before, after, Math.min(...minutes)),
  );
  compared.sort((a, b) => b.change - a.change || (a.queue < b.queue ? -1 : 1));
  return { by, before: sides[0], after: sides[1], rows: compared.slice(0, 100), pairs, more };
}
