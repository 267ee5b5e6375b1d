// At a glance: a verdict, what is wrong, what waits, runs and ends over time, the largest queues.
import { Alerts } from './alerts.js';
import { api, withQuery } from './api.js';
import { Chart, spread, useStatistics, waits } from './chart.js';
import { brief, count, cut, duration, jobs, percent, rate, setServerNow } from './format.js';
import { Badge, Head, Loaded, none, Section, Table, Tile, toQueue, zero } from './parts.js';
import { lookOn, MINUTES, ranked } from './queues.js';
import { html, Link, navigate, parted, useData, useEffect } from './view.js';

function Verdict({ data: { verdict, age_ms } }) {
  return html`<p class=${`verdict is-${verdict.level}`} role="status"><span class="dot" aria-hidden="true"></span>
    <b>${verdict.text}</b>${' '}<span class="muted">as of ${age_ms < 1500 ? 'now' : `${duration(age_ms)} ago`}</span></p>`;
}

// -- figures ------------------------------------------------------------------------------------------

const ahead = (oldest, now_ms) => duration(Math.max(0, now_ms - oldest.ready_ms));

function Tiles({ data, found }) {
  const { totals, workers, oldest, now_ms, queues } = data;
  const lately = (word, ...kinds) => {
    const recent = (found?.queues || []).flatMap((queue) => queue.recent || []);
    const perMs = recent.flatMap((one) => kinds.map((kind) => one[kind] / one.span_ms)).reduce((a, b) => a + b, 0);
    return found ? `${rate(perMs * 1000)} ${word}, ${MINUTES} min` : `… ${word}`;
  };
  const sum = (number) => (queues.more ? html`${brief(number)} <small>so far</small>` : brief(number));
  const [slowest] = ranked(found?.queues || [], 'wait');
  const p95 = slowest?.recent?.wait?.p95;
  const used = workers.slots ? workers.slots_held / workers.slots : null;
  return html`<div class="tiles is-many">
    <${Tile} name="Waiting" kind="queued" to="/jobs?status=queued" value=${sum(totals.queued)}>${lately('enqueued', 'enqueued')}<//>
    <${Tile} name="Oldest wait" to=${oldest ? toQueue(oldest.queue) : undefined} value=${oldest ? ahead(oldest, now_ms) : '–'}>
      ${oldest ? parted(cut(oldest.queue, 60)) : 'no job waits'}<//>
    <${Tile} name="Longest wait p95" to=${p95 ? toQueue(slowest.name) : undefined} value=${p95 ? duration(p95) : '–'}>
      ${p95 ? html`${parted(cut(slowest.name, 60))}, ${MINUTES} min` : `nothing started in ${MINUTES} min`}<//>
    <${Tile} name="Running" kind="running" to="/jobs?status=running" value=${sum(totals.running)}>${lately('done', 'done')}<//>
    <${Tile} name="Failed" kind="error" to="/failures" value=${sum(totals.error)}>${lately('failing', 'failed', 'lapsed', 'error')}<//>
    <${Tile} name="Retrying" kind="retrying" to="/jobs?status=retrying" value=${sum(totals.retrying)}>failed, will run again<//>
    <${Tile} name="Scheduled" kind="scheduled" to="/jobs?status=scheduled" value=${sum(totals.scheduled)}>for later<//>
    <${Tile} name="Blocked" kind="blocked" to="/jobs?status=blocked" value=${sum(totals.blocked)}>by other jobs<//>
    <${Tile} name="Workers" to="/workers" value=${count(workers.count)}>${
      workers.unreachable ? `${count(workers.unreachable)} unreachable` : `${jobs(workers.held)} held`
    }<//>
    <${Tile} name="Slots in use" to="/workers" value=${used === null ? '–' : percent(used)}>${
      used === null ? 'none is known' : `${count(workers.slots_held)} of ${count(workers.slots)}`
    }<//>
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
  const { by, step, whole: moments } = time;
  const common = { moments, from_ms: moments[0], to_ms: moments.at(-1), zoom: true };
  const outcomes = Object.entries(OUTCOMES)
    .map(([of, one]) => ({ ...one, of, values: spread(moments, stats, (bucket) => bucket[of]) }))
    .filter(({ of, values }) => of === 'done' || values.some(Boolean));
  const come = [
    { name: 'enqueued', kind: 'queued', values: spread(moments, stats, (bucket) => bucket.enqueued) },
    { name: 'ended', kind: 'done', values: spread(moments, stats, ended) },
  ];
  const pick = (ms, name) => {
    const { of } = outcomes.find((one) => one.name === name) || {};
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
  const { state, ...time } = useStatistics(load);
  if (state.problem?.status === 403) return null; // of a key that is bound to queues
  return html`<${Loaded} of=${state}>${({ stats }) => html`<${Charts} stats=${stats} time=${time} />`}<//>`;
}

// -- queues -------------------------------------------------------------------------------------------

const LISTED_QUEUES = 15;
const number = (title, value, more = {}) => ({
  title,
  kind: 'number',
  cell: (queue) => zero(count(queue[value]), queue[value]),
  ...more,
});

const columnsOf = (now_ms) => [
  {
    title: 'Queue',
    kind: 'wide',
    cell: ({ name, paused }) =>
      html`<${Link} to=${toQueue(name)}>${name}<//> ${paused ? html`<${Badge} word="paused" />` : null}`,
  },
  number('Waiting', 'queued'),
  number('Oldest', '', {
    tip: 'For how long the oldest ready job waits',
    cell: ({ oldest_ready_ms: ready_ms }) => (ready_ms ? ahead({ ready_ms }, now_ms) : none()),
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

function Busiest({ data, state }) {
  const { more, count: looked } = data.queues;
  return html`<${Section} title="Queues with most to do">
    <${Loaded} of=${state}>${({ queues }) => {
      const others = queues.length - LISTED_QUEUES;
      return html`<${Table} label="Queues" rows=${ranked(queues, 'open').slice(0, LISTED_QUEUES)} rowKey=${(queue) => queue.name}
        columns=${columnsOf(data.now_ms)}
        empty=${html`<p class="empty">No queue yet. The first job makes one: <code>jqmaster enqueue mail</code></p>`}>
        <p class="muted pager"><${Link} to="/queues">${others > 0 ? `${count(others)} more ${others === 1 ? 'queue' : 'queues'}` : 'All queues'}<//>
          ${more ? html`<span>Still counting: ${count(looked)} queues were looked at so far; the sums above are of these</span>` : null}
        </p>
      <//>`;
    }}<//><//>`;
}

export function Overview() {
  const state = useData((signal) => api.get('/overview', {}, { signal }), { ms: 2000 });
  const queues = useData(lookOn, { ms: 5000 });
  const { data } = state;
  useEffect(() => {
    if (data) setServerNow(data.now_ms + data.age_ms);
  }, [data]);
  return html`<${Head} title="Overview" /><${Loaded} of=${state}>${() => html`<${Verdict} data=${data} />
    <${Alerts} found=${data.alerts} reload=${state.reload} />
    <${Tiles} data=${data} found=${queues.data} />
    <${OverTime} />
    <${Busiest} data=${data} state=${queues} />`}<//>`;
}
