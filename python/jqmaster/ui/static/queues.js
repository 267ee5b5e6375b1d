// Queues: how they do, in figures and words, all of them in order, one with why it waits, and what can be done with it.
import { AlertsOf } from './alerts.js';
import { all, api, only, withQuery } from './api.js';
import { Chart, spread, useStatistics, waits } from './chart.js';
import { brief, count, cut, duration, jobs, termsOf } from './format.js';
import { act, toast } from './forms.js';
import {
  Age,
  Badge,
  Button,
  Empty,
  Facts,
  FilterBar,
  Head,
  Loaded,
  linked,
  Meter,
  none,
  OPEN,
  Pager,
  Section,
  STATES,
  sortOf,
  Table,
  Tile,
  takeJobs,
  toLimit,
  toQueue,
  usePageOf,
  WAITING,
  zero,
} from './parts.js';
import { html, Link, useData, useQuery, Way } from './view.js';

/** Rates are of so many minutes. */
export const MINUTES = 5;

// -- all of them --------------------------------------------------------------------------------------

const MOST = 5000;
const CAUSES = {
  'no worker': ['no worker', 'problem', 'No worker names it, waits for its jobs or runs one'],
  'unknown job': ['unknown job', 'problem', 'No worker that serves it knows its oldest job'],
  constraint: [],
  slow: ['too slow', 'warning', 'It is served, and its oldest job waits for longer than late_after'],
  paused: ['paused', 'paused', 'It is paused'],
};

/** → {queues, more: whether there are others, requests} */
export async function lookOn(signal) {
  const { entries, isAll, requests } = await all('/queues', { minutes: MINUTES }, { signal }, MOST);
  return { queues: entries, more: !isAll, requests };
}

/** By how many jobs a minute it grows; null where nothing is counted. */
function netOf({ recent }) {
  if (!recent) return null;
  const left = recent.done + recent.error + recent.cancelled + recent.skipped + recent.moved;
  return ((recent.enqueued - left) * 60000) / recent.span_ms;
}

const causes = Object.keys(CAUSES);
const VALUES = {
  open: (queue) => OPEN.reduce((sum, state) => sum + queue[state], 0),
  oldest: (queue) => queue.oldest_ready_ms && -queue.oldest_ready_ms,
  cause: (queue) => (queue.cause ? causes.length - causes.indexOf(queue.cause) : null),
  net: netOf,
  empties: (queue) => queue.empties_ms,
  wait: (queue) => queue.recent?.wait?.p95,
  run: (queue) => queue.recent?.run?.p95,
};

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** In order of a column, the greatest first; who has no such figure comes last, whichever way round. */
export function ranked(queues, by, { turned = false, text = '' } = {}) {
  const named = queues.filter((queue) => queue.name.includes(text)).sort((a, b) => compare(a.name, b.name));
  if (by === 'name') return turned ? named.reverse() : named;
  const value = VALUES[by] || ((queue) => queue[by]);
  const has = (queue) => Boolean(value(queue));
  const some = named.filter(has).sort((a, b) => (turned ? 1 : -1) * compare(value(a), value(b)));
  return [...some, ...named.filter((queue) => !has(queue))];
}

// -- what can be done with one ------------------------------------------------------------------------

const pause = (queue) =>
  act(
    () => api.post(toQueue(queue.name), { paused: !queue.paused }),
    queue.paused ? `${queue.name} goes on.` : `${queue.name} is paused: it takes jobs and starts none.`,
  );

/** Dialogs; they are loaded when they are asked for. */
const ask =
  (what) =>
  async (...given) =>
    (await import('./queueforms.js'))[what](...given);
const [limit, ownSettings, purge, forget] = ['limit', 'ownSettings', 'purge', 'forget'].map(ask);

export const sumOf = (queue, states) => states.reduce((sum, state) => sum + queue[state], 0);

const kick = (queue) => takeJobs({ queue: queue.name }, queue.name);

