// All workers: what each runs and for how long, its slots and last sign of life; the dead of the last hour.
import { api, path } from '../api.js';
import { table } from '../components/table.js';
import { fill, h } from '../dom.js';
import { ago, count, cut, jobs as inJobs } from '../format.js';
import { every } from '../live.js';
import { link, withQuery } from '../router.js';
import { actions, LOOKED_AT, learnUsual, queuesOf, runningJobs, slots, state, stuck } from '../workers.js';

const SHOWN = 3;
const NAMES = 20;

function running(worker, found) {
  if (worker.state === 'gone') {
    const lost = worker.lost?.length ? `lost ${inJobs(worker.lapsed)}` : 'gone';
    return h('span', { class: 'zero' }, lost);
  }
  if (!worker.running.length) return h('span', { class: 'zero' }, 'nothing');
  const line = ([id, startedMs]) =>
    h(
      'div',
      { class: 'nowrap' },
      link(path`/job/${id}`, found.get(id)?.name ? cut(found.get(id).name, 40) : h('code', {}, id)),
      h('span', { class: 'muted' }, ' ', ago(startedMs)),
      ' ',
      stuck(found.get(id)),
    );
  const more = worker.held - SHOWN;
  return [
    worker.running.slice(0, SHOWN).map(line),
    more > 0 ? link(path`/worker/${worker.id}`, `${count(more)} more`) : null,
  ];
}

/** Who runs jobs and is not listed: [[name, {jobs, queues, since}], …], the busiest first. */
function unlisted(found, listed) {
  const others = new Map();
  for (const job of found.values()) {
    if (!job.worker_id || listed.has(job.worker_id) || /^w[0-9a-f]{14}$/.test(job.worker_id)) continue;
    const one = others.get(job.worker_id) || { jobs: 0, queues: new Set(), since: Infinity };
    one.jobs += 1;
    one.queues.add(job.queue);
    one.since = Math.min(one.since, job.started_ms);
    others.set(job.worker_id, one);
  }
  return [...others].sort(([, a], [, b]) => b.jobs - a.jobs);
}

function other([name, { jobs, queues, since }]) {
  const named = [...queues].slice(0, SHOWN);
  return h(
    'li',
    {},
    h('b', {}, link(path`/worker/${name}`, cut(name, 120))),
    ` runs ${inJobs(jobs)} of `,
    named.map((queue, i) => [
      i ? ', ' : '',
      h('a', { href: `/ui${withQuery('/jobs', { status: 'running', queue })}` }, cut(queue, 80)),
    ]),
    queues.size > SHOWN ? ` and ${count(queues.size - SHOWN)} more` : '',
    h('span', { class: 'muted' }, ', the oldest started ', ago(since)),
  );
}

const begin = () => [
  h('p', {}, 'No worker is here. Start one with your jobs:'),
  h('p', {}, h('code', {}, 'jqmaster work my_module:jq')),
];

// A page of registered workers, then pages of the others: cursors of the others begin with this.
const OTHERS = 'others ';

async function page(cursor, signal) {
  const isOthers = cursor.startsWith(OTHERS);
  const [from, more] = isOthers ? [cursor.slice(OTHERS.length), { others: 1 }] : [cursor, {}];
  const { workers, cursor: next } = await api.get('/workers', { cursor: from, count: 50, ...more }, { signal });
  if (isOthers) return { rows: workers, cursor: next && OTHERS + next };
  if (next) return { rows: workers, cursor: next };
  // The first of the others stand on the same page.
  const rest = await page(OTHERS, signal);
  return { rows: [...workers, ...rest.rows], cursor: rest.cursor };
}

const isGone = (worker) => worker.state === 'gone';

export async function render(view) {
  let found = new Map();
  let isAll = true;
  const list = table({
    label: 'Workers',
    key: (worker) => worker.id,
    open: true,
    empty: begin,
    load: async (cursor, signal) => {
      const { rows, cursor: next } = await page(cursor, signal);
      return { rows: rows.sort((a, b) => isGone(a) - isGone(b)), cursor: next };
    },
    columns: [
      {
        title: 'Worker',
        kind: 'wide',
        cell: (worker) => [
          link(path`/worker/${worker.id}`, worker.name),
          worker.host
            ? h('div', { class: 'muted' }, `${worker.host}${worker.pid ? ` · ${worker.pid}` : ''}`)
            : worker.id === worker.name
              ? null
              : h('div', {}, h('code', { class: 'muted' }, worker.id)),
        ],
      },
      { title: 'State', cell: state },
      { title: 'Slots', cell: slots },
      { title: 'Runs, the longest first', cell: (worker) => running(worker, found) },
      { title: 'Sign of life', cell: (worker) => ago(worker.seen_ms) },
      { title: 'Queues', kind: 'wide', hide: 'narrow', cell: queuesOf },
      {
        title: 'Version',
        hide: 'narrow',
        cell: (worker) => h('span', { class: 'muted nowrap' }, worker.version ?? '–'),
      },
      {
        title: 'Lapsed',
        kind: 'number',
        hide: 'narrow',
        tip: 'Attempts whose lease ran out',
        cell: (worker) => (worker.lapsed ? h('b', {}, count(worker.lapsed)) : h('span', { class: 'zero' }, '0')),
      },
      { title: '', kind: 'actions', cell: (worker) => actions(worker, () => list.refresh()) },
    ],
  });
  const life = new AbortController();
  const rest = h('section', { class: 'panel', hidden: true, 'aria-label': 'Not listed' });

  async function look() {
    ({ found, isAll } = await runningJobs(life.signal));
    await learnUsual(found, life.signal);
    if (list.rows().length) list.redraw();
    const others = unlisted(found, new Set(list.rows().map((worker) => worker.id)));
    const more = others.length > NAMES ? `${count(others.length - NAMES)} more of them run jobs. ` : '';
    rest.hidden = !others.length;
    fill(
      rest,
      h('h2', {}, 'Not listed, but run jobs'),
      h('ul', { class: 'sample' }, others.slice(0, NAMES).map(other)),
      more || !isAll
        ? h(
            'p',
            { class: 'muted' },
            more,
            isAll ? '' : `Found among ${count(LOOKED_AT)} running jobs at most; there are more.`,
          )
        : null,
    );
  }
  view.append(
    h('div', { class: 'head' }, h('h1', {}, 'Workers')),
    h(
      'p',
      { class: 'muted' },
      'Those that jobs are pushed to or that were started with ',
      h('code', {}, '--register'),
      ' can be asked to be quiet or to stop. Others that pull say every minute that they are here. Dead ones stay for an hour.',
    ),
    list.element,
    rest,
  );
  await list.refresh();
  await look();
  const stops = [every(3000, () => list.refresh()), every(10000, look)];
  return () => {
    life.abort();
    for (const stop of stops) stop();
  };
}
