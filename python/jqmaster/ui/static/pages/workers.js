// Registered workers: what each runs and since when, its last sign of life; quiet and stop.
import { api, path } from '../api.js';
import { badge } from '../components/badge.js';
import { meter } from '../components/bar.js';
import { confirm } from '../components/dialog.js';
import { table } from '../components/table.js';
import { act } from '../components/toast.js';
import { button, h } from '../dom.js';
import { ago, count } from '../format.js';
import { every } from '../live.js';
import { link } from '../router.js';

const SHOWN = 3;

function state(worker) {
  const tips = { ready: 'Has room', full: 'Runs as many as it takes', busy: 'Said that it is busy', unreachable: 'Deliveries do not get through', pulling: 'Fetches jobs by itself', quiet: 'Finishes what it has, takes no more' };
  return [badge(worker.state, tips[worker.state]), worker.request === 'stop' ? [' ', badge('stop', 'It was asked to stop')] : null];
}

function running(worker) {
  if (!worker.running.length) return h('span', { class: 'zero' }, 'nothing');
  const line = ([id, startedMs]) => h('div', { class: 'nowrap' }, link(path`/job/${id}`, h('code', {}, id)), h('span', { class: 'muted' }, ' ', ago(startedMs)));
  const more = worker.running.slice(SHOWN);
  return [worker.running.slice(0, SHOWN).map(line), more.length ? h('details', {}, h('summary', { class: 'muted' }, `${count(worker.held - SHOWN)} more`), more.map(line)) : null];
}

export async function render(view) {
  // What was opened stays open when the list is drawn again.
  const open = new Set();
  const ask = async (worker, what, text) => {
    if (what === 'stop' && !await confirm({ title: `Stop ${worker.name}?`, action: 'Stop', body: 'It finishes what it runs and ends. Something else has to start it again.' })) return;
    await act(() => api.post(`${path`/worker/${worker.id}`}/${what}`), text);
    await list.refresh();
  };
  const list = table({
    label: 'Workers', key: (worker) => worker.id,
    empty: 'No registered workers. Workers that only pull under a name of their own are not listed.',
    load: async (cursor, signal) => {
      const page = await api.get('/workers', { cursor, count: 50 }, { signal });
      return { rows: page.workers, cursor: page.cursor };
    },
    columns: [
      { title: 'Worker', kind: 'wide', cell: (worker) => [h('div', {}, worker.name), h('code', { class: 'muted' }, worker.id)] },
      { title: 'State', cell: state },
      { title: 'Queues', kind: 'wide', hide: 'narrow', cell: (worker) => [worker.queues].flat().map((queue, i) => [i ? ', ' : '', String(queue).includes('*') ? h('code', {}, queue) : link(path`/queue/${queue}`, queue)]) },
      { title: 'Jobs', cell: (worker) => (worker.url ? meter(worker.held, worker.max_jobs) : count(worker.held)) },
      { title: 'Runs, the longest first', cell: (worker) => {
        const cell = h('div', {}, running(worker));
        const details = cell.querySelector('details');
        if (details) {
          details.open = open.has(worker.id);
          details.addEventListener('toggle', () => (details.open ? open.add(worker.id) : open.delete(worker.id)));
        }
        return cell;
      } },
      { title: 'Sign of life', cell: (worker) => ago(worker.seen_ms) },
      { title: 'Lapsed', kind: 'number', hide: 'narrow', tip: 'Attempts whose lease ran out', cell: (worker) => (worker.lapsed ? h('b', {}, count(worker.lapsed)) : h('span', { class: 'zero' }, '0')) },
      { title: 'Here since', hide: 'narrow', cell: (worker) => ago(worker.since_ms) },
      { title: '', kind: 'actions', cell: (worker) => [
        worker.request ? button('Resume', () => ask(worker, 'resume', `${worker.name} takes jobs again.`), { class: 'small', 'aria-label': `Resume ${worker.name}` })
          : button('Quiet', () => ask(worker, 'quiet', `${worker.name} takes no more jobs.`), { class: 'small', 'aria-label': `Quiet ${worker.name}`, title: 'Finish what it has, take no more' }),
        worker.request === 'stop' ? null : button('Stop', () => ask(worker, 'stop', `${worker.name} was asked to stop.`), { class: 'small danger', 'aria-label': `Stop ${worker.name}` })] },
    ],
  });
  view.append(h('div', { class: 'head' }, h('h1', {}, 'Workers')), list.element);
  await list.refresh();
  return every(3000, () => list.refresh());
}