// -- the list -----------------------------------------------------------------------------------------

/** Jobs a minute. */
function PerMinute({ of }) {
  if (of === null) return none();
  const size = Math.abs(of);
  if (size < 0.05) return none('0');
  return html`<span>${of > 0 ? '+' : '−'}${size < 10 ? Math.round(size * 10) / 10 : count(size)}</span>`;
}

/** Why its oldest ready job waits. */
function Cause({ queue }) {
  if (queue.cause === 'constraint') return html`<span>held by ${linked(queue.held_by, toLimit)}</span>`;
  const [word, kind, title] = CAUSES[queue.paused ? 'paused' : queue.cause] || [];
  return word ? html`<${Badge} word=${word} kind=${kind} title=${title} />` : none();
}

/** A number that leads to the jobs it counts. */
function Counted({ queue, state }) {
  if (!queue[state]) return none('0');
  const to = withQuery('/jobs', { queue: queue.name, status: state });
  return html`<${Link} to=${to} aria-label=${`${jobs(queue[state])} ${state}`}>${count(queue[state])}<//>`;
}

const SIZE = 50;
const WORST = '-oldest';
// In order from the first on, not from the largest.
const TEXTS = new Set(['name', 'cause']);

const number = (title, sort, cell, more = {}) => ({ title, sort, cell, kind: 'number', ...more });
const state = (title, name, hide) =>
  number(title, name, (queue) => html`<${Counted} queue=${queue} state=${name} />`, { hide });
const p95 = (title, kind, hide, tip) =>
  number(title, kind, ({ recent }) => (recent?.[kind] ? duration(recent[kind].p95) : none()), { hide, tip });

const columnsOf = (reload) => [
  { title: 'Queue', sort: 'name', kind: 'wide', cell: ({ name }) => html`<${Link} to=${toQueue(name)}>${name}<//>` },
  state('Waiting', 'queued'),
  number('Oldest', 'oldest', (queue) => html`<${Age} ms=${queue.oldest_ready_ms} />`, {
    tip: 'For how long the oldest ready job has waited',
  }),
  {
    title: 'Cause',
    sort: 'cause',
    tip: 'Why the oldest ready job waits',
    cell: (queue) =>
      html`<${Cause} queue=${queue} />${
        queue.max_waiting && sumOf(queue, WAITING) >= queue.max_waiting ? html` <${Badge} word="full" />` : null
      }`,
  },
  state('Running', 'running'),
  number('Net/min', 'net', (queue) => html`<${PerMinute} of=${netOf(queue)} />`, {
    hide: 'narrow',
    tip: `Jobs a minute that come less those that end, ${MINUTES} minutes`,
  }),
  number('Empty in', 'empties', (queue) => (queue.empties_ms ? duration(queue.empties_ms) : none()), {
    hide: 'tight',
    tip: 'When no job is ready, if all goes on like this',
  }),
  p95('Wait p95', 'wait', 'narrow', `95 % of the jobs that ended in ${MINUTES} minutes had started within this time`),
  p95('Run p95', 'run', 'tight', `95 % of the jobs that were done in ${MINUTES} minutes ran no longer`),
  number(
    'Workers',
    'workers',
    (queue) => (queue.workers ? html`<${Link} to=${workersOf(queue)}>${count(queue.workers)}<//>` : none('0')),
    {
      hide: 'narrow',
      tip: 'Registered for it, or announced',
    },
  ),
  state('Retrying', 'retrying', 'narrow'),
  state('Scheduled', 'scheduled', 'tight'),
  state('Blocked', 'blocked', 'tight'),
  state('Failed', 'error'),
  {
    title: '',
    kind: 'actions',
    cell: (queue) => html`<${Button} needs="operator" class="small"
      aria-label=${`${queue.paused ? 'Resume' : 'Pause'} ${queue.name}`}
      onClick=${() => pause(queue).then(reload)}>${queue.paused ? 'Resume' : 'Pause'}<//>`,
  },
];

