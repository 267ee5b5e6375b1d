// At a glance: a verdict, what is wrong, what waits, runs and ends over time, the largest queues, deploys.
import { api, path } from '../api.js';
import { Alerts } from '../components/alerts.js';
import { Badge } from '../components/badge.js';
import { Stack } from '../components/bar.js';
import { form } from '../components/dialog.js';
import { Button, Head, Loaded, Tile, zero } from '../components/parts.js';
import { Table } from '../components/rows.js';
import { Ago } from '../components/time.js';
import { Chart } from '../components/timechart.js';
import { act } from '../components/toast.js';
import { amount, brief, clock, count, cut, duration, now, percent, rate, setServerNow } from '../format.js';
import { useMarks } from '../marks.js';
import { MINUTES } from '../queues.js';
import { lookOn, ranked } from '../ranking.js';
import { navigate, withQuery } from '../router.js';
import { trends } from '../trends.js';
import { html, Link, STEP_MS, useData, useEffect, useQuery, useRange } from '../view.js';

const OPEN = ['queued', 'scheduled', 'blocked', 'running', 'retrying'];
const SHOWN = 15;
const MINUTE = STEP_MS.minute;
const SPLITS = [
  ['outcome', 'by outcome'],
  ['queue', 'by queue'],
  ['name', 'by job name'],
];
const OUTCOMES = {
  done: { name: 'done', kind: 'done' },
  failed: { name: 'failed, retried', kind: 'retrying' },
  lapsed: { name: 'lapsed', kind: 'scheduled' },
  error: { name: 'failed for good', kind: 'error' },
  cancelled: { name: 'cancelled', kind: 'cancelled' },
};
const WORDS = { minute: 'a minute', hour: 'an hour', day: 'a day' };
const REST = 'others';

// -- in a line ----------------------------------------------------------------------------------------

function Verdict({ data }) {
  const { verdict, age_ms } = data;
  return html`<p class=${`verdict is-${verdict.level}`} role="status">
    <span class="dot" aria-hidden="true"></span><b>${verdict.text}</b>${' '}<span class="muted">${age_ms < 1500 ? 'as of now' : `as of ${duration(age_ms)} ago`}</span></p>`;
}

/** How full a constraint is, of one with keys its fullest: of what may run at once, or start in its time. */
function fullness(constraint) {
  const key = constraint.by ? constraint.busiest?.[0] || {} : constraint;
  const uses = [
    ['running', constraint.concurrency],
    ['starts', constraint.rate?.limit],
  ].map(([of, limit]) => ({ of, limit, used: key[of] || 0, share: limit ? (key[of] || 0) / limit : 0 }));
  const [fullest] = uses.sort((a, b) => b.share - a.share);
  return { id: constraint.id, by: constraint.by ? key.by : null, ...fullest };
}

/** Rates of the last minutes, the times of this hour or the one before, and the fullest limit. */
function useLately() {
  const at = Math.floor(now() / MINUTE);
  const rates = useData(
    (signal) => api.get('/stats', { by: 'minute', from_ms: (at - 4) * MINUTE, brief: true }, { signal }),
    { ms: 5000 },
  );
  const hours = useData(
    (signal) =>
      api.get('/stats', { by: 'hour', from_ms: (Math.floor(at / 60) - 1) * 60 * MINUTE, brief: true }, { signal }),
    { ms: 15000 },
  );
  const limits = useData((signal) => api.get('/constraints', { busiest: 1, count: 100 }, { signal }), { ms: 10000 });
  const sums = {};
  for (const minute of rates.data?.stats || [])
    for (const kind of ['enqueued', 'done', 'failed', 'lapsed', 'error']) sums[kind] = (sums[kind] || 0) + minute[kind];
  const seconds = 240 + (now() % MINUTE) / 1000;
  return {
    rate: (...kinds) => kinds.reduce((sum, kind) => sum + (sums[kind] || 0), 0) / seconds,
    hour: hours.data?.stats.filter(({ wait, run }) => wait.count || run.count).at(-1),
    limits: limits.data?.constraints.map(fullness).sort((a, b) => b.share - a.share),
  };
}

