// At a glance: a verdict, what is wrong, what waits, runs and ends over time, the largest queues, deploys.
import { Alerts, useAlerts } from './alerts.js';
import { api, boundTo, withQuery } from './api.js';
import { Chart, setMark, spread, useStatistics, waits } from './chart.js';
import { brief, count, cut, distance, duration, jobs, now, percent, rate } from './format.js';
import { Ago, Badge, Button, Head, hasSlots, Loaded, none, Section, Table, Tile, toQueue, zero } from './parts.js';
import { lookOn, MINUTES, ranked } from './queues.js';
import { html, Link, navigate, parted, useData, Way } from './view.js';

/** How things stand, in a sentence. */
function Verdict({ alerts: [worst, ...others] }) {
  const more = others.length ? `. And ${count(others.length)} more alert${others.length > 1 ? 's' : ''}` : '';
  return html`<p class=${`verdict is-${worst?.level || 'ok'}`} role="status"><span class="dot" aria-hidden="true"></span>
    <b>${worst ? worst.text + more : 'All is well'}</b></p>`;
}

// -- figures ------------------------------------------------------------------------------------------

const age = (ready_ms) => distance(Math.max(0, now() - ready_ms));
const sumOver = (list, figure) => list.reduce((sum, item) => sum + (figure(item) || 0), 0);

async function atWork(signal) {
  const { workers } = await api.get('/workers', { count: 1000 }, { signal });
  return workers.filter(({ state }) => state !== 'gone');
}

// What is held is counted by queue: what workers that pull announced is a minute old, and some announce nothing.
function Staff({ running }) {
  const { data: workers } = useData(atWork, { ms: 5000 });
  if (!workers) return null;
  const known = workers.filter(hasSlots);
  const slots = sumOver(known, (worker) => worker.max_jobs);
  const lost = workers.filter(({ state }) => state === 'unreachable').length;
  return html`<${Tile} name="Workers" to="/workers" value=${count(workers.length)}>${
    lost ? `${count(lost)} unreachable` : `${jobs(running)} held`
  }<//>
    <${Tile} name="Slots in use" to="/workers" value=${slots ? percent(Math.min(1, running / slots)) : '–'}>${
      slots ? `${count(running)} held, ${count(slots)} known` : 'none is known'
    }<//>`;
}

function Tiles({ data: { queues, more } }) {
  const lately = (word, ...kinds) => {
    const recent = queues.flatMap((queue) => queue.recent || []);
    const perMs = sumOver(recent, (minutes) => sumOver(kinds, (kind) => minutes[kind]) / minutes.span_ms);
    return `${rate(perMs * 1000)} ${word}, ${MINUTES} min`;
  };
  const sum = (state) => {
    const number = brief(sumOver(queues, (queue) => queue[state]));
    return more ? html`${number} <small>or more</small>` : number;
  };
  const waiting = queues.filter(({ paused }) => !paused);
  const oldest = ranked(waiting, 'oldest').find((queue) => queue.oldest_ready_ms);
  const [slowest] = ranked(queues, 'wait');
  const p95 = slowest?.recent?.wait?.p95;
  return html`<div class="tiles is-many">
    <${Tile} name="Waiting" kind="queued" to="/jobs?status=queued" value=${sum('queued')}>${lately('enqueued', 'enqueued')}<//>
    <${Tile} name="Oldest wait" to=${oldest && toQueue(oldest.name)} value=${oldest ? age(oldest.oldest_ready_ms) : '–'}>
      ${oldest ? parted(cut(oldest.name, 60)) : 'no job waits'}<//>
    <${Tile} name="Longest wait p95" to=${p95 ? toQueue(slowest.name) : undefined} value=${p95 ? duration(p95) : '–'}>
      ${p95 ? html`${parted(cut(slowest.name, 60))}, ${MINUTES} min` : `nothing started in ${MINUTES} min`}<//>
    <${Tile} name="Running" kind="running" to="/jobs?status=running" value=${sum('running')}>${lately('done', 'done')}<//>
    <${Tile} name="Failed" kind="error" to="/failures" value=${sum('error')}>${lately('failing', 'failed', 'lapsed', 'error')}<//>
    <${Tile} name="Retrying" kind="retrying" to="/jobs?status=retrying" value=${sum('retrying')}>failed, will run again<//>
    <${Tile} name="Scheduled" kind="scheduled" to="/jobs?status=scheduled" value=${sum('scheduled')}>for later<//>
    <${Tile} name="Blocked" kind="blocked" to="/jobs?status=blocked" value=${sum('blocked')}>by other jobs<//>
    ${boundTo() ? null : html`<${Staff} running=${sumOver(queues, (queue) => queue.running)} />`}
  </div>`;
}

// -- over time ----------------------------------------------------------------------------------------

const OUTCOMES = {
  done: { name: 'done', kind: 'done' },
  failed: { name: 'failed, retried', kind: 'retrying' },
  lapsed: { name: 'lapsed', kind: 'scheduled' },
  error: { name: 'failed for good', kind: 'error' },
  cancelled: { name: 'cancelled', kind: 'cancelled' },
};

const ended = (bucket) => Object.keys(OUTCOMES).reduce((sum, kind) => sum + bucket[kind], 0);

