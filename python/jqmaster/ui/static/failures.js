// What fails: by group, each with its newest job, and whether it is new; by kind of job with shares; and over time.
import { all, api, path, withQuery } from './api.js';
import { Chart, spread, useStatistics } from './chart.js';
import { count, cut, jobs as inJobs, percent } from './format.js';
import { Ago, Badge, Button, Empty, Head, Loaded, Pager, Section, Table, usePageOf, zero } from './parts.js';
import { actionOf, mass } from './query.js';
import { html, Link, useData, useQuery } from './view.js';

const MOST_GROUPS = 300;
const PAGE = 25;
const ORDERS = {
  count: ['most jobs first', (a, b) => b.count - a.count],
  last: ['newest first', (a, b) => b.last_ms - a.last_ms],
  first: ['oldest first', (a, b) => a.first_ms - b.first_ms],
  group: ['by name', () => 0],
};
/** Since when a group is new: the last deploy of the time, else all of it. → {ms, words} */
function freshness(range, [mark]) {
  return mark ? { ms: mark.time_ms, words: `since ${mark.text}` } : { ms: range.from_ms, words: 'in this time' };
}

const failing = ({ failed, lapsed, error }) => failed + lapsed + error;

/** The kinds of jobs that fail most. */
const worst = (pairs) =>
  pairs
    .filter(failing)
    .sort((a, b) => b.error - a.error || failing(b) - failing(a))
    .slice(0, 10);

function Count({ group, most }) {
  const width = `${Math.max(1, (group.count / most) * 100)}%`;
  return html`<span class="counted"><span>${count(group.count)}</span><span class="share" style=${{ width }}></span></span>`;
}

function columns(fresh, most, run) {
  const jobsOf = (group) => withQuery('/jobs', { group: group.group });
  const action = (id, name, group, kind) =>
    html`<${Button} needs="operator" class=${kind} aria-label=${`${name} all of ${group.group}`} onClick=${() => run(id, group)}>${name}…<//>`;
  return [
    {
      title: 'Group, and newest message',
      kind: 'wide',
      cell: (group) => html`<${Link} to=${jobsOf(group)} data-open>${cut(group.group, 120)}<//>
        ${
          group.first_ms >= fresh.ms
            ? html` <${Badge} word="new" kind="warning" title=${`New ${fresh.words}: none of its jobs that are kept failed before`} />`
            : null
        }
        <p class="muted said" title=${cut(group.message, 1000)}>
          <${Link} to=${path`/job/${group.id}`}>${cut(group.message, 160) || 'no message'}<//></p>
        <p class="muted">${cut(group.name, 60)}${group.queue === group.name ? null : html` in ${cut(group.queue, 40)}`}</p>`,
    },
    { title: 'Jobs', kind: 'number', cell: (group) => html`<${Count} group=${group} most=${most} />` },
    { title: 'Newest', cell: (group) => html`<span class="nowrap"><${Ago} ms=${group.last_ms} /></span>` },
    {
      title: 'Oldest kept',
      hide: 'narrow',
      cell: (group) => html`<span class="nowrap"><${Ago} ms=${group.first_ms} /></span>`,
    },
    {
      title: '',
      kind: 'actions',
      cell: (group) => [action('retry', 'Retry', group, 'small'), action('discard', 'Discard', group, 'small danger')],
    },
  ];
}

const KINDS = [
  {
    title: 'Job',
    kind: 'wide',
    cell: ({
      name,
      queue,
    }) => html`<${Link} to=${withQuery('/jobs', { name, queue, status: 'error' })}>${cut(name, 60)}<//>
      ${queue === name ? null : html`<span class="muted"> in ${cut(queue, 40)}</span>`}`,
  },
  { title: 'For good', kind: 'number', cell: ({ error }) => zero(count(error), error) },
  { title: 'Failed attempts', kind: 'number', hide: 'narrow', cell: (pair) => count(failing(pair)) },
  { title: 'Of all', kind: 'number', cell: (pair) => percent(failing(pair) / (failing(pair) + pair.done)) },
];

