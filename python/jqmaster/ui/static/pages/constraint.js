// One constraint: what it says, what it holds and where, and its keys, the fullest first.
import { api, path, stringify } from '../api.js';
import { AlertsOf } from '../components/alerts.js';
import { FilterBar } from '../components/filterbar.js';
import { Button, Head, Loaded } from '../components/parts.js';
import { Pager, Table, usePages } from '../components/rows.js';
import { toast } from '../components/toast.js';
import { Tree } from '../components/tree.js';
import {
  closed,
  edit,
  hold,
  inUse,
  Least,
  Limit,
  onHold,
  partly,
  release,
  remove,
  shownKey,
  Use,
} from '../constraints.js';
import { count, cut, moment } from '../format.js';
import { termOf } from '../jobs/queryline.js';
import { isWhole } from '../limit.js';
import { navigate, withQuery } from '../router.js';
import { html, Link, useData, useQuery } from '../view.js';

const BUSIEST = 100;
const PAGE = 25;
// Of a long value only a digest is known, which is not the value.
const isDigest = (by) => [by].flat().some((part) => typeof part === 'string' && part.startsWith('sha1:'));

/** A key, with the way to its jobs where a line can say which these are. */
function keyOrJobs({ by }, value) {
  const values = Array.isArray(by) ? value : [value];
  const terms = by && values && !isDigest(value) ? [by].flat().map((one, i) => termOf(one, values[i])) : [null];
  if (terms.includes(null)) return shownKey(value);
  return html`<${Link} to=${withQuery('/jobs', { q: terms.join(' ') })} title="Its jobs">${shownKey(value)}<//>`;
}

const none = (text = '–') => html`<span class="zero">${text}</span>`;
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

function columns(constraint, after) {
  const keyOf = (key) => (constraint.by ? (key.by ?? null) : undefined);
  const actions = (key) => {
    const name = shownKey(key.by);
    return html`<${Button} needs="operator" class="small" aria-label=${`Hold ${name}`}
        onClick=${async () => after(await hold(constraint, keyOf(key), name))}>Hold…<//>
      ${
        onHold(constraint, key)
          ? html` <${Button} needs="operator" class="small" aria-label=${`Open ${name}`}
              onClick=${async () => after(await release(constraint, keyOf(key)))}>Open<//>`
          : null
      }`;
  };
  return [
    { title: 'Key', kind: 'wide', cell: (key) => keyOrJobs(constraint, key.by) },
    { title: 'In use', cell: (key) => html`<${Use} constraint=${constraint} of=${key} />` },
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
    { title: 'Closed', cell: (key) => closed(constraint, key) || none() },
    {
      title: '',
      kind: 'actions',
      cell: (key) =>
        isDigest(key.by)
          ? html`<span class="muted" title="Of a value this long only its digest is known">long value</span>`
          : actions(key),
    },
  ];
}

function Keys({ constraint, rows, empty, pager, after }) {
  return html`<${Table} label="Keys in use" columns=${columns(constraint, after)} rows=${rows} empty=${html`<div class="empty">${empty}</div>`}
    rowKey=${(key) => stringify(key.by ?? null)}><${Pager} of=${pager} /><//>`;
}

/** Those whose value begins so, or all, in order of their value. */
function KeysByValue({ constraint, prefix, after }) {
  const { id } = constraint;
  const pages = usePages(
    (cursor, signal) => api.get(path`/constraint/${id}/usage`, { prefix, cursor, count: PAGE }, { signal }),
    {
      ms: 3000,
      deps: [id, prefix],
    },
  );
  const said = prefix
    ? `Keys whose value begins with “${cut(prefix, 64)}”, in order of their value.`
    : 'All keys in use, in order of their value.';
  return html`${constraint.by ? html`<p class="muted" role="status">${said}</p>` : null}
    <${Loaded} of=${pages}>${({ keys }) => html`<${Keys} constraint=${constraint} rows=${keys} pager=${pages.pager}
      empty=${prefix ? 'No key in use begins so.' : 'Nothing runs under it, and nothing is held.'}
      after=${(answer) => {
        after(answer);
        pages.reload();
      }} />`}<//>`;
}