function List({ data, reload }) {
  const [{ name = '', sort = WORST }, setQuery] = useQuery();
  const [by, isDown] = sortOf(sort);
  const fitting = ranked(data.queues, by, { turned: TEXTS.has(by) === isDown, text: name });
  const [rows, pager] = usePageOf(fitting, SIZE);
  const empty = name
    ? html`<${Empty}>No queue has such a name.<//>`
    : html`<${Empty} command="jqmaster enqueue hello">No queues yet. They come with the first job.<//>`;
  const notes = [
    fitting.length > rows.length && rows.length
      ? `${count(pager.first + 1)} to ${count(pager.first + rows.length)} of ${count(fitting.length)}`
      : '',
    data.more ? `only the first ${count(data.queues.length)} queues were looked at` : '',
  ];
  return html`<${Table} label="Queues" columns=${columnsOf(reload)} rows=${rows} rowKey=${(queue) => queue.name} empty=${empty}
    sort=${sort} onSort=${(next) => setQuery({ sort: next === WORST ? '' : next, at: '' })}>
    <${Pager} of=${pager}>${notes.filter(Boolean).join('; ')}<//><//>`;
}

export function Queues() {
  const state = useData(lookOn, { ms: 3000 });
  return html`<${Head} title="Queues" />
    <${FilterBar} fields=${[{ name: 'name', label: 'Filter by name', type: 'search' }]}>
      <span class="muted">Rates and times are of the last ${MINUTES} minutes.</span><//>
    <${Loaded} of=${state}>${(data) => html`<${List} data=${data} reload=${state.reload} />`}<//>`;
}

// -- one queue ----------------------------------------------------------------------------------------

const workersOf = ({ name }) => withQuery('/workers', { queue: name });

/** The remedy is beside the cause. */
function Why({ queue, change }) {
  if (!queue.queued) return html`<p class="muted">No job is ready to start.</p>`;
  const next = html`<${Way} to=${withQuery('/jobs', { queue: queue.name, status: 'queued' })}>See the next jobs<//>`;
  const net = netOf(queue);
  const resume = html`<${Button} needs="operator" class="primary" onClick=${() => change(pause)}>Resume ${queue.name}<//>`;
  const isStuck = queue.recent && !queue.recent.done;
  const [why, remedy] = {
    paused: ['The queue is paused.', resume],
    'no worker': [
      'Nobody serves the queue: no worker names it, waits for its jobs or runs one.',
      html`Start a worker that names it, or see whether <${Link} to="/workers">the workers<//> name another.`,
    ],
    'unknown job': [
      html`No worker that serves the queue knows jobs named <b>${queue.unknown}</b>: all refused them.`,
      'Start a worker of a program that has it.',
    ],
    constraint: [
      html`${queue.held_by?.length > 1 ? 'Limits have' : 'A limit has'} no room for it: ${linked(queue.held_by || [], toLimit)}.`,
      'Change the limit, or see which key is full, on its page.',
    ],
    slow: [
      html`It is served, but too slowly: in ${MINUTES} minutes it ${net > 0 ? 'grew' : 'shrank'} by
        <b> ${brief(Math.abs(net ?? 0))}</b> jobs a minute${queue.empties_ms ? `, and is empty in ${duration(queue.empties_ms)}` : ''}.`,
      isStuck
        ? html`No attempt was done meanwhile: see what <${Link} to=${workersOf(queue)}>its workers<//> do.`
        : html`Start more workers, or give <${Link} to=${workersOf(queue)}>those there are<//> more slots.`,
    ],
  }[queue.cause] || [
    queue.queued > 1
      ? 'Nothing holds that one back; of others limits may say something else.'
      : 'Nothing holds it back.',
    '',
  ];
  return html`<p>The oldest ready job has waited for <b><${Age} ms=${queue.oldest_ready_ms} /></b>. ${why}</p>
    <p>${remedy} ${next}</p>`;
}

