// What is different since a moment, such as a deploy: each pair of queue and name in equal times before and after, out
// of statistics, the largest change first.
import { all, api } from './api.js';
import { levelOf, setMark } from './chart.js';
import { brief, clock, count, duration, moment, now, percent } from './format.js';
import { Button, Empty, Head, Loaded, none, Table, toQueue } from './parts.js';
import { html, Link, parted, STEP_MS, useData, useQuery } from './view.js';

const MOST_PAIRS = 1000;
const FAILING = ['failed', 'lapsed', 'error'];
const ENDED = ['done', ...FAILING, 'cancelled'];
// Added to counts that are compared: three failures instead of one say little.
const SMOOTH = 5;
const SMOOTH_MS = 20;
const ENOUGH = 5; // runs, before a percentile of theirs is compared
const MUCH = 1.3; // times: less may be chance
const NONE = { ended: 0, failing: 0, failing_share: null, run_p95: null };

const sum = (pair, kinds) => kinds.reduce((all, kind) => all + pair[kind], 0);

function figures(pair, minutes) {
  const ended = sum(pair, ENDED);
  const failing = sum(pair, FAILING);
  return {
    ended: ended / minutes,
    failing: failing / minutes,
    failing_share: ended ? failing / ended : null,
    run_p95: pair.run.count >= ENOUGH ? pair.run.p95 : null,
  };
}

function times(before, after, more) {
  const ratio = (after + more) / (before + more);
  return Math.max(ratio, 1 / ratio);
}

/** How many times as large or as small the most changed figure is, and which that is. */
function row(queue, name, before, after, minutes) {
  const changes = ['ended', 'failing'].map((of) => [of, times(before[of], after[of], SMOOTH / minutes)]);
  if (before.run_p95 !== null && after.run_p95 !== null)
    changes.push(['run', times(before.run_p95, after.run_p95, SMOOTH_MS)]);
  const [of, change] = changes.sort((a, b) => b[1] - a[1])[0];
  return { queue, name, of, change, before, after };
}

/** → {by, before: {from_ms, to_ms}, after, rows, pairs, more}; the step of the moment itself is left out: it is both. */
async function changes(since_ms, span_s, signal) {
  const by = levelOf(since_ms - span_s * 1000);
  const step = STEP_MS[by];
  const middle = Math.floor(since_ms / step) * step;
  const span = Math.max(step, Math.floor((span_s * 1000) / step) * step);
  const from_ms = middle + step;
  const sides = [
    { from_ms: middle - span, to_ms: middle },
    { from_ms, to_ms: Math.round(Math.min(from_ms + span, Math.max(now(), from_ms))) },
  ];
  const minutes = sides.map((side) => (side.to_ms - side.from_ms) / STEP_MS.minute);
  const rows = new Map();
  let pairs = 0;
  let more = false;
  for (const [at, side] of minutes[1] ? sides.entries() : []) {
    const { entries, isAll } = await all('/stats', { ...side, by, series: 1, brief: true }, { signal }, MOST_PAIRS);
    pairs = Math.max(pairs, entries.length);
    more = more || !isAll;
    for (const pair of entries) {
      const key = JSON.stringify([pair.queue, pair.name]);
      if (!rows.has(key)) rows.set(key, [NONE, NONE, pair.queue, pair.name]);
      rows.get(key)[at] = figures(pair, minutes[at]);
    }
  }
  const compared = [...rows.values()].map(([before, after, queue, name]) =>
    row(queue, name, before, after, Math.min(...minutes)),
  );
  compared.sort((a, b) => b.change - a.change || (a.queue < b.queue ? -1 : 1));
  return { by, before: sides[0], after: sides[1], rows: compared.slice(0, 100), pairs, more };
}

const SPANS = [
  [600, '10 min'],
  [3600, '1 hour'],
  [86400, '1 day'],
  [604800, '7 days'],
];
const WORDS = { ended: 'ended', failing: 'failing', run: 'run time' };

const arrow = (before, after, text) =>
  before === null && after === null
    ? none()
    : html`${before === null ? '–' : text(before)}<span class="muted"> → </span>${after === null ? '–' : text(after)}`;
const number = (value) => (value > 0 && value < 0.05 ? '< 0.1' : brief(Math.round(value * 10) / 10));

