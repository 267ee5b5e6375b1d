// All queues, by name: counts, how long jobs wait and run, and the trend of a day.
import { api, path } from '../api.js';
import { badge } from '../components/badge.js';
import { sparkline } from '../components/chart.js';
import { filterBar } from '../components/filter.js';
import { table } from '../components/table.js';
import { operatorButton as button, fill, h } from '../dom.js';
import { ago, duration, now, rate } from '../format.js';
import { every } from '../live.js';
import { counted, pause, queuesFrom, suggestQueues } from '../queues.js';
import { link } from '../router.js';

const SIZE = 25;
const HOUR = 3600000;
const FRESH_MS = 60000;
const known = new Map(); // name → {at, hours}

/** What happened to a queue in a day, by the hour. Asked a few at a time, and not again within a minute. */
async function hoursOf(name, signal) {
  const found = known.get(name);
  if (found && Date.now() - found.at < FRESH_MS) return found.hours;
  const from = (Math.floor(now() / HOUR) - 23) * HOUR;
  const { stats } = await api.get('/stats', { by: 'hour', queue: name, from_ms: from }, { signal });
  const by = new Map(stats.map((hour) => [hour.begin_ms, hour]));
  const hours = Array.from({ length: 24 }, (_, i) => by.get(from + i * HOUR) || null);
  if (known.size > 500) known.clear();
  known.set(name, { at: Date.now(), hours });
  return hours;
}

function show(cells, hours) {
  const recent = [hours.at(-1), hours.at(-2)].filter(Boolean);
  const span = (now() % HOUR) + (hours.at(-2) ? HOUR : 0);
  const done = recent.reduce((sum, hour) => sum + hour.done, 0);
  const of = (kind) => recent.find((hour) => hour[kind].count)?.[kind];
  const pair = (kind) =>
    of(kind)
      ? [duration(of(kind).p50), h('span', { class: 'muted' }, ` / ${duration(of(kind).p99)}`)]
      : h('span', { class: 'zero' }, '–');
  fill(cells.rate, done ? rate((done * 1000) / Math.max(span, 60000)) : h('span', { class: 'zero' }, '0/s'));
  fill(cells.wait, pair('wait'));
  fill(cells.run, pair('run'));
  fill(
    cells.trend,
    sparkline(
      hours.map((hour) => hour?.done || 0),
      'done',
      'done by the hour, a day',
    ),
  );
}

export async function render(view) {
  const life = new AbortController();
  const cells = new Map();
  const filters = filterBar({
    fields: [{ name: 'name', label: 'Name begins with', type: 'search', suggest: suggestQueues }],
    change: () => list.reset(),
  });
  const cell = (kind) => (queue) => {
    const place = h('span', {}, '…');
    const all = cells.get(queue.name) || {};
    cells.set(queue.name, { ...all, [kind]: place });
    const old = known.get(queue.name);
    if (kind === 'trend' && old) show(cells.get(queue.name), old.hours);
    return place;
  };
  const state = (name, title, hide) => ({ title, kind: 'number', hide, cell: (queue) => counted(queue, name) });
  const list = table({
    label: 'Queues',
    key: (queue) => queue.name,
    open: true,
    empty: () =>
      filters.values().name
        ? 'No queue has such a name.'
        : ['No queues yet. They come with the first job: ', link('/enqueue', 'enqueue one'), '.'],
    load: (cursor, signal) => queuesFrom(filters.values().name || '', cursor, SIZE, signal),
    columns: [
      {
        title: 'Queue',
        kind: 'wide',
        cell: (queue) => [
          link(path`/queue/${queue.name}`, queue.name),
          queue.paused ? [' ', badge('paused')] : null,
          queue.max_waiting && queue.queued + queue.scheduled + queue.blocked + queue.retrying >= queue.max_waiting
            ? [' ', badge('full')]
            : null,
        ],
      },
      state('queued', 'Waiting'),
      {
        title: 'Oldest',
        kind: 'number',
        hide: 'narrow',
        cell: (queue) => (queue.oldest_ready_ms ? ago(queue.oldest_ready_ms) : ''),
        tip: 'Since when the oldest ready job waits',
      },
      state('running', 'Running'),
      state('retrying', 'Retrying', 'narrow'),
      state('scheduled', 'Scheduled', 'narrow'),
      state('blocked', 'Blocked', 'narrow'),
      state('error', 'Failed'),
      { title: 'Done', kind: 'number', hide: 'narrow', cell: cell('rate'), tip: 'Rate of the last hour' },
      {
        title: 'Wait',
        kind: 'number',
        hide: 'narrow',
        cell: cell('wait'),
        tip: 'Half of the jobs started within the first time, 99 % within the second',
      },
      {
        title: 'Run',
        kind: 'number',
        hide: 'narrow',
        cell: cell('run'),
        tip: 'Half of the jobs ran no longer than the first time, 99 % than the second',
      },
      { title: 'Day', hide: 'narrow', cell: cell('trend') },
      {
        title: '',
        kind: 'actions',
        cell: (queue) =>
          button(
            queue.paused ? 'Resume' : 'Pause',
            async () => {
              await pause(queue);
              await list.refresh();
            },
            { class: 'small', 'aria-label': `${queue.paused ? 'Resume' : 'Pause'} ${queue.name}` },
          ),
      },
    ],
  });
  view.append(h('div', { class: 'head' }, h('h1', {}, 'Queues')), filters.element, list.element);

  async function statistics() {
    const names = list.rows().map((queue) => queue.name);
    const next = async () => {
      for (let name = names.shift(); name !== undefined && !life.signal.aborted; name = names.shift()) {
        const hours = await hoursOf(name, life.signal);
        const places = cells.get(name);
        if (places?.trend?.isConnected) show(places, hours);
      }
    };
    await Promise.all([next(), next(), next()]);
  }

  await list.refresh();
  statistics().catch((problem) => problem.name !== 'AbortError' && console.debug(problem));
  const stop = every(3000, async () => {
    await list.refresh();
    await statistics();
  });
  return () => {
    life.abort();
    stop();
  };
}