function Tiles({ data, lately }) {
  const { totals, workers, oldest, now_ms, queues } = data;
  const { hour, limits } = lately;
  const sum = (number) => (queues.more ? html`${brief(number)} <small>so far</small>` : brief(number));
  const [fullest] = limits || [];
  const used = workers.slots ? workers.slots_held / workers.slots : null;
  return html`<div class="tiles is-many">
    <${Tile} name="Waiting" kind="queued" to="/jobs?status=queued" value=${sum(totals.queued)}>${rate(lately.rate('enqueued'))} enqueued, 5 min<//>
    <${Tile} name="Oldest wait" to=${oldest ? path`/queue/${oldest.queue}` : undefined}
      value=${oldest ? duration(Math.max(0, now_ms - oldest.ready_ms)) : '–'}>${oldest ? cut(oldest.queue, 40) : 'no job waits'}<//>
    <${Tile} name="Wait, p95" value=${hour?.wait.count ? duration(hour.wait.p95) : '–'}>${
      hour?.wait.count ? `ended since ${clock(hour.begin_ms)}` : 'nothing started'
    }<//>
    <${Tile} name="Running" kind="running" to="/jobs?status=running" value=${sum(totals.running)}>${rate(lately.rate('done'))} done, 5 min<//>
    <${Tile} name="Slots in use" to="/workers" value=${used === null ? '–' : percent(used)}>${
      used === null ? 'none is known' : `${count(workers.slots_held)} of ${count(workers.slots)}`
    }<//>
    <${Tile} name="Workers" to="/workers" value=${count(workers.count)}>${
      workers.unreachable ? `${count(workers.unreachable)} unreachable` : `${count(workers.held)} jobs held`
    }<//>
    <${Tile} name="Fullest limit" to=${limits && (fullest?.share ? path`/constraint/${fullest.id}` : '/constraints')} value=${fullest?.share ? percent(fullest.share) : '–'}>${
      fullest?.share
        ? `${fullest.id}${fullest.by === null ? '' : `, ${cut(JSON.stringify(fullest.by), 24)}`}: ${amount(fullest.used)} of ${amount(fullest.limit)} ${fullest.of}`
        : limits?.length
          ? 'none is in use'
          : 'no constraints'
    }<//>
    <${Tile} name="Retrying" kind="retrying" to="/jobs?status=retrying" value=${sum(totals.retrying)}>${rate(lately.rate('failed', 'lapsed', 'error'))} fail, 5 min<//>
    <${Tile} name="Failed" kind="error" to="/failures" value=${sum(totals.error)}>for good<//>
    <${Tile} name="Scheduled" kind="scheduled" to="/jobs?status=scheduled" value=${sum(totals.scheduled)}>for later<//>
    <${Tile} name="Blocked" kind="blocked" to="/jobs?status=blocked" value=${sum(totals.blocked)}>by other jobs<//>
  </div>`;
}

// -- over time ----------------------------------------------------------------------------------------

/** The bucket that is not over is left out: it would look like a slump. */
const whole = (values, isLive) => (isLive && values.length > 1 ? values.slice(0, -1) : values);

function Ended({ told, split, isLive, marks }) {
  const moments = whole(told.begins, isLive);
  const series = told.series
    .filter((one) => one.count || told.split !== 'outcome' || one.name === 'done')
    .map((one) => ({
      ...(told.split === 'outcome' ? OUTCOMES[one.name] : { name: one.name }),
      of: one.name,
      values: whole(one.values, isLive),
    }));
  if (told.rest.some(Boolean)) series.push({ name: REST, kind: 'cancelled', values: whole(told.rest, isLive) });
  const pick = (ms, name) => {
    const of = series.find((one) => one.name === name)?.of;
    const filter =
      told.split === 'outcome'
        ? { status: { done: 'done', error: 'error', cancelled: 'cancelled' }[of] }
        : { [told.split]: of };
    navigate(withQuery('/jobs', { ...filter, from: ms, to: ms + told.step_ms }));
  };
  return html`<${Chart} title=${`Ended, ${WORDS[told.by]}, ${SPLITS.find(([one]) => one === split)[1]}`} moments=${moments}
    series=${series} from_ms=${moments[0]} to_ms=${moments.at(-1)} isStacked zoom height=${260} unit="ended"
    marks=${marks} onPick=${pick} />
  ${told.more ? html`<p class="muted">The largest of the first ${count(told.pairs)} pairs of queue and name; there are more.</p>` : null}`;
}

