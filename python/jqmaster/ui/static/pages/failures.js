// What fails: by group, each with a small graph, whether it is new, and what its jobs have in common; by kind of job with
// shares; and over time.
import { all, api, path, stringify } from '../api.js';
import { Badge } from '../components/badge.js';
import { Button, Empty, Head, Loaded } from '../components/parts.js';
import { Pager, Table } from '../components/rows.js';
import { Sparkline } from '../components/sparkline.js';
import { Ago } from '../components/time.js';
import { Chart } from '../components/timechart.js';
import { count, cut, jobs as inJobs, now, percent } from '../format.js';
import { actionOf } from '../jobs/actions.js';
import { mass } from '../jobs/mass.js';
import { useMarks } from '../marks.js';
import { withQuery } from '../router.js';
import { html, Link, RANGES, STEP_MS, useData, useQuery, useRange } from '../view.js';

const MOST_GROUPS = 5000;
// With more groups than these, only those of the page are asked for what costs more.
const MOST_TOLD = 100;
const PAGE = 25;
const STEPS = 30;
const SAMPLE = 20;
const ORDERS = {
  count: ['most jobs first', (a, b) => b.count - a.count],
  last: ['newest first', (a, b) => b.last_ms - a.last_ms],
  first: ['oldest first', (a, b) => a.first_ms - b.first_ms],
  group: ['by name', () => 0],
};
// Minutes are kept for three hours.
const MINUTES_MS = 179 * STEP_MS.minute;

/** What is told of groups besides: how many failed in each part of the time, and what the newest are. */
const details = (range) => ({ steps: STEPS, from_ms: range.from_ms, to_ms: range.to_ms + 1, sample: SAMPLE });

/** A page of groups in order, with their details: {groups: all of them, rows, isAll}. One that is gone is left out. */
async function load(range, order, from, signal) {
  const few = await all('/failures', details(range), { signal }, MOST_TOLD);
  const { found, isAll } = few.isAll ? few : await all('/failures', {}, { signal }, MOST_GROUPS);
  const rows = [...found].sort(ORDERS[order][1]).slice(from, from + PAGE);
  const ask = ({ group }) => api.get('/failures', { ...details(range), group }, { signal });
  const told = rows.map((one) => (one.counts ? [one] : ask(one).then(({ failures }) => failures)));
  return { groups: found, rows: (await Promise.all(told)).flat(), isAll };
}

/** Since when a group is new: the last deploy of the time, else all of it. → {ms, words} */
function freshness(range, [mark]) {
  return mark ? { ms: mark.time_ms, words: `since ${mark.text}` } : { ms: range.from_ms, words: 'in this time' };
}

/** By the minute as far as minutes are kept, else by the hour: {by, step, from_ms}. */
function statistics(range) {
  const by = range.by === 'minute' && now() - range.from_ms > MINUTES_MS ? 'hour' : range.by;
  const step = STEP_MS[by];
  return { by, step, from_ms: Math.floor(range.from_ms / step) * step, to_ms: range.to_ms };
}

/** Failures in each step, those in which nothing happened included. */
async function overTime(range, signal) {
  const { by, step, from_ms, to_ms } = statistics(range);
  const { stats } = await api.get('/stats', { by, from_ms, to_ms }, { signal });
  const at = new Map(stats.map((one) => [one.begin_ms, one]));
  const moments = Array.from({ length: Math.ceil((to_ms - from_ms) / step) }, (_, index) => from_ms + index * step);
  const series = (name, kind, value) => {
    const values = moments.map((ms) => (at.has(ms) ? value(at.get(ms)) : 0));
    return { name, kind, values, latest: values.reduce((sum, one) => sum + one, 0) };
  };
  return {
    moments,
    from_ms,
    to_ms,
    unit: by === 'minute' ? 'a minute' : by === 'hour' ? 'an hour' : 'a day',
    series: [
      series('failed, tried again', 'retrying', (one) => one.failed + one.lapsed),
      series('failed for good', 'error', (one) => one.error),
    ],
  };
}

async function byName(range, signal) {
  const { by, from_ms, to_ms } = statistics(range);
  const { found } = await all('/stats/series', { by, from_ms, to_ms }, { signal });
  const rows = found.map((one) => ({
    ...one,
    bad: one.failed + one.lapsed + one.error,
    all: one.failed + one.lapsed + one.error + one.done,
  }));
  return rows
    .filter((one) => one.bad)
    .sort((a, b) => b.error - a.error || b.bad - a.bad)
    .slice(0, 10);
}

