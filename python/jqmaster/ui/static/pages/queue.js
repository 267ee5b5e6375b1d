// One queue: what is in it, why it waits and what helps, how it does, and all that can be done with it.
import { api, path } from '../api.js';
import { AlertsOf } from '../components/alerts.js';
import { Badge, STATES } from '../components/badge.js';
import { Meter } from '../components/bar.js';
import { Bulks } from '../components/bulks.js';
import { confirm } from '../components/dialog.js';
import { Button, Empty, Head, Loaded, Tile, zero } from '../components/parts.js';
import { Table } from '../components/rows.js';
import { Ago } from '../components/time.js';
import { Chart } from '../components/timechart.js';
import { act, toast } from '../components/toast.js';
import { brief, count, duration, jobs, now } from '../format.js';
import { useMarks } from '../marks.js';
import {
  Age,
  forget,
  Gone,
  limit,
  MINUTES,
  netOf,
  ownSettings,
  PerMinute,
  pause,
  purge,
  serves,
  WAITING,
} from '../queues.js';
import { navigate, withQuery } from '../router.js';
import { html, Link, STEP_MS, useData, useRange } from '../view.js';
import { Slots, State } from '../workers.js';

const HELD = 200; // jobs that are looked at
const MINUTES_KEPT = 180;

const number = (title, cell, more = {}) => ({ title, cell, kind: 'number', ...more });

/** The remedy is beside the cause. */
function Why({ queue, change }) {
  if (!queue.queued) return html`<p class="muted">No job is ready to start.</p>`;
  const since = html`The oldest ready job has waited for <b><${Age} ms=${queue.oldest_ready_ms} /></b>. `;
  const net = netOf(queue);
  const oldest = html`<${Link} to=${withQuery('/jobs', { queue: queue.name, status: 'queued' })}>See the next jobs<//>`;
  if (queue.cause === 'paused')
    return html`<p>${since}The queue is paused.</p>
      <p><${Button} needs="operator" class="primary" onClick=${() => change(pause)}>Resume ${queue.name}<//> ${oldest}</p>`;
  if (queue.cause === 'no worker')
    return html`<p>${since}Nobody serves the queue: no worker is registered for it, waits for its jobs or runs one.</p>
      <p>Start a worker that names it, or see whether <${Link} to="/workers">the workers<//> name another. ${oldest}</p>`;
  if (queue.cause === 'unknown job')
    return html`<p>${since}No worker that serves the queue knows jobs named <b>${queue.unknown}</b>: all refused them.</p>
      <p>Start a worker of a program that has it. ${oldest}</p>`;
  if (queue.cause === 'constraint')
    return html`<p>${since}${queue.held_by.length > 1 ? 'Constraints have' : 'A constraint has'} no room for it:
        ${queue.held_by.map((id, i) => html`${i ? ', ' : ' '}<${Link} to=${path`/constraint/${id}`}>${id}<//>`)}.</p>
      <p>Change the limit, or see which key is full, on its page. ${oldest}</p>`;
  if (queue.cause === 'slow')
    return html`<p>${since}It is served, but too slowly: in ${MINUTES} minutes it ${net > 0 ? 'grew' : 'shrank'} by
        <b> ${brief(Math.abs(net ?? 0))}</b> jobs a minute${queue.empties_ms ? `, and is empty in ${duration(queue.empties_ms)}` : ', and is never empty at this rate'}.</p>
      <p>${
        queue.recent && !queue.recent.done && queue.running
          ? html`None of its attempts was done meanwhile: see what its workers do, below.`
          : html`Start more workers, or give <${Link} to="/workers">those there are<//> more slots.`
      } ${oldest}</p>`;
  return html`<p>${since}Nothing holds it back. ${oldest}</p>`;
}

function Held({ held }) {
  if (!held.looked) return null;
  return html`<p>${held.jobs ? `Constraints hold ${count(held.jobs)} of the first ${jobs(held.looked)} that stand under any:` : `No constraint holds any of the first ${jobs(held.looked)} that stand under one.`}</p>
    ${
      held.by.length
        ? html`<ul class="plain">${held.by.map(
            ({ id, jobs: some }) =>
              html`<li><${Link} to=${path`/constraint/${id}`}>${id}<//> <b>${count(some)}</b></li>`,
          )}</ul>`
        : null
    }`;
}

