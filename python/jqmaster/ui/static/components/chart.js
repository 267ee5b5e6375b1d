// Charts, drawn by hand: lines or stacked areas over time, with what the pointer is at; and small trends.
import { fill, h, svg } from '../dom.js';
import { brief, clock, duration } from '../format.js';
import { Dom, html } from '../view.js';

const WIDTH = 600;
const BOTTOM = 20;
const TOP = 8;

/** A round number at or above `most`, and steps to it. */
function scale(most) {
  if (!(most > 0)) return [1, 1];
  const power = 10 ** Math.floor(Math.log10(most / 2));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => most / one <= 4) || power * 10;
  const whole = Math.max(step, Number.isInteger(most) && step < 1 ? 1 : step);
  return [Math.ceil(most / whole - 1e-9) * whole, whole];
}

// Steps in ms that are round as times.
const TIMES = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 15000, 30000, 60000, 120000, 300000, 600000, 900000,
  1800000, 3600000, 7200000, 14400000, 28800000, 43200000, 86400000,
];

function timeScale(most) {
  const step = TIMES.find((one) => most / one <= 4) || Math.ceil(most / 4 / 86400000) * 86400000;
  return [Math.max(1, Math.ceil(most / step)) * step, step];
}

function shortTime(ms) {
  for (const [size, unit] of [
    [86400000, 'd'],
    [3600000, 'h'],
    [60000, 'min'],
    [1000, 's'],
  ]) {
    if (ms >= size) return `${Math.round((ms / size) * 10) / 10} ${unit}`;
  }
  return ms ? `${ms} ms` : '0';
}

function timeSteps(from, to) {
  const minutes = [1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440];
  const wanted = (to - from) / 60000 / 5;
  const step = (minutes.find((one) => one >= wanted) || 1440) * 60000;
  const found = [];
  const zone = new Date(from).getTimezoneOffset() * 60000;
  for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to; at += step) found.push(at);
  return found;
}

