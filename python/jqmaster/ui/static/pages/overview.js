// At a glance: what waits, runs and fails, now and over the last hour; the largest queues; what the doctor found.
import { path } from '../api.js';
import { alerts } from '../components/alerts.js';
import { badge } from '../components/badge.js';
import { stack } from '../components/bar.js';
import { chart, sparkline } from '../components/chart.js';
import { fill, h } from '../dom.js';
import { ago, brief, count, duration, rate, setServerNow } from '../format.js';
import { follow } from '../live.js';
import { BASE, link } from '../router.js';

const MINUTE = 60000;
const SPAN = 60;
// Of this tab, also while other pages were shown.
const samples = [];
const KEPT_MS = 10 * MINUTE;
const OPEN = ['queued', 'scheduled', 'blocked', 'running', 'retrying'];
const KINDS = ['enqueued', 'done', 'failed', 'lapsed', 'error', 'cancelled', 'released', 'moved'];

/** By minute, those in which nothing happened included: {ms, enqueued, done, …}. */
function minutes(data) {
  const last = Math.floor(data.now_ms / MINUTE) * MINUTE;
  const known = new Map(data.minutes.map((minute) => [minute[0], minute]));
  return Array.from({ length: SPAN }, (_, i) => {
    const ms = last - (SPAN - 1 - i) * MINUTE;
    const minute = known.get(ms);
    return { ms, ...Object.fromEntries(KINDS.map((kind, k) => [kind, minute ? minute[k + 1] : 0])) };
  });
}

/** How many jobs had not ended, from how many there are now and what came and went since. */
function backlog(all, totals) {
  let open = OPEN.reduce((sum, state) => sum + totals[state], 0);
  const points = [];
  for (const minute of [...all].reverse()) {
    points.unshift([minute.ms + MINUTE, Math.max(0, open)]);
    open -= minute.enqueued - minute.done - minute.error - minute.cancelled;
  }
  return points;
}

function tile(name, value, { more, to, kind } = {}) {
  const parts = [
    h('span', { class: 'tile-name' }, kind ? h('span', { class: `dot is-${kind}` }) : null, name),
    h('div', { class: 'tile-value' }, value),
    more ? h('div', { class: 'tile-more' }, more) : null,
  ];
  return to ? h('a', { class: 'tile', href: BASE + to }, parts) : h('div', { class: 'tile' }, parts);
}

function tiles({ totals, rates, workers }) {
  const failing = rates.failed + rates.lapsed + rates.error;
  const busy = !workers.count
    ? 'others may pull'
    : workers.slots
      ? `${count(workers.held)} jobs in ${count(workers.slots)} slots`
      : `${count(workers.held)} jobs held`;
  return [
    tile('Waiting', brief(totals.queued), {
      kind: 'queued',
      to: '/jobs?status=queued',
      more: `${rate(rates.enqueued)} come`,
    }),
    tile('Running', brief(totals.running), {
      kind: 'running',
      to: '/jobs?status=running',
      more: `${rate(rates.done)} done`,
    }),
    tile('Retrying', brief(totals.retrying), {
      kind: 'retrying',
      to: '/jobs?status=retrying',
      more: `${rate(failing)} fail`,
    }),
    tile('Failed', brief(totals.error), { kind: 'error', to: '/failures', more: 'for good' }),
    tile('Scheduled', brief(totals.scheduled), { kind: 'scheduled', to: '/jobs?status=scheduled', more: 'for later' }),
    tile('Blocked', brief(totals.blocked), { kind: 'blocked', to: '/jobs?status=blocked', more: 'by other jobs' }),
    tile('Registered workers', `${count(workers.count)}${workers.more ? '+' : ''}`, {
      to: '/workers',
      more: workers.unreachable ? `${count(workers.unreachable)} unreachable` : busy,
    }),
  ];
}

function queueRow(queue) {
  const parts = OPEN.map((state) => [state, queue[state], state]);
  const trend = queue.trend || [];
  return h(
    'tr',
    {
      tabindex: 0,
      data: { key: queue.name },
      on: {
        keydown: (event) => {
          if (event.key === 'Enter' && event.target === event.currentTarget)
            event.currentTarget.querySelector('a').click();
        },
      },
    },
    h(
      'td',
      { class: 'wide' },
      link(path`/queue/${queue.name}`, queue.name),
      queue.paused ? [' ', badge('paused')] : null,
    ),
    h('td', { class: 'number' }, zero(queue.queued)),
    h('td', { class: 'number' }, zero(queue.running)),
    h('td', { class: 'number hide-narrow' }, zero(queue.retrying)),
    h('td', { class: 'number' }, zero(queue.error)),
    h('td', { class: 'hide-narrow' }, stack(parts)),
    h(
      'td',
      { class: 'number hide-narrow' },
      queue.wait?.count
        ? [duration(queue.wait.p50), h('span', { class: 'muted' }, ` / ${duration(queue.wait.p99)}`)]
        : h('span', { class: 'zero' }, '–'),
    ),
    h('td', { class: 'number hide-narrow' }, queue.rates ? rate(queue.rates.done) : '…'),
    h(
      'td',
      { class: 'hide-narrow' },
      trend.length ? sparkline(trend, 'done', 'done by the minute, half an hour') : null,
    ),
  );
}

const zero = (number) => (number ? count(number) : h('span', { class: 'zero' }, '0'));

function queueTable(body, queues) {
  const focused = document.activeElement?.closest('tr')?.dataset.key;
  const isInside = body.contains(document.activeElement);
  const isLink = document.activeElement?.tagName === 'A';
  fill(body, queues.top.slice(0, 15).map(queueRow));
  if (isInside) {
    const again = [...body.rows].find((row) => row.dataset.key === focused);
    (isLink ? again?.querySelector('a') : again)?.focus({ preventScroll: true });
  }
}