/** "card 5, mail 3": the most frequent ones, each a way to its jobs. */
const frequent = (pairs, to) =>
  pairs
    .slice(0, 3)
    .map(
      ([name, jobs], index) => html`${index ? ', ' : ''}<${Link} to=${to(name)}>${cut(name, 40)}<//> ${count(jobs)}`,
    );

/** What the newest jobs of a group have in common. */
function Common({ one }) {
  const { names, queues, values, looked } = one;
  const parts = [html`jobs ${frequent(names, (name) => withQuery('/jobs', { group: one.group, name }))}`];
  if (stringify(names) !== stringify(queues))
    parts.push(html`queues ${frequent(queues, (name) => path`/queue/${name}`)}`);
  for (const [where, value, jobs] of values.slice(0, 3))
    parts.push(
      html`<code>${cut(where.replace(/^argument\./, ''), 30)}: ${cut(stringify(value), 40)}</code> ${count(jobs)}`,
    );
  return html`<p class="muted common" title=${`Of the ${looked === 1 ? 'newest job' : `newest ${count(looked)} jobs`}`}>
    ${looked < one.count ? `newest ${count(looked)}: ` : ''}${parts.map((part, index) => [index ? ' · ' : '', part])}</p>`;
}

/** How many failed in each part of the time. */
function Graph({ one, text }) {
  const sum = one.counts.reduce((whole, number) => whole + number, 0);
  return html`<span class="counted"><${Sparkline} values=${one.counts} kind="error" title=${`${inJobs(sum)} ${text}`} />
    ${sum ? html`<span>${count(sum)}</span>` : html`<span class="zero">0</span>`}</span>`;
}

function Count({ one, most }) {
  const width = `${Math.max(1, (one.count / most) * 100)}%`;
  return html`<span class="counted"><span>${count(one.count)}</span><span class="share" style=${{ width }}></span></span>`;
}

function columns(fresh, text, most, run) {
  const jobsOf = (one) => withQuery('/jobs', { group: one.group });
  const action = (id, name, one, kind) =>
    html`<${Button} needs="operator" class=${kind} aria-label=${`${name} all of ${one.group}`} onClick=${() => run(id, one)}>${name}…<//>`;
  return [
    {
      title: 'Group, and newest message',
      kind: 'wide',
      cell: (one) => html`<${Link} to=${jobsOf(one)} data-open>${cut(one.group, 120)}<//>
        ${
          one.first_ms >= fresh.ms
            ? html` <${Badge} word="new" kind="warning" title=${`New ${fresh.words}: none of its jobs that are kept failed before`} />`
            : null
        }
        <p class="muted said" title=${cut(one.message, 1000)}>
          <${Link} to=${path`/job/${one.id}`}>${cut(one.message, 160) || 'no message'}<//></p>
        <${Common} one=${one} />`,
    },
    { title: 'Jobs', kind: 'number', cell: (one) => html`<${Count} one=${one} most=${most} />` },
    { title: 'In this time', kind: 'number', cell: (one) => html`<${Graph} one=${one} text=${text} />` },
    { title: 'Newest', cell: (one) => html`<span class="nowrap"><${Ago} ms=${one.last_ms} /></span>` },
    {
      title: 'Oldest kept',
      hide: 'narrow',
      cell: (one) => html`<span class="nowrap"><${Ago} ms=${one.first_ms} /></span>`,
    },
    {
      title: '',
      kind: 'actions',
      cell: (one) => [
        action('retry', 'Retry', one, 'small'),
        action('discard', 'Discard', one, 'small danger'),
        html`<${Link} class="button small hide-narrow" to=${jobsOf(one)}>Choose some…<//>`,
      ],
    },
  ];
}

