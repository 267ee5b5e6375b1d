// Registered workers: what each runs and since when, its last sign of life; quiet and stop. Others as far as they run jobs.
import { api, path } from '../api.js';
import { badge } from '../components/badge.js';
import { meter } from '../components/bar.js';
import { confirm } from '../components/dialog.js';
import { table } from '../components/table.js';
import { act } from '../components/toast.js';
import { operatorButton as button, fill, h } from '../dom.js';
import { ago, count, cut, jobs as inJobs } from '../format.js';
import { every } from '../live.js';
import { link, withQuery } from '../router.js';

const SHOWN = 3;

function state(worker) {
  const tips = {
    ready: 'Has room',
    full: 'Runs as many as it takes',
    busy: 'Said that it is busy',
    unreachable: 'Deliveries do not get through',
    pulling: 'Fetches jobs by itself',
    quiet: 'Finishes what it has, takes no more',
  };
  return [
    badge(worker.state, tips[worker.state]),
    worker.request === 'stop' ? [' ', badge('stop', 'It was asked to stop')] : null,
  ];
}

function running(worker) {
  if (!worker.running.length) return h('span', { class: 'zero' }, 'nothing');
  const line = ([id, startedMs]) =>
    h(
      'div',
      { class: 'nowrap' },
      link(path`/job/${id}`, h('code', {}, id)),
      h('span', { class: 'muted' }, ' ', ago(startedMs)),
    );
  const more = worker.running.slice(SHOWN);
  return [
    worker.running.slice(0, SHOWN).map(line),
    more.length
      ? h('details', {}, h('summary', { class: 'muted' }, `${count(worker.held - SHOWN)} more`), more.map(line))
      : null,
  ];
}

// Of so many running jobs it is looked who runs them.
const LOOKED_AT = 200;
const NAMES = 20;

/** Who runs jobs and is not registered: [[name, {jobs, queues, since}], …], and whether there is more to look at. */
async function unregistered(signal) {
  const page = await api.get('/jobs', { status: 'running', brief: 1, count: LOOKED_AT }, { signal });
  const found = new Map();
  for (const job of page.jobs) {
    if (!job.worker_id || /^w[0-9a-f]{14}$/.test(job.worker_id)) continue;
    const one = found.get(job.worker_id) || { jobs: 0, queues: new Set(), since: Infinity };
    one.jobs += 1;
    one.queues.add(job.queue);
    one.since = Math.min(one.since, job.started_ms);
    found.set(job.worker_id, one);
  }
  return { others: [...found].sort(([, a], [, b]) => b.jobs - a.jobs), isAll: !page.cursor };
}

function other([name, { jobs, queues, since }]) {
  const named = [...queues].slice(0, SHOWN);
  return h(
    'li',
    {},
    h('b', {}, cut(name, 120)),
    ` runs ${inJobs(jobs)} of `,
    named.map((queue, i) => [
      i ? ', ' : '',
      h('a', { href: `/ui${withQuery('/jobs', { status: 'running', queue })}` }, cut(queue, 80)),
    ]),
    queues.size > SHOWN ? ` and ${count(queues.size - SHOWN)} more` : '',
    h('span', { class: 'muted' }, ', the oldest started ', ago(since)),
  );
}

export async function render(view) {
  // What was opened stays open when the list is drawn again.
  const open = new Set();
  const ask = async (worker, what, text) => {
    if (
      what === 'stop' &&
      !(await confirm({
        title: `Stop ${worker.name}?`,
        action: 'Stop',
        body: 'It finishes what it runs and ends. Something else has to start it again.',
      }))
    )
      return;
    await act(() => api.post(`${path`/worker/${worker.id}`}/${what}`), text);
    await list.refresh();
  };
  const list = table({
    label: 'Workers',
    key: (worker) => worker.id,
    empty: 'No worker is registered.',
    load: async (cursor, signal) => {
      const page = await api.get('/workers', { cursor, count: 50 }, { signal });
      return { rows: page.workers, cursor: page.cursor };
    },
    columns: [
      {
        title: 'Worker',
        kind: 'wide',
        cell: (worker) => [h('div', {}, worker.name), h('code', { class: 'muted' }, worker.id)],
      },
      { title: 'State', cell: state },
      {
        title: 'Queues',
        kind: 'wide',
        hide: 'narrow',
        cell: (worker) =>
          [worker.queues]
            .flat()
            .map((queue, i) => [
              i ? ', ' : '',
              String(queue).includes('*') ? h('code', {}, queue) : link(path`/queue/${queue}`, queue),
            ]),
      },
      { title: 'Jobs', cell: (worker) => (worker.url ? meter(worker.held, worker.max_jobs) : count(worker.held)) },
      {
        title: 'Runs, the longest first',
        cell: (worker) => {
          const cell = h('div', {}, running(worker));
          const details = cell.querySelector('details');
          if (details) {
            details.open = open.has(worker.id);
            details.addEventListener('toggle', () => (details.open ? open.add(worker.id) : open.delete(worker.id)));
          }
          return cell;
        },
      },
      { title: 'Sign of life', cell: (worker) => ago(worker.seen_ms) },
      {
        title: 'Lapsed',
        kind: 'number',
        hide: 'narrow',
        tip: 'Attempts whose lease ran out',
        cell: (worker) => (worker.lapsed ? h('b', {}, count(worker.lapsed)) : h('span', { class: 'zero' }, '0')),
      },
      { title: 'Here since', hide: 'narrow', cell: (worker) => ago(worker.since_ms) },
      {
        title: '',
        kind: 'actions',
        cell: (worker) => [
          worker.request
            ? button('Resume', () => ask(worker, 'resume', `${worker.name} takes jobs again.`), {
                class: 'small',
                'aria-label': `Resume ${worker.name}`,
              })
            : button('Quiet', () => ask(worker, 'quiet', `${worker.name} takes no more jobs.`), {
                class: 'small',
                'aria-label': `Quiet ${worker.name}`,
                title: 'Finish what it has, take no more',
              }),
          worker.request === 'stop'
            ? null
            : button('Stop', () => ask(worker, 'stop', `${worker.name} was asked to stop.`), {
                class: 'small danger',
                'aria-label': `Stop ${worker.name}`,
              }),
        ],
      },
    ],
  });
  const life = new AbortController();
  const rest = h('section', { class: 'panel', hidden: true, 'aria-label': 'Not registered' });
  async function lookForOthers() {
    const { others, isAll } = await unregistered(life.signal);
    const more = others.length > NAMES ? `${count(others.length - NAMES)} more of them run jobs. ` : '';
    rest.hidden = !others.length;
    fill(
      rest,
      h('h2', {}, 'Not registered, but run jobs'),
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
      'Registered workers: those that jobs are pushed to, and those that pull and were started with ',
      h('code', {}, '--register'),
      '. Only they can be asked here to be quiet or to stop. Others that pull are shown, below, only while they run a job.',
    ),
    list.element,
    rest,
  );
  await Promise.all([list.refresh(), lookForOthers()]);
  const stops = [every(3000, () => list.refresh()), every(10000, lookForOthers)];
  return () => {
    life.abort();
    for (const stop of stops) stop();
  };
}
