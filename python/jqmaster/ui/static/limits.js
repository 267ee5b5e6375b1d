// Limits, the fullest first: how much of each is in use, what it holds and under which keys, and how to change that.
import { all, api, may, only, path, stringify, withQuery } from './api.js';
import { count, cut, duration, jobs } from './format.js';
import { act, confirm, failed, fault, form, toast } from './forms.js';
import {
  AlertsOf,
  Badge,
  Button,
  Empty,
  Facts,
  FilterBar,
  Head,
  Loaded,
  linked,
  Meter,
  none,
  onHold,
  Pager,
  Section,
  sortOf,
  Table,
  toLimit,
  toQueue,
  Until,
  usePageOf,
  usePages,
} from './parts.js';
import { termOf } from './query.js';
import { Tree } from './tree.js';
import { html, Link, navigate, useData, useEffect, useQuery, useRef, useState } from './view.js';

// -- what is known of one -----------------------------------------------------------------------------

/** What all keys come to: of a limit without keys it is its own. */
const keysOf = (limit) => limit.busiest ?? [limit];

/** Whether sums over its keys are of all of them. */
export const isWhole = (limit) => !limit.more && (limit.looked === undefined || limit.looked >= limit.keys);

/**
 * With `most` at once: {starts: jobs held now that could start at once, over: jobs that run beyond it and go on,
 * isExact: all keys were looked at}. Other limits and free workers are not known here.
 */
export function preview(limit, most) {
  let [starts, over, running, held] = [0, 0, 0, 0];
  for (const key of keysOf(limit)) {
    starts += Math.min(key.held ?? 0, Math.max(0, most - key.running));
    over += Math.max(0, key.running - most);
    running += key.running;
    held += key.held ?? 0;
  }
  const isExact = isWhole(limit) && held === (limit.held ?? held) && running === limit.running;
  return { starts, over, isExact };
}

/** Whether a key has no room now: for lack of a place, or until a moment. */
const isFull = (limit, key) => Boolean(key.opens_ms || (limit.concurrency && key.running >= limit.concurrency));

/** How many of its keys have no room now. */
export const fullKeys = (limit) => (limit.by ? (limit.full ?? 0) : Number(isFull(limit, limit)));

/** The fullest first: by jobs held, then by keys that are full, then by jobs that run. */
export const byFullness = (a, b) =>
  (b.held ?? 0) - (a.held ?? 0) || fullKeys(b) - fullKeys(a) || b.running - a.running || (a.id < b.id ? -1 : 1);

/** A limit as it can be set again. */
export function settable(limit) {
  const body = {};
  for (const field of ['match', 'by', 'concurrency', 'rate', 'cost'])
    if (limit[field] !== undefined) body[field] = limit[field];
  return body;
}

const paths = ({ by }) => (by === undefined ? [] : [by].flat());

/** "3 at once, 100 in 1 min". */
function inWords({ concurrency, rate }) {
  return [
    concurrency && `${count(concurrency)} at once`,
    rate && `${count(rate.limit)} in ${duration(rate.period * 1000)}`,
  ]
    .filter(Boolean)
    .join(', ');
}

/** A key's value as people read it. */
const shownKey = (by) => (by === undefined ? '(all)' : typeof by === 'string' ? by : stringify(by));

/** Live use of one key, or of a limit without keys. */
function Use({ limit, of = limit }) {
  const { concurrency, rate, cost } = limit;
  const unit = cost === undefined ? 'starts' : 'used';
  const parts = [
    concurrency && html`<${Meter} value=${of.running} limit=${concurrency} unit="running" />`,
    rate && of.starts !== undefined && html`<${Meter} value=${of.starts} limit=${rate.limit} unit=${unit} />`,
  ].filter(Boolean);
  return parts.length ? parts : html`<span>${count(of.running)} running</span>`;
}

/** How far sums over the keys go. */
const partly = ({ looked, keys }) =>
  looked < keys ? `Of ${count(looked)} of ${count(keys)} keys` : 'There may be more than were counted';

/** A sum over keys: exact, or said to be the least it is. */
const Least = ({ of, number }) =>
  isWhole(of) ? count(number) : html`<span title=${partly(of)}>${count(number)}+</span>`;

/** Why nothing starts under a key for a while: it is on hold, or its rate is used up; null where neither is so. */
function closed(limit, key = limit) {
  const hold = onHold(limit, key);
  if (hold)
    return html`<span><${Badge} word="on hold" title="Nothing starts under it until it opens" kind="held" /> opens <${Until}
      ms=${key.opens_ms ?? hold} /></span>`;
  return key.opens_ms ? html`<span class="muted">its rate has room <${Until} ms=${key.opens_ms} /></span>` : null;
}