function FullestKeys({ constraint, after }) {
  const [{ at = '' }, setQuery] = useQuery();
  const { busiest, looked, keys } = constraint;
  const from = Number(at) || 0;
  const to = (start) => () => setQuery({ at: start || '' });
  const pager = {
    number: from / PAGE + 1,
    back: from ? to(from - PAGE) : null,
    forth: from + PAGE < busiest.length ? to(from + PAGE) : null,
  };
  const which = keys > busiest.length ? `The ${count(busiest.length)} fullest of ${count(keys)} keys` : 'All keys';
  const said =
    looked < keys
      ? `The fullest of ${count(looked)} keys that were looked at; ${count(keys)} are in use.`
      : `${which} in use, the fullest first.`;
  return html`<p class="muted" role="status">${said}</p>
    <${Keys} constraint=${constraint} rows=${busiest.slice(from, from + PAGE)} pager=${pager} after=${after}
      empty="Nothing runs under it, and nothing is held." />`;
}

const Fact = ({ name, children }) => html`<dt>${name}</dt><dd>${children}</dd>`;

function Facts({ one, after }) {
  return html`<dl class="facts">
    <${Fact} name="Limit"><${Limit} constraint=${one} done=${() => after(true)} /><//>
    ${one.by ? html`<${Fact} name="For each"><code>${[one.by].flat().join(', ')}</code><//>` : null}
    ${one.cost === undefined ? null : html`<${Fact} name="A start counts"><code>${String(one.cost)}</code><//>`}
    ${one.expires_ms ? html`<${Fact} name="Expires">${moment(one.expires_ms)}<//>` : null}
    <${Fact} name=${inUse(one) === 'running' ? 'Running' : 'Places in use'}>${count(one.running)}
      ${one.order ? html`<span class="muted"> (jobs that wait for their retry keep theirs)</span>` : null}<//>
    <${Fact} name="Held jobs">${one.held ? html`<b><${Least} of=${one} number=${one.held} /></b>` : none('0')}<//>
    ${one.by ? html`<${Fact} name="Keys in use">${count(one.keys)}, <${Least} of=${one} number=${one.full} /> of them full<//>` : null}
    ${isWhole(one) ? null : html`<${Fact} name="Counted">${partly(one)}<//>`}
  </dl>`;
}

function Queues({ one }) {
  if (!one.queues.length) return html`<p class="muted">None: nothing is held.</p>`;
  return html`<dl class="facts">${one.queues.map(
    ([name, held]) =>
      html`<dt key=${name}><${Link} to=${path`/queue/${name}`}>${cut(name, 60)}<//></dt><dd>${count(held)} held</dd>`,
  )}</dl>`;
}

export function Page({ params: { id } }) {
  const [{ find, keys }] = useQuery();
  const state = useData((signal) => api.get(path`/constraint/${id}`, { busiest: BUSIEST }, { signal }), {
    ms: 3000,
    deps: [id],
  });
  const after = (answer) => {
    if (!answer) return;
    if (typeof answer === 'string') toast(answer);
    state.reload();
  };
  const action = (text, run, rest) =>
    html`<${Button} needs="operator" aria-label=${`${text} ${id}`} ...${rest} onClick=${run}>${text}…<//>`;
  const drop = async () => {
    if (await remove(state.data)) navigate('/constraints');
  };
  const actions = state.data && [
    action('Change', async () => after(await edit(state.data)), { class: 'primary' }),
    action('Hold', async () => after(await hold(state.data))),
    action('Delete', drop, { class: 'danger' }),
  ];
  const title = html`<span class="crumb"><${Link} to="/constraints">Constraints<//> / </span>${id}`;
  return html`<${Head} title=${title} actions=${actions} />
    <${AlertsOf} field="constraint" name=${id} />
    <${Loaded} of=${state}>${(one) => html`
      <div class="grid">
        <section class="panel"><h2>What it says</h2><${Facts} one=${one} after=${after} /></section>
        <section class="panel"><h2>Queues it holds jobs of</h2><${Queues} one=${one} /></section>
        <section class="panel"><h2>Jobs it concerns</h2><${Tree} value=${one.match} label="Matcher" /></section>
      </div>
      <h2>Keys in use</h2>
      ${one.by ? html`<${FilterBar} fields=${FILTERS} />` : null}
      ${
        one.by && !find && !keys
          ? html`<${FullestKeys} constraint=${one} after=${after} />`
          : html`<${KeysByValue} key=${find} constraint=${one} prefix=${find} after=${after} />`
      }`}<//>`;
}
