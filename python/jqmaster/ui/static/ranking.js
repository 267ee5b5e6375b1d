// All queues with how they do, kept for the pages that show them, and put in order here. The first look goes through
// all, page by page; a later one asks for the queues that are seen, and for one page more.
import { api, path } from './api.js';
import { MINUTES, netOf } from './queues.js';

const PAGE = 1000;
const MOST = 20000;
const CAUSES = ['no worker', 'unknown job', 'constraint', 'slow', 'paused'];
const OPEN = ['queued', 'scheduled', 'blocked', 'running', 'retrying'];

let known = new Map();
let round = { cursor: '', names: new Set(), began: 0 };
let wholeAt = 0;
let isMore = false;

async function page(signal) {
  if (!round.cursor) round = { cursor: '', names: new Set(), began: Date.now() };
  const asked = { minutes: MINUTES, cursor: round.cursor, count: PAGE };
  const { queues, cursor } = await api.get('/queues', asked, { signal });
  for (const queue of queues) {
    known.set(queue.name, queue);
    round.names.add(queue.name);
  }
  round.cursor = round.names.size < MOST ? cursor : '';
  if (round.cursor) return;
  for (const name of known.keys()) if (!round.names.has(name)) known.delete(name);
  isMore = Boolean(cursor);
  wholeAt = round.began;
}

/** A key that is bound to queues cannot list all: the overview names those with most to do. */
async function bound(signal) {
  const { queues } = await api.get('/overview', {}, { signal });
  const ask = (name) => api.get(path`/queue/${name}`, { minutes: MINUTES }, { signal });
  known = new Map((await Promise.all(queues.top.map(ask))).map((queue) => [queue.name, queue]));
  wholeAt = Date.now();
  isMore = queues.count > queues.top.length;
}

/** Looks on → {queues, more, age_ms}. `more`: there are others; `age_ms`: how old the oldest of it is. */
export async function lookOn(signal) {
  try {
    do await page(signal);
    while (round.cursor && !wholeAt);
  } catch (problem) {
    if (problem.status !== 403) throw problem;
    await bound(signal);
  }
  return { queues: [...known.values()], more: isMore, age_ms: Date.now() - wholeAt };
}

const VALUES = {
  open: (queue) => OPEN.reduce((sum, state) => sum + queue[state], 0),
  oldest: (queue) => queue.oldest_ready_ms && -queue.oldest_ready_ms,
  cause: (queue) => (queue.cause ? CAUSES.length - CAUSES.indexOf(queue.cause) : null),
  net: netOf,
  empties: (queue) => queue.empties_ms,
  wait: (queue) => queue.recent?.wait?.p95,
  run: (queue) => queue.recent?.run?.p95,
};

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** In order of a column, the greatest first; who has no such figure comes last, whichever way round. */
export function ranked(queues, by, { turned = false, text = '' } = {}) {
  const found = queues.filter((queue) => queue.name.includes(text)).sort((a, b) => compare(a.name, b.name));
  if (by === 'name') return turned ? found.reverse() : found;
  const value = VALUES[by] || ((queue) => queue[by]);
  const has = (queue) => Boolean(value(queue));
  const some = found.filter(has).sort((a, b) => (turned ? 1 : -1) * compare(value(a), value(b)));
  return [...some, ...found.filter((queue) => !has(queue))];
}
