// Charts over time by uPlot: lines or stacked areas, values under the pointer and by the arrow keys, a brush that sets
// the time range, deploy marks, a click that leads on; and the statistics that they show.
import { api } from './api.js';
import { brief, clock, cut, duration, moment, now } from './format.js';
import { act, form } from './forms.js';
import { STATES } from './parts.js';
import { uPlot } from './vendor/libraries.js';
import { html, STEP_MS, same, setRange, useData, useEffect, useRange, useRef, useState } from './view.js';

// For series that are no states, such as queues: told apart by colour and by their order in the legend.
const OTHERS = ['queued', 'running', 'retrying', 'scheduled', 'done', 'error', 'blocked'];
// Of how many buckets of each length statistics are kept.
const KEPT = { minute: 180, hour: 192, day: 400 };
const TIMES = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 144e5,
  288e5, 432e5, 864e5, 1728e5, 4320e5, 8640e5,
];

let probe = null;

/** A colour of the style sheet as it is now: a canvas takes neither `var()` nor `light-dark()`. */
function token(name) {
  probe ??= document.body.appendChild(Object.assign(document.createElement('i'), { hidden: true }));
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

const kindOf = (line, i) => (STATES.includes(line.kind) ? line.kind : OTHERS[i % OTHERS.length]);
const faded = (colour, share) => `color-mix(in srgb, ${colour} ${share * 100}%, transparent)`;

/** Sums of a stack, from the last series up: what is nothing stays nothing. */
function stacked(series, moments) {
  const sums = new Array(moments).fill(0);
  return [...series]
    .reverse()
    .map((line) => {
      line.values.forEach((value, i) => {
        sums[i] += value || 0;
      });
      return [...sums];
    })
    .reverse();
}

const alone = (values) =>
  [...values.keys()].filter((i) => values[i] != null && values[i - 1] == null && values[i + 1] == null);

function optionsOf(given, size) {
  const { series, isStacked, times, format, marks = [] } = given;
  const text = token('muted');
  const rule = { stroke: token('line'), width: 1 };
  const axis = { stroke: text, grid: rule, ticks: { ...rule, size: 4 }, font: '11px system-ui, sans-serif' };
  const drawMarks = (plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = token('text');
    ctx.lineWidth = devicePixelRatio;
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = 'left';
    let taken = Number.POSITIVE_INFINITY; // from where names stand: what would cover one has its line alone
    for (const mark of marks) {
      if (mark.ms < given.from_ms || mark.ms > given.to_ms) continue;
      const x = Math.round(plot.valToPos(mark.ms / 1000, 'x', true));
      ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const text = cut(mark.text, 20);
      const width = ctx.measureText(text).width + 8 * devicePixelRatio;
      const from = Math.min(x, bbox.left + bbox.width - width);
      if (from + width > taken) continue;
      taken = from;
      ctx.fillStyle = faded(token('panel'), 0.7);
      ctx.fillRect(from + 2 * devicePixelRatio, bbox.top + devicePixelRatio, width, 14 * devicePixelRatio);
      ctx.fillStyle = token('text');
      ctx.fillText(text, from + 4 * devicePixelRatio, bbox.top + 11 * devicePixelRatio);
    }
    ctx.restore();
  };
  const span = () => given.to_ms - given.from_ms;
  return {
    ...size,
    // A part of a stack is filled down to the one below it, so that colours do not mix.
    bands: isStacked ? series.slice(1).map((_one, i) => ({ series: [i + 1, i + 2] })) : undefined,
    padding: [8, 18, 0, 0], // half of the last moment's text
    legend: { show: false },
    cursor: { drag: { x: Boolean(given.onBrush), y: false, setScale: false }, points: { size: 6 } },
    scales: {
      x: { time: true, range: () => [given.from_ms / 1000, given.to_ms / 1000] },
      y: { range: (_plot, _least, most) => [0, 1.05 * most || 1] },
    },
    axes: [
      {
        ...axis,
        space: 70,
        size: 24,
        values: (_plot, all) =>
          all.map((s) => (span() > 2 * 864e5 ? moment(s * 1000).slice(5, 10) : clock(s * 1000, span() < 3e5))),
      },
      {
        ...axis,
        size: (_plot, texts) => 16 + 6.5 * Math.max(4, ...(texts || []).map((text) => text.length)),
        space: 32,
        incrs: times ? TIMES : undefined,
        values: (_plot, all) => all.map((value) => format(value)),
      },
    ],
    series: [
      {},
      ...series.map((line, i) => {
        const colour = token(kindOf(line, i));
        return {
          stroke: colour,
          width: 1.5,
          fill: isStacked ? faded(colour, 0.45) : series.length === 1 ? faded(colour, 0.16) : undefined,
          // A value between two gaps has no line: it is a point.
          points: { show: true, size: 5, fill: colour, filter: (plot, row) => alone(plot.data[row]) },
          spanGaps: false,
        };
      }),
    ],
    hooks: {
      draw: [drawMarks],
      setCursor: [(plot) => given.onPoint(plot.cursor.idx ?? -1)],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 4) return;
          plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          given.onBrush(plot.posToVal(left, 'x') * 1000, plot.posToVal(left + width, 'x') * 1000);
        },
      ],
    },
  };
}