function times(hour) {
  if (!hour) return h('p', { class: 'muted' }, 'No job has run in the last two hours.');
  const row = (name, of) =>
    h(
      'tr',
      {},
      h('td', {}, name),
      ['p50', 'p90', 'p99', 'max'].map((at) => h('td', { class: 'number' }, of.count ? duration(of[at]) : '–')),
    );
  return h(
    'div',
    { class: 'table' },
    h(
      'div',
      { class: 'scroll' },
      h(
        'table',
        {},
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            h('th', {}, ''),
            ['Median', '90 %', '99 %', 'Most'].map((text) => h('th', { class: 'number' }, text)),
          ),
        ),
        h('tbody', {}, row('Waited', hour.wait), row('Ran', hour.run)),
      ),
    ),
  );
}

function drawCharts(charts, data) {
  const all = minutes(data);
  // The current minute is not over: its numbers would look like a slump.
  const whole = all.slice(0, -1);
  const of = (kind) => whole.map((minute) => [minute.ms, minute[kind]]);
  const from = whole[0].ms;
  const to = whole.at(-1).ms;
  charts.through.update({
    from,
    to,
    series: [
      { name: 'enqueued', kind: 'queued', values: of('enqueued') },
      { name: 'done', kind: 'done', values: of('done') },
    ],
  });
  charts.failing.update({
    from,
    to,
    series: [
      { name: 'retried', kind: 'retrying', values: of('failed') },
      { name: 'lapsed', kind: 'scheduled', values: of('lapsed') },
      { name: 'for good', kind: 'error', values: of('error') },
    ],
  });
  const points = backlog(all, data.totals);
  points.at(-1)[0] = data.now_ms;
  charts.backlog.update({
    from: points[0][0],
    to: data.now_ms,
    series: [{ name: 'jobs', kind: 'queued', values: points }],
  });
  samples.push([data.now_ms, data.totals.queued, data.totals.running]);
  while (samples.length && samples[0][0] < data.now_ms - KEPT_MS) samples.shift();
  charts.now.update({
    from: Math.min(samples[0][0], data.now_ms - MINUTE),
    to: data.now_ms,
    series: [{ name: 'running', kind: 'running', values: samples.map(([ms, , running]) => [ms, running]) }],
  });
}

export async function render(view) {
  const top = h('div', { class: 'tiles' });
  const charts = {
    through: chart({ title: 'Throughput, jobs a minute' }),
    backlog: chart({ title: 'Not ended yet' }),
    failing: chart({ title: 'Failing, attempts a minute (stacked)', stacked: true }),
    now: chart({ title: 'Running now', seconds: true }),
  };
  const found = h('section', { class: 'panel', 'aria-label': 'Alerts' });
  const body = h('tbody');
  const rest = h('p', { class: 'muted pager' });
  const queues = h(
    'section',
    { class: 'panel' },
    h('h2', {}, 'Queues with most to do'),
    h(
      'div',
      { class: 'table' },
      h(
        'div',
        { class: 'scroll' },
        h(
          'table',
          { 'aria-label': 'Queues' },
          h(
            'thead',
            {},
            h(
              'tr',
              {},
              h('th', {}, 'Queue'),
              h('th', { class: 'number' }, 'Waiting'),
              h('th', { class: 'number' }, 'Running'),
              h('th', { class: 'number hide-narrow' }, 'Retrying'),
              h('th', { class: 'number' }, 'Failed'),
              h('th', { class: 'hide-narrow' }, 'States'),
              h(
                'th',
                {
                  class: 'number hide-narrow',
                  title: 'Half of the jobs started within the first time, 99 % within the second',
                },
                'Wait',
              ),
              h('th', { class: 'number hide-narrow' }, 'Done'),
              h('th', { class: 'hide-narrow' }, 'Trend'),
            ),
          ),
          body,
        ),
      ),
      rest,
    ),
  );
  const waits = h('section', { class: 'panel' });
  const content = h(
    'div',
    { class: 'view', hidden: true },
    top,
    found,
    h(
      'div',
      { class: 'grid charts' },
      Object.values(charts).map((one) => h('div', { class: 'panel' }, one.element)),
    ),
    queues,
    waits,
  );
  const loading = h('p', { class: 'muted' }, 'Looking …');
  view.append(h('div', { class: 'head' }, h('h1', {}, 'Overview')), loading, content);
  let lastAlerts = '';

  function draw(data) {
    setServerNow(data.now_ms);
    content.hidden = false;
    loading.remove();
    fill(top, tiles(data));
    drawCharts(charts, data);
    const text = JSON.stringify(data.alerts);
    if (text !== lastAlerts) fill(found, h('h2', {}, 'Alerts'), alerts(data.alerts));
    lastAlerts = text;
    queueTable(body, data.queues);
    const others = data.queues.count - Math.min(15, data.queues.top.length);
    const old = data.now_ms - data.queues.as_of_ms;
    fill(
      rest,
      others > 0
        ? [link('/queues', `${count(others)} more ${others === 1 ? 'queue' : 'queues'}`)]
        : link('/queues', 'All queues'),
      data.queues.more ? h('span', {}, `Only the first ${count(data.queues.count)} queues were looked at yet`) : null,
      old > 10000 ? h('span', {}, 'Sums of all queues are of the last ', duration(old)) : null,
    );
    fill(
      waits,
      h(
        'h2',
        {},
        'How long jobs waited and ran',
        data.hour ? h('span', { class: 'crumb' }, ' · since ', ago(data.hour.begin_ms)) : null,
      ),
      times(data.hour),
    );
  }

  return follow('/overview/events', draw, { ms: 5000 });
}
