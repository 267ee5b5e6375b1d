// All queues, the worst first, or by any column: counts, ages, rates, waits, and why each is behind.
import { path } from '../api.js';
import { FilterBar } from '../components/filterbar.js';
import { Button, Empty, Head, Loaded, zero } from '../components/parts.js';
import { Pager, sortOf, Table, usePages } from '../components/rows.js';
import { count, duration } from '../format.js';
import { Age, Cause, Counted, Gone, isFull, MINUTES, netOf, PerMinute, pause } from '../queues.js';
import { lookOn, ranked } from '../ranking.js';
import { html, Link, useQuery } from '../view.js';

const SIZE = 50;
const WORST = '-oldest';
// In order from the first on, not from the largest.
const TEXTS = new Set(['name', 'cause']);

const number = (title, sort, cell, more = {}) => ({ title, sort, cell, kind: 'number', ...more });
const state = (title, name, hide) =>
  number(title, name, (queue) => html`<${Counted} queue=${queue} state=${name} />`, { hide });
const p95 = (title, kind, hide, tip) =>
  number(title, kind, ({ recent }) => (recent?.[kind] ? duration(recent[kind].p95) : html`<${Gone} />`), { hide, tip });

const columnsOf = (reload) => [
  {
    title: 'Queue',
    sort: 'name',
    kind: 'wide',
    cell: (queue) => html`<${Link} to=${path`/queue/${queue.name}`}>${queue.name}<//>`,
  },
  number('Waiting', 'queued', (queue) => html`<${Counted} queue=${queue} state="queued" />`),
  number('Oldest', 'oldest', (queue) => html`<${Age} ms=${queue.oldest_ready_ms} />`, {
    tip: 'For how long the oldest ready job has waited',
  }),
  {
    title: 'Cause',
    sort: 'cause',
    tip: 'Why the oldest ready job waits',
    cell: (queue) =>
      html`<${Cause} queue=${queue} />${isFull(queue) ? html` <span class="badge is-full">full</span>` : null}`,
  },
  state('Running', 'running'),
  number(`Net/min, ${MINUTES} min`, 'net', (queue) => html`<${PerMinute} of=${netOf(queue)} isSigned />`, {
    hide: 'narrow',
    tip: `Jobs a minute that come less those that end, ${MINUTES} minutes`,
  }),
  number('Empty in', 'empties', (queue) => (queue.empties_ms ? duration(queue.empties_ms) : html`<${Gone} />`), {
    hide: 'tight',
    tip: 'When no job is ready, if all goes on like this',
  }),
  p95('Wait', 'wait', 'narrow', `95 % of the jobs that ended in ${MINUTES} minutes had started within this time`),
  p95('Run', 'run', 'tight', `95 % of the jobs that were done in ${MINUTES} minutes ran no longer`),
  number('Workers', 'workers', (queue) => zero(count(queue.workers), queue.workers), {
    hide: 'narrow',
    tip: 'Registered for it, or announced',
  }),
  state('Retrying', 'retrying', 'narrow'),
  state('Scheduled', 'scheduled', 'tight'),
  state('Blocked', 'blocked', 'tight'),
  state('Failed', 'error'),
  {
    title: '',
    kind: 'actions',
    cell: (queue) => html`<${Button} needs="operator" class="small"
      aria-label=${`${queue.paused ? 'Resume' : 'Pause'} ${queue.name}`}
      onClick=${async () => {
        await pause(queue);
        reload();
      }}>${queue.paused ? 'Resume' : 'Pause'}<//>`,
  },
];

/** How far it was looked, and how old that is. */
function said({ rows, total, looked, more, age_ms, first }) {
  const shown = total > rows.length && rows.length ? `${count(first + 1)} to ${count(first + rows.length)}` : '';
  return [
    shown && `${shown} of ${count(total)}`,
    more ? `only the first ${count(looked)} queues were looked at` : '',
    age_ms > 10000 ? `their order is ${duration(age_ms)} old` : '',
  ]
    .filter(Boolean)
    .join('; ');
}

export function Page() {
  const [{ name = '', sort = WORST }, setQuery] = useQuery();
  const [by, isDown] = sortOf(sort);
  const state = usePages(
    async (at, signal) => {
      const first = Number(at) || 0;
      const found = await lookOn(signal);
      const fitting = ranked(found.queues, by, { turned: TEXTS.has(by) === isDown, text: name });
      const rows = fitting.slice(first, first + SIZE);
      const cursor = first + SIZE < fitting.length ? String(first + SIZE) : '';
      return { ...found, looked: found.queues.length, rows, total: fitting.length, first, cursor };
    },
    { ms: 3000, deps: [by, isDown, name] },
  );
  const empty = name
    ? html`<${Empty}>No queue has such a name.<//>`
    : html`<${Empty} command="jqmaster enqueue hello">No queues yet. They come with the first job.<//>`;
  return html`<${Head} title="Queues" />
    <${FilterBar} fields=${[{ name: 'name', label: 'Filter by name', type: 'search' }]} />
    <${Loaded} of=${state}>${(found) => html`<${Table} label="Queues" columns=${columnsOf(state.reload)}
      rows=${found.rows} rowKey=${(queue) => queue.name}
      empty=${empty} sort=${sort}
      onSort=${(next) => setQuery({ sort: next === WORST ? '' : next, at: '' })}>
      <${Pager} of=${state.pager}>${said(found)}<//>
    <//>`}<//>`;
}
