// What fails: by group with the newest message, by kind of job with shares, and over time.
import { all, api, path } from '../api.js';
import { chart } from '../components/chart.js';
import { table } from '../components/table.js';
import { failed } from '../components/toast.js';
import { operatorButton as button, fill, h } from '../dom.js';
import { ago, count, cut, jobs as inJobs, now, percent } from '../format.js';
import { actionOf } from '../jobs/actions.js';
import { mass } from '../jobs/mass.js';
import { every } from '../live.js';
import { link, query, setQuery, withQuery } from '../router.js';

const MOST_GROUPS = 5000;
const PAGE = 50;
const ORDERS = {
  count: (a, b) => b.count - a.count,
  last: (a, b) => b.last_ms - a.last_ms,
  first: (a, b) => a.first_ms - b.first_ms,
  group: () => 0,
};
const HOUR = 3600000;

async function allGroups(signal) {
  const { found: groups, isAll } = await all('/failures', {}, { signal }, MOST_GROUPS);
  return { groups, isAll };
}

/** What is looked at: steps, how many of them, and in words. */
const SPANS = {
  hour: { by: 'minute', step: 60000, steps: 60, text: 'last hour' },
  day: { by: 'hour', step: HOUR, steps: 24, text: 'last day' },
};

const begins = ({ step, steps }) => Math.floor(now() / step) * step - (steps - 1) * step;

/** Failures in each step, those in which nothing happened included. */
async function overTime(span) {
  const from = begins(span);
  const { stats } = await api.get('/stats', { by: span.by, from_ms: from });
  const at = new Map(stats.map((one) => [one.begin_ms, one]));
  const moments = Array.from({ length: span.steps }, (_, index) => from + index * span.step);
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

export async function render(view) {
  let found = { groups: [], isAll: true };
  const order = () => (ORDERS[query().order] ? query().order : 'count');
  const span = () => SPANS[query().span] || SPANS.hour;
  const trend = chart({ title: 'Attempts that failed', height: 130 });
  const kinds = h('div', {});
  const note = h('p', { class: 'muted' });

  const list = table({
    label: 'Failures by group',
    key: (one) => one.group,
    open: true,
    columns: [
      {
        title: 'Jobs',
        kind: 'number',
        cell: (one) =>
          h(
            'span',
            { class: 'counted' },
            count(one.count),
            share(one.count, Math.max(...found.groups.map((g) => g.count))),
          ),
      },
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
        ],
      },
      { title: 'Newest', cell: (one) => ago(one.last_ms) },
      { title: 'Oldest', hide: 'narrow', cell: (one) => ago(one.first_ms) },
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
      if (!from) found = await allGroups(signal);
      const sorted = [...found.groups].sort(ORDERS[order()]);
      const sum = found.groups.reduce((all, one) => all + one.count, 0);
      note.textContent = found.groups.length
        ? `${inJobs(sum)} in ${found.isAll ? '' : 'more than '}${count(found.groups.length)} ${found.groups.length === 1 ? 'group' : 'groups'}. Jobs that failed for good stay until they are retried, discarded, or their time to be kept is over.`
        : '';
      return { rows: sorted.slice(from, from + PAGE), cursor: from + PAGE < sorted.length ? String(from + PAGE) : '' };
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
                  ['Job', 'For good', 'Attempts that failed', 'Of all attempts'].map((title, index) =>
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
          setQuery({ span: spans.value === 'hour' ? '' : spans.value });
          refresh().catch(failed);
        },
      },
    },
    Object.entries(SPANS).map(([value, { text }]) => h('option', { value, selected: SPANS[value] === span() }, text)),
  );
  view.append(
    h('div', { class: 'head' }, h('h1', {}, 'Failures'), h('div', { class: 'actions' }, sorting)),
    note,
    list.element,
    h('div', { class: 'head' }, h('h2', {}, 'Over time'), h('div', { class: 'actions' }, spans)),
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
