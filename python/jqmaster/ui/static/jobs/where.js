// Which jobs are meant: the filters of an address as the API wants them, and in words.
import { moment } from '../format.js';

export const WAITING = ['queued', 'scheduled', 'blocked', 'retrying'];
export const ENDED = ['done', 'error', 'cancelled'];
export const FILTERS = ['status', 'queue', 'name', 'tag', 'group', 'message', 'from', 'to'];
const SAME = ['queue', 'name', 'tag', 'group', 'message'];

/** The filters of an address as `where` of the API; times there are of the reader's clock. */
export function whereOf(filters) {
  const where = {};
  for (const name of SAME) if (filters[name]) where[name] = filters[name];
  if (filters.status) where.status = filters.status.split(',').filter(Boolean);
  for (const name of ['from', 'to']) {
    const ms = filters[name] ? new Date(filters[name]).getTime() : NaN;
    if (!Number.isNaN(ms)) where[`${name}_ms`] = ms;
  }
  return where;
}

/** The same for the query of a GET. */
export const queryOf = (where) => ({ ...where, status: where.status?.join(',') });

/** `where`, only for jobs in `states`; null when none can be. */
export function narrowed(where, states) {
  let wanted = where.status ? where.status.filter((state) => states.includes(state)) : states;
  if (where.group) wanted = wanted.filter((state) => state === 'error');
  return wanted.length ? { ...where, status: wanted } : null;
}

/** What is meant, as a list of texts. */
export function inWords(where) {
  const words = [];
  if (where.status) words.push(`state ${where.status.join(' or ')}`);
  for (const name of SAME)
    if (where[name]) words.push(`${name === 'message' ? 'error contains' : name} “${where[name]}”`);
  if (where.from_ms) words.push(`enqueued from ${moment(where.from_ms)}`);
  if (where.to_ms) words.push(`enqueued before ${moment(where.to_ms)}`);
  return words;
}
