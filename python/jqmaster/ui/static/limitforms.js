// How a limit is made, changed, put on hold and deleted, with what that would do.
import { api, only, stringify } from './api.js';
import { count, cut, jobs } from './format.js';
import { act, confirm, fault, form, toast } from './forms.js';
import { at, inWords, isWhole, paths } from './limits.js';
import { html } from './view.js';

/** A limit as it can be set again. */
export function settable(limit) {
  const body = {};
  for (const field of ['match', 'by', 'concurrency', 'rate'])
    if (limit[field] !== undefined) body[field] = limit[field];
  return body;
}

/**
 * With `most` at once: {starts: jobs held now that could start at once, over: jobs that run beyond it and go on,
 * isExact: all keys were looked at}. Other limits and free workers are not known here.
 */
export function preview(limit, most) {
  let [starts, over, running, held] = [0, 0, 0, 0];
  for (const key of limit.busiest ?? [limit]) {
    starts += Math.min(key.held ?? 0, Math.max(0, most - key.running));
    over += Math.max(0, key.running - most);
    running += key.running;
    held += key.held ?? 0;
  }
  const isExact = isWhole(limit) && held === (limit.held ?? held) && running === limit.running;
  return { starts, over, isExact };
}

const put = (id, body) => api.put(at(id), body);
const again = (limit) => () => put(limit.id, settable(limit));

/** What a number would do, in words. */
function foretold(limit, most) {
  const { starts, over, isExact } = preview(limit, most);
  const of = isExact ? '' : 'at least ';
  const then =
    over > 0
      ? `${of}${jobs(over)} beyond it go on; nothing starts there until they end`
      : starts > 0
        ? `${of}${jobs(starts)} of those held could start at once${limit.rate ? ', as far as its rate allows' : ''}`
        : limit.held
          ? 'nothing that is held could start sooner'
          : 'nothing is held that could start';
  return `${count(most)} at once${limit.by ? ' for each key' : ''}: ${then}. Now ${count(limit.running)} run, ${isWhole(limit) ? '' : 'at least '}${count(limit.held ?? 0)} are held.`;
}

function spec({ limit, period, by, ...body }) {
  const hasRate = limit !== undefined || period !== undefined;
  // The API would say so as well, but by its own names.
  if (!hasRate && body.concurrency === undefined)
    throw fault('concurrency', 'Say how many may run at once, or how many may start in a period, or both.');
  if (hasRate) {
    if (limit === undefined || period === undefined)
      throw fault(limit === undefined ? 'limit' : 'period', 'A rate needs both, a number of starts and a period.');
    body.rate = { limit, period };
  }
  if (by?.length) body.by = by.length === 1 ? by[0] : by;
  return body;
}

// A dry run looks until it has found so many, or has looked at so many.
const FOUND = 200;
const LOOKED_AT = 20_000;

/** What is at a path, such as `argument.customer.id`; undefined where it leads nowhere. */
export const valueAt = (job, where) =>
  where.split(/(?<!\\)\./).reduce((value, step) => value?.[step.replace(/\\([.\\])/g, '$1')], job);

/** A dry run: how many jobs match, what is found at its paths, and what another number would let start. */
async function tried(values, old) {
  const { match, by } = spec(values);
  const query = { match: stringify(match), newest: 1, brief: 1, looked: 1, argument_max: 65536, count: FOUND };
  const matching = [];
  let [looked, cursor] = [0];
  do {
    const page = await api.get('/jobs', { ...query, cursor });
    matching.push(...page.jobs);
    looked += page.looked;
    cursor = page.cursor;
  } while (cursor && matching.length < FOUND && looked < LOOKED_AT);
  const lost = [by ?? []]
    .flat()
    .map((where) => [where, matching.filter((job) => valueAt(job, where) === undefined).length])
    .filter(([, none]) => none);
  const keys = by && new Set(matching.map((job) => stringify([by].flat().map((where) => valueAt(job, where))))).size;
  return [
    `${jobs(matching.length)} of ${count(looked)} looked at match${keys ? `, under ${count(keys)} ${keys === 1 ? 'key' : 'keys'}` : ''}.`,
    ...lost.map(([where, none]) => `${where} leads nowhere in ${count(none)} of them.`),
    old && values.concurrency
      ? foretold(await only('/constraints', { ids: old.id, busiest: 100 }), values.concurrency)
      : '',
  ].join(' ');
}

