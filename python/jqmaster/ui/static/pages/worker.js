// One worker: what it is, what it runs and for how long, what it lost.
import { api, path } from '../api.js';
import { table } from '../components/table.js';
import { act } from '../components/toast.js';
import { operatorButton as button, fill, h } from '../dom.js';
import { ago, count, cut, duration, jobs as inJobs, moment, now } from '../format.js';
import { every } from '../live.js';
import { link } from '../router.js';
import { actions, LOOKED_AT, learnUsual, queuesOf, runningJobs, slots, state, stuck, takeJobs } from '../workers.js';

const SHOWN = 100;
const UNLISTED_MS = 60000;

/** One that is listed nowhere, as the jobs tell it that it runs; null when there are none. */
function unlisted(id, found) {
  const own = [...found.values()].filter((job) => job.worker_id === id);
  own.sort((a, b) => a.started_ms - b.started_ms);
  const running = own.map((job) => [job.id, job.started_ms]);
  return own.length ? { id, name: id, state: 'pulling', running, held: own.length, queues: [] } : null;
}

function facts(worker, isListed) {
  const pairs = [
    ['Id', worker.id === worker.name ? null : h('code', {}, worker.id)],
    [
      'Host',
      worker.host ? [worker.host, worker.pid ? h('span', { class: 'muted' }, ` · process ${worker.pid}`) : ''] : null,
    ],
    ['Version', worker.version],
    ['Pushed to', worker.url ? h('code', {}, worker.url) : null],
    ['Queues', worker.queues.length ? queuesOf(worker) : null],
    ['Jobs it knows', worker.knows?.length ? worker.knows.join(', ') : null],
    ['Jobs it does not know', worker.refused?.length ? worker.refused.join(', ') : null],
    ['Slots', isListed ? slots(worker) : `runs ${inJobs(worker.held)}`],
    ['Here since', worker.since_ms ? [moment(worker.since_ms), ' (', ago(worker.since_ms), ')'] : null],
    ['Last sign of life', worker.seen_ms ? ago(worker.seen_ms) : null],
    ['Leases that ran out', worker.lapsed ? h('b', {}, count(worker.lapsed)) : null],
  ];
  return h(
    'dl',
    { class: 'facts' },
    pairs.filter(([, value]) => value).map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]),
  );
}

function lost(worker) {
  if (worker.state !== 'gone') return null;
  const ids = worker.lost ?? [];
  return h(
    'section',
    { class: 'panel', role: 'status' },
    h('h2', {}, 'It is gone'),
    h(
      'p',
      {},
      'It gave no sign of life for too long. ',
      ids.length ? `${inJobs(worker.lapsed)} lapsed with it or before:` : 'It held no job that is known.',
    ),
    ids.length
      ? h(
          'p',
          {},
          ids.map((id, i) => [i ? ', ' : '', link(path`/job/${id}`, h('code', {}, id))]),
        )
      : null,
  );
}

export async function render(view, { name: id }) {
  const life = new AbortController();
  let found = new Map();
  let worker;
  let askedMs = 0;
  let isListed = true;
  const head = h('div', { class: 'head' });
  const about = h('section', { class: 'panel', 'aria-label': 'About' });
  const gone = h('div');
  const list = table({
    label: 'Jobs that it runs',
    key: (job) => job.id,
    open: true,
    empty: 'It runs nothing now.',
    load: async () => ({ rows: worker.running.slice(0, SHOWN).map(([job, ms]) => known(job, ms)), cursor: '' }),
    columns: [
      { title: 'Job', cell: (job) => link(path`/job/${job.id}`, h('code', {}, job.id)) },
      { title: 'Name', kind: 'wide', cell: (job) => (job.name ? cut(job.name, 80) : '–') },
      { title: 'Queue', hide: 'narrow', cell: (job) => (job.queue ? link(path`/queue/${job.queue}`, job.queue) : '–') },
      { title: 'Runs for', kind: 'number', cell: (job) => duration(Math.max(0, now() - job.started_ms)) },
      { title: 'Usual?', cell: (job) => stuck(job) ?? h('span', { class: 'zero' }, '–') },
      {
        title: '',
        kind: 'actions',
        cell: (job) =>
          button(
            'Take back',
            async () => {
              await act(() => api.post(path`/job/${job.id}/kick`, {}), `${job.id} waits again.`);
              await look();
            },
            { class: 'small', 'aria-label': `Take back ${job.id}` },
          ),
      },
    ],
  });

  const known = (job, ms) => ({ ...found.get(job), id: job, started_ms: ms });

  async function look() {
    ({ found } = await runningJobs(life.signal));
    const own = unlisted(id, found);
    // Who is listed nowhere is asked for now and then only.
    if (!own || isListed || now() - askedMs > UNLISTED_MS) {
      askedMs = now();
      try {
        worker = await api.get(path`/worker/${id}`, {}, { signal: life.signal });
        isListed = true;
      } catch (problem) {
        if (problem.status !== 404 || !(own || worker)) throw problem;
        isListed = false;
      }
    }
    if (!isListed) worker = own ?? { ...worker, running: [], held: 0 };
    await learnUsual(found, life.signal);
    draw();
    await list.refresh();
  }

  function draw() {
    const ids = worker.running.map(([job]) => job);
    const buttons = isListed
      ? actions(worker, look, '')
      : [button('Take jobs', async () => (await takeJobs(worker, ids)) !== undefined && look(), { class: 'danger' })];
    const focused = head.contains(document.activeElement) ? document.activeElement.textContent : null;
    fill(head, h('h1', {}, worker.name, ' ', state(worker)), h('div', { class: 'actions' }, buttons));
    if (focused) [...head.querySelectorAll('button')].find((one) => one.textContent === focused)?.focus();
    fill(about, facts(worker, isListed));
    if (!isListed)
      about.append(
        h('p', { class: 'muted' }, `It is not listed: what it runs was found among ${count(LOOKED_AT)} running jobs.`),
      );
    gone.hidden = worker.state !== 'gone';
    fill(gone, lost(worker));
  }

  await look();
  view.append(head, gone, about, h('h2', {}, 'Runs'), list.element);
  const stop = every(3000, look);
  return () => {
    life.abort();
    stop();
  };
}
