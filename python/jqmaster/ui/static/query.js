// Which jobs are meant: a line such as `queue:mail customer.id:acme worker:mail-1 slower:30s "no host"`, as the API wants it, in words, and completed; and what can be done to them.
import { all, only, stringify } from './api.js';
import { CONSTANTS, duration, KEYS, moment, NUMBER, now, PLAIN, quoted, SPANS } from './format.js';
import { STATES, WAITING } from './parts.js';

const SAME = ['queue', 'name', 'tag', 'group', 'message', 'worker'];

/** The line that says what the filters of a link say: `?queue=mail&q=customer:acme`. */
export const lineOf = (filters) =>
  SAME.flatMap((name) => (filters[name] ? [`${name === 'message' ? 'error' : name}:${quoted(filters[name])}`] : []))
    .concat(filters.q || [])
    .join(' ');

/** The filters of an address as `where` of the API: a line, states, and a range (`from`, `to`, in ms). Throws where it is no line. */
export function whereOf(filters) {
  const where = whereOfLine(lineOf(filters), now());
  if (filters.status) where.status = filters.status.split(',').filter(Boolean);
  for (const [field, name] of [
    ['from_ms', 'from'],
    ['to_ms', 'to'],
  ])
    if (filters[name]) where[field] = Number(filters[name]);
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

/** Jobs by state, of a queue or of all; null where there are too many queues. */
export async function countStates(queue, signal) {
  if (queue) {
    const document = await only('/queues', { names: queue }, { signal }).catch((problem) => {
      if (problem.status !== 404) throw problem;
      return {};
    });
    return Object.fromEntries(STATES.map((state) => [state, document[state] || 0]));
  }
  const { entries: queues, isAll } = await all('/queues', {}, { signal });
  const sum = (state) => queues.reduce((sofar, queue) => sofar + queue[state], 0);
  return isAll ? Object.fromEntries(STATES.map((state) => [state, sum(state)])) : null;
}

/** `where`, only for jobs in `states`; null when none can be. */
export function narrowed(where, states) {
  let wanted = where.status ? where.status.filter((state) => states.includes(state)) : states;
  if (where.group) wanted = wanted.filter((state) => state === 'error');
  return wanted.length ? { ...where, status: wanted } : null;
}

const OPERATORS = { gt: 'over', ge: 'from', lt: 'under', le: 'up to', glob: 'like' };

function conditionInWords([path, wanted]) {
  const name = path.replace(/^argument\./, '');
  if (Array.isArray(wanted)) return `${name} “${wanted[0]}”`;
  if (wanted === null || typeof wanted !== 'object') return `${name} “${wanted}”`;
  return Object.entries(wanted).map(([operator, value]) => `${name} ${OPERATORS[operator]} “${value}”`)[0];
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

// -- lines --------------------------------------------------------------------------------------------

const TOKEN = /(?:([^\s":]+):)?("(?:[^"\\]|\\.)*"|\S+)/g;
const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)?$/;
const BOUND = /^(>=|<=|>|<)(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;
const MS = { ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000, w: 604800000 };
const BOUNDS = { '>': 'gt', '>=': 'ge', '<': 'lt', '<=': 'le' };

const problem = (text) => Object.assign(new Error(text), { field: 'q' });

/** As the API wants it; integers that a number cannot hold are BigInt. */
function number(text) {
  const value = Number(text);
  return /^-?\d+$/.test(text) && !Number.isSafeInteger(value) ? BigInt(text) : value;
}

function fits(value) {
  return typeof value !== 'bigint' || (value < 2n ** 63n && value > -(2n ** 63n));
}

function operand(text) {
  const bound = BOUND.exec(text);
  if (bound) return { [BOUNDS[bound[1]]]: number(bound[2]) };
  if (text.includes('*')) return { glob: text };
  if (NUMBER.test(text) && fits(number(text))) return [number(text), text];
  return Object.hasOwn(CONSTANTS, text) ? [CONSTANTS[text], text] : text;
}

function span(key, text) {
  const match = DURATION.exec(text);
  if (!match) throw problem(`${key}: expected a duration such as 30s, 5m or 2h, got '${text}'`);
  return Math.round(Number(match[1]) * MS[match[2] || 's']);
}

/** → [field of `where`, value, whether it belongs into its `match`] */
function condition(key, text, isQuoted, now) {
  if ((key === 'queue' || key === 'name') && text.includes('*') && !isQuoted) return [key, { glob: text }, true];
  if (Object.hasOwn(PLAIN, key)) return [PLAIN[key], text];
  if (key === 'status') return ['status', text.split(',')];
  if (Object.hasOwn(SPANS, key)) return [SPANS[key], key === 'slower' ? span(key, text) : now - span(key, text)];
  return [key.startsWith('argument.') ? key : `argument.${key}`, isQuoted ? text : operand(text), true];
}

/** `where` of the API. Throws an error with `field`. */
export function whereOfLine(line, now) {
  const where = {};
  const words = [];
  for (const [, key, raw] of line.matchAll(TOKEN)) {
    const isQuoted = raw.startsWith('"') && raw.length > 1;
    const text = isQuoted ? raw.slice(1, -1).replace(/\\(.)/g, '$1') : raw;
    if (!key) {
      words.push(text);
      continue;
    }
    const [field, value, isInside] = condition(key, text, isQuoted, now);
    if (isInside) where.match ??= {};
    const place = isInside ? where.match : where;
    if (Object.hasOwn(place, field)) throw problem(`${key} is given twice`);
    place[field] = value;
  }
  if (words.length) where.argument = words.join(' ');
  return where;
}

/**
 * What may stand instead of the last word of a line: whole lines. `names`: for a key, what to complete its value with,
 * async (text) → texts.
 */
export async function completions(line, names) {
  const [, before, last] = /^(.*?)(\S*)$/.exec(line);
  const [, key, text] = /^([^\s":]+):"?(.*)$/.exec(last) || [];
  if (!key) return KEYS.filter((key) => key.startsWith(last)).map((key) => `${before}${key}:`);
  const values = names[key] ? await names[key](text) : [];
  return values.slice(0, 50).map((value) => `${before}${key}:${quoted(value)}`);
}

// -- what can be done to jobs: the same for one, some, and all that match ------------------------------

const PRIORITY = {
  name: 'priority',
  label: 'New priority',
  type: 'number',
  required: true,
  hint: 'The smallest runs first; 0 is usual.',
};

/**
 * states: those it is for. did: what is said afterwards. path: of an API that takes ids and `where`; idsPath: of one that
 * takes ids; change(values): or what each of those chosen gets. fields: what is asked for first. options(values): more for
 * the API's body.
 */
export const ACTIONS = [
  {
    id: 'retry',
    label: 'Retry',
    did: 'put in the queue again',
    states: ['error', 'cancelled', 'skipped', 'retrying'],
    path: '/jobs/retry',
    what: 'They run again at once, with all their retries; what is known of the last failure stays.',
  },
  {
    id: 'run',
    label: 'Run now',
    did: 'made ready',
    states: ['scheduled', 'retrying'],
    change: () => ({ delay: 0 }),
    what: 'They do not wait for their time any longer.',
  },
  {
    id: 'priority',
    label: 'Change priority',
    did: 'changed',
    states: WAITING,
    fields: [PRIORITY],
    change: ({ priority }) => ({ priority }),
    what: 'Those that wait are put in their new place.',
  },
  {
    id: 'kick',
    label: 'Take from worker',
    did: 'given back to the queue',
    states: ['running'],
    idsPath: '/jobs/kick',
    danger: true,
    what: 'They wait again and no retry is spent. What they did so far may happen twice.',
  },
  {
    id: 'cancel',
    label: 'Cancel',
    did: 'cancelled',
    states: [...WAITING, 'running'],
    path: '/jobs/cancel',
    danger: true,
    what: 'They do not run (any more). They can be retried as long as their records are kept.',
    fields: [
      { name: 'force', label: 'Also running jobs, where the settings protect them', type: 'checkbox' },
      {
        name: 'dependents',
        label: 'Jobs that wait for them',
        type: 'select',
        value: 'leave',
        options: [
          ['leave', 'do as they were told for this case'],
          ['cancel', 'are cancelled as well'],
        ],
      },
    ],
    options: ({ force, dependents }) => ({
      ...(force ? { force } : {}),
      ...(dependents === 'cancel' ? { dependents } : {}),
    }),
  },
  {
    id: 'discard',
    label: 'Discard',
    did: 'discarded',
    states: [...WAITING, 'done', 'error', 'cancelled', 'skipped'],
    path: '/jobs/discard',
    danger: true,
    what: 'They go for good, with arguments, results and errors. This cannot be undone.',
  },
];

export const actionOf = (id) => ACTIONS.find((action) => action.id === id);

/** Asks, and does it. target: {ids, rows} or {where} → a promise: how many were changed; undefined when it was given up. */
export const mass = async (action, target) => (await import('./acting.js')).mass(action, target);