/** isShown(i): whether the line goes on to the point i. */
function line(points, isShown = () => true) {
  let text = '';
  points.forEach(([x, y], i) => {
    text += `${i && isShown(i) ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
  });
  return text;
}

/**
 * chart({title, height?, stacked?, format?, times?: values are ms, seconds?: moments with seconds}) → {element, update({series: [{name, kind, values: [[ms, number], …]}], from, to})}
 * kind: colour, as of a state (`done`, `error`, `queued`, …). All series have the same moments.
 */
export function chart({
  title,
  height = 150,
  stacked = false,
  times = false,
  format = times ? duration : brief,
  seconds = false,
}) {
  const drawing = svg('svg', {
    viewBox: `0 0 ${WIDTH} ${height}`,
    preserveAspectRatio: 'none',
    role: 'img',
    'aria-label': title,
  });
  const axis = h('div', { class: 'chart-axis', 'aria-hidden': 'true' });
  const tip = h('div', { class: 'chart-tip', hidden: true });
  const mark = h('div', { class: 'chart-mark', hidden: true });
  const place = h(
    'div',
    { class: 'chart-place', tabindex: 0, role: 'group', 'aria-label': `${title}; left and right show values` },
    drawing,
    axis,
    mark,
    tip,
  );
  const legend = h('div', { class: 'legend' });
  const element = h('figure', { class: 'chart' }, h('figcaption', {}, h('span', {}, title), legend), place);
  place.style.height = `${height}px`;
  let data = null;
  let at = -1;
  const left = (ms) => (data.to === data.from ? 0 : (ms - data.from) / (data.to - data.from));

  function update(next) {
    data = next;
    const { series } = data;
    const moments = series[0]?.values.length || 0;
    const sums = Array.from({ length: moments }, (_, i) =>
      series.reduce((all, one) => (stacked ? all + one.values[i][1] : Math.max(all, one.values[i][1])), 0),
    );
    const [top, step] = (times ? timeScale : scale)(Math.max(0, ...sums));
    const x = (ms) => left(ms) * WIDTH;
    const y = (value) => TOP + (1 - value / top) * (height - BOTTOM - TOP);
    fill(drawing);
    fill(axis);
    for (let value = 0; value <= top + 1e-9; value += step) {
      drawing.append(svg('line', { class: 'rule', x1: 0, x2: WIDTH, y1: y(value), y2: y(value) }));
      const label = h('span', { class: 'chart-y' }, times ? shortTime(value) : format(value));
      label.style.top = `${y(value)}px`;
      axis.append(label);
    }
    for (const ms of timeSteps(data.from, data.to)) {
      const label = h('span', { class: 'chart-x' }, clock(ms, seconds && data.to - data.from < 300000));
      label.style.left = `${left(ms) * 100}%`;
      if (left(ms) < 0.97 && left(ms) > 0.03) axis.append(label);
    }
    const below = new Array(moments).fill(0);
    for (const one of series) {
      const points = one.values.map(([ms, value], i) => [x(ms), y(value + (stacked ? below[i] : 0))]);
      if (!points.length) continue;
      const ground = one.values.map(([ms], i) => [x(ms), y(stacked ? below[i] : 0)]).reverse();
      if (stacked || series.length === 1)
        drawing.append(
          svg('path', {
            class: `area ${stacked ? 'is-stacked' : ''} fill-${one.kind}`,
            d: `${line(points.concat(ground))}Z`,
          }),
        );
      // Of a stack what is nothing has no line: it would hide that of the part below.
      const isShown = (i) => !stacked || one.values[i][1] > 0 || one.values[i - 1][1] > 0;
      drawing.append(
        svg('path', {
          class: `line stroke-${one.kind}`,
          d: line(points, isShown),
          'vector-effect': 'non-scaling-stroke',
        }),
      );
      if (stacked)
        one.values.forEach(([, value], i) => {
          below[i] += value;
        });
    }
    fill(
      legend,
      series.map((one) =>
        h(
          'span',
          { class: 'legend-item' },
          h('span', { class: `dot fill-${one.kind}` }),
          one.name,
          one.values.length ? h('b', {}, format(one.latest ?? one.values.at(-1)[1])) : null,
        ),
      ),
    );
    if (at >= 0) point(at);
  }

  function point(index) {
    const moments = data?.series[0]?.values || [];
    at = Math.max(0, Math.min(moments.length - 1, index));
    if (!moments.length) return;
    const share = left(moments[at][0]);
    fill(
      tip,
      h('b', {}, clock(moments[at][0], seconds)),
      data.series.map((one) =>
        h('span', {}, h('span', { class: `dot fill-${one.kind}` }), one.name, h('b', {}, format(one.values[at][1]))),
      ),
      stacked
        ? h('span', {}, 'in all', h('b', {}, format(data.series.reduce((sum, one) => sum + one.values[at][1], 0))))
        : null,
    );
    tip.hidden = mark.hidden = false;
    mark.style.left = `${share * 100}%`;
    tip.classList.toggle('is-left', share > 0.5);
    tip.style.left = share > 0.5 ? '' : `calc(${share * 100}% + 8px)`;
    tip.style.right = share > 0.5 ? `calc(${(1 - share) * 100}% + 8px)` : '';
  }

  function leave() {
    at = -1;
    tip.hidden = mark.hidden = true;
  }

  place.addEventListener('pointermove', (event) => {
    if (!data?.series[0]?.values.length) return;
    const box = place.getBoundingClientRect();
    const ms = data.from + ((event.clientX - box.left) / box.width) * (data.to - data.from);
    let best = 0;
    data.series[0].values.forEach(([moment], i) => {
      if (Math.abs(moment - ms) < Math.abs(data.series[0].values[best][0] - ms)) best = i;
    });
    point(best);
  });
  place.addEventListener('pointerleave', leave);
  place.addEventListener('blur', leave);
  place.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !data) return;
    event.preventDefault();
    point(at < 0 ? data.series[0].values.length - 1 : at + step);
  });
  return { element, update };
}

/** A trend without axes: sparkline([1, 2, 3], 'done', 'done per hour'). */
export function sparkline(values, kind = 'queued', title = '') {
  const width = 96;
  const height = 22;
  const most = Math.max(...values, 1);
  const points = values.map((value, i) => [
    values.length < 2 ? 0 : (i / (values.length - 1)) * (width - 2) + 1,
    height - 2 - (value / most) * (height - 4),
  ]);
  return svg(
    'svg',
    { class: 'spark', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': title },
    svg('title', {}, title),
    points.length
      ? svg('path', {
          class: `area fill-${kind}`,
          d: `${line([[points[0][0], height - 1], ...points, [points.at(-1)[0], height - 1]])}Z`,
        })
      : null,
    svg('path', { class: `line stroke-${kind}`, d: line(points) }),
  );
}

/** <Sparkline values=${[1, 2, 3]} kind="done" title="done by the hour, a day" /> */
export const Sparkline = ({ values, kind = 'queued', title = '' }) =>
  html`<${Dom} tag="span" make=${() => sparkline(values, kind, title)} deps=${[values.join(), kind, title]} />`;
