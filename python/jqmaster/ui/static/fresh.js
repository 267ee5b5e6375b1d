// How old the figures of a page are. The frame says so, in amber when they are late, with a banner when nobody answers.
import { clock } from './format.js';

const PATIENCE_MS = 2000;
const place = document.getElementById('live');
const banner = document.getElementById('banner');
let period = 0;
let cameAt = 0;
let problem = '';
let timer = 0;

/** Figures are to come every so often, or sooner → stop. */
export function expectEvery(ms) {
  const before = period;
  period = Math.min(period || ms, ms);
  cameAt ||= Date.now();
  clearInterval(timer);
  timer = setInterval(draw, 1000);
  draw();
  return () => {
    period = before;
    if (!period) clearInterval(timer);
    draw();
  };
}

/** Somebody answered. */
export function came() {
  const isNews = problem || Date.now() - cameAt > PATIENCE_MS;
  cameAt = Date.now();
  problem = '';
  if (isNews) draw();
}

/** Nobody did, and why. */
export function missed(why) {
  if (problem === why) return;
  problem = why;
  draw();
}

function draw() {
  const age = Date.now() - cameAt;
  const isLate = period > 0 && age > 2 * period + PATIENCE_MS;
  place.hidden = !period;
  place.className = `live ${problem ? 'is-off' : isLate ? 'is-late' : 'is-on'}`;
  place.textContent = problem || isLate ? `${Math.round(age / 1000)} s old` : 'Live';
  place.title = cameAt ? `Figures of ${clock(cameAt, true)}` : '';
  const what = problem.replace(/\.?$/, problem && '.');
  const text = problem && period ? `${what} Figures are of ${clock(cameAt, true)}.` : what;
  if (banner.textContent !== text) banner.textContent = text;
  banner.hidden = !text;
  document.body.classList.toggle('is-stale', Boolean(problem) && period > 0);
}
