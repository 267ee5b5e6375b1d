// The partitions of a system: which answer, how much waits and is done in each, and whether each has the latest settings.
import { api } from '../api.js';
import { Badge } from '../components/badge.js';
import { Head, Loaded, zero } from '../components/parts.js';
import { sortOf, Table } from '../components/rows.js';
import { count, duration, rate } from '../format.js';
import { missingText } from '../system.js';
import { html, useData, useQuery } from '../view.js';

const OLD_MS = 10000;
const dash = html`<span class="zero">–</span>`;
const isAway = (one) => !one.answers && one.state !== 'closed';
const isBehind = (one) => Boolean(one.behind?.length);
const isWrong = (one) => Boolean(one.problem) || isBehind(one);

const some = (one, field) => zero(`${count(one[field])}${one.more ? '+' : ''}`, one[field]);
const figure = (title, sort, cell, more = {}) => ({
  title,
  sort,
  kind: 'number',
  cell: (one) => (one.rates ? cell(one) : dash),
  ...more,
});

function State({ one }) {
  if (isAway(one)) return html`<${Badge} word="no answer" kind="problem" />`;
  const kind = { active: 'ok', joining: 'scheduled', draining: 'retrying' }[one.state];
  return html`<${Badge} word=${one.state} kind=${kind} />`;
}

const Record = ({ one }) =>
  one.problem && !isAway(one) ? html`<${Badge} word="wrong" kind="problem" />` : one.answers ? 'ok' : dash;

const Settings = ({ one }) =>
  isBehind(one) ? html`<${Badge} word="behind" kind="warning" />` : one.behind ? 'ok' : dash;

const columnsOf = (now_ms) => [
  {
    title: 'Partition',
    kind: 'wide',
    sort: 'number',
    cell: (one) => html`<b>${one.number}</b> <code class="muted">${one.namespace}</code>`,
  },
  { title: 'State', cell: (one) => html`<${State} one=${one} />` },
  figure('Waiting', 'queued', (one) => some(one, 'queued')),
  figure(
    'Oldest',
    'oldest',
    (one) => (one.oldest_ready_ms ? duration(Math.max(0, now_ms - one.oldest_ready_ms)) : dash),
    { tip: 'For how long the oldest ready job waits, paused queues aside' },
  ),
  figure('Running', 'running', (one) => some(one, 'running')),
  figure('Done', 'done', (one) => zero(rate(one.rates.done), one.rates.done)),
  figure('Failed', 'failed', (one) => zero(rate(one.rates.failed), one.rates.failed), { hide: 'narrow' }),
  {
    title: 'Node, slot',
    sort: 'node',
    cell: (one) => html`<span class="nowrap">${one.node ?? 'none'} <span class="muted">· ${one.slot}</span></span>`,
  },
  {
    title: 'Buckets',
    kind: 'number',
    hide: 'tight',
    tip: 'Of 1024: what has a unique key, a route or a request token goes by them',
    cell: (one) => count(one.buckets),
  },
  {
    title: 'Record',
    hide: 'narrow',
    tip: 'Its copy of the record of the system',
    cell: (one) => html`<${Record} one=${one} />`,
  },
  {
    title: 'Settings',
    hide: 'narrow',
    tip: 'Beside the latest',
    cell: (one) => html`<${Settings} one=${one} />`,
  },
];

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1).replace(/\.$/, '');

/** What is wrong with one, and what can be done. */
function Wrong({ one }) {
  if (isAway(one))
    return html`<p><b>${sentence(one.problem)}.</b> Its jobs wait, and are in no list and no sum; the others go on. See${
      one.node ? html` the node <b>${one.node}</b>, and` : ''
    } what the cluster says of slot ${one.slot}.</p>`;
  return html`${one.problem ? html`<p><b>${sentence(one.problem)}.</b></p>` : null}
    ${
      isBehind(one)
        ? html`<p>Not the latest: ${one.behind.slice(0, 10).join(', ')}${
            one.behind.length > 10 ? ` and ${count(one.behind.length - 10)} more` : ''
          }. <code>jqmaster system sync</code> brings it there.</p>`
        : null
    }`;
}

const ORDERS = {
  number: (one) => one.number,
  node: (one) => one.node ?? '',
  queued: (one) => one.queued,
  running: (one) => one.running,
  oldest: (one) => one.oldest_ready_ms && -one.oldest_ready_ms,
  done: (one) => one.rates?.done,
  failed: (one) => one.rates?.failed,
};

/** In the order of a column, those without a figure last; else those with which something is wrong first. */
function inOrder(partitions, sort) {
  const [name, isDown] = sortOf(sort);
  const of = ORDERS[name];
  if (!of) return [...partitions].sort((a, b) => isWrong(b) - isWrong(a) || a.number - b.number);
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0) * (isDown ? -1 : 1);
  return [...partitions].sort((a, b) => {
    const [left, right] = [of(a), of(b)];
    if ((left === undefined) !== (right === undefined)) return left === undefined ? 1 : -1;
    return compare(left, right) || a.number - b.number;
  });
}

function Verdict({ data }) {
  const { partitions, missing } = data;
  const wrong = partitions.filter(isWrong);
  const all = `All ${count(partitions.length)} partitions`;
  const text = missing.length
    ? missingText(missing.length, partitions.length)
    : wrong.length
      ? `${all} answer, but ${count(wrong.length)} ${wrong.length === 1 ? 'is' : 'are'} not as recorded`
      : `${all} answer`;
  const kind = missing.length ? 'problem' : wrong.length ? 'warning' : 'ok';
  return html`<p class=${`verdict is-${kind}`} role="status"><span class="dot" aria-hidden="true"></span><b>${text}</b></p>`;
}

export function Page() {
  const state = useData((signal) => api.get('/partitions', {}, { signal }), { ms: 3000 });
  const [{ sort = '' }, setQuery] = useQuery();
  return html`<${Head} title="Partitions" />
    <${Loaded} of=${state}>${(data) => html`<${Verdict} data=${data} />
      <p class="muted"><code>${data.system}</code>, generation ${count(data.generation)}. Each partition is a namespace of its own, in one slot of
        the cluster. In which one a job is stands on its page.${
          data.now_ms - data.jobs_ms > OLD_MS
            ? ` There are many queues: jobs were counted ${duration(data.now_ms - data.jobs_ms)} before.`
            : ''
        }</p>
      <${Table} label="Partitions" columns=${columnsOf(data.now_ms)} rows=${inOrder(data.partitions, sort)}
        rowKey=${(one) => String(one.number)} sort=${sort} onSort=${(next) => setQuery({ sort: next })}
        below=${(one) => isWrong(one) && html`<${Wrong} one=${one} />`} />
      <${Routes} routes=${data.routes} />`}<//>`;
}

function Routes({ routes }) {
  const names = Object.keys(routes).sort();
  if (!names.length) return null;
  return html`<section class="panel"><h2>Routes</h2>
    <p class="muted">Jobs of these queues that have one value there share a partition.</p>
    <ul class="sample">${names.map((name) => html`<li key=${name}>${name}: <code>${routes[name]}</code></li>`)}</ul></section>`;
}
