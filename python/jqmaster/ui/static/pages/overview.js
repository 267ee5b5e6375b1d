// At a glance: a verdict, what is wrong, what waits, runs and ends over time, the largest queues, deploys.
import { api, path } from '../api.js';
import { Alerts } from '../components/alerts.js';
import { Badge } from '../components/badge.js';
import { Stack } from '../components/bar.js';
import { form } from '../components/dialog.js';
import { Button, Head, Loaded, Tile, zero } from '../components/parts.js';
import { Table } from '../components/rows.js';
import { Sparkline } from '../components/sparkline.js';
import { Ago } from '../components/time.js';
import { Chart } from '../components/timechart.js';
import { act } from '../components/toast.js';
import { amount, brief, clock, count, cut, duration, percent, rate, setServerNow } from '../format.js';
import { useMarks } from '../marks.js';
import { navigate, withQuery } from '../router.js';
import { html, Link, useData, useEffect, useQuery, useRange, useStream } from '../view.js';

const OPEN = ['queued', 'scheduled', 'blocked', 'running', 'retrying'];
const SHOWN = 15;
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
  const { verdict } = data;
  const levels = (data.alerts || []).map((alert) => alert.level);
  const isBad = levels.includes('problem');
  const kind = isBad ? 'problem' : levels.includes('warning') ? 'warning' : 'ok';
  return html`<p class=${`verdict ${isBad || data.alerts ? `is-${kind}` : ''}`} role="status">
    <span class="dot" aria-hidden="true"></span><b>${verdict.text}</b></p>`;
}

function Tiles({ data }) {
  const { totals, rates, workers, oldest, hour, constraints, now_ms, queues } = data;
  const failing = rates.failed + rates.lapsed + rates.error;
  const sum = (number) => (queues.more ? html`${brief(number)} <small>so far</small>` : brief(number));
  const [fullest] = constraints.fullest;
  const used = workers.slots ? workers.slots_held / workers.slots : null;
  return html`<div class="tiles is-many">
    <${Tile} name="Waiting" kind="queued" to="/jobs?status=queued" value=${sum(totals.queued)}>${rate(rates.enqueued)} come<//>
    <${Tile} name="Oldest wait" to=${oldest ? path`/queue/${oldest.queue}` : undefined}
      value=${oldest ? duration(Math.max(0, now_ms - oldest.ready_ms)) : '–'}>${oldest ? oldest.queue : 'no job waits'}<//>
    <${Tile} name="Wait, p95" value=${hour?.wait.count ? duration(hour.wait.p95) : '–'}>${
      hour?.wait.count ? `ended since ${clock(hour.begin_ms)}` : 'nothing started'
    }<//>
    <${Tile} name="Running" kind="running" to="/jobs?status=running" value=${sum(totals.running)}>${rate(rates.done)} done<//>
    <${Tile} name="Slots in use" to="/workers" value=${used === null ? '–' : percent(used)}>${
      used === null ? 'none is known' : `${count(workers.slots_held)} of ${count(workers.slots)}`
    }<//>
    <${Tile} name="Workers" to="/workers" value=${`${count(workers.count)}${workers.more ? '+' : ''}`}>${
      workers.unreachable ? `${count(workers.unreachable)} unreachable` : `${count(workers.held)} jobs held`
    }<//>
    <${Tile} name="Fullest limit" to=${fullest?.share ? path`/constraint/${fullest.id}` : '/constraints'} value=${fullest?.share ? percent(fullest.share) : '–'}>${
      fullest?.share
        ? `${fullest.id}${fullest.by === null ? '' : `, ${cut(JSON.stringify(fullest.by), 24)}`}: ${amount(fullest.used)} of ${amount(fullest.limit)} ${fullest.of}`
        : constraints.count
          ? 'none is in use'
          : 'no constraints'
    }<//>
    <${Tile} name="Retrying" kind="retrying" to="/jobs?status=retrying" value=${sum(totals.retrying)}>${rate(failing)} fail<//>
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

function Levels({ told, isLive, marks }) {
  const moments = isLive ? [...told.begins, told.as_of_ms] : told.begins;
  const upTo = (values, last) => (isLive ? [...values, last] : values);
  const place = { moments, from_ms: moments[0], to_ms: moments.at(-1), zoom: true, marks, height: 150 };
  const running = [{ name: 'running', kind: 'running', values: upTo(told.running, told.now.running) }];
  return html`<div class="grid charts">
    <div class="panel"><${Chart} ...${place} title=${told.running_is_exact ? 'Running' : 'Running, at least'} series=${running} /></div>
    <div class="panel">${
      told.open
        ? html`<${Chart} ...${place} title="Not ended" series=${[{ name: 'jobs', kind: 'queued', values: upTo(told.open, told.now.open) }]} />`
        : html`<h2>Not ended</h2><p class="muted">With more than 200 queues the history of all is not added up; each queue has its own.</p>`
    }</div>
  </div>`;
}

function OverTime({ range, marks }) {
  const [{ split: asked }, setQuery] = useQuery();
  const split = SPLITS.some(([one]) => one === asked) ? asked : 'outcome';
  const { from_ms, to_ms, isLive, name } = range;
  const state = useData(
    (signal) => api.get('/trends', { split, from_ms, to_ms: isLive ? '' : Math.round(to_ms), top: 7 }, { signal }),
    { ms: 10000, deps: isLive ? [split, name] : [split, from_ms, to_ms] },
  );
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
    ${state.data?.begins.length ? html`<${Levels} told=${state.data} isLive=${isLive} marks=${marks} />` : null}`;
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
    tip: 'Of the jobs that started this hour',
    cell: (queue) =>
      queue.wait?.count
        ? html`${duration(queue.wait.p50)}<span class="muted"> / ${duration(queue.wait.p95)}</span>`
        : dash,
  },
  { title: 'Done', kind: 'number', hide: 'narrow', cell: (queue) => (queue.rates ? rate(queue.rates.done) : '…') },
  {
    title: 'Trend',
    hide: 'narrow',
    cell: (queue) =>
      queue.trend?.length
        ? html`<${Sparkline} values=${queue.trend} kind="done" title="done by the minute, half an hour" />`
        : null,
  },
];