function Levels({ told, totals, isLive, marks }) {
  const moments = isLive ? [...told.begins, now()] : told.begins;
  const upTo = (values, last) => (isLive ? [...values, last] : values);
  const place = { moments, from_ms: moments[0], to_ms: moments.at(-1), zoom: true, marks, height: 150 };
  const running = [{ name: 'running', kind: 'running', values: upTo(told.running, told.running_now) }];
  const open = OPEN.reduce((sum, state) => sum + totals[state], 0);
  const jobs = upTo(
    told.grown.map((more) => Math.max(0, open - more)),
    open,
  );
  return html`<div class="grid charts">
    <div class="panel"><${Chart} ...${place} title=${told.running_is_exact ? 'Running' : 'Running, at least'} series=${running} /></div>
    <div class="panel"><${Chart} ...${place} title="Not ended" series=${[{ name: 'jobs', kind: 'queued', values: jobs }]} /></div>
  </div>`;
}

function OverTime({ range, marks, totals }) {
  const [{ split: asked }, setQuery] = useQuery();
  const split = SPLITS.some(([one]) => one === asked) ? asked : 'outcome';
  const { from_ms, to_ms, isLive, name } = range;
  const state = useData((signal) => trends(split, { from_ms, to_ms: isLive ? now() : to_ms, top: 7 }, signal), {
    ms: 10000,
    deps: isLive ? [split, name] : [split, from_ms, to_ms],
  });
  if (state.problem?.status === 403) return null; // of a key that is bound to queues
  return html`<section class="panel" aria-label="Over time">
      <div class="split" role="group" aria-label="Split">${SPLITS.map(
        ([one, text]) => html`<button type="button" aria-pressed=${one === split}
          onClick=${() => setQuery({ split: one === 'outcome' ? '' : one })}>${text}</button>`,
      )}</div>
      <${Loaded} of=${state}>${(told) =>
        told.begins.length
          ? html`<${Ended} told=${told} split=${told.split} isLive=${isLive} marks=${marks} />`
          : html`<p class="muted">Nothing is kept of this time.</p>`}<//>
    </section>
    ${state.data?.begins.length ? html`<${Levels} told=${state.data} totals=${totals} isLive=${isLive} marks=${marks} />` : null}`;
}

// -- deploys ------------------------------------------------------------------------------------------

export const setMark = (done) =>
  form({
    title: 'Mark this moment',
    body: 'It stands in the charts, and what is different since then can be seen. Programs: jqmaster call mark --text v1.4',
    fields: [{ name: 'text', label: 'What happened', required: true, placeholder: 'v1.4' }],
    action: 'Mark',
    submit: ({ text }) => api.post('/mark', { text }),
  }).then((mark) => mark && act(async () => done?.(), `Marked: ${mark.text}`));

function Marks({ marks, reload }) {
  const [latest, ...others] = marks;
  return html`<p class="marks"><span class="muted">Deploys</span>
    ${
      latest
        ? html`<span><b>${latest.text}</b> <${Ago} ms=${latest.time_ms} /></span>
            <${Link} to=${`/changes?since=${latest.time_ms}`}>What changed since?<//>`
        : html`<span>none in this time</span>`
    }
    ${others
      .slice(0, 3)
      .map((mark) => html`<${Link} key=${mark.time_ms} to=${`/changes?since=${mark.time_ms}`}>${mark.text}<//>`)}
    <${Button} needs="operator" class="quiet" onClick=${() => setMark(reload)}>Mark a deploy<//></p>`;
}

// -- queues and times ---------------------------------------------------------------------------------

const number = (value) => zero(count(value), value);
const dash = html`<span class="zero">–</span>`;

const COLUMNS = (now_ms) => [
  {
    title: 'Queue',
    kind: 'wide',
    cell: (queue) =>
      html`<${Link} to=${path`/queue/${queue.name}`}>${queue.name}<//> ${queue.paused ? html`<${Badge} word="paused" />` : null}`,
  },
  { title: 'Waiting', kind: 'number', cell: (queue) => number(queue.queued) },
  {
    title: 'Oldest',
    kind: 'number',
    tip: 'For how long the oldest ready job waits',
    cell: (queue) => (queue.oldest_ready_ms ? duration(Math.max(0, now_ms - queue.oldest_ready_ms)) : dash),
  },
  { title: 'Running', kind: 'number', cell: (queue) => number(queue.running) },
  { title: 'Retrying', kind: 'number', hide: 'narrow', cell: (queue) => number(queue.retrying) },
  { title: 'Failed', kind: 'number', cell: (queue) => number(queue.error) },
  {
    title: 'States',
    hide: 'narrow',
    cell: (queue) => html`<${Stack} parts=${OPEN.map((state) => [state, queue[state], state])} />`,
  },
  {
    title: 'Wait, p50 / p95',
    kind: 'number',
    hide: 'narrow',
    tip: `Of the jobs that started in ${MINUTES} minutes`,
    cell: ({ recent }) =>
      recent?.wait
        ? html`${duration(recent.wait.p50)}<span class="muted"> / ${duration(recent.wait.p95)}</span>`
        : dash,
  },
  {
    title: `Done, ${MINUTES} min`,
    kind: 'number',
    hide: 'narrow',
    cell: ({ recent }) => (recent ? rate((recent.done * 1000) / recent.span_ms) : dash),
  },
];

