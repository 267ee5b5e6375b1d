// What the pages of constraints share: how one is described, changed, held and deleted.
import { api, path, stringify } from './api.js';
import { badge } from './components/badge.js';
import { meter } from './components/bar.js';
import { confirm, form } from './components/dialog.js';
import { act } from './components/toast.js';
import { h } from './dom.js';
import { count, cut, duration, until } from './format.js';

/** "3 at once", "100 in 1 min". */
export function limits(constraint) {
  const parts = [];
  if (constraint.concurrency) parts.push(`${count(constraint.concurrency)} at once`);
  if (constraint.rate)
    parts.push(
      `${count(constraint.rate.limit)} in ${duration(constraint.rate.period * 1000)}${constraint.rate.smooth ? ', evenly' : ''}`,
    );
  if (constraint.order) parts.push('in strict order');
  return parts.join(', ');
}

export const matcher = (constraint, most = 100) =>
  h('code', { title: cut(stringify(constraint.match), 1000) }, cut(stringify(constraint.match), most));

/** Live use of one key, or of a constraint without keys. */
export function use(constraint, key = constraint) {
  const parts = [];
  if (constraint.concurrency) parts.push(meter(key.running, constraint.concurrency, inUse(constraint)));
  if (constraint.rate && key.starts !== undefined)
    parts.push(meter(key.starts, constraint.rate.limit, constraint.cost === undefined ? 'starts' : 'used'));
  return parts.length ? parts : h('span', {}, `${count(key.running)} ${inUse(constraint)}`);
}

/** In strict order a place is kept by jobs that wait for their retry, too. */
export const inUse = (constraint) => (constraint.order ? 'in use' : 'running');

/** Until when somebody put a key on hold. Without a rate nothing else closes it by time. */
export const onHold = (constraint, key = constraint) => key.hold_ms ?? (constraint.rate ? undefined : key.opens_ms);

/** Why nothing starts under a key for a while: it is on hold, or its rate is used up. */
export function closed(constraint, key = constraint) {
  const hold = onHold(constraint, key);
  if (hold)
    return [badge('on hold', 'Nothing starts under it until it opens', 'held'), ' opens ', until(key.opens_ms ?? hold)];
  return key.opens_ms ? h('span', { class: 'muted' }, 'its rate has room ', until(key.opens_ms)) : null;
}

const fault = (field, text) => Object.assign(new Error(text), { field });

const spec = (values) => {
  const { limit, period, smooth, by, cost, ...rest } = values;
  const body = { ...rest };
  const hasRate = limit !== undefined || period !== undefined;
  // The API would say so as well, but by its own names.
  if (!hasRate && rest.concurrency === undefined)
    throw fault('concurrency', 'Say how many may run at once, or how many may start in a period, or both.');
  if (!hasRate && smooth) throw fault('limit', 'To spread starts, say how many may start in a period.');
  if (!hasRate && cost !== undefined)
    throw fault('limit', 'What a start counts needs a number of starts and a period to count against.');
  if (rest.order && rest.concurrency !== 1) throw fault('concurrency', 'Strict order needs 1 at once.');
  if (hasRate) {
    if (limit === undefined || period === undefined)
      throw fault(limit === undefined ? 'limit' : 'period', 'A rate needs both, a number of starts and a period.');
    body.rate = { limit, period, ...(smooth ? { smooth } : {}) };
  }
  if (by?.length) body.by = by.length === 1 ? by[0] : by;
  if (cost !== undefined) body.cost = /^[0-9.]+$/.test(cost) ? Number(cost) : cost;
  if (!body.order) delete body.order;
  return body;
};

/** The constraint of a name, or null. */
const known = (id) =>
  api.get(path`/constraint/${id}`).catch((problem) => {
    if (problem.status !== 404) throw problem;
    return null;
  });

/** Asks before a new one replaces one that is there. */
async function isFree(id) {
  const there = await known(id);
  return (
    !there ||
    confirm({
      title: `${id} exists already`,
      action: 'Replace it',
      body: [
        h(
          'p',
          {},
          'It says: ',
          limits(there),
          there.by ? ` for each ${[there.by].flat().join(', ')}` : '',
          ', for jobs ',
          matcher(there),
          '.',
        ),
        'What you typed would replace it whole, at once, for jobs that wait as well.',
      ],
    })
  );
}

