// What is different since a moment, such as a deploy: queues and names, the largest change first.
import { api, path } from '../api.js';
import { changes } from '../compared.js';
import { Button, Empty, Head, Loaded } from '../components/parts.js';
import { Table } from '../components/rows.js';
import { brief, clock, count, duration, moment, percent } from '../format.js';
import { html, Link, useData, useQuery } from '../view.js';
import { setMark } from './overview.js';

const SPANS = [
  [600, '10 min'],
  [3600, '1 hour'],
  [86400, '1 day'],
  [604800, '7 days'],
];
const WORDS = { ended: 'ended', failing: 'failing', run: 'run time' };

const arrow = (before, after, text) =>
  before === null && after === null
    ? html`<span class="zero">–</span>`
    : html`${before === null ? '–' : text(before)}<span class="muted"> → </span>${after === null ? '–' : text(after)}`;
const number = (value) => brief(Math.round(value * 10) / 10);

function change({ change: times, of, before, after }) {
  if (!before.ended) return 'new';
  if (!after.ended) return html`<span class="worse">none any more</span>`;
  if (times < 1.05) return html`<span class="zero">same</span>`;
  const [one, other] = of === 'run' ? [before.run_p95, after.run_p95] : [before[of], after[of]];
  const isMore = other > one;
  const isBad = isMore === (of !== 'ended');
  return html`<span class=${isBad ? 'worse' : ''}>${times >= 10 ? count(times) : times.toFixed(1)} × ${isMore ? 'more' : 'less'} ${WORDS[of]}</span>`;
}

const COLUMNS = [
  { title: 'Queue', kind: 'wide', cell: (row) => html`<${Link} to=${path`/queue/${row.queue}`}>${row.queue}<//>` },
  { title: 'Name', cell: (row) => (row.name === row.queue ? html`<span class="zero">–</span>` : row.name) },
  { title: 'Change', cell: change },
  { title: 'Ended a minute', kind: 'number', cell: ({ before, after }) => arrow(before.ended, after.ended, number) },
  {
    title: 'Failing a minute',
    kind: 'number',
    cell: ({ before, after }) => arrow(before.failing, after.failing, number),
  },
  {
    title: 'Failing share',
    kind: 'number',
    cell: ({ before, after }) => arrow(before.failing_share, after.failing_share, percent),
  },
  { title: 'Run, p95', kind: 'number', cell: ({ before, after }) => arrow(before.run_p95, after.run_p95, duration) },
];

const between = ({ from_ms, to_ms }) => `${moment(from_ms).slice(0, 16)} to ${clock(to_ms)}`;

function Compared({ told }) {
  if (told.after.to_ms <= told.after.from_ms)
    return html`<${Empty}>Nothing to compare yet: the first whole ${told.by} behind it begins at ${clock(told.after.from_ms)}.<//>`;
  return html`<${Table} label="Changes" rows=${told.rows} rowKey=${(row) => JSON.stringify([row.queue, row.name])} columns=${COLUMNS}
    empty=${html`<${Empty}>Nothing happened before it, or since.<//>`}>
    <p class="muted pager"><span>${between(told.before)}, and ${between(told.after)}; by the ${told.by}, without that of the moment itself</span>
      ${told.more ? html`<span>Only the first ${count(told.pairs)} pairs of queue and name were looked at</span>` : null}</p>
  <//>`;
}

function Since({ since_ms, span, marks }) {
  const state = useData((signal) => changes(since_ms, span, signal), {
    ms: 15000,
    deps: [since_ms, span],
  });
  const mark = marks.find((one) => one.time_ms === since_ms);
  return html`<h2>Since ${mark ? html`<b>${mark.text}</b>` : ''} <span class="crumb">${moment(since_ms).slice(0, 16)}${mark?.actor ? ` · ${mark.actor}` : ''}</span></h2>
    <${Loaded} of=${state}>${(told) => html`<${Compared} told=${told} />`}<//>`;
}

export function Page() {
  const [query, setQuery] = useQuery();
  const state = useData((signal) => api.get('/marks', { count: 100 }, { signal }), { ms: 30000 });
  const span = SPANS.some(([one]) => String(one) === query.span) ? Number(query.span) : 3600;
  return html`<${Head} title="Changes" actions=${html`<${Button} needs="operator" onClick=${() => setMark(state.reload)}>Mark a deploy<//>`} />
    <${Loaded} of=${state}>${({ marks }) => {
      const since_ms = Number(query.since) || marks[0]?.time_ms;
      if (!since_ms)
        return html`<${Empty} command='jqmaster call mark --text v1.4'>No deploy is marked yet. Have each deploy say so:<//>`;
      return html`<div class="filters">
          <div class="filter"><label for="since">Since</label><select id="since" onChange=${(event) => setQuery({ since: event.target.value })}>
            ${marks.some((one) => one.time_ms === since_ms) ? null : html`<option value=${since_ms} selected>${moment(since_ms).slice(0, 16)}</option>`}
            ${marks.map((mark) => html`<option value=${mark.time_ms} selected=${mark.time_ms === since_ms}>${mark.text} · ${moment(mark.time_ms).slice(0, 16)}</option>`)}
          </select></div>
          <div class="filter"><label for="span">Before and after</label><select id="span" onChange=${(event) => setQuery({ span: event.target.value })}>
            ${SPANS.map(([one, text]) => html`<option value=${one} selected=${one === span}>${text}</option>`)}</select></div>
        </div>
        <${Since} since_ms=${since_ms} span=${span} marks=${marks} />`;
    }}<//>`;
}