function Summary({ groups, isAll, fresh }) {
  const sum = groups.reduce((whole, group) => whole + group.count, 0);
  const many = `${isAll ? '' : 'more than '}${count(groups.length)} ${groups.length === 1 ? 'group' : 'groups'}`;
  const newest = groups.filter((group) => group.first_ms >= fresh.ms).length;
  return html`<p class="muted">${inJobs(sum)} in ${many}, <b>${isAll ? '' : 'at least '}${count(newest)} new</b> ${cut(fresh.words, 60)}.
    Jobs that failed for good stay until they are retried or discarded, or error_ttl has passed.</p>`;
}

/** A page of groups in order. */
function Groups({ data, order, fresh, reload }) {
  const [rows, pager] = usePageOf([...data.groups].sort(ORDERS[order][1]), PAGE);
  const run = async (id, { group }) => (await mass(actionOf(id), { where: { group } })) !== undefined && reload();
  const most = Math.max(1, ...data.groups.map((group) => group.count));
  const empty = html`<${Empty}>No job has failed for good. <${Link} to=${withQuery('/jobs', { status: 'retrying' })}>Those
    that failed and are tried again<//><//>`;
  return html`${data.groups.length ? html`<${Summary} ...${data} fresh=${fresh} />` : null}
    <${Table} label="Failures by group" columns=${columns(fresh, most, run)} rows=${rows} rowKey=${(group) => group.group}
      empty=${empty}><${Pager} of=${pager} /><//>`;
}

export function Failures() {
  const [{ order: asked }, setQuery] = useQuery();
  const order = ORDERS[asked] ? asked : 'count';
  const look = async (period, signal) => {
    const [{ stats }, { entries }] = await Promise.all([
      api.get('/stats', period, { signal }),
      all('/stats', { ...period, series: 1 }, { signal }),
    ]);
    return { stats, kinds: worst(entries) };
  };
  const { state: statistics, range, by, whole: moments, from_ms, to_ms, lines, marks } = useStatistics(look);
  const fresh = freshness(range, marks);
  const load = async (signal) => {
    const { entries, isAll } = await all('/failures', {}, { signal }, MOST_GROUPS);
    return { groups: entries, isAll };
  };
  const state = useData(load, { ms: 10000 });
  const choices = html`<select aria-label="Order" value=${order}
    onChange=${({ target }) => setQuery({ order: target.value === 'count' ? '' : target.value, at: '' })}>
    ${Object.entries(ORDERS).map(([name, [title]]) => html`<option value=${name} selected=${name === order}>${title}</option>`)}</select>`;
  const series = ({ stats }) =>
    [
      ['failed, retried', 'retrying', (bucket) => bucket.failed + bucket.lapsed],
      ['failed for good', 'error', (bucket) => bucket.error],
    ].map(([name, kind, value]) => {
      const values = spread(moments, stats, value);
      return { name, kind, values, latest: values.reduce((sum, value) => sum + value, 0) };
    });
  return html`<${Head} title="Failures" actions=${choices} />
    <${Loaded} of=${state}>${(data) => html`<${Groups} data=${data} order=${order} fresh=${fresh} reload=${state.reload} />`}<//>
    <${Loaded} of=${statistics}>${(data) => html`<h2>Over time</h2><div class="grid">
      <section class="panel"><${Chart} title=${`Failed attempts, by the ${by}`} height=${150} zoom marks=${lines}
        moments=${moments} from_ms=${from_ms} to_ms=${to_ms} series=${series(data)} /></section>
      <${Section} title="By kind of job"><${Table} label="Failures by kind of job" columns=${KINDS} rows=${data.kinds}
        rowKey=${({ queue, name }) => `${queue} ${name}`} empty=${html`<p class="muted">Nothing failed in this time.</p>`} /><//>
    </div>`}<//>`;
}