function Kinds({ rows }) {
  if (!rows.length) return html`<p class="muted">Nothing failed in this time.</p>`;
  return html`<div class="scroll"><table aria-label="Failures by kind of job">
    <thead><tr><th scope="col">Job</th><th scope="col" class="number">For good</th>
      <th scope="col" class="number hide-narrow">Failed attempts</th><th scope="col" class="number">Of all</th></tr></thead>
    <tbody>${rows.map(
      (one) => html`<tr key=${`${one.queue} ${one.name}`}>
        <td class="wide"><${Link} to=${withQuery('/jobs', { name: one.name, queue: one.queue, status: 'error' })}>${cut(one.name, 60)}<//>
          ${one.queue === one.name ? null : html`<span class="muted"> in ${cut(one.queue, 40)}</span>`}</td>
        <td class="number">${count(one.error)}</td><td class="number hide-narrow">${count(one.bad)}</td>
        <td class="number">${percent(one.bad / one.all)}</td></tr>`,
    )}</tbody></table></div>`;
}

/** "hour", "6 hours". */
const bare = (span) => span.replace(/^1 /, '');

const Choice = ({ label, value, options, onChange }) =>
  html`<select aria-label=${label} value=${value} onChange=${(event) => onChange(event.target.value)}>
    ${options.map(([name, text]) => html`<option key=${name} value=${name} selected=${name === value}>${text}</option>`)}
  </select>`;

function Said({ groups, isAll, fresh }) {
  const sum = groups.reduce((whole, one) => whole + one.count, 0);
  const many = `${isAll ? '' : 'more than '}${count(groups.length)} ${groups.length === 1 ? 'group' : 'groups'}`;
  const newest = groups.filter((one) => one.first_ms >= fresh.ms).length;
  return html`<p class="muted">${inJobs(sum)} in ${many}, <b>${isAll ? '' : 'at least '}${count(newest)} new</b> ${cut(fresh.words, 60)}, <${Ago} ms=${fresh.ms} />.
    Jobs that failed for good stay until they are retried, discarded, or their time to be kept is over.</p>`;
}

export function Page() {
  const [{ order: asked, at = '' }, setQuery] = useQuery();
  const range = useRange();
  const order = ORDERS[asked] ? asked : 'count';
  const from = Number(at) || 0;
  const { marks, lines } = useMarks(range);
  const fresh = freshness(range, marks);
  const deps = [range.name, range.isLive || range.from_ms, range.isLive || range.to_ms];
  const state = useData((signal) => load(range, order, from, signal), { ms: 10000, deps: [...deps, order, from] });
  const trend = useData((signal) => overTime(range, signal), { ms: 10000, deps });
  const kinds = useData((signal) => byName(range, signal), { ms: 10000, deps });
  const run = async (id, { group }) => {
    if ((await mass(actionOf(id), { where: { group } })) !== undefined) state.reload();
  };
  const text = range.isLive ? `in the last ${bare(RANGES.find(([name]) => name === range.name)[2])}` : 'in this time';
  const to = (start) => () => setQuery({ at: start || '' });
  const choices = html`
    <${Choice} label="Order" value=${order} options=${Object.entries(ORDERS).map(([name, [told]]) => [name, told])}
      onChange=${(value) => setQuery({ order: value === 'count' ? '' : value, at: '' })} />`;
  const empty = html`<${Empty}>No job has failed for good. <${Link} to=${withQuery('/jobs', { status: 'retrying' })}>Those
    that failed and are tried again<//><//>`;
  return html`<${Head} title="Failures" actions=${choices} />
    <${Loaded} of=${state}>${(data) => {
      const most = Math.max(1, ...data.groups.map((one) => one.count));
      const pager = {
        number: from / PAGE + 1,
        back: from ? to(from - PAGE) : null,
        forth: from + PAGE < data.groups.length ? to(from + PAGE) : null,
      };
      return html`${data.groups.length ? html`<${Said} ...${data} fresh=${fresh} />` : null}
        <${Table} label="Failures by group" columns=${columns(fresh, text, most, run)} rows=${data.rows}
          rowKey=${(one) => one.group} empty=${empty}><${Pager} of=${pager} /><//>`;
    }}<//>
    <h2>Over time</h2>
    <div class="grid">
      <section class="panel"><${Loaded} of=${trend}>${({ unit, ...data }) => html`<${Chart} title=${`Attempts that failed, ${unit}`} height=${150} zoom marks=${lines} ...${data} />`}<//></section>
      <section class="panel"><h2>By kind of job</h2><${Loaded} of=${kinds}>${(rows) => html`<${Kinds} rows=${rows} />`}<//></section>
    </div>`;
}
