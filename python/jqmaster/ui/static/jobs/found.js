// Jobs that match, a page at a time; and how many they are, without looking at more than is needed.
import { api, path } from '../api.js';
import { isCounted, queryOf } from './where.js';

const PAGE = 1000;
const COUNTED = 20000; // more than these are "at least" so many

/** Pages of jobs, briefly; null at the end when there are more than `most`. */
export async function* found(where, { signal, most = Infinity, size = PAGE } = {}) {
  let cursor = '';
  let seen = 0;
  do {
    const page = await api.get('/jobs', { ...queryOf(where), brief: 1, count: size, cursor }, { signal });
    seen += page.jobs.length;
    yield page.jobs;
    cursor = page.cursor;
  } while (cursor && seen < most);
  if (cursor) yield null;
}

/** Queues know how many jobs they have in each state: then nothing need be looked at. Else null. */
async function known(where, signal) {
  if (!isCounted(where)) return null;
  const sum = (queue) => where.status.reduce((all, state) => all + queue[state], 0);
  if (where.queue) {
    return api.get(path`/queue/${where.queue}`, {}, { signal }).then(sum, (problem) => {
      if (problem.status !== 404) throw problem;
      return 0;
    });
  }
  let cursor = '';
  let all = 0;
  do {
    const page = await api.get('/queues', { count: PAGE, cursor }, { signal });
    all += page.queues.reduce((some, queue) => some + sum(queue), 0);
    cursor = page.cursor;
  } while (cursor);
  return all;
}

/** Counts what matches: tell({sum, first: some of them, isEnd: counting is over, isAll: there are no more}). */
export async function measure(where, { signal, show, tell }) {
  const sure = await known(where, signal);
  let sum = 0;
  let first = [];
  let isAll = true;
  for await (const page of found(where, {
    signal,
    most: sure === null ? COUNTED : show,
    size: sure === null ? PAGE : 20,
  })) {
    if (!page) {
      isAll = sure !== null;
      break;
    }
    sum += page.length;
    first = first.concat(page).slice(0, show);
    tell({ sum: sure ?? sum, first, isEnd: false, isAll: false });
  }
  tell({ sum: sure ?? sum, first, isEnd: true, isAll });
}