function change({ change: times, of, before, after }) {
  if (!before.ended && !after.ended) return none('none ended');
  if (!before.ended) return 'new';
  if (!after.ended) return html`<span class=${times >= MUCH ? 'worse' : ''}>none any more</span>`;
  if (times < 1.05) return none('same');
  const [earlier, later] = of === 'run' ? [before.run_p95, after.run_p95] : [before[of], after[of]];
  const isMore = later > earlier;
  const isBad = times >= MUCH && isMore === (of !== 'ended');
  return html`<span class=${isBad ? 'worse' : ''}>${times >= 10 ? count(times) : times.toFixed(1)} × ${isMore ? 'more' : 'less'} ${WORDS[of]}</span>`;
}

const COLUMNS = [
  { title: 'Queue', kind: 'wide', cell: (row) => html`<${Link} to=${toQueue(row.queue)}>${row.queue}<//>` },
  { title: 'Name', cell: (row) => (row.name === row.queue ? none() : parted(row.name)) },
  { title: 'Change', cell: change },
  {
    title: 'Ended a minute',
    kind: 'number wide',
    cell: ({ before, after }) => arrow(before.ended, after.ended, number),
  },
  {
    title: 'Failing a minute',
    kind: 'number wide',
    cell: ({ before, after }) => arrow(before.failing, after.failing, number),
  },
  {
    title: 'Failing share',
    kind: 'number wide',
    cell: ({ before, after }) => arrow(before.failing_share, after.failing_share, percent),
  },
  {
    title: 'Run, p95',
    kind: 'number wide',
    cell: ({ before, after }) => arrow(before.run_p95, after.run_p95, duration),
  },
];

const between = ({ from_ms, to_ms }) => `${moment(from_ms).slice(0, 16)} to ${clock(to_ms)}`;

function Compared({ comparison }) {
  if (comparison.after.to_ms <= comparison.after.from_ms)
    return html`<${Empty}>Nothing to compare yet: the first whole ${comparison.by} behind it begins at ${clock(comparison.after.from_ms)}.<//>`;
  return html`<${Table} label="Changes" rows=${comparison.rows} rowKey=${(row) => JSON.stringify([row.queue, row.name])} columns=${COLUMNS}
    empty=${html`<${Empty}>Nothing happened before it, or since.<//>`}>
    <p class="muted pager"><span>${between(comparison.before)}, and ${between(comparison.after)}; by the ${comparison.by}, without that of the moment itself</span>
      ${comparison.more ? html`<span>Only the first ${count(comparison.pairs)} pairs of queue and name were looked at</span>` : null}</p>
  <//>`;
}

function Since({ since_ms, span, marks }) {
  const state = useData((signal) => changes(since_ms, span, signal), {
    ms: 15000,
    deps: [since_ms, span],
  });
  const mark = marks.find((mark) => mark.time_ms === since_ms);
  return html`<h2>Since ${mark ? html`<b>${mark.text}</b>` : ''} <span class="crumb">${moment(since_ms).slice(0, 16)}${mark?.actor ? ` · ${mark.actor}` : ''}</span></h2>
    <${Loaded} of=${state}>${(comparison) => html`<${Compared} comparison=${comparison} />`}<//>`;
}

export function Changes() {
  const [query, setQuery] = useQuery();
  const state = useData((signal) => api.get('/marks', { count: 100 }, { signal }), { ms: 30000 });
  const span = SPANS.some(([seconds]) => String(seconds) === query.span) ? Number(query.span) : 3600;
  return html`<${Head} title="Changes" actions=${html`<${Button} needs="operator" onClick=${() => setMark(state.reload)}>Mark a deploy<//>`} />
    <${Loaded} of=${state}>${({ marks }) => {
      const since_ms = Number(query.since) || marks[0]?.time_ms;
      if (!since_ms)
        return html`<${Empty} command='jqmaster call mark --text v1.4'>No deploy is marked yet. Have each deploy say so:<//>`;
      return html`<div class="filters">
          <div class="filter"><label for="since">Since</label><select id="since" onChange=${(event) => setQuery({ since: event.target.value })}>
            ${marks.some((mark) => mark.time_ms === since_ms) ? null : html`<option value=${since_ms} selected>${moment(since_ms).slice(0, 16)}</option>`}
            ${marks.map((mark) => html`<option value=${mark.time_ms} selected=${mark.time_ms === since_ms}>${mark.text} · ${moment(mark.time_ms).slice(0, 16)}</option>`)}
          </select></div>
          <div class="filter"><label for="span">Before and after</label><select id="span" onChange=${(event) => setQuery({ span: event.target.value })}>
            ${SPANS.map(([seconds, text]) => html`<option value=${seconds} selected=${seconds === span}>${text}</option>`)}</select></div>
        </div>
        <${Since} since_ms=${since_ms} span=${span} marks=${marks} />`;
    }}<//>`;
}