const Legend = ({ series, at, format }) =>
  html`<span class="legend">${series.map((line, i) => {
    const value = at >= 0 ? line.values[at] : line.latest;
    return html`<span class="legend-item"><span class=${`dot is-${kindOf(line, i)}`}></span>${line.name}
      ${value === undefined ? null : html`<b>${value === null ? '–' : format(value)}</b>`}</span>`;
  })}</span>`;

/**
 * <Chart title="Ended, jobs a minute" moments=${[ms, …]} series=${[{name, kind?, values: [number|null, …], latest?}]}
 *   from_ms to_ms isStacked times height=${220} marks=${[{ms, text}]} zoom onPick=${(ms, name) => …} unit="jobs" />
 * kind: a state's colour; null: nothing was known or nothing happened (a gap, never 0). times: values are ms.
 * zoom: the brush sets the time range of all pages. onPick: a click or Enter at a moment; name: the series nearest to it.
 */
export function Chart(given) {
  const {
    title,
    moments,
    series,
    from_ms,
    to_ms,
    isStacked,
    times,
    height = 180,
    marks,
    zoom,
    onPick,
    unit = '',
  } = given;
  const format = given.format || (times ? duration : brief);
  const place = useRef(null);
  const plot = useRef(null);
  const pick = useRef(onPick);
  pick.current = onPick;
  const [at, setAt] = useState(-1);
  const [look, setLook] = useState(0);
  const shape = same([
    series.map((line, i) => [line.name, kindOf(line, i)]),
    marks,
    isStacked,
    times,
    height,
    look,
    Boolean(zoom),
  ]);
  const range = useRef({});
  range.current = { from_ms, to_ms };
  const data = [
    moments.map((ms) => ms / 1000),
    ...(isStacked ? stacked(series, moments.length) : series.map((line) => line.values)),
  ];

  useEffect(() => {
    const element = place.current;
    const width = () => Math.max(200, element.clientWidth);
    const given = {
      series,
      isStacked,
      times,
      format,
      marks,
      get from_ms() {
        return range.current.from_ms;
      },
      get to_ms() {
        return range.current.to_ms;
      },
      onPoint: setAt,
      onBrush: zoom ? (from, to) => setRange({ from, to }) : null,
    };
    plot.current = new uPlot(optionsOf(given, { width: width(), height }), data, element);
    const watch = new ResizeObserver(() => plot.current.setSize({ width: width(), height }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(data), [same(data), from_ms, to_ms]);
  useEffect(() => {
    // Colours are read from the style sheet: another look is another drawing.
    const turn = () => setLook((count) => count + 1);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', turn);
    const watch = new MutationObserver(turn);
    watch.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      dark.removeEventListener('change', turn);
      watch.disconnect();
    };
  }, []);

  const pressed = useRef(0);
  const go = (index) => {
    if (index < 0 || !pick.current) return;
    const near = nearest(plot.current, data, index);
    pick.current(moments[index], series[near]?.name);
  };
  const onKey = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) {
      const next = Math.max(0, Math.min(moments.length - 1, at < 0 ? moments.length - 1 : at + step));
      plot.current?.setCursor({ left: plot.current.valToPos(moments[next] / 1000, 'x'), top: 0 });
      setAt(next);
    } else if (event.key === 'Enter' && at >= 0) go(at);
    else return;
    event.preventDefault();
  };
  const sum = isStacked && at >= 0 ? series.reduce((whole, line) => whole + (line.values[at] || 0), 0) : null;
  const values =
    at >= 0 && moments[at]
      ? `${clock(moments[at])}: ${series.map((line) => `${line.name} ${line.values[at] === null ? 'nothing' : format(line.values[at])}`).join(', ')}`
      : '';
  const seen = (marks || []).filter((mark) => mark.ms >= from_ms && mark.ms <= to_ms);
  const deploys = seen.length ? `; marked: ${seen.map((mark) => mark.text).join(', ')}` : '';
  const isNothing = !series.some((line) => line.values.some(Boolean));
  return html`<figure class="chart">
    <figcaption><span>${title}${at >= 0 && moments[at] ? html`<span class="crumb"> · ${moment(moments[at]).slice(0, 16)}${sum === null ? '' : ` · ${format(sum)} ${unit}`}</span>` : null}</span>
      <${Legend} series=${series} at=${at} format=${format} /></figcaption>
    <div class=${`chart-plot ${onPick ? 'is-link' : ''}`} ref=${place} style=${{ minHeight: `${height}px` }} tabindex="0" role="group" onKeyDown=${onKey} onBlur=${() => setAt(-1)}
      aria-label=${`${title}; left and right show values${onPick ? ', Enter leads to them' : ''}${deploys}`}
      onPointerDown=${(event) => {
        pressed.current = event.clientX;
      }} onClick=${(event) => Math.abs(event.clientX - pressed.current) < 4 && go(at)}></div>
    ${isNothing ? html`<p class="chart-nothing muted">Nothing in this time, as far as it is over.</p>` : null}
    <span class="hidden-text" role="status">${values}</span>
  </figure>`;
}