const CROWD = 50; // waiting jobs, from which on it is looked for what they have in common
const SAMPLE = 100;
const COMMON = 0.1; // of them, from which on a value is shown
const MOST_VALUES = 8;

/** What the newest waiting jobs have in common, such as a customer who floods the queue: each value leads to its jobs. */
function Common({ name }) {
  const asked = { queue: name, status: 'queued', newest: 1, brief: 1, argument_max: 2000, count: SAMPLE };
  const state = useData((signal) => api.get('/jobs', asked, { signal }), { ms: 10000, deps: [name] });
  const jobs = state.data?.jobs || [];
  const counts = new Map();
  for (const term of jobs.flatMap((job) => termsOf(job.argument))) counts.set(term, (counts.get(term) || 0) + 1);
  const some = [...counts].filter(([, times]) => times > 1 && times >= COMMON * jobs.length);
  if (!some.length) return null;
  const line = ([term, times]) => {
    const to = withQuery('/jobs', { queue: name, status: 'queued', q: term });
    return html`<li><${Link} class="tag" to=${to}>${cut(term, 80)}<//> <b>${count(times)}</b></li>`;
  };
  return html`<p>Of the newest ${count(jobs.length)} that wait:</p>
    <ul class="plain">${some
      .sort((a, b) => b[1] - a[1])
      .slice(0, MOST_VALUES)
      .map(line)}</ul>`;
}

const failed = (series) => series.failed + series.lapsed + series.error;
const figure = (title, value, more) =>
  number(title, undefined, (series) => zero(count(value(series)), value(series)), more);
const time = (title, kind, key, more) =>
  number(title, undefined, (series) => (series[kind].count ? duration(series[kind][key]) : none()), more);

const NAMES = [
  {
    title: 'Name',
    kind: 'wide',
    cell: (series) =>
      html`<${Link} to=${withQuery('/jobs', { queue: series.queue, name: series.name })}>${series.name}<//>`,
  },
  figure('Enqueued', (series) => series.enqueued),
  figure('Done', (series) => series.done),
  figure('Failed', failed),
  time('Wait p95', 'wait', 'p95'),
  time('Run p50', 'run', 'p50', { hide: 'narrow' }),
  time('Run p95', 'run', 'p95'),
];

function Charts({ stats, time: { by, whole: moments, from_ms, to_ms, lines } }) {
  const common = { moments, from_ms, to_ms, zoom: true, marks: lines };
  const counts = (name, kind, value) => ({ name, kind, values: spread(moments, stats, value) });
  const happened = [
    counts('enqueued', 'queued', (series) => series.enqueued),
    counts('done', 'done', (series) => series.done),
    counts('failed', 'error', failed),
  ];
  return html`<div class="grid">
    <div class="panel"><${Chart} ...${common} title=${`Jobs by the ${by}`} series=${happened} unit="jobs" /></div>
    <div class="panel"><${Chart} ...${common} title="Wait until the first start" series=${waits(moments, stats, 'wait')} times /></div>
    <div class="panel"><${Chart} ...${common} title="Run, of those done" series=${waits(moments, stats, 'run')} times /></div>
  </div>`;
}

function Statistics({ name }) {
  const load = async (period, signal) => {
    const asked = { ...period, queue: name, brief: 1 };
    const [{ stats }, { series }] = await Promise.all([
      api.get('/stats', asked, { signal }),
      api.get('/stats', { ...asked, series: 1, count: 100 }, { signal }),
    ]);
    return { stats, series };
  };
  const { state: statistics, ...period } = useStatistics(load, [name]);
  const empty = html`<p class="muted">Nothing happened in this time.</p>`;
  return html`<${Loaded} of=${statistics}>${({ stats, series }) => html`<${Charts} stats=${stats} time=${period} />
    <${Section} title="Names"><${Table} label="Names of jobs" columns=${NAMES} rows=${series} rowKey=${(series) => series.name} empty=${empty} /><//>`}<//>`;
}

