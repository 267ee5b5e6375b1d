// How old the figures of a page are. The frame says so, in amber when they are late, with a banner when nobody answers.
import { clock } from './format.js';

const PATIENCE_MS = 2000;
const QUIET_MS = 5000; // so long nobody has to say anything before they are asked
const ANSWER_MS = 8000; // longer than a master gives its Redis
const place = document.getElementById('live');
const banner = document.getElementById('banner');
const parts = new Set(); // of the page, that come by themselves: {ms, at}
let cameAt = 0;
let heardAt = Date.now();
let problem = '';
let before = '';

/**
 * A part of the page whose figures are to come every so often, or sooner → {came(askedAt), stop()}. They may be as old
 * as the question: a master that was stopped answers it when it goes on. The page is as late as its latest part.
 */
export function expectEvery(ms) {
  const part = { ms, at: Date.now() };
  parts.add(part);
  draw();
  return {
    came(askedAt = Date.now()) {
      part.at = Math.max(part.at, askedAt);
      cameAt = Math.max(cameAt, askedAt);
      if (before !== 'is-on') draw();
    },
    stop() {
      parts.delete(part);
      draw();
    },
  };
}

/** Another page: it has no figures yet. */
export function forget() {
  cameAt = 0;
  draw();
}

/** Figures came, which were asked for then. */
export function came(askedAt = Date.now()) {
  cameAt = Math.max(cameAt, askedAt);
  answered();
}

/** Somebody answered, be it without figures. */
export function answered() {
  heardAt = Date.now();
  const isBack = Boolean(problem);
  problem = '';
  if (isBack || before !== 'is-on') draw();
  if (isBack) dispatchEvent(new Event('jq:back'));
}

/** Nobody did, and why. */
export function missed(why) {
  heardAt = Date.now();
  if (problem === why) return;
  problem = why;
  draw();
}

/** Asks whether anybody is there while a page has nothing to ask. `ask(signal)` tells `answered` or `missed` itself. */
export function startPulse(ask) {
  let isAsking = false;
  setInterval(async () => {
    draw();
    if (isAsking || document.hidden || Date.now() - heardAt < QUIET_MS) return;
    isAsking = true;
    try {
      await ask(AbortSignal.timeout(ANSWER_MS));
    } catch (why) {
      if (why.name === 'TimeoutError' || why.name === 'AbortError') missed('The master does not answer.');
    }
    isAsking = false;
  }, 1000);
}

function draw() {
  const period = Math.min(...[...parts].map(({ ms }) => ms));
  const late = [...parts].filter(({ ms, at }) => Date.now() - at > 2 * ms + PATIENCE_MS);
  const shown = late.length ? late : [...parts].filter(({ ms }) => ms === period);
  const isLive = parts.size > 0;
  const isLate = late.length > 0;
  const figuresAt = Math.min(cameAt, ...shown.map(({ at }) => at));
  const age = Date.now() - figuresAt;
  const kind = problem ? 'is-off' : isLate ? 'is-late' : isLive ? 'is-on' : 'is-still';
  const age_s = `${Math.max(0, Math.round(age / 1000))} s old`;
  before = kind;
  place.hidden = !cameAt;
  set(place, 'className', `live ${kind}`);
  set(place, 'textContent', problem || isLate ? age_s : isLive ? 'Live' : `As of ${clock(figuresAt, true)}`);
  set(place, 'title', cameAt ? `Figures of ${clock(figuresAt, true)}` : '');
  const what = problem.replace(/\.?$/, problem && '.');
  set(banner, 'textContent', problem && cameAt ? `${what} Figures are of ${clock(figuresAt, true)}.` : what);
  banner.hidden = !what;
  document.body.classList.toggle('is-stale', Boolean(problem) && cameAt > 0);
}

function set(element, name, value) {
  if (element[name] !== value) element[name] = value;
}