/** A dialog for a new one, or to replace `old`. → its document, or undefined. */
export function edit(old) {
  let agreed = old?.id;
  const rate = old?.rate || {};
  const by = old?.by === undefined ? [] : [old.by].flat();
  return form({
    title: old ? `Change ${old.id}` : 'New constraint',
    wide: true,
    action: old ? 'Replace' : 'Create',
    body: old
      ? 'It is in force at once, for jobs that wait as well. What runs counts.'
      : 'Jobs that match start only while there is room.',
    fields: [
      ...(old ? [] : [{ name: 'id', label: 'Name', required: true }]),
      {
        name: 'match',
        label: 'Which jobs',
        type: 'json',
        rows: 4,
        required: true,
        value: old?.match,
        placeholder: '{"name": "mail.*"}',
        hint: 'A map of conditions that must all hold: name, queue, priority, tags, argument.<path>, any, not.',
      },
      { name: 'concurrency', label: 'At once', type: 'number', value: old?.concurrency, hint: 'So many may run.' },
      {
        name: 'limit',
        label: 'Starts',
        type: 'number',
        value: rate.limit,
        half: true,
        hint: 'So many may start in the period.',
      },
      { name: 'period', label: 'Period', unit: 'seconds', type: 'number', value: rate.period, half: true },
      { name: 'smooth', label: 'Starts spread evenly', type: 'checkbox', value: rate.smooth },
      {
        name: 'by',
        label: 'A limit for each value of',
        type: 'list',
        rows: 2,
        value: by.join('\n'),
        hint: 'Paths such as argument.customer, one in a line; empty: one limit for all.',
      },
      {
        name: 'cost',
        label: 'What a start counts',
        value: old?.cost === undefined ? undefined : String(old.cost),
        hint: 'A number, or a path into the argument; empty: 1.',
      },
      {
        name: 'order',
        label: 'Order',
        type: 'select',
        value: old?.order || '',
        options: [
          ['', 'as it comes'],
          ['strict', 'strict: a job keeps its key until it has ended for good'],
        ],
      },
    ],
    submit: async ({ id = old?.id, ...values }) => {
      const body = spec(values);
      if (id !== agreed) {
        if (!(await isFree(id))) throw fault('id', 'This name is taken.');
        agreed = id;
      }
      return api.put(path`/constraint/${id}`, body).catch((problem) => {
        throw Object.assign(problem, { field: problem.field?.replace(/^rate\./, '') });
      });
    },
  });
}

/** Puts a key on hold for a while, or ends that. `by`: its value, where the constraint has keys. → what was done, in words. */
export function hold(constraint, by, shown) {
  const name = shown === undefined ? constraint.id : `${constraint.id}, ${shown}`;
  return form({
    title: `Hold ${name}`,
    body: 'Nothing starts under it for so long; what runs goes on. 0 ends a hold.',
    action: 'Hold',
    fields: [
      ...(constraint.by && by === undefined
        ? [
            {
              name: 'by',
              label: 'Key',
              type: 'json',
              rows: 2,
              required: true,
              hint: `The value of ${[constraint.by].flat().join(', ')}, as JSON: "at", 7${Array.isArray(constraint.by) ? ', or a list of them' : ''}`,
            },
          ]
        : []),
      { name: 'seconds', label: 'For', unit: 'seconds', type: 'number', value: 60, required: true },
    ],
    submit: async (values) => {
      await api.post(path`/constraint/${constraint.id}/hold`, { ...(by === undefined ? {} : { by }), ...values });
      return values.seconds ? `${name} is on hold.` : `${name} is not on hold any more.`;
    },
  });
}

export const release = (constraint, by) =>
  act(
    () => api.post(path`/constraint/${constraint.id}/hold`, { ...(by === undefined ? {} : { by }), seconds: 0 }),
    `${constraint.id} is not on hold any more.`,
  );

export async function remove(constraint) {
  const isSure = await confirm({
    title: `Delete ${constraint.id}?`,
    action: 'Delete',
    body: 'What it held is free at once.',
  });
  return isSure && act(() => api.delete(path`/constraint/${constraint.id}`), `${constraint.id} is deleted.`);
}