/** Asks before a new one replaces one that is there. */
const mayReplace = (there) =>
  confirm({
    title: `${there.id} exists already`,
    action: 'Replace it',
    body: [
      html`<p>It says: ${inWords(there)}${there.by ? ` for each ${paths(there).join(', ')}` : ''}, for jobs
        <code> ${cut(stringify(there.match), 100)}</code>.</p>`,
      'What you typed would replace it whole, at once, for jobs that wait as well.',
    ],
  });

/** A dialog for a new one, or to replace `old`. → true, or undefined. */
export function edit(old) {
  let agreed = old?.id;
  let before = old;
  const { rate = {}, match, concurrency } = old || {};
  const name = { name: 'id', label: 'Name', required: true };
  const conditions = 'Conditions that must all hold: name, queue, priority, tags, argument.<path>, any, not.';
  const rated = (name, label, more) => ({ group: 'Starts in a period', name, label, half: true, ...more });
  return form({
    title: old ? `Change ${old.id}` : 'New limit',
    wide: true,
    action: old ? 'Replace' : 'Create',
    body: old
      ? 'It is in force at once, for jobs that wait as well. What runs already counts only if it matched before.'
      : 'Jobs that match start only while there is room.',
    fields: [
      ...(old ? [] : [name]),
      {
        name: 'match',
        label: 'Which jobs',
        type: 'json',
        rows: 3,
        required: true,
        value: match,
        placeholder: '{"name": "mail.*"}',
        hint: conditions,
      },
      {
        name: 'by',
        label: 'A limit for each value of',
        type: 'list',
        rows: 2,
        value: old && paths(old).join('\n'),
        hint: 'Paths such as argument.customer, one in a line; empty: one limit for all.',
      },
      { name: 'concurrency', label: 'At once', type: 'number', value: concurrency, hint: 'How many may run.' },
      rated('limit', 'Starts', { type: 'number', value: rate.limit }),
      rated('period', 'Period', { unit: 'seconds', type: 'number', value: rate.period }),
    ],
    dryRun: (values) => tried(values, old),
    submit: async ({ id = old?.id, ...values }) => {
      const body = spec(values);
      if (id !== agreed) {
        before = await only('/constraints', { ids: id }).catch((problem) => {
          if (problem.status !== 404) throw problem;
          return null;
        });
        if (before && !(await mayReplace(before))) throw fault('id', 'This name is taken.');
        agreed = id;
      }
      await put(id, body).catch((problem) => {
        throw Object.assign(problem, { field: problem.field?.replace(/^rate\./, '') });
      });
      const undo = before ? again(before) : () => api.delete(at(id));
      toast(before ? `${id} is changed.` : `${id} is in force.`, 'ok', { undo });
    },
  });
}

/** Puts a key on hold for a while, or ends that. `by`: its value, where the limit has keys. */
export const hold = (limit, by, shown) => {
  const name = shown === undefined ? limit.id : `${limit.id}, ${shown}`;
  const key = {
    name: 'by',
    label: 'Key',
    type: 'json',
    rows: 2,
    required: true,
    hint: `The value of ${paths(limit).join(', ')}, as JSON: "at", 7${Array.isArray(limit.by) ? ', or a list of them' : ''}`,
  };
  return form({
    title: `Hold ${name}`,
    body: 'Nothing starts under it for so long; what runs goes on. 0 ends a hold.',
    action: 'Hold',
    fields: [
      ...(limit.by && by === undefined ? [key] : []),
      { name: 'seconds', label: 'For', unit: 'seconds', type: 'number', value: 60, required: true },
    ],
    submit: async (values) => {
      await api.post(`${at(limit.id)}/hold`, { ...(by === undefined ? {} : { by }), ...values });
      toast(values.seconds ? `${name} is on hold.` : `${name} is not on hold any more.`);
    },
  });
};

export async function remove(limit) {
  const free = 'What it holds is free at once';
  const isSure = await confirm({
    title: `Delete ${limit.id}?`,
    action: 'Delete',
    body: limit.held ? `${free}: ${jobs(limit.held)}.` : `${free}.`,
  });
  return isSure && act(() => api.delete(at(limit.id)), `${limit.id} is deleted.`, { undo: again(limit) });
}