function Queues({ data }) {
  const state = useData(lookOn, { ms: 5000 });
  const old = data.queues.age_ms;
  return html`<section class="panel"><h2>Queues with most to do</h2>
    <${Loaded} of=${state}>${({ queues }) => {
      const others = queues.length - SHOWN;
      return html`<${Table} label="Queues" rows=${ranked(queues, 'open').slice(0, SHOWN)} rowKey=${(queue) => queue.name} columns=${COLUMNS(data.now_ms)}
        empty=${html`<p class="empty">No queue yet. The first job makes one: <code>jqmaster enqueue mail</code></p>`}>
        <p class="muted pager"><${Link} to="/queues">${others > 0 ? `${count(others)} more ${others === 1 ? 'queue' : 'queues'}` : 'All queues'}<//>
          ${data.queues.more ? html`<span>Still counting: ${count(data.queues.count)} queues were looked at so far; the sums above are of these</span>` : null}
          ${!data.queues.more && old > 15000 ? html`<span>The sums above are up to ${duration(old)} old: there are too many queues to look at all at once</span>` : null}</p>
      <//>`;
    }}<//></section>`;
}

const TIMES = [
  ['p50', 'p50', ''],
  ['p90', 'p90', 'hide-narrow'],
  ['p95', 'p95', ''],
  ['p99', 'p99', 'hide-narrow'],
  ['max', 'Most', ''],
];

function Times({ hour, oldest, now_ms }) {
  const row = (name, of) => html`<tr><th scope="row">${name}</th>
    ${TIMES.map(([at, , hide]) => html`<td class=${`number ${hide}`}>${of.count ? duration(of[at]) : '–'}</td>`)}</tr>`;
  return html`<section class="panel"><h2>How long jobs waited and ran${
    hour ? html`<span class="crumb"> · ended since <${Ago} ms=${hour.begin_ms} /></span>` : null
  }</h2>
    ${
      hour
        ? html`<div class="table"><div class="scroll" tabindex="0" role="region" aria-label="Times"><table>
            <thead><tr><th><span class="hidden-text">What</span></th>${TIMES.map(([, text, hide]) => html`<th scope="col" class=${`number ${hide}`}>${text}</th>`)}</tr></thead>
            <tbody>${row('Waited', hour.wait)}${row('Ran', hour.run)}</tbody></table></div></div>`
        : html`<p class="muted">No job has run in the last two hours.</p>`
    }
    <p class="muted">${oldest ? html`The oldest ready job waits for ${duration(Math.max(0, now_ms - oldest.ready_ms))} now; it is in none of these yet.` : 'No job waits now.'}</p>
  </section>`;
}

export function Page() {
  const state = useData((signal) => api.get('/overview', {}, { signal }), { ms: 2000 });
  const { data } = state;
  const lately = useLately();
  const range = useRange();
  const { marks, lines, reload } = useMarks(range);
  useEffect(() => {
    if (data) setServerNow(data.now_ms + data.age_ms);
  }, [data]);
  if (!data) return html`<${Head} title="Overview" /><${Loaded} of=${state}>${() => null}<//>`;
  return html`<${Head} title="Overview" /><${Verdict} data=${data} />
    <${Alerts} found=${data.alerts} />
    <${Tiles} data=${data} lately=${lately} />
    <${Marks} marks=${marks} reload=${reload} />
    <${OverTime} range=${range} marks=${lines} totals=${data.totals} />
    <${Queues} data=${data} />
    <${Times} hour=${lately.hour} oldest=${data.oldest} now_ms=${data.now_ms} />`;
}
