// What the pages of constraints share: how one is described, changed, held and deleted.
import { api, path, stringify } from './api.js';
import { confirm, form } from './components/dialog.js';
import { act } from './components/toast.js';
import { meter } from './components/bar.js';
import { badge } from './components/badge.js';
import { h } from './dom.js';
import { ago, count, cut, duration, now } from './format.js';

/** "3 at once", "100 in 1 min". */
export function limits(constraint) {
  const parts = [];
  if (constraint.concurrency) parts.push(`${count(constraint.concurrency)} at once`);
  if (constraint.rate) parts.push(`${count(constraint.rate.limit)} in ${duration(constraint.rate.period * 1000)}${constraint.rate.smooth ? ', evenly' : ''}`);
  if (constraint.order) parts.push('in strict order');
  return parts.join(', ');
}

export const matcher = (constraint, most = 100) => h('code', { title: cut(stringify(constraint.match), 1000) }, cut(stringify(constraint.match), most));

/** Live use of one key, or of a constraint without keys. */
export function use(constraint, key = constraint) {
  const parts = [];
  if (constraint.concurrency) parts.push(meter(key.running, constraint.concurrency, `${count(key.running)} of ${count(constraint.concurrency)} running`));
  if (constraint.rate && key.starts !== undefined) {
    parts.push(meter(Math.round(key.starts * 100) / 100, constraint.rate.limit, `${count(key.starts)} of ${count(constraint.rate.limit)} starts`));
  }
  return parts.length ? parts : h('span', {}, `${count(key.running)} running`);
}

export function closed(key) {
  return key.opens_ms && key.opens_ms > now() ? [badge('held', 'Nothing starts until then'), ' opens ', ago(key.opens_ms)] : null;
}

const spec = (values) => {
  const { limit, period, smooth, by, cost, ...rest } = values;
  const body = { ...rest };
  if (limit !== undefined || period !== undefined) {
    if (limit === undefined || period === undefined) throw Object.assign(new Error('A rate needs both, a number of starts and a period.'), { field: limit === undefined ? 'limit' : 'period' });
    body.rate = { limit, period, ...(smooth ? { smooth } : {}) };
  }
  if (by?.length) body.by = by.length === 1 ? by[0] : by;
  if (cost !== undefined) body.cost = /^[0-9.]+$/.test(cost) ? Number(cost) : cost;
  if (!body.order) delete body.order;
  return body;
};

/** A dialog for a new one, or to replace `old`. → its document, or undefined. */
export function edit(old) {
  const rate = old?.rate || {};
  const by = old?.by === undefined ? [] : [old.by].flat();
  return form({
    title: old ? `Change ${old.id}` : 'New constraint', wide: true, action: old ? 'Replace' : 'Create',
    body: old ? 'It is in force at once, for jobs that wait as well. What runs counts.' : 'Jobs that match start only while there is room.',
    fields: [
      ...(old ? [] : [{ name: 'id', label: 'Name', required: true }]),
      { name: 'match', label: 'Which jobs', type: 'json', rows: 5, required: true, value: old ? old.match : { name: 'mail.*' },
        hint: 'Conditions that must all hold: name, queue, priority, tags, argument.<path>, any, not.' },
      { name: 'concurrency', label: 'At once', type: 'number', value: old?.concurrency, hint: 'So many may run.' },
      { name: 'limit', label: 'Starts', type: 'number', value: rate.limit, hint: 'So many may start in the period.' },
      { name: 'period', label: 'Period', unit: 'seconds', type: 'number', value: rate.period },
      { name: 'smooth', label: 'Starts spread evenly', type: 'checkbox', value: rate.smooth },
      { name: 'by', label: 'A limit for each value of', type: 'list', rows: 2, value: by.join('\n'), hint: 'Paths such as argument.customer, one in a line; empty: one limit for all.' },
      { name: 'cost', label: 'What a start counts', value: old?.cost === undefined ? undefined : String(old.cost), hint: 'A number, or a path into the argument; empty: 1.' },
      { name: 'order', label: 'Order', type: 'select', value: old?.order || '', options: [['', 'as it comes'], ['strict', 'strict: a job keeps its key until it has ended for good']] },
    ],
    submit: ({ id, ...values }) => {
      const body = spec(values);
      return api.put(path`/constraint/${old ? old.id : id}`, body).catch((problem) => {
        throw Object.assign(problem, { field: problem.field?.replace(/^rate\./, '') });
      });
    },
  });
}

/** Closes a key for a while, or opens it. `by`: its value, where the constraint has keys. */
export function hold(constraint, by, shown) {
  const name = shown === undefined ? constraint.id : `${constraint.id}, ${shown}`;
  return form({
    title: `Hold ${name}`, body: 'Nothing starts under it for so long; what runs goes on. 0 opens it.', action: 'Hold',
    fields: [...(constraint.by && by === undefined ? [{ name: 'by', label: 'Key', type: 'json', rows: 2, required: true, hint: `The value of ${[constraint.by].flat().join(', ')}, as JSON: "at", 7${Array.isArray(constraint.by) ? ', or a list of them' : ''}` }] : []),
      { name: 'seconds', label: 'For', unit: 'seconds', type: 'number', value: 60, required: true }],
    submit: (values) => api.post(path`/constraint/${constraint.id}/hold`, { ...(by === undefined ? {} : { by }), ...values }),
  });
}

export const release = (constraint, by) => act(() => api.post(path`/constraint/${constraint.id}/hold`, { ...(by === undefined ? {} : { by }), seconds: 0 }), 'It is open.');

export async function remove(constraint) {
  const isSure = await confirm({ title: `Delete ${constraint.id}?`, action: 'Delete', body: 'What it held is free at once.' });
  return isSure && act(() => api.delete(path`/constraint/${constraint.id}`), `${constraint.id} is deleted.`);
}