const NAMES = [
  {
    title: 'Name',
    kind: 'wide',
    cell: (one) => html`<${Link} to=${withQuery('/jobs', { queue: one.queue, name: one.name })}>${one.name}<//>`,
  },
  number('Enqueued', (one) => zero(count(one.enqueued), one.enqueued)),
  number('Done', (one) => zero(count(one.done), one.done)),
  number('Failed', (one) => zero(count(failed(one)), failed(one))),
  number('Wait p95', (one) => (one.wait.count ? duration(one.wait.p95) : html`<${Gone} />`)),
  number('Run p50', (one) => (one.run.count ? duration(one.run.p50) : html`<${Gone} />`), { hide: 'narrow' }),
  number('Run p95', (one) => (one.run.count ? duration(one.run.p95) : html`<${Gone} />`)),
];

const WORKERS = [
  {
    title: 'Worker',
    kind: 'wide',
    cell: (worker) => html`<${Link} to=${path`/worker/${worker.id}`}>${worker.name}<//>`,
  },
  { title: 'State', cell: (worker) => html`<${State} of=${worker} />` },
  { title: 'Slots', cell: (worker) => html`<${Slots} of=${worker} />` },
  { title: 'Longest', kind: 'number', cell: (worker) => html`<${Age} ms=${worker.running[0]?.[1]} />` },
  { title: 'Seen', kind: 'number', cell: (worker) => html`<${Ago} ms=${worker.seen_ms} />` },
];

function failed(one) {
  return one.failed + one.lapsed + one.error;
}

/** Statistics as charts take them: each step of the time, those in which nothing happened as well. */
function useStatistics(name) {
  const range = useRange();
  const by = range.by === 'minute' && range.from_ms < now() - MINUTES_KEPT * STEP_MS.minute ? 'hour' : range.by;
  const step = STEP_MS[by];
  const from = Math.floor(range.from_ms / step) * step;
  const period = range.isLive ? { from_ms: from } : { from_ms: from, to_ms: Math.ceil(range.to_ms) };
  const state = useData(
    async (signal) => {
      const asked = { by, queue: name, brief: 1, ...period };
      const [{ stats }, { series }] = await Promise.all([
        api.get('/stats', asked, { signal }),
        api.get('/stats/series', { ...asked, count: 100 }, { signal }),
      ]);
      return { stats, series };
    },
    { ms: 15000, deps: [name, by, range.name, range.isLive ? 0 : from, range.isLive ? 0 : range.to_ms] },
  );
  return { state, by, step, from, to: range.to_ms, marks: useMarks(range).lines };
}

function Charts({ stats, by, step, from, to, marks }) {
  const at = new Map(stats.map((one) => [one.begin_ms, one]));
  const moments = [];
  for (let ms = from; ms < to; ms += step) moments.push(ms);
  const all = moments.map((ms) => at.get(ms));
  const counts = (value) => all.map((one) => (one ? value(one) : 0));
  const times = (kind, key) => all.map((one) => (one?.[kind]?.count ? one[kind][key] : null));
  const common = { moments, from_ms: from, to_ms: to, zoom: true, marks };
  const lines = (kind) => [
    { name: 'p50', kind: 'running', values: times(kind, 'p50') },
    { name: 'p95', kind: 'retrying', values: times(kind, 'p95') },
    { name: 'p99', kind: 'error', values: times(kind, 'p99') },
  ];
  const happened = [
    { name: 'enqueued', kind: 'queued', values: counts((one) => one.enqueued) },
    { name: 'done', kind: 'done', values: counts((one) => one.done) },
    { name: 'failed', kind: 'error', values: counts(failed) },
  ];
  return html`<div class="grid">
    <div class="panel"><${Chart} ...${common} title=${`Jobs by the ${by}`} series=${happened} unit="jobs" /></div>
    <div class="panel"><${Chart} ...${common} title="Wait until the first start, of attempts that ended" series=${lines('wait')} times /></div>
    <div class="panel"><${Chart} ...${common} title="Run, of attempts that were done" series=${lines('run')} times /></div>
  </div>`;
}

const level = ({ by, weights }) =>
  html`<div><code>${String(by)}</code> <span class="muted">${Object.entries(weights || {})
    .slice(0, 8)
    .map(([value, weight]) => `${value}: ${weight}`)
    .join(', ')}</span></div>`;

function Facts({ queue }) {
  const waiting = WAITING.reduce((sum, state) => sum + queue[state], 0);
  const own = Object.entries(queue.settings || {});
  return html`<dl class="facts">
    <dt>May wait</dt><dd>${queue.max_waiting ? html`<${Meter} value=${waiting} limit=${queue.max_waiting} />` : 'any number'}</dd>
    <dt>Own settings</dt><dd>${own.length ? own.map(([name, value], i) => html`${i ? ', ' : ''}<code>${name} ${value}</code>`) : 'none'}</dd>
    <dt>Fair by</dt><dd>${queue.fair ? queue.fair.map(level) : '–'}</dd>
  </dl>`;
}