function Charts({ stats, time }) {
  const { by, step, lines, whole: moments } = time;
  const common = { moments, from_ms: moments[0], to_ms: moments.at(-1), zoom: true, marks: lines };
  const outcomes = Object.entries(OUTCOMES)
    .map(([of, outcome]) => ({ ...outcome, of, values: spread(moments, stats, (bucket) => bucket[of]) }))
    .filter(({ of, values }) => of === 'done' || values.some(Boolean));
  const come = [
    { name: 'enqueued', kind: 'queued', values: spread(moments, stats, (bucket) => bucket.enqueued) },
    { name: 'ended', kind: 'done', values: spread(moments, stats, ended) },
  ];
  const pick = (ms, name) => {
    const { of } = outcomes.find((outcome) => outcome.name === name) || {};
    const status = ['done', 'error', 'cancelled'].includes(of) ? of : undefined;
    navigate(withQuery('/jobs', { status, from: ms, to: ms + step }));
  };
  return html`<section class="panel" aria-label="Over time"><${Chart} ...${common} title=${`Ended, by the ${by}`}
      series=${outcomes} isStacked height=${260} unit="ended" onPick=${pick} /></section>
    <div class="grid charts">
      <div class="panel"><${Chart} ...${common} title="Come and gone" series=${come} height=${150} unit="jobs" /></div>
      <div class="panel"><${Chart} ...${common} title="Wait until the first start" series=${waits(moments, stats, 'wait')}
        times height=${150} /></div></div>`;
}

function OverTime() {
  const load = (period, signal) => api.get('/stats', { ...period, brief: true }, { signal });
  const { state, reload, ...time } = useStatistics(load);
  return html`<${Marks} marks=${time.marks} reload=${reload} />
    <${Loaded} of=${state}>${({ stats }) => html`<${Charts} stats=${stats} time=${time} />`}<//>`;
}

// -- deploys ------------------------------------------------------------------------------------------

function Marks({ marks, reload }) {
  const [latest, ...others] = marks;
  const since = ({ time_ms }) => `/changes?since=${time_ms}`;
  return html`<p class="marks"><span class="muted">Deploys</span>
    ${
      latest
        ? html`<span><b>${latest.text}</b> <${Ago} ms=${latest.time_ms} /></span> <${Way} to=${since(latest)}>What changed since?<//>`
        : html`<span>none in this time</span>`
    }
    ${others.slice(0, 3).map((mark) => html`<${Link} key=${mark.time_ms} to=${since(mark)}>${mark.text}<//>`)}
    <${Button} needs="operator" class="quiet" onClick=${() => setMark(reload)}>Mark a deploy<//></p>`;
}

// -- queues -------------------------------------------------------------------------------------------

const LISTED_QUEUES = 15;
const number = (title, value, more = {}) => ({
  title,
  kind: 'number',
  cell: (queue) => zero(count(queue[value]), queue[value]),
  ...more,
});

const columns = [
  {
    title: 'Queue',
    kind: 'wide',
    cell: ({ name, paused }) =>
      html`<${Link} to=${toQueue(name)}>${name}<//> ${paused ? html`<${Badge} word="paused" />` : null}`,
  },
  number('Waiting', 'queued'),
  number('Oldest', '', {
    tip: 'For how long the oldest ready job waits',
    cell: ({ oldest_ready_ms: ready_ms }) => (ready_ms ? age(ready_ms) : none()),
  }),
  number('Running', 'running'),
  number('Retrying', 'retrying', { hide: 'narrow' }),
  number('Failed', 'error'),
  number(`Wait, p50 / p95, ${MINUTES} min`, '', {
    hide: 'narrow',
    cell: ({ recent }) =>
      recent?.wait
        ? html`${duration(recent.wait.p50)}<span class="muted"> / ${duration(recent.wait.p95)}</span>`
        : none(),
  }),
  number(`Done, ${MINUTES} min`, '', {
    hide: 'narrow',
    cell: ({ recent }) => (recent ? count(recent.done) : none()),
  }),
];

function Busiest({ queues }) {
  const others = queues.length - LISTED_QUEUES;
  return html`<${Section} title="Queues with most to do">
    <${Table} label="Queues" rows=${ranked(queues, 'open').slice(0, LISTED_QUEUES)} rowKey=${(queue) => queue.name}
      columns=${columns}
      empty=${html`<p class="empty">No queue yet. The first job makes one: <code>jqmaster enqueue mail</code></p>`}>
      <p class="muted pager"><${Link} to="/queues">${others > 0 ? `${count(others)} more ${others === 1 ? 'queue' : 'queues'}` : 'All queues'}<//></p>
    <//><//>`;
}

export function Overview() {
  const alerts = useAlerts();
  const queues = useData(lookOn, { ms: 5000 });
  return html`<${Head} title="Overview" />
    <${Loaded} of=${alerts}>${({ alerts: list }) => html`<${Verdict} alerts=${list} /><${Alerts} alerts=${list} reload=${alerts.reload} />`}<//>
    <${Loaded} of=${queues}>${(data) => html`<${Tiles} data=${data} />`}<//>
    ${boundTo() ? null : html`<${OverTime} />`}
    ${queues.data ? html`<${Busiest} queues=${queues.data.queues} />` : null}`;
}
