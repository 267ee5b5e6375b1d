// A trend without axes.
import { html } from '../view.js';

const WIDTH = 96;
const HEIGHT = 22;

const line = (points) => points.map(([x, y], i) => `${i ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`).join('');

/** <Sparkline values=${[1, 2, 3]} kind="done" title="done by the hour, a day" /> */
export function Sparkline({ values, kind = 'queued', title = '' }) {
  const most = Math.max(...values, 1);
  const points = values.map((value, i) => [
    values.length < 2 ? 0 : (i / (values.length - 1)) * (WIDTH - 2) + 1,
    HEIGHT - 2 - (value / most) * (HEIGHT - 4),
  ]);
  const ground = points.length && [[points[0][0], HEIGHT - 1], ...points, [points.at(-1)[0], HEIGHT - 1]];
  return html`<svg class="spark" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} width=${WIDTH} height=${HEIGHT} role="img" aria-label=${title}>
    <title>${title}</title>
    ${ground ? html`<path class=${`area fill-${kind}`} d=${`${line(ground)}Z`} />` : null}
    <path class=${`line stroke-${kind}`} d=${line(points)} />
  </svg>`;
}