async function kick(queue) {
  const isSure = await confirm({
    title: `Take ${count(queue.running)} running jobs of ${queue.name} back?`,
    action: 'Take back',
    body: 'Their workers lose them; they wait again, and no retry is spent.',
  });
  if (!isSure) return;
  let kicked = 0;
  await act(
    async () => {
      let cursor = '';
      do {
        const answer = await api.post('/jobs/kick', { where: { queue: queue.name }, cursor, count: 1000 });
        kicked += answer.changed;
        cursor = answer.cursor;
      } while (cursor);
    },
    () => `${count(kicked)} jobs were taken back.`,
  );
}

function Actions({ queue, change }) {
  const button = (label, step, text, more = {}) =>
    html`<${Button} needs="operator" onClick=${() => change(step, text)} ...${more}>${label}<//>`;
  const leave = async () => {
    if (await forget(queue)) navigate('/queues');
  };
  return html`${button(queue.paused ? 'Resume' : 'Pause', pause, '', { class: queue.paused ? 'primary' : '' })}
    ${button('Limit', limit, 'The limit is set.')}
    ${button('Settings', ownSettings, 'The settings are in force.')}
    ${button('Take back', kick, '', { disabled: !queue.running, title: 'Take running jobs from their workers' })}
    ${button('Discard jobs', purge, 'Masters discard them now.', { class: 'danger' })}
    <${Button} needs="operator" class="danger" onClick=${leave}>Forget<//>`;
}

function Workers({ name }) {
  const look = async (signal) => {
    // The registered ones, and those that pull and announce themselves.
    const asked = [{}, { others: 1 }].map((which) => api.get('/workers', { count: 1000, ...which }, { signal }));
    const pages = await Promise.all(asked);
    return { workers: pages.flatMap(({ workers }) => workers), isAll: pages.every(({ cursor }) => !cursor) };
  };
  const state = useData(look, { ms: 5000, deps: [name] });
  return html`<${Loaded} of=${state}>${({ workers, isAll }) => {
    const serving = workers.filter((worker) => worker.state !== 'gone' && serves(worker, name));
    const empty = html`<${Empty}>No worker that is listed names it. Others may pull all the same.<//>`;
    return html`<${Table} label="Workers" columns=${WORKERS} rows=${serving} rowKey=${(worker) => worker.id} empty=${empty}>
      ${isAll ? null : html`<p class="muted">Only the first ${count(workers.length)} workers were looked at.</p>`}<//>`;
  }}<//>`;
}

export function Page({ params: { name } }) {
  const state = useData((signal) => api.get(path`/queue/${name}`, { minutes: MINUTES, held: HELD }, { signal }), {
    ms: 3000,
    deps: [name],
  });
  const { state: statistics, ...period } = useStatistics(name);
  const change = (queue) => async (step, text) => {
    const answer = await step(queue);
    if (answer && text) toast(typeof text === 'function' ? text(answer) : text);
    state.reload();
  };
  const title = html`<span class="crumb"><${Link} to="/queues">Queues<//> / </span>${name} `;
  return html`<${Loaded} of=${state}>${(queue) => html`
    <${Head} title=${title} actions=${html`<${Actions} queue=${queue} change=${change(queue)} />`}>
      ${queue.paused ? html`<${Badge} word="paused" />` : null}<//>
    <div class="tiles">
      <${Tile} name="Oldest ready" value=${html`<${Age} ms=${queue.oldest_ready_ms} />`}>
        ${queue.recent?.wait ? `p95 of waits ${duration(queue.recent.wait.p95)}` : 'no wait has ended'}<//>
      ${STATES.map(
        (one) => html`<${Tile} name=${one} kind=${one} value=${brief(queue[one])}
        to=${withQuery('/jobs', { queue: queue.name, status: one })}>
          ${one === 'queued' && queue.queued ? html`<${PerMinute} of=${netOf(queue)} isSigned /> a minute` : null}<//>`,
      )}
    </div>
    <${Bulks} queue=${queue.name} />
    <${AlertsOf} field="queue" name=${queue.name} />
    <section class="panel"><h2>Why it waits</h2>
      <${Why} queue=${queue} change=${change(queue)} /><${Held} held=${queue.held} /></section>
    <${Loaded} of=${statistics}>${({ stats, series }) => html`<${Charts} stats=${stats} ...${period} />
      <section class="panel"><h2>Names</h2>
        <${Table} label="Names" columns=${NAMES} rows=${series} rowKey=${(one) => one.name}
          empty=${html`<p class="muted">Nothing happened in this time.</p>`} /></section>`}<//>
    <section class="panel"><h2>Workers</h2><${Workers} name=${name} /></section>
    <section class="panel"><h2>Limits and settings</h2><${Facts} queue=${queue} /></section>`}<//>`;
}