function Queues({ data }) {
  const { queues, now_ms } = data;
  const others = queues.count - Math.min(SHOWN, queues.top.length);
  const old = now_ms - queues.as_of_ms;
  return html`<section class="panel"><h2>Queues with most to do</h2>
    <${Table} label="Queues" rows=${queues.top.slice(0, SHOWN)} rowKey=${(queue) => queue.name} columns=${COLUMNS(now_ms)}
      empty=${html`<p class="empty">No queue yet. The first job makes one: <code>jqmaster enqueue mail</code></p>`}>
      <p class="muted pager"><${Link} to="/queues">${others > 0 && !queues.more ? `${count(others)} more ${others === 1 ? 'queue' : 'queues'}` : 'All queues'}<//>
        ${queues.more ? html`<span>Still counting: ${count(queues.count)} queues were looked at so far; the sums above are of these</span>` : null}
        ${!queues.more && old > 10000 ? html`<span>The sums above are up to ${duration(old)} old: there are too many queues to look at all at once</span>` : null}</p>
    <//></section>`;
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
  const data = useStream('/overview/events', { ms: 5000 });
  const range = useRange();
  const { marks, lines, reload } = useMarks(range);
  useEffect(() => {
    if (data) setServerNow(data.now_ms);
  }, [data]);
  if (!data) return html`<${Head} title="Overview" /><p class="muted">Loading …</p>`;
  return html`<${Head} title="Overview" /><${Verdict} data=${data} />
    <${Alerts} found=${data.alerts} />
    <${Tiles} data=${data} />
    <${Marks} marks=${marks} reload=${reload} />
    <${OverTime} range=${range} marks=${lines} />
    <${Queues} data=${data} />
    <${Times} hour=${data.hour} oldest=${data.oldest} now_ms=${data.now_ms} />`;
}