// -- changed ------------------------------------------------------------------------------------------

const at = (id) => path`/constraint/${id}`;
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

function NumberForm({ known, onClose, done }) {
  const [text, setText] = useState(String(known.concurrency));
  const input = useRef(null);
  useEffect(() => input.current.select(), []);
  const most = Number(text);
  const isRight = Number.isInteger(most) && most >= 1 && most <= 1e9;
  const submit = async (event) => {
    event.preventDefault();
    if (!isRight) return input.current.focus();
    const change = () => put(known.id, { ...settable(known), concurrency: most });
    const said = `${known.id}: ${count(most)} at once.`;
    if (most === known.concurrency || (await act(change, said, { undo: again(known) }))) {
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

/** What it limits; its number can be changed where it stands. `done`: called when it was. */
function Says({ limit, done }) {
  const [known, setKnown] = useState(null);
  const opener = useRef(null);
  const wasOpen = useRef(false);
  useEffect(() => {
    if (wasOpen.current && !known) opener.current?.focus();
    wasOpen.current = Boolean(known);
  }, [known]);
  const open = () => only('/constraints', { ids: limit.id, busiest: 100 }).then(setKnown, failed);
  const text = inWords(limit);
  if (known) return html`<${NumberForm} known=${known} onClose=${() => setKnown(null)} done=${done} />`;
  if (!limit.concurrency || !may('operator')) return text;
  return html`<button ref=${opener} type="button" class="inline limit" onClick=${open}
    aria-label=${`Change the limit of ${limit.id}: ${text}`}>${text}</button>`;
}

function spec({ limit, period, by, cost, ...body }) {
  const hasRate = limit !== undefined || period !== undefined;
  // The API would say so as well, but by its own names.
  if (!hasRate && body.concurrency === undefined)
    throw fault('concurrency', 'Say how many may run at once, or how many may start in a period, or both.');
  if (!hasRate && cost !== undefined) throw fault('limit', 'A cost needs a number of starts and a period.');
  if (hasRate) {
    if (limit === undefined || period === undefined)
      throw fault(limit === undefined ? 'limit' : 'period', 'A rate needs both, a number of starts and a period.');
    body.rate = { limit, period };
  }
  if (by?.length) body.by = by.length === 1 ? by[0] : by;
  if (cost !== undefined) body.cost = /^[0-9.]+$/.test(cost) ? Number(cost) : cost;
  return body;
}

const LOOKED_AT = 200;

/** What is at a path, such as `argument.customer.id`; undefined where it leads nowhere. */
export const valueAt = (job, where) =>
  where.split(/(?<!\\)\./).reduce((value, step) => value?.[step.replace(/\\([.\\])/g, '$1')], job);

/** A dry run: how many of the newest jobs match, and what is found at its paths. */
async function tried(values) {
  const { match, by, cost } = spec(values);
  const query = { match: stringify(match), recent: 1, brief: 1, looked: 1, argument_max: 65536, count: LOOKED_AT };
  const { jobs: found, looked } = await api.get('/jobs', query);
  const lost = [by, cost]
    .flat()
    .filter((where) => typeof where === 'string')
    .map((where) => [where, found.filter((job) => valueAt(job, where) === undefined).length])
    .filter(([, none]) => none);
  const keys = by && new Set(found.map((job) => stringify([by].flat().map((where) => valueAt(job, where))))).size;
  return [
    `${jobs(found.length)} of the newest ${count(looked)} match${keys ? `, under ${count(keys)} ${keys === 1 ? 'key' : 'keys'}` : ''}.`,
    ...lost.map(([where, none]) => `${where} leads nowhere in ${count(none)} of them.`),
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
function edit(old) {
  let agreed = old?.id;
  let before = old;
  const rate = old?.rate || {};
  return form({
    title: old ? `Change ${old.id}` : 'New limit',
    wide: true,
    action: old ? 'Replace' : 'Create',
    body: old
      ? 'It is in force at once, for jobs that wait as well. What runs already counts only if it matched before.'
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
        hint: 'Conditions that must all hold: name, queue, priority, tags, argument.<path>, any, not.',
      },
      { name: 'concurrency', label: 'At once', type: 'number', value: old?.concurrency, hint: 'How many may run.' },
      { name: 'limit', label: 'Starts', type: 'number', value: rate.limit, half: true, hint: 'How many in a period.' },
      { name: 'period', label: 'Period', unit: 'seconds', type: 'number', value: rate.period, half: true },
      {
        name: 'by',
        label: 'A limit for each value of',
        type: 'list',
        rows: 2,
        value: old && paths(old).join('\n'),
        hint: 'Paths such as argument.customer, one in a line; empty: one limit for all.',
      },
      {
        name: 'cost',
        label: 'Cost of a start',
        value: old?.cost,
        hint: 'A number, or a path into the argument; empty: 1.',
      },
    ],
    dryRun: tried,
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
const hold = (limit, by, shown) => {
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

const release = (limit, by) =>
  act(
    () => api.post(`${at(limit.id)}/hold`, { ...(by === undefined ? {} : { by }), seconds: 0 }),
    `${limit.id} is not on hold any more.`,
  );

async function remove(limit) {
  const free = 'What it holds is free at once';
  const isSure = await confirm({
    title: `Delete ${limit.id}?`,
    action: 'Delete',
    body: limit.held ? `${free}: ${jobs(limit.held)}.` : `${free}.`,
  });
  return isSure && act(() => api.delete(at(limit.id)), `${limit.id} is deleted.`, { undo: again(limit) });
}

// -- the list -----------------------------------------------------------------------------------------

const SIZE = 50;
const ORDERS = {
  held: byFullness,
  full: (a, b) => fullKeys(b) - fullKeys(a) || byFullness(a, b),
  running: (a, b) => b.running - a.running || byFullness(a, b),
  name: (a, b) => (a.id < b.id ? 1 : -1),
};

/** The fullest keys, each a way to itself. */
function Busiest({ limit }) {
  const shown = (limit.by ? limit.busiest : []).filter((key) => key.held || key.running || key.opens_ms);
  if (!shown.length) return none();
  return html`<span class="keys-in-short">${shown.map((key) => {
    const name = shownKey(key.by);
    const find = typeof key.by === 'string' ? key.by.slice(0, 64) : '';
    return html`<span key=${name} class=${isFull(limit, key) ? 'is-full' : ''}>
      <${Link} to=${withQuery(toLimit(limit.id), { find })}>${cut(name, 24)}<//>
      ${key.held ? ` ${count(key.held)} held` : ` ${count(key.running)} running`}</span>`;
  })}</span>`;
}

function summary(found) {
  const holding = found.filter((limit) => limit.held);
  const held = holding.reduce((sum, limit) => sum + limit.held, 0);
  const what = holding.length
    ? `${count(holding.length)} of them ${holding.length === 1 ? 'holds' : 'hold'} ${jobs(held)}`
    : 'none of them holds a job';
  return `${count(found.length)} ${found.length === 1 ? 'limit' : 'limits'}; ${what}.`;
}

/** A button for one; what it answers is shown by looking again. */
const action = (text, run, reload, { of, ...rest }) =>
  html`<${Button} needs="operator" class="small" aria-label=${`${text.replace('…', '')} ${of}`} ...${rest}
    onClick=${async () => (await run()) && reload()}>${text}<//>`;

const columns = (reload) => [
  {
    title: 'Limit',
    kind: 'wide',
    sort: 'name',
    cell: ({ id, match }) => html`<${Link} to=${toLimit(id)}>${id}<//>
      <p class="muted hide-narrow matcher-in-short"><code title=${cut(stringify(match), 1000)}>${cut(stringify(match), 60)}</code></p>`,
  },
  {
    title: 'At most',
    cell: (limit) => html`<${Says} limit=${limit} done=${reload} />
      ${limit.by ? html`<span class="muted"> for each ${paths(limit).join(', ')}</span>` : null}`,
  },
  {
    title: 'In use',
    sort: 'running',
    cell: (limit) =>
      limit.by
        ? `${count(limit.running)} running`
        : html`<${Use} limit=${limit} /><span class="said">${closed(limit)}</span>`,
  },
  {
    title: 'Held',
    kind: 'number',
    sort: 'held',
    tip: 'Jobs that could start but for it',
    cell: (limit) => {
      const number = html`<${Least} of=${limit} number=${limit.held ?? 0} />`;
      return limit.held ? html`<b>${number}</b>` : none(number);
    },
  },
  {
    title: 'Full keys',
    kind: 'number',
    sort: 'full',
    tip: 'Keys under which nothing can start now, of those in use',
    cell: (limit) => {
      const text = html`<${Least} of=${limit} number=${limit.full} /> of ${count(limit.keys)}`;
      return limit.by && limit.full ? text : none(limit.by ? text : undefined);
    },
  },
  { title: 'Fullest keys', hide: 'narrow', cell: (limit) => html`<${Busiest} limit=${limit} />` },
  {
    title: '',
    kind: 'actions',
    hide: 'narrow',
    cell: (limit) => [
      action('Change…', () => edit(limit), reload, { of: limit.id }),
      action('Hold…', () => hold(limit), reload, { of: limit.id }),
      onHold(limit) ? action('Open', () => release(limit), reload, { of: limit.id }) : null,
      action('Delete…', () => remove(limit), reload, { of: limit.id, class: 'small danger' }),
    ],
  },
];

function List({ found, reload }) {
  const [{ sort = '-held' }, setQuery] = useQuery();
  const [name, isDown] = sortOf(sort);
  const sorted = [...found].sort(ORDERS[name] || byFullness);
  const [rows, pager] = usePageOf(isDown ? sorted : sorted.reverse(), SIZE);
  const empty = html`<${Empty} command=${`jqmaster call constrain per-customer '{"name": "mail"}' --by argument.customer --concurrency 5`}>
    No limits: every job starts as soon as a worker has room. A limit says how many jobs run at once, or start in a
    time: of all that match, or for each customer.<//>`;
  return html`<p class="muted">${found.length ? summary(found) : ''}</p>
    <${Table} label="Limits" columns=${columns(reload)} rows=${rows} rowKey=${({ id }) => id} empty=${empty} sort=${sort}
      onSort=${(next) => setQuery({ sort: next === '-held' ? '' : next, at: '' })}><${Pager} of=${pager} /><//>`;
}

export function Limits() {
  const state = useData((signal) => all('/constraints', { busiest: 3 }, { signal }), { ms: 5000 });
  const create = html`<${Button} needs="operator" class="primary" onClick=${async () => (await edit()) && state.reload()}>New limit…<//>`;
  return html`<${Head} title="Limits" actions=${create} />
    <${Loaded} of=${state}>${({ found }) => html`<${List} found=${found} reload=${state.reload} />`}<//>`;
}

// -- one, with its keys -------------------------------------------------------------------------------

const BUSIEST = 100;
const KEYS = 25;
// Of a long value only a digest is known, which is not the value.
const isDigest = (by) => [by].flat().some((part) => typeof part === 'string' && part.startsWith('sha1:'));

/** A key, with the way to its jobs where a line can say which these are. */
function KeyJobs({ limit: { by }, value }) {
  const values = Array.isArray(by) ? value : [value];
  const terms = by && values && !isDigest(value) ? [by].flat().map((one, i) => termOf(one, values[i])) : [null];
  if (terms.includes(null)) return shownKey(value);
  return html`<${Link} to=${withQuery('/jobs', { q: terms.join(' ') })} title="Its jobs">${shownKey(value)}<//>`;
}

const FILTERS = [
  { name: 'find', label: 'Find a key', type: 'search', placeholder: 'begins with…' },
  {
    name: 'keys',
    label: 'Show',
    type: 'select',
    placeholder: 'the fullest first',
    options: [['all', 'all, by value']],
  },
];

function keyColumns(limit, reload) {
  const keyOf = (key) => (limit.by ? (key.by ?? null) : undefined);
  return [
    { title: 'Key', kind: 'wide', cell: (key) => html`<${KeyJobs} limit=${limit} value=${key.by} />` },
    { title: 'In use', cell: (key) => html`<${Use} limit=${limit} of=${key} />` },
    {
      title: 'Held jobs',
      kind: 'number',
      cell: (key) => (key.held ? html`<b>${count(key.held)}${key.more ? '+' : ''}</b>` : none('0')),
    },
    {
      title: 'Next',
      tip: 'The first of the jobs that it holds',
      cell: (key) => (key.next ? html`<${Link} to=${path`/job/${key.next}`}>${key.next}<//>` : none()),
    },
    {
      title: 'Groups',
      kind: 'number',
      hide: 'narrow',
      tip: 'Held jobs of one queue under the same keys are one group',
      cell: (key) => `${count(key.lanes)}${key.more ? '+' : ''}`,
    },
    { title: 'Closed', cell: (key) => closed(limit, key) || none() },
    {
      title: '',
      kind: 'actions',
      cell: (key) => {
        const of = shownKey(key.by);
        if (isDigest(key.by))
          return html`<span class="muted" title="Of a value this long only its digest is known">long value</span>`;
        return [
          action('Hold…', () => hold(limit, keyOf(key), of), reload, { of }),
          onHold(limit, key) ? action('Open', () => release(limit, keyOf(key)), reload, { of }) : null,
        ];
      },
    },
  ];
}

const KeyTable = ({ limit, rows, empty, pager, reload }) =>
  html`<${Table} label="Keys in use" columns=${keyColumns(limit, reload)} rows=${rows} empty=${html`<div class="empty">${empty}</div>`}
    rowKey=${(key) => stringify(key.by ?? null)}><${Pager} of=${pager} /><//>`;

/** Those whose value begins so, or all, in order of their value. */
function KeysByValue({ limit, prefix, reload }) {
  const load = (cursor, signal) => api.get(`${at(limit.id)}/usage`, { prefix, cursor, count: KEYS }, { signal });
  const pages = usePages(load, { ms: 3000, deps: [limit.id, prefix] });
  const said = prefix
    ? `Keys whose value begins with “${cut(prefix, 64)}”, in order of their value.`
    : 'All keys in use, in order of their value.';
  const both = () => Promise.all([reload(), pages.reload()]);
  return html`${limit.by ? html`<p class="muted" role="status">${said}</p>` : null}
    <${Loaded} of=${pages}>${({
      keys,
    }) => html`<${KeyTable} limit=${limit} rows=${keys} pager=${pages.pager} reload=${both}
      empty=${prefix ? 'No key in use begins so.' : 'Nothing runs under it, and nothing is held.'} />`}<//>`;
}

function FullestKeys({ limit, reload }) {
  const { busiest, looked, keys } = limit;
  const [rows, pager] = usePageOf(busiest, KEYS);
  const which = keys > busiest.length ? `The ${count(busiest.length)} fullest of ${count(keys)} keys` : 'All keys';
  const said =
    looked < keys
      ? `The fullest of ${count(looked)} keys that were looked at; ${count(keys)} are in use.`
      : `${which} in use, the fullest first.`;
  return html`<p class="muted" role="status">${said}</p>
    <${KeyTable} limit=${limit} rows=${rows} pager=${pager} reload=${reload} empty="Nothing runs under it, and nothing is held." />`;
}

const factsOf = (limit, reload) => [
  ['At most', html`<${Says} limit=${limit} done=${reload} />`],
  ['For each', limit.by && html`<code>${paths(limit).join(', ')}</code>`],
  ['Cost of a start', limit.cost !== undefined && html`<code>${String(limit.cost)}</code>`],
  ['Running', count(limit.running)],
  ['Held jobs', limit.held ? html`<b><${Least} of=${limit} number=${limit.held} /></b>` : none('0')],
  ['Keys in use', limit.by && html`${count(limit.keys)}, <${Least} of=${limit} number=${limit.full} /> of them full`],
  ['Counted', !isWhole(limit) && partly(limit)],
];

export function Limit({ params: { id } }) {
  const [{ find, keys }] = useQuery();
  const state = useData((signal) => only('/constraints', { ids: id, busiest: BUSIEST }, { signal }), {
    ms: 3000,
    deps: [id],
  });
  const { data: limit, reload } = state;
  const drop = async () => (await remove(limit)) && navigate('/limits');
  const actions = limit && [
    action('Change…', () => edit(limit), reload, { of: id, class: 'primary' }),
    action('Hold…', () => hold(limit), reload, { of: id, class: '' }),
    action('Delete…', drop, () => {}, { of: id, class: 'danger' }),
  ];
  const title = html`<span class="crumb"><${Link} to="/limits">Limits<//> / </span>${id}`;
  return html`<${Head} title=${title} actions=${actions} />
    <${AlertsOf} field="constraint" name=${id} />
    <${Loaded} of=${state}>${() => html`
      <div class="grid">
        <${Section} title="What it says"><${Facts} pairs=${factsOf(limit, reload)} /><//>
        <${Section} title="Queues it holds jobs of">${
          limit.queues.length
            ? html`<${Facts} pairs=${limit.queues.map(([name, held]) => [linked([name], toQueue), `${count(held)} held`])} />`
            : html`<p class="muted">None: nothing is held.</p>`
        }<//>
        <${Section} title="Which jobs"><${Tree} value=${limit.match} label="Matcher" /><//>
      </div>
      <h2>Keys in use</h2>
      ${limit.by ? html`<${FilterBar} fields=${FILTERS} />` : null}
      ${
        limit.by && !find && !keys
          ? html`<${FullestKeys} limit=${limit} reload=${reload} />`
          : html`<${KeysByValue} key=${find} limit=${limit} prefix=${find} reload=${reload} />`
      }`}<//>`;
}
