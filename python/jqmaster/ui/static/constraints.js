// What the pages of constraints share: how one is described, changed, held and deleted.
import { api, path, stringify } from './api.js';
import { Badge } from './components/badge.js';
import { Meter } from './components/bar.js';
import { confirm, form } from './components/dialog.js';
import { Until } from './components/time.js';
import { act, failed, toast } from './components/toast.js';
import { h } from './dom.js';
import { count, cut, duration, jobs, now } from './format.js';
import { isWhole, preview, settable } from './limit.js';
import { may } from './rights.js';
import { html, useEffect, useRef, useState } from './view.js';

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

/** Which jobs one concerns, in short. */
export const Matcher = ({ constraint, most = 100 }) =>
  html`<code title=${cut(stringify(constraint.match), 1000)}>${cut(stringify(constraint.match), most)}</code>`;

/** Live use of one key, or of a constraint without keys. */
export function Use({ constraint, of = constraint }) {
  const parts = [];
  if (constraint.concurrency)
    parts.push(html`<${Meter} value=${of.running} limit=${constraint.concurrency} unit=${inUse(constraint)} />`);
  if (constraint.rate && of.starts !== undefined)
    parts.push(
      html`<${Meter} value=${of.starts} limit=${constraint.rate.limit} unit=${constraint.cost === undefined ? 'starts' : 'used'} />`,
    );
  return parts.length ? parts : html`<span>${count(of.running)} ${inUse(constraint)}</span>`;
}

/** In strict order a place is kept by jobs that wait for their retry, too. */
export const inUse = (constraint) => (constraint.order ? 'in use' : 'running');

/** A sum over keys: exact, or said to be the least it is. */
export const Least = ({ of, number }) =>
  isWhole(of) ? count(number) : html`<span title=${partly(of)}>${count(number)}+</span>`;

/** How far sums over the keys go. */
export const partly = (constraint) =>
  constraint.looked < constraint.keys
    ? `Of ${count(constraint.looked)} of ${count(constraint.keys)} keys`
    : 'There may be more than were counted';

/** A key's value as people read it. */
export const shownKey = (by) => (by === undefined ? '(all)' : typeof by === 'string' ? by : stringify(by));

const put = (constraint, body) => api.put(path`/constraint/${constraint.id}`, body);

/** Sets a constraint, which was `old`, and says so, with a way back. → true, undefined when it failed. */
const replace = (old, body, said) => act(() => put(old, body), said, { undo: () => put(old, settable(old, now())) });

/** What a number would do, in words. */
function foretold(constraint, most) {
  const { starts, over, isExact } = preview(constraint, most);
  const of = isExact ? '' : 'at least ';
  const each = constraint.by ? ' for each key' : '';
  const then =
    over > 0
      ? `${of}${jobs(over)} beyond it go on; nothing starts there until they end`
      : starts > 0
        ? `${of}${jobs(starts)} of those held could start at once`
        : constraint.held
          ? 'nothing that is held could start sooner'
          : 'nothing is held that could start';
  const rated = constraint.rate && starts ? ', as far as its rate allows' : '';
  return `${count(most)} at once${each}: ${then}${rated}. Now ${count(constraint.running)} run, ${isWhole(constraint) ? '' : 'at least '}${count(constraint.held ?? 0)} are held.`;
}

