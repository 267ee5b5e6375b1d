// What fails: by group, each with a small graph, whether it is new, and what its jobs have in common; by kind of job with
// shares; and over time.
import { all, api, path, stringify } from '../api.js';
import { badge } from '../components/badge.js';
import { chart, sparkline } from '../components/chart.js';
import { table } from '../components/table.js';
import { failed } from '../components/toast.js';
import { operatorButton as button, fill, h } from '../dom.js';
import { ago, count, cut, jobs as inJobs, now, percent } from '../format.js';
import { actionOf } from '../jobs/actions.js';
import { mass } from '../jobs/mass.js';
import { every } from '../live.js';
import { link, query, setQuery, withQuery } from '../router.js';

const MOST_GROUPS = 5000;
// With more groups than these, only those of the page are asked for what costs more.
const MOST_TOLD = 100;
const PAGE = 25;
const STEPS = 30;
const SAMPLE = 20;
const ORDERS = {
  count: (a, b) => b.count - a.count,
  last: (a, b) => b.last_ms - a.last_ms,
  first: (a, b) => a.first_ms - b.first_ms,
  group: () => 0,
};
const HOUR = 3600000;

/** What is told of groups besides: how many failed in each part of the time, and what the newest are. */
const details = (span) => ({ steps: STEPS, from_ms: now() - span.length, to_ms: now() + 1, sample: SAMPLE });

/** All groups; where they are very many, without the details. */
async function allGroups(span, signal) {
  const few = await all('/failures', details(span), { signal }, MOST_TOLD);
  return few.isAll ? few : all('/failures', {}, { signal }, MOST_GROUPS);
}

/** The rows of a page with their details. One that is gone meanwhile is left out. */
async function told(rows, span, signal) {
  const asked = rows.map((one) =>
    one.counts
      ? [one]
      : api.get('/failures', { ...details(span), group: one.group }, { signal }).then((it) => it.failures),
  );
  return (await Promise.all(asked)).flat();
}

/** What is looked at: steps of the statistics, and in words. */
const MINUTE = 60000;
const SPANS = {
  '15m': { by: 'minute', step: MINUTE, length: 15 * MINUTE, text: 'last 15 minutes' },
  '1h': { by: 'minute', step: MINUTE, length: HOUR, text: 'last hour' },
  '6h': { by: 'hour', step: HOUR, length: 6 * HOUR, text: 'last 6 hours' },
  '1d': { by: 'hour', step: HOUR, length: 24 * HOUR, text: 'last day' },
  '7d': { by: 'hour', step: HOUR, length: 168 * HOUR, text: 'last 7 days' },
};

const begins = ({ step, length }) => Math.floor(now() / step) * step - length + step;

/** Failures in each step, those in which nothing happened included. */
async function overTime(span) {
  const from = begins(span);
  const { stats } = await api.get('/stats', { by: span.by, from_ms: from });
  const at = new Map(stats.map((one) => [one.begin_ms, one]));
  const moments = Array.from({ length: span.length / span.step }, (_, index) => from + index * span.step);
  const sum = (value) => stats.reduce((all, one) => all + value(one), 0);
  const again = (one) => one.failed + one.lapsed;
  const good = (one) => one.error;
  const values = (value) => moments.map((ms) => [ms, at.has(ms) ? value(at.get(ms)) : 0]);
  return {
    series: [
      { name: 'failed, tried again', kind: 'retrying', values: values(again), latest: sum(again) },
      { name: 'failed for good', kind: 'error', values: values(good), latest: sum(good) },
    ],
    from,
    to: moments.at(-1),
  };
}

