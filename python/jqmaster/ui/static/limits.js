// Limits, the fullest first: how much of each is in use, what it holds and under which keys, and how to change that.
import { AlertsOf } from './alerts.js';
import { all, api, only, path, stringify, withQuery } from './api.js';
import { count, cut, duration, jobs, termOf } from './format.js';
import {
  Badge,
  Button,
  Empty,
  Facts,
  FilterBar,
  Head,
  Loaded,
  Meter,
  none,
  onHold,
  Pager,
  Section,
  Table,
  toLimit,
  Until,
  usePageOf,
  usePages,
} from './parts.js';
import { Tree } from './tree.js';
import { html, Link, navigate, useData, useQuery } from './view.js';

// -- what is known of one -----------------------------------------------------------------------------

/** Whether sums over its keys are of all of them. */
export const isWhole = (limit) => !limit.more && (limit.looked === undefined || limit.looked >= limit.keys);

/** Whether a key has no room now: for lack of a place, or until a moment. */
const isFull = (limit, key) => Boolean(key.opens_ms || (limit.concurrency && key.running >= limit.concurrency));

/** How many of its keys have no room now. */
export const fullKeys = (limit) => (limit.by ? (limit.full ?? 0) : Number(isFull(limit, limit)));

/** The fullest first: by jobs held, then by keys that are full, then by jobs that run. */
export const byFullness = (a, b) =>
  (b.held ?? 0) - (a.held ?? 0) || fullKeys(b) - fullKeys(a) || b.running - a.running || (a.id < b.id ? -1 : 1);

export const paths = ({ by }) => (by === undefined ? [] : [by].flat());

/** "3 at once, 100 in 1 min". */
export function inWords({ concurrency, rate }) {
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
  const { concurrency, rate } = limit;
  const parts = [
    concurrency && html`<${Meter} value=${of.running} limit=${concurrency} unit="running" />`,
    rate && of.starts !== undefined && html`<${Meter} value=${of.starts} limit=${rate.limit} unit="starts" />`,
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

export const at = (id) => path`/constraint/${id}`;

/** Dialogs; they are loaded when they are asked for. */
const ask =
  (what) =>
  async (...given) =>
    (await import('./limitforms.js'))[what](...given);
const [edit, hold, remove] = ['edit', 'hold', 'remove'].map(ask);

// -- the list -----------------------------------------------------------------------------------------

const SIZE = 50;
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

function summary(limits) {
  const holding = limits.filter((limit) => limit.held);
  const held = holding.reduce((sum, limit) => sum + limit.held, 0);
  const what = holding.length
    ? `${count(holding.length)} of them ${holding.length === 1 ? 'holds' : 'hold'} ${jobs(held)}`
    : 'none of them holds a job';
  return `${count(limits.length)} ${limits.length === 1 ? 'limit' : 'limits'}; ${what}.`;
}

/** A button for one; what it answers is shown by looking again. */
const action = (text, run, reload, { of, ...rest }) =>
  html`<${Button} needs="operator" class="small" aria-label=${`${text.replace('…', '')} ${of}`} ...${rest}
    onClick=${async () => (await run()) && reload()}>${text}<//>`;

const columns = (reload) => [
  {
    title: 'Limit',
    kind: 'wide',
    cell: ({ id, match }) => html`<${Link} to=${toLimit(id)}>${id}<//>
      <p class="muted hide-narrow matcher-in-short"><code title=${cut(stringify(match), 1000)}>${cut(stringify(match), 60)}</code></p>`,
  },
  {
    title: 'At most',
    kind: 'wide',
    cell: (limit) => html`${inWords(limit)}
      ${limit.by ? html`<span class="muted"> for each ${paths(limit).join(', ')}</span>` : null}`,
  },
  {
    title: 'In use',
    cell: (limit) =>
      limit.by
        ? `${count(limit.running)} running`
        : html`<${Use} limit=${limit} /><span class="said">${closed(limit)}</span>`,
  },
  {
    title: 'Held',
    kind: 'number',
    tip: 'Jobs that could start but for it',
    cell: (limit) => {
      const number = html`<${Least} of=${limit} number=${limit.held ?? 0} />`;
      return limit.held ? html`<b>${number}</b>` : none(number);
    },
  },
  {
    title: 'Full keys',
    kind: 'number',
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
      action('Delete…', () => remove(limit), reload, { of: limit.id, class: 'small danger' }),
    ],
  },
];

function List({ limits, reload }) {
  const [rows, pager] = usePageOf([...limits].sort(byFullness), SIZE);
  const empty = html`<${Empty} command=${`jqmaster call constrain per-customer '{"name": "mail"}' --by argument.customer --concurrency 5`}>
    No limits: every job starts as soon as a worker has room. A limit says how many jobs run at once, or start in a
    time: of all that match, or for each customer.<//>`;
  return html`<p class="muted">${limits.length ? summary(limits) : ''}</p>
    <${Table} label="Limits" columns=${columns(reload)} rows=${rows} rowKey=${({ id }) => id} empty=${empty}><${Pager} of=${pager} /><//>`;
}

export function Limits() {
  const state = useData((signal) => all('/constraints', { busiest: 3 }, { signal }), { ms: 5000 });
  const create = html`<${Button} needs="operator" class="primary" onClick=${async () => (await edit()) && state.reload()}>New limit…<//>`;
  return html`<${Head} title="Limits" actions=${create} />
    <${Loaded} of=${state}>${({ entries }) => html`<${List} limits=${entries} reload=${state.reload} />`}<//>`;
}

// -- one, with its keys -------------------------------------------------------------------------------

const BUSIEST = 100;
const KEYS = 25;
// Of a long value only a digest is known, which is not the value.
const isDigest = (by) => [by].flat().some((part) => typeof part === 'string' && part.startsWith('sha1:'));

/** A key, with the way to its jobs where a line can say which these are. */
function KeyJobs({ limit: { by }, value }) {
  const values = Array.isArray(by) ? value : [value];
  const terms = by && values && !isDigest(value) ? [by].flat().map((path, i) => termOf(path, values[i])) : [null];
  if (terms.includes(null)) return shownKey(value);
  return html`<${Link} to=${withQuery('/jobs', { q: terms.join(' ') })} title="Its jobs">${shownKey(value)}<//>`;
}

const FIND = { name: 'find', label: 'Find a key', type: 'search', placeholder: 'begins with…' };

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
        return [action('Hold…', () => hold(limit, keyOf(key), of), reload, { of })];
      },
    },
  ];
}