/** The series whose area or line is at the pointer. */
function nearest(plot, data, index) {
  const at = plot?.cursor.top >= 0 ? plot.posToVal(plot.cursor.top, 'y') : Number.POSITIVE_INFINITY;
  let best = 0;
  for (let i = 1; i < data.length; i += 1) if (data[i][index] >= at) best = i - 1;
  return best;
}

/** The finest buckets that are still kept of a moment: 'minute', 'hour' or 'day'. */
export function levelOf(ms, coarsest = 'minute') {
  const isKept = (by) => Math.floor(ms / STEP_MS[by]) > Math.floor(now() / STEP_MS[by]) - KEPT[by];
  const levels = Object.keys(KEPT);
  return levels.slice(levels.indexOf(coarsest)).find(isKept) || 'day';
}

/**
 * Statistics of the time range of all pages → {by, step, moments: each step's begin, whole: those that are over, from_ms, to_ms, lines: deploy marks as
 * a Chart takes them, newest mark, reload(), state: useData's answer of load({by, from_ms, to_ms}, signal)}.
 */
export function useStatistics(load, deps = []) {
  const range = useRange();
  const by = levelOf(range.from_ms, range.by);
  const step = STEP_MS[by];
  const from_ms = Math.floor(range.from_ms / step) * step;
  const to_ms = Math.ceil(range.to_ms);
  const moments = Array.from(
    { length: Math.max(0, Math.ceil((to_ms - from_ms) / step)) },
    (_, i) => from_ms + i * step,
  );
  const period = range.isLive ? { from_ms } : { from_ms, to_ms };
  const changes = [by, ...(range.isLive ? [range.name] : [from_ms, to_ms])];
  const state = useData((signal) => load({ by, ...period }, signal), { ms: 10000, deps: [...changes, ...deps] });
  const known = useData((signal) => api.get('/marks', period, { signal }), { ms: 30000, deps: changes });
  const marks = known.data?.marks || [];
  const lines = marks.map(({ time_ms, text }) => ({ ms: time_ms, text }));
  // Without the step that is not over: it would look like a slump.
  const whole = range.isLive && moments.length > 1 ? moments.slice(0, -1) : moments;
  return { range, by, step, moments, whole, from_ms, to_ms, marks, lines, reload: known.reload, state };
}

/** A value of each step's bucket; `nothing` where there is none. */
export function spread(moments, buckets, value, nothing = 0) {
  const known = new Map(buckets.map((bucket) => [bucket.begin_ms, value(bucket)]));
  return moments.map((ms) => known.get(ms) ?? nothing);
}

/** Percentiles of how long jobs waited or ran, as series of a Chart. of: 'wait' or 'run'. */
export const waits = (moments, buckets, of) =>
  [
    ['p50', 'running'],
    ['p95', 'retrying'],
    ['p99', 'error'],
  ].map(([key, kind]) => ({
    name: key,
    kind,
    values: spread(moments, buckets, (bucket) => (bucket[of].count ? bucket[of][key] : null), null),
  }));

/** A dialog; `done` is called when it was marked. */
export const setMark = (done) =>
  form({
    title: 'Mark this moment',
    body: 'It stands in the charts, and what is different since then can be seen. Programs: jqmaster call mark --text v1.4',
    fields: [{ name: 'text', label: 'What happened', required: true, placeholder: 'v1.4' }],
    action: 'Mark',
    submit: ({ text }) => api.post('/mark', { text }),
  }).then((mark) => mark && act(async () => done?.(), `Marked: ${mark.text}`));
