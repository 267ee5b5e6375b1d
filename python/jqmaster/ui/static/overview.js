// At a glance: a verdict, what is wrong, what waits, runs and ends over time, the largest queues, deploys.
import { all, api, path, withQuery } from './api.js';
import { Chart, setMark, spread, useStatistics } from './chart.js';
import { brief, count, cut, duration, now, percent, rate, setServerNow } from './format.js';
import {
  Ago,
  Badge,
  Button,
  Head,
  Loaded,
  none,
  Section,
  Since,
  Stack,
  Table,
  Tile,
  toLimit,
  toQueue,
  zero,
} from './parts.js';
import { lookOn, MINUTES, ranked } from './queues.js';
import { html, Link, navigate, parted, STEP_MS, useData, useEffect, useQuery, useState } from './view.js';

const OPEN = ['queued', 'scheduled', 'blocked', 'running', 'retrying'];
const MINUTE = STEP_MS.minute;

// -- what is wrong: at most three lines are seen at once; one can be snoozed, in this browser ----------

const SHOWN = 3;
const LISTED = 50;
const HOUR = 3600000;
const KEY = 'jq.snoozed';
const ABOUT = ['kind', 'queue', 'worker', 'constraint', 'job', 'group'];
const keyOf = (alert) => ABOUT.map((field) => alert[field] ?? '').join(' ');

/** The page where it is looked into, and mended. */
function placeOf({ kind, queue, worker, constraint, job, group }) {
  if (kind === 'hung' || worker) return worker ? path`/worker/${worker}` : '/workers';
  if (constraint) return toLimit(constraint);
  if (job) return path`/job/${job}`;
  if (group) return withQuery('/jobs', { group, ...(kind === 'failing' ? { queue } : { status: 'error' }) });
  if (queue) return toQueue(queue);
  return null;
}

function About({ alert }) {
  const to = placeOf(alert);
  return to ? html`<${Link} to=${to} aria-label=${`Show: ${alert.text}`}>Show<//>` : null;
}

/** Until when what is snoozed, by its key. */
function snoozedNow() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) || '{}');
    return Object.fromEntries(Object.entries(kept).filter(([, until]) => until > now()));
  } catch {
    return {};
  }
}

/** Many of a kind are one line, the worst first. */
function Line({ group: [first, ...more], onSnooze }) {
  // The link stands beside the summary, which is a button itself.
  return html`<div class=${`alert is-${first.level}`}><details>
    <summary><${Badge} word=${first.level} /> <b>${first.text}</b>
      ${more.length ? html`<span> and ${count(more.length)} more like it</span>` : null}<${Since} alert=${first} /></summary>
    <div>${first.advice}</div>
    ${more
      .slice(0, LISTED)
      .map((one) => html`<div key=${keyOf(one)}>${one.text} <${About} alert=${one} /><${Since} alert=${one} /></div>`)}
    ${more.length > LISTED ? html`<div>All of them: <code>jqmaster doctor</code></div>` : null}
    <button type="button" class="quiet" onClick=${() => onSnooze([first, ...more])}>Snooze for 1 h</button>
  </details><${About} alert=${first} /></div>`;
}

function Alerts({ found }) {
  const [snoozed, setSnoozed] = useState(snoozedNow);
  const keep = (kept) => {
    setSnoozed(kept);
    try {
      localStorage.setItem(KEY, JSON.stringify(kept));
    } catch (problem) {
      console.debug(problem); // no room, or not allowed: it holds until the page is left
    }
  };
  const snooze = (group) =>
    keep({ ...snoozedNow(), ...Object.fromEntries(group.map((alert) => [keyOf(alert), now() + HOUR])) });
  const open = found.filter((alert) => !(snoozed[keyOf(alert)] > now()));
  const hidden = found.length - open.length;
  const lines = Object.entries(Object.groupBy(open, ({ level, kind }) => `${level} ${kind}`)).map(
    ([kind, group]) => html`<${Line} key=${kind} group=${group} onSnooze=${snooze} />`,
  );
  const rest = lines.slice(SHOWN);
  if (!found.length) return null;
  return html`<section class="panel" aria-label="Alerts">
    ${lines.slice(0, SHOWN)}
    ${rest.length ? html`<details class="alerts-more"><summary>${count(rest.length)} more</summary>${rest}</details>` : null}
    ${
      hidden
        ? html`<p class="muted">${count(hidden)} snoozed in this browser
            <button type="button" class="quiet" onClick=${() => keep({})}>Show</button></p>`
        : null
    }
  </section>`;
}

function Verdict({ data: { verdict, age_ms } }) {
  return html`<p class=${`verdict is-${verdict.level}`} role="status"><span class="dot" aria-hidden="true"></span>
    <b>${verdict.text}</b>${' '}<span class="muted">as of ${age_ms < 1500 ? 'now' : `${duration(age_ms)} ago`}</span></p>`;
}