const KeyTable = ({ limit, rows, empty, pager, reload }) =>
  html`<${Table} label="Keys in use" columns=${keyColumns(limit, reload)} rows=${rows} empty=${html`<div class="empty">${empty}</div>`}
    rowKey=${(key) => stringify(key.by ?? null)}><${Pager} of=${pager} /><//>`;

/** Those whose value begins so, in order of it. */
function FoundKeys({ limit, prefix, reload }) {
  const load = (cursor, signal) => api.get(`${at(limit.id)}/usage`, { prefix, cursor, count: KEYS }, { signal });
  const pages = usePages(load, { ms: 3000, deps: [limit.id, prefix] });
  const both = () => Promise.all([reload(), pages.reload()]);
  return html`<${Loaded} of=${pages}>${({
    keys,
  }) => html`<${KeyTable} limit=${limit} rows=${keys} pager=${pages.pager} reload=${both}
      empty=${prefix ? 'No key in use begins so.' : 'Nothing runs under it, and nothing is held.'} />`}<//>`;
}

function FullestKeys({ limit, reload }) {
  const { busiest, looked, keys } = limit;
  const [rows, pager] = usePageOf(busiest, KEYS);
  const which = keys > busiest.length ? `The ${count(busiest.length)} fullest of ${count(keys)} keys` : 'All keys';
  const extent =
    looked < keys
      ? `The fullest of ${count(looked)} keys that were looked at; ${count(keys)} are in use.`
      : `${which} in use, the fullest first.`;
  return html`<p class="muted" role="status">${extent}</p>
    <${KeyTable} limit=${limit} rows=${rows} pager=${pager} reload=${reload} empty="Nothing runs under it, and nothing is held." />`;
}

const factsOf = (limit) => [
  ['At most', inWords(limit)],
  ['For each', limit.by && html`<code>${paths(limit).join(', ')}</code>`],
  ['Running', count(limit.running)],
  ['Held jobs', limit.held ? html`<b><${Least} of=${limit} number=${limit.held} /></b>` : none('0')],
  ['Keys in use', limit.by && html`${count(limit.keys)}, <${Least} of=${limit} number=${limit.full} /> of them full`],
  ['Counted', !isWhole(limit) && partly(limit)],
];

export function Limit({ params: { id } }) {
  const [{ find = '' }] = useQuery();
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
        <${Section} title="What it says"><${Facts} pairs=${factsOf(limit)} /><//>
        <${Section} title="Which jobs"><${Tree} value=${limit.match} label="Matcher" /><//>
      </div>
      <h2>Keys in use</h2>
      ${limit.by ? html`<${FilterBar} fields=${[FIND]} />` : null}
      ${
        limit.by && !find
          ? html`<${FullestKeys} limit=${limit} reload=${reload} />`
          : html`<${FoundKeys} key=${find} limit=${limit} prefix=${find} reload=${reload} />`
      }`}<//>`;
}