function LimitForm({ known, onClose, done }) {
  const [text, setText] = useState(String(known.concurrency));
  const input = useRef(null);
  useEffect(() => input.current.select(), []);
  const most = Number(text);
  const isRight = Number.isInteger(most) && most >= 1 && most <= 1e9;
  const submit = async (event) => {
    event.preventDefault();
    if (!isRight) return input.current.focus();
    const body = { ...settable(known, now()), concurrency: most };
    if (most === known.concurrency || (await replace(known, body, `${known.id}: ${count(most)} at once.`))) {
      onClose();
      done();
    }
  };
  const onKey = (event) => {
    event.stopPropagation();
    if (event.key === 'Escape') onClose();
  };
  return html`<form class="limit-form" novalidate onSubmit=${submit} onKeyDown=${onKey}>
    <div class="limit-row">
      <input ref=${input} type="number" min="1" max="1000000000" value=${text} aria-label=${`At once under ${known.id}`}
        aria-invalid=${!isRight} onInput=${(event) => setText(event.target.value)} />
      <button type="submit" class="small primary">Set</button>
      <button type="button" class="small" onClick=${onClose}>Cancel</button>
    </div>
    <p class="muted" role="status">${isRight ? foretold(known, most) : 'A whole number from 1 on.'}</p>
  </form>`;
}

/** What a constraint limits; its number can be changed where it stands. `done`: called when it was. */
export function Limit({ constraint, done }) {
  const [known, setKnown] = useState(null);
  const opener = useRef(null);
  const wasOpen = useRef(false);
  useEffect(() => {
    if (wasOpen.current && !known) opener.current?.focus();
    wasOpen.current = Boolean(known);
  }, [known]);
  const open = () => api.get(path`/constraint/${constraint.id}`, { busiest: 100 }).then(setKnown, failed);
  const text = limits(constraint);
  if (known) return html`<${LimitForm} known=${known} onClose=${() => setKnown(null)} done=${done} />`;
  if (!constraint.concurrency || constraint.order || !may('operator')) return text;
  return html`<button ref=${opener} type="button" class="inline limit" onClick=${open}
    aria-label=${`Change the limit of ${constraint.id}: ${text}`}>${text}</button>`;
}

/** Until when somebody put a key on hold. Without a rate nothing else closes it by time. */
export const onHold = (constraint, key = constraint) => key.hold_ms ?? (constraint.rate ? undefined : key.opens_ms);

/** Why nothing starts under a key for a while: it is on hold, or its rate is used up; null where neither is so. */
export function closed(constraint, key = constraint) {
  const hold = onHold(constraint, key);
  if (hold)
    return html`<span><${Badge} word="on hold" title="Nothing starts under it until it opens" kind="held" /> opens <${Until}
      ms=${key.opens_ms ?? hold} /></span>`;
  return key.opens_ms ? html`<span class="muted">its rate has room <${Until} ms=${key.opens_ms} /></span>` : null;
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
const mayReplace = (there) =>
  confirm({
    title: `${there.id} exists already`,
    action: 'Replace it',
    body: [
      h(
        'p',
        {},
        'It says: ',
        limits(there),
        there.by ? ` for each ${[there.by].flat().join(', ')}` : '',
        ', for jobs ',
        h('code', {}, cut(stringify(there.match), 100)),
        '.',
      ),
      'What you typed would replace it whole, at once, for jobs that wait as well.',
    ],
  });

/** A dialog for a new one, or to replace `old`. → true, or undefined. */
export function edit(old) {
  let agreed = old?.id;
  let before = old;
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
      const { expires_in } = old ? settable(old, now()) : {};
      const body = { ...spec(values), ...(expires_in ? { expires_in } : {}) };
      if (id !== agreed) {
        before = await known(id);
        if (before && !(await mayReplace(before))) throw fault('id', 'This name is taken.');
        agreed = id;
      }
      await put({ id }, body).catch((problem) => {
        throw Object.assign(problem, { field: problem.field?.replace(/^rate\./, '') });
      });
      const undo = before ? () => put(before, settable(before, now())) : () => api.delete(path`/constraint/${id}`);
      toast(before ? `${id} is changed.` : `${id} is in force.`, 'ok', { undo });
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
    body: constraint.held
      ? `What it holds is free at once: ${jobs(constraint.held)}.`
      : 'What it holds is free at once.',
  });
  return (
    isSure &&
    act(() => api.delete(path`/constraint/${constraint.id}`), `${constraint.id} is deleted.`, {
      undo: () => put(constraint, settable(constraint, now())),
    })
  );
}