// -- figures ------------------------------------------------------------------------------------------

const ahead = (oldest, now_ms) => duration(Math.max(0, now_ms - oldest.ready_ms));

function Tiles({ data, found }) {
  const { totals, workers, oldest, now_ms, queues } = data;
  const at = Math.floor(now() / MINUTE);
  const asked = { by: 'minute', from_ms: (at - MINUTES + 1) * MINUTE, brief: true };
  const recent = useData((signal) => api.get('/stats', asked, { signal }), { ms: 5000 });
  const seconds = (MINUTES - 1) * 60 + (now() % MINUTE) / 1000;
  const sumOf = (kinds, minute) => kinds.reduce((sum, kind) => sum + minute[kind], 0);
  const lately = (word, ...kinds) => {
    const sum = recent.data?.stats.reduce((all, minute) => all + sumOf(kinds, minute), 0);
    return recent.data ? `${rate(sum / seconds)} ${word}, ${MINUTES} min` : `… ${word}`;
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
      workers.unreachable ? `${count(workers.unreachable)} unreachable` : `${count(workers.held)} jobs held`
    }<//>
    <${Tile} name="Slots in use" to="/workers" value=${used === null ? '–' : percent(used)}>${
      used === null ? 'none is known' : `${count(workers.slots_held)} of ${count(workers.slots)}`
    }<//>
  </div>`;
}

// -- over time ----------------------------------------------------------------------------------------

const SPLITS = { outcome: 'by outcome', queue: 'by queue', name: 'by job name' };
const OUTCOMES = {
  done: { name: 'done', kind: 'done' },
  failed: { name: 'failed, retried', kind: 'retrying' },
  lapsed: { name: 'lapsed', kind: 'scheduled' },
  error: { name: 'failed for good', kind: 'error' },
  cancelled: { name: 'cancelled', kind: 'cancelled' },
};
const REST = 'others';
const TOP = 7;
const MOST = 1000; // pairs of queue and name, and running jobs, that are looked at

const total = (values) => values.reduce((sum, value) => sum + value, 0);
const ended = (bucket) => total(Object.keys(OUTCOMES).map((kind) => bucket[kind]));
const growth = ({ enqueued, done, error, cancelled, skipped }) => enqueued - done - error - cancelled - skipped;

/** The largest queues or names: [[name, buckets], …]; isAll: all pairs of both were looked at. */
async function largest(split, period, signal) {
  const { found, isAll } = await all('/stats/series', { ...period, brief: true }, { signal }, MOST);
  const sums = new Map();
  for (const pair of found) sums.set(pair[split], (sums.get(pair[split]) || 0) + ended(pair));
  const names = [...sums].filter(([, sum]) => sum).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const ask = async ([name]) => [
    name,
    (await api.get('/stats', { ...period, brief: true, [split]: name }, { signal })).stats,
  ];
  return { rows: await Promise.all(names.slice(0, TOP).map(ask)), isAll };
}

/** What ended, as series of a chart. */
function seriesOf({ split, stats, rows }, moments) {
  if (split === 'outcome')
    return Object.entries(OUTCOMES)
      .map(([of, one]) => ({ ...one, of, values: spread(moments, stats, (bucket) => bucket[of]) }))
      .filter(({ of, values }) => of === 'done' || values.some(Boolean));
  const series = rows.map(([name, buckets]) => ({ name, of: name, values: spread(moments, buckets, ended) }));
  const rest = spread(moments, stats, ended).map((sum, at) =>
    Math.max(0, sum - total(series.map(({ values }) => values[at]))),
  );
  return rest.some(Boolean) ? [...series, { name: REST, kind: 'cancelled', values: rest }] : series;
}

function Ended({ told, time }) {
  const { by, step, lines } = time;
  const moments = time.whole;
  const series = seriesOf(told, moments);
  const pick = (ms, name) => {
    const { of } = series.find((one) => one.name === name) || {};
    const filter =
      told.split === 'outcome'
        ? { status: ['done', 'error', 'cancelled'].includes(of) ? of : undefined }
        : { [told.split]: of };
    navigate(withQuery('/jobs', { ...filter, from: ms, to: ms + step }));
  };
  return html`<${Chart} title=${`Ended, by the ${by}, ${SPLITS[told.split]}`} moments=${moments} series=${series}
      from_ms=${moments[0]} to_ms=${moments.at(-1)} isStacked zoom height=${260} unit="ended" marks=${lines} onPick=${pick} />
    ${told.isAll === false ? html`<p class="muted">The largest of the first ${count(MOST)} pairs of queue and name; there are more.</p>` : null}`;
}

/** How many ran, and had not ended, at each moment: as many as now, less what came since. */
function Levels({ told: { stats, running, isWhole }, time, totals }) {
  const { moments, range, lines } = time;
  const since = (ms, value) => total(stats.filter(({ begin_ms }) => begin_ms >= ms).map(value));
  const at = range.isLive ? [...moments, now()] : moments;
  const runs = moments.map(
    (ms) => running.filter((one) => one < ms).length - since(ms, ({ net_starts }) => net_starts),
  );
  const open = total(OPEN.map((state) => totals[state]));
  const jobs = moments.map((ms) => Math.max(0, open - since(ms, growth)));
  const upTo = (values, last) => (range.isLive ? [...values, last] : values);
  const place = { moments: at, from_ms: at[0], to_ms: at.at(-1), zoom: true, marks: lines, height: 150 };
  const line = (name, kind, values) => [{ name, kind, values }];
  return html`<div class="grid charts">
    <div class="panel"><${Chart} ...${place} title=${isWhole ? 'Running' : 'Running, at least'}
      series=${line('running', 'running', upTo(runs, running.length))} /></div>
    <div class="panel"><${Chart} ...${place} title="Not ended" series=${line('jobs', 'queued', upTo(jobs, open))} /></div>
  </div>`;
}

function OverTime({ totals }) {
  const [{ split: asked }, setQuery] = useQuery();
  const split = asked in SPLITS ? asked : 'outcome';
  const load = async (period, signal) => {
    const [{ stats }, { found, isAll: isWhole }, parts] = await Promise.all([
      api.get('/stats', { ...period, brief: true }, { signal }),
      all('/jobs', { status: 'running', brief: true }, { signal }, MOST),
      split === 'outcome' ? {} : largest(split, period, signal),
    ]);
    return { split, stats, ...parts, running: found.map((job) => job.started_ms), isWhole };
  };
  const { state, reload, ...time } = useStatistics(load, [split]);
  const choice = ([one, text]) => html`<button type="button" aria-pressed=${one === split}
    onClick=${() => setQuery({ split: one === 'outcome' ? '' : one })}>${text}</button>`;
  const isNothing = !time.moments.length;
  return html`<${Marks} marks=${time.marks} reload=${reload} />
    ${
      state.problem?.status === 403 // of a key that is bound to queues
        ? null
        : html`<section class="panel high" aria-label="Over time">
      <div class="split" role="group" aria-label="Split">${Object.entries(SPLITS).map(choice)}</div>
      <${Loaded} of=${state}>${(told) =>
        isNothing
          ? html`<p class="muted">Nothing is kept of this time.</p>`
          : html`<${Ended} told=${told} time=${time} />`}<//>
    </section>
    ${state.data && !isNothing ? html`<${Levels} told=${state.data} time=${time} totals=${totals} />` : html`<div class="levels"></div>`}`
    }`;
}

// -- deploys ------------------------------------------------------------------------------------------

function Marks({ marks, reload }) {
  const [latest, ...others] = marks;
  const since = ({ time_ms }) => `/changes?since=${time_ms}`;
  return html`<p class="marks"><span class="muted">Deploys</span>
    ${
      latest
        ? html`<span><b>${latest.text}</b> <${Ago} ms=${latest.time_ms} /></span> <${Link} to=${since(latest)}>What changed since?<//>`
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
  {
    title: 'States',
    hide: 'narrow',
    cell: (queue) => html`<${Stack} parts=${OPEN.map((state) => [state, queue[state], state])} />`,
  },
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
  const { more, count: looked, age_ms } = data.queues;
  return html`<${Section} title="Queues with most to do">
    <${Loaded} of=${state}>${({ queues }) => {
      const others = queues.length - LISTED_QUEUES;
      return html`<${Table} label="Queues" rows=${ranked(queues, 'open').slice(0, LISTED_QUEUES)} rowKey=${(queue) => queue.name}
        columns=${columnsOf(data.now_ms)}
        empty=${html`<p class="empty">No queue yet. The first job makes one: <code>jqmaster enqueue mail</code></p>`}>
        <p class="muted pager"><${Link} to="/queues">${others > 0 ? `${count(others)} more ${others === 1 ? 'queue' : 'queues'}` : 'All queues'}<//>
          ${more ? html`<span>Still counting: ${count(looked)} queues were looked at so far; the sums above are of these</span>` : null}
          ${!more && age_ms > 15000 ? html`<span>The sums above are up to ${duration(age_ms)} old</span>` : null}</p>
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
    <${Alerts} found=${data.alerts} />
    <${Tiles} data=${data} found=${queues.data} />
    <${OverTime} totals=${data.totals} />
    <${Busiest} data=${data} state=${queues} />`}<//>`;
}