async function byName(span) {
  const { found } = await all('/stats/series', { by: span.by, from_ms: begins(span) });
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

function share(part, whole) {
  const bar = h('span', { class: 'share' });
  bar.style.width = `${Math.max(1, (part / Math.max(whole, 1)) * 100)}%`;
  return bar;
}

/** "card 5, mail 3": the most frequent ones, each a way to its jobs. */
const frequent = (pairs, to) =>
  pairs.slice(0, 3).map(([name, jobs], index) => [index ? ', ' : '', link(to(name), cut(name, 40)), ` ${count(jobs)}`]);

/** What the newest jobs of a group have in common. */
function common(one) {
  const { names, queues, values, looked } = one;
  const isQueueItsName = JSON.stringify(names) === JSON.stringify(queues);
  const parts = [['jobs ', frequent(names, (name) => withQuery('/jobs', { group: one.group, name }))]];
  if (!isQueueItsName) parts.push(['queues ', frequent(queues, (name) => path`/queue/${name}`)]);
  for (const [where, value, jobs] of values.slice(0, 3))
    parts.push([
      h('code', {}, `${cut(where.replace(/^argument\./, ''), 30)}: ${cut(stringify(value), 40)}`),
      ` ${count(jobs)}`,
    ]);
  return h(
    'p',
    { class: 'muted common', title: `Of the ${looked === 1 ? 'newest job' : `newest ${count(looked)} jobs`}` },
    h('span', {}, looked < one.count ? `newest ${count(looked)}: ` : ''),
    parts.map((part, index) => [index ? ' · ' : '', part]),
  );
}

/** How many failed in each part of the time. */
function graph(one, text) {
  const sum = one.counts.reduce((whole, number) => whole + number, 0);
  return h(
    'span',
    { class: 'counted' },
    sparkline(one.counts, 'error', `${inJobs(sum)} in the ${text}`),
    sum ? count(sum) : h('span', { class: 'zero' }, '0'),
  );
}

export async function render(view) {
  let known = { found: [], isAll: true };
  const order = () => (ORDERS[query().order] ? query().order : 'count');
  const span = () => SPANS[query().range] || SPANS['1h'];
  const trend = chart({ title: 'Attempts that failed', height: 130 });
  const kinds = h('div', {});
  const note = h('p', { class: 'muted' });

  const list = table({
    label: 'Failures by group',
    key: (one) => one.group,
    open: true,
    columns: [
      {
        title: 'Group, and newest message',
        kind: 'wide',
        cell: (one) => [
          h('a', { href: `/ui${withQuery('/jobs', { group: one.group })}`, 'data-open': true }, cut(one.group, 120)),
          h(
            'p',
            { class: 'muted said', title: cut(one.message, 1000) },
            link(path`/job/${one.id}`, cut(one.message, 160) || 'no message'),
          ),
          common(one),
        ],
      },
      {
        title: 'Jobs',
        kind: 'number',
        cell: (one) =>
          h(
            'span',
            { class: 'counted' },
            count(one.count),
            share(one.count, Math.max(...known.found.map((g) => g.count))),
          ),
      },
      { title: 'In this time', kind: 'number', cell: (one) => graph(one, span().text) },
      { title: 'Newest', cell: (one) => h('span', { class: 'nowrap' }, ago(one.last_ms)) },
      {
        title: 'Oldest kept',
        hide: 'narrow',
        cell: (one) => [
          h('span', { class: 'nowrap' }, ago(one.first_ms)),
          one.first_ms >= now() - span().length
            ? [' ', badge('new', `None of its jobs that are kept failed before the ${span().text}`, 'warning')]
            : null,
        ],
      },
      {
        title: '',
        kind: 'actions',
        cell: (one) => [
          button('Retry…', () => run('retry', one), { class: 'small', 'aria-label': `Retry all of ${one.group}` }),
          button('Discard…', () => run('discard', one), {
            class: 'small danger',
            'aria-label': `Discard all of ${one.group}`,
          }),
          h(
            'a',
            { class: 'button small hide-narrow', href: `/ui${withQuery('/jobs', { group: one.group })}` },
            'Choose some…',
          ),
        ],
      },
    ],
    load: async (cursor, signal) => {
      const from = Number(cursor) || 0;
      if (!from) known = await allGroups(span(), signal);
      const sorted = [...known.found].sort(ORDERS[order()]);
      const sum = known.found.reduce((all, one) => all + one.count, 0);
      note.textContent = known.found.length
        ? `${inJobs(sum)} in ${known.isAll ? '' : 'more than '}${count(known.found.length)} ${known.found.length === 1 ? 'group' : 'groups'}. Jobs that failed for good stay until they are retried, discarded, or their time to be kept is over.`
        : '';
      return {
        rows: await told(sorted.slice(from, from + PAGE), span(), signal),
        cursor: from + PAGE < sorted.length ? String(from + PAGE) : '',
      };
    },
    empty: () => [
      'No job has failed for good. ',
      link(withQuery('/jobs', { status: 'retrying' }), 'Those that failed and are tried again'),
    ],
  });

  async function run(id, group) {
    if ((await mass(actionOf(id), { where: { group: group.group } })) !== undefined) await refresh();
  }

  async function drawKinds() {
    const rows = await byName(span());
    fill(
      kinds,
      rows.length
        ? h(
            'div',
            { class: 'scroll' },
            h(
              'table',
              { 'aria-label': 'Failures by kind of job' },
              h(
                'thead',
                {},
                h(
                  'tr',
                  {},
                  ['Job', 'For good', 'Failed attempts', 'Of all'].map((title, index) =>
                    h(
                      'th',
                      { scope: 'col', class: `${index ? 'number' : ''} ${index === 2 ? 'hide-narrow' : ''}` },
                      title,
                    ),
                  ),
                ),
              ),
              h(
                'tbody',
                {},
                rows.map((one) =>
                  h(
                    'tr',
                    {},
                    h(
                      'td',
                      { class: 'wide' },
                      link(
                        withQuery('/jobs', { name: one.name, queue: one.queue, status: 'error' }),
                        cut(one.name, 60),
                      ),
                      one.queue === one.name ? null : h('span', { class: 'muted' }, ` in ${cut(one.queue, 40)}`),
                    ),
                    h('td', { class: 'number' }, count(one.error)),
                    h('td', { class: 'number hide-narrow' }, count(one.bad)),
                    h('td', { class: 'number' }, percent(one.bad / one.all)),
                  ),
                ),
              ),
            ),
          )
        : h('p', { class: 'muted' }, 'Nothing failed in this time.'),
    );
  }

  async function refresh() {
    const [, data] = await Promise.all([list.refresh(), overTime(span()), drawKinds()]);
    trend.update(data);
  }

  const sorting = h(
    'select',
    {
      'aria-label': 'Order',
      'data-filter': '1',
      on: {
        change: () => {
          setQuery({ order: sorting.value === 'count' ? '' : sorting.value });
          list.reset();
        },
      },
    },
    [
      ['count', 'most jobs first'],
      ['last', 'newest first'],
      ['first', 'oldest first'],
      ['group', 'by name'],
    ].map(([value, text]) => h('option', { value, selected: value === order() }, text)),
  );
  const spans = h(
    'select',
    {
      'aria-label': 'Time',
      on: {
        change: () => {
          setQuery({ range: spans.value === '1h' ? '' : spans.value });
          list.reset();
          refresh().catch(failed);
        },
      },
    },
    Object.entries(SPANS).map(([value, { text }]) => h('option', { value, selected: SPANS[value] === span() }, text)),
  );
  view.append(
    h('div', { class: 'head' }, h('h1', {}, 'Failures'), h('div', { class: 'actions' }, sorting, spans)),
    note,
    list.element,
    h('h2', {}, 'Over time'),
    h(
      'div',
      { class: 'grid' },
      h('section', { class: 'panel' }, trend.element),
      h('section', { class: 'panel' }, h('h2', {}, 'By kind of job'), kinds),
    ),
  );
  await refresh();
  return every(10000, async () => {
    if (!document.querySelector('dialog[open]')) await refresh();
  });
}