const sharing = ({ by, weights }) =>
  html`<div><code>${String(by)}</code> <span class="muted">${Object.entries(weights || {})
    .slice(0, 8)
    .map(([value, weight]) => `${value}: ${weight}`)
    .join(', ')}</span></div>`;

function Settings({ queue }) {
  const own = Object.entries(queue.settings || {}).map(
    ([name, value], i) => html`${i ? ', ' : ''}<code>${name} ${value}</code>`,
  );
  const waiting = html`<${Meter} value=${sumOf(queue, WAITING)} limit=${queue.max_waiting} />`;
  return html`<${Section} title="Settings"><${Facts} pairs=${[
    ['Workers', html`<${Link} to=${workersOf(queue)}>${count(queue.workers)} listed<//>`],
    ['Max waiting', queue.max_waiting ? waiting : 'any number'],
    ['Own settings', own.length ? own : 'none'],
    ['Fair by', queue.fair ? sharing(queue.fair) : '–'],
  ]} /><//>`;
}

function Actions({ queue, change }) {
  const button = (label, step, text, more = {}) =>
    html`<${Button} needs="operator" onClick=${() => change(step, text)} ...${more}>${label}<//>`;
  return html`${button(queue.paused ? 'Resume' : 'Pause', pause, '', { class: queue.paused ? 'primary' : '' })}
    ${button('Max waiting…', limit, 'The limit is set.')}
    ${button('Settings…', ownSettings, 'The settings are in force.')}
    ${button('Take jobs…', kick, '', { disabled: !queue.running, title: 'Take running jobs from their workers' })}
    ${button('Discard jobs…', purge, 'Servers discard them now.', { class: 'danger' })}
    <${Button} needs="operator" class="danger" onClick=${() => forget(queue)}>Forget…<//>`;
}

function Tiles({ queue }) {
  const jobsIn = (status) => withQuery('/jobs', { queue: queue.name, status });
  const wait = queue.recent?.wait
    ? `p95 of waits ${duration(queue.recent.wait.p95)}, ${MINUTES} min`
    : 'no wait has ended';
  const net = html`<${PerMinute} of=${netOf(queue)} /> a minute, ${MINUTES} min`;
  return html`<div class="tiles is-many">
    <${Tile} name="Oldest ready" value=${html`<${Age} ms=${queue.oldest_ready_ms} />`}>${wait}<//>
    ${STATES.map(
      (word) => html`<${Tile} name=${word} kind=${word} value=${brief(queue[word])} to=${jobsIn(word)}>
        ${word === 'queued' && queue.queued ? net : null}<//>`,
    )}
  </div>`;
}

export function Queue({ params: { name } }) {
  const load = (signal) => only('/queues', { names: name, minutes: MINUTES }, { signal });
  const state = useData(load, { ms: 3000, deps: [name] });
  const change = (queue) => async (step, text) => {
    if ((await step(queue)) && text) toast(text);
    state.reload();
  };
  const title = html`<span class="crumb"><${Link} to="/queues">Queues<//> / </span>${name} `;
  return html`<${Loaded} of=${state}>${(queue) => html`
    <${Head} title=${title} actions=${html`<${Actions} queue=${queue} change=${change(queue)} />`}>
      ${queue.paused ? html`<${Badge} word="paused" />` : null}<//>
    <${Tiles} queue=${queue} />
    <${AlertsOf} field="queue" name=${queue.name} />
    <${Section} title="Why it waits"><${Why} queue=${queue} change=${change(queue)} />
      ${queue.queued >= CROWD ? html`<${Common} name=${name} />` : null}<//>
    <${Statistics} name=${name} />
    <${Settings} queue=${queue} />`}<//>`;
}
