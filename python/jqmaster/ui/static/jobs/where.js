// Which jobs are meant: the filters of an address as the API wants them, and in words.
import { stringify } from '../api.js';
import { duration, moment, now } from '../format.js';
import { whereOfLine } from './queryline.js';

export const WAITING = ['queued', 'scheduled', 'blocked', 'retrying'];
export const ENDED = ['done', 'error', 'cancelled', 'skipped'];
export const FILTERS = [
  'q',
  'status',
  'queue',
  'name',
  'tag',
  'group',
  'message',
  'worker',
  'since',
  'until',
  'from',
  'to',
];
const SAME = ['queue', 'name', 'tag', 'group', 'message', 'worker'];

/**
 * The filters of an address as `where` of the API. Throws where `q` is no line. `since` and `until` are of the reader's
 * clock; without them the range of all pages holds, where it is from one moment to another (`from`, `to`, in ms).
 */
export function whereOf(filters) {
  const where = whereOfLine(filters.q || '', now());
  for (const name of SAME) if (filters[name]) where[name] = filters[name];
  if (filters.status) where.status = filters.status.split(',').filter(Boolean);
  for (const [field, name] of [
    ['from_ms', 'since'],
    ['to_ms', 'until'],
  ]) {
    const ms = new Date(filters[name] || Number(filters[field.slice(0, -3)])).getTime();
    if (!Number.isNaN(ms)) where[field] = ms;
  }
  return where;
}

/** The same for the query of a GET. */
export const queryOf = (where) => ({
  ...where,
  status: where.status?.join(','),
  match: where.match && stringify(where.match),
});

/** Whether queues know how many they are: nothing is asked but their state and queue. */
export const isCounted = (where) => Object.keys(where).every((name) => name === 'status' || name === 'queue');

/** `where`, only for jobs in `states`; null when none can be. */
export function narrowed(where, states) {
  let wanted = where.status ? where.status.filter((state) => states.includes(state)) : states;
  if (where.group) wanted = wanted.filter((state) => state === 'error');
  return wanted.length ? { ...where, status: wanted } : null;
}

const OPERATORS = { gt: 'over', ge: 'from', lt: 'under', le: 'up to', glob: 'like' };

function conditionInWords([path, said]) {
  const name = path.replace(/^argument\./, '');
  if (Array.isArray(said)) return `${name} “${said[0]}”`;
  if (said === null || typeof said !== 'object') return `${name} “${said}”`;
  return Object.entries(said).map(([operator, value]) => `${name} ${OPERATORS[operator]} “${value}”`)[0];
}

/** What is meant, as a list of texts. */
export function inWords(where) {
  const words = [];
  if (where.status) words.push(`state ${where.status.join(' or ')}`);
  for (const name of SAME)
    if (where[name]) words.push(`${name === 'message' ? 'error contains' : name} “${where[name]}”`);
  if (where.match) words.push(...Object.entries(where.match).map(conditionInWords));
  if (where.argument) words.push(`argument contains “${where.argument}”`);
  if (where.slower_ms !== undefined) words.push(`ran for longer than ${duration(where.slower_ms)}`);
  if (where.from_ms) words.push(`enqueued from ${moment(where.from_ms)}`);
  if (where.to_ms) words.push(`enqueued before ${moment(where.to_ms)}`);
  return words;
}
