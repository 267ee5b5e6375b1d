// The public HTTP API, in JSON, nothing of which is known to this page alone; and how old a page's figures are, which the
// frame shows: in amber when they are late, with a banner when nobody answers.
import { clock, setServerNow } from './format.js';

// What a proxy has in front of all paths: '' or '/jq'. This file is served as /ui/<digest>/api.js.
export const ROOT = import.meta.url.startsWith('http') ? new URL('../..', import.meta.url).pathname.slice(0, -1) : '';

const OFFLINE = 'The server cannot be reached.';
// What the frame asks for is no figure of a page.
const FRAME = new Set(['/session', '/health']);

export class ApiError extends Error {
  constructor(status, code, message, field) {
    super(message);
    this.status = status;
    this.code = code;
    this.field = field;
  }
}

// Browsers take such segments for steps within the path, percent-encoded or not: they get a `~` in front.
const DOTS = /^~*\.\.?$/;

/** path`/queue/${name}`: a name is one segment, whatever is in it. */
export function path(strings, ...names) {
  return strings.reduce((whole, text, index) => {
    const name = String(names[index - 1]);
    return whole + (DOTS.test(name) ? '~' : '') + encodeURIComponent(name) + text;
  });
}

/** The name that a segment stands for. Throws where it is no valid escape. */
export function nameOf(segment) {
  const text = decodeURIComponent(segment);
  return text.startsWith('~') && DOTS.test(text) ? text.slice(1) : text;
}

const LONG = /\d{16}/;

/** Integers have 64 bits here: those that a number cannot hold become BigInt where the browser lets us. */
export function parse(text) {
  if (!LONG.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value, context) => {
    const source = context?.source;
    if (typeof value === 'number' && source && !Number.isSafeInteger(value) && /^-?\d+$/.test(source))
      return BigInt(source);
    return value;
  });
}

/** The other way round. */
export function stringify(value, space) {
  return JSON.stringify(
    value,
    (_key, item) => {
      if (typeof item !== 'bigint') return item;
      return JSON.rawJSON ? JSON.rawJSON(String(item)) : Number(item);
    },
    space,
  );
}

/** The value of a text, its numbers as they are written: 1.0 is not 1 here. */
export function exactParse(text) {
  return JSON.parse(text, (_key, value, context) => {
    const source = context?.source;
    return typeof value === 'number' && source && String(value) !== source && JSON.rawJSON
      ? JSON.rawJSON(source)
      : value;
  });
}

/** A job's document, the numbers in its argument as they are written. */
export const readJob = (text) => ({ ...parse(text), argument: exactParse(text).argument });

/** A path with filters, of which empty ones go; of a list each: withQuery('/queues', {names: ['a']}). */
export function withQuery(target, filters = {}) {
  const named = Object.entries(filters).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
  const pairs = named.filter(([, value]) => value !== '' && value !== null && value !== undefined);
  return pairs.length ? `${target}?${new URLSearchParams(pairs)}` : target;
}

// -- requests -----------------------------------------------------------------------------------------

/** `read`: what makes a value of the answer's text. */
async function call(method, target, { query, body, signal, read = parse } = {}) {
  if (method === 'GET' && who?.refused.includes(target))
    throw new ApiError(403, 'FORBIDDEN', 'The key may not see this.');
  const headers = { accept: 'application/json' };
  const options = { method, headers, signal, cache: 'no-store' };
  if (body !== undefined) {
    headers['content-type'] = 'application/json';
    options.body = stringify(body);
  }
  let answer;
  let text;
  const askedAt = Date.now();
  try {
    answer = await fetch(ROOT + withQuery(target, query), options);
    text = await answer.text();
    const date = answer.headers.get('date');
    if (date) setServerNow(Date.parse(date));
  } catch (problem) {
    if (['AbortError', 'TimeoutError'].includes(problem.name)) throw problem;
    missed(OFFLINE);
    throw new ApiError(0, 'OFFLINE', OFFLINE);
  }
  let value = null;
  try {
    value = text ? read(text) : null;
  } catch {
    if (answer.ok) throw new ApiError(answer.status, 'INTERNAL', 'The answer cannot be read.');
  }
  const error = value?.error || {};
  const message = error.message || `The server answered ${answer.status}.`;
  if ([502, 503, 504].includes(answer.status)) missed(message);
  else if (method === 'GET' && answer.status < 500 && !FRAME.has(target)) answered(askedAt);
  else answered();
  if (answer.ok) return value;
  if (answer.status === 401 && target !== '/session') dispatchEvent(new Event('jq:unknown'));
  throw new ApiError(answer.status, error.code || 'INTERNAL', message, error.field);
}

/** api.get('/queues', {count: 10}); options: {signal, read} */
export const api = {
  get: (target, query, options) => call('GET', target, { query, ...options }),
  post: (target, body, query) => call('POST', target, { body, query }),
  put: (target, body) => call('PUT', target, { body }),
  delete: (target, query) => call('DELETE', target, { query }),
};

/** The one that a list is asked for: only('/queues', {names: name}). Throws a 404 where there is none. */
export async function only(where, query, options) {
  const [document] = Object.values(await api.get(where, query, options))[0];
  if (!document) throw new ApiError(404, 'NOTFOUND', `no such ${where.slice(1, -1)}: ${query.names || query.ids}`);
  return document;
}

/** Does something to one job. Throws where its state does not allow that, or it is gone. */
export async function toJob(where, body) {
  const [state] = (await api.post(where, body)).jobs;
  if (state === 'NOTFOUND') throw new ApiError(404, state, 'There is no such job.');
  if (state === 'CONFLICT') throw new ApiError(409, state, 'Its state does not allow that any more.');
  return state;
}

/** The entries of a list, over its pages, which may be short: {entries, isAll, requests}. There may be some more than `most`. */
export async function all(where, query = {}, options = {}, most = 1000) {
  const entries = [];
  let [cursor, requests] = ['', 0];
  do {
    const { cursor: next, ...page } = await api.get(where, { ...query, cursor, count: Math.min(most, 1000) }, options);
    entries.push(...Object.values(page)[0]);
    cursor = next;
    requests += 1;
  } while (cursor && entries.length < most);
  return { entries, isAll: !cursor, requests };
}

let who = null;
/** What GET /session says. */
export const setWho = (known) => {
  who = known;
};

/** Whether one of these roles is theirs; until the server has said which are, nothing is left out: may('operator'). */
export const may = (...wanted) => who === null || wanted.some((role) => who.roles.includes(role));

/** The names and patterns of the queues that the key is bound to; null of any other. */
export const boundTo = () => who?.queues ?? null;

// -- how old figures are ------------------------------------------------------------------------------

const PATIENCE_MS = 2000;
const QUIET_MS = 5000; // so long nobody has to say anything before they are asked
const ANSWER_MS = 8000; // longer than a server gives its Redis
const place = document.getElementById('live');
const banner = document.getElementById('banner');
const parts = new Set(); // of the page, that come by themselves: {period, at}
let cameAt = 0;
let heardAt = Date.now();
let problem = '';
let before = '';

/**
 * A part of the page whose figures are to come every so often, or sooner → {came(askedAt), stop()}. They may be as old
 * as the question: a server that was stopped answers it when it goes on. The page is as late as its latest part.
 */
function expectEvery(period) {
  const part = { period, at: Date.now() };
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

/** Somebody answered; with figures that were asked for then. */
function answered(askedAt = 0) {
  cameAt = Math.max(cameAt, askedAt);
  heardAt = Date.now();
  const isBack = Boolean(problem);
  problem = '';
  if (isBack || before !== 'is-on') draw();
  if (isBack) dispatchEvent(new Event('jq:back'));
}

/** Nobody did, and why. */
function missed(why) {
  heardAt = Date.now();
  if (problem === why) return;
  problem = why;
  draw();
}

/** Asks whether anybody is there while a page has nothing to ask. */
export function startPulse() {
  let isAsking = false;
  setInterval(async () => {
    draw();
    if (isAsking || document.hidden || Date.now() - heardAt < QUIET_MS) return;
    isAsking = true;
    try {
      await api.get('/health', {}, { signal: AbortSignal.timeout(ANSWER_MS) });
    } catch (why) {
      if (why.name === 'TimeoutError' || why.name === 'AbortError') missed('The server does not answer.');
    }
    isAsking = false;
  }, 1000);
}

function draw() {
  const period = Math.min(...[...parts].map((part) => part.period()));
  const late = [...parts].filter((part) => Date.now() - part.at > 2 * part.period() + PATIENCE_MS);
  // While nobody answers all parts count: so the time that is said does not go back as one after the other is late.
  const shown = problem ? [...parts] : late.length ? late : [...parts].filter((part) => part.period() === period);
  const isLive = parts.size > 0;
  const figuresAt = Math.min(cameAt, ...shown.map(({ at }) => at));
  const age_s = `${Math.max(0, Math.round((Date.now() - figuresAt) / 1000))} s old`;
  const kind = problem ? 'is-off' : late.length ? 'is-late' : isLive ? 'is-on' : 'is-still';
  before = kind;
  place.hidden = !cameAt;
  set(place, 'className', `live ${kind}`);
  set(place, 'textContent', problem || late.length ? age_s : isLive ? 'Live' : `As of ${clock(figuresAt)}`);
  set(place, 'title', cameAt ? `Figures of ${clock(figuresAt, true)}` : '');
  const what = problem.replace(/\.?$/, problem && '.');
  set(banner, 'textContent', problem && cameAt ? `${what} Figures are of ${clock(figuresAt, true)}.` : what);
  banner.hidden = !what;
  document.body.classList.toggle('is-stale', Boolean(problem) && cameAt > 0);
}

function set(element, name, value) {
  if (element[name] !== value) element[name] = value;
}

// -- what changes by itself; all of it rests while the tab is hidden ----------------------------------

/**
 * Calls an async `action` every so often, and when somebody answers again, never twice at once → stop. It says whether
 * it brought what is asked. `period()`: how many ms later the next is due.
 */
export function every(period, action) {
  const part = expectEvery(period);
  let timer = 0;
  let isOver = false;
  let isBusy = false;
  let isWoken = false;
  const step = async () => {
    clearTimeout(timer);
    isBusy = true;
    isWoken = false;
    if (!document.hidden) {
      const askedAt = Date.now();
      try {
        if (await action()) part.came(askedAt);
      } catch (why) {
        if (why.name !== 'AbortError') console.debug(why);
      }
    }
    isBusy = false;
    if (!isOver) timer = setTimeout(step, isWoken ? 0 : period());
  };
  timer = setTimeout(step, period());
  const wake = () => {
    if (document.hidden) return;
    isWoken = true;
    if (!isBusy) step();
  };
  document.addEventListener('visibilitychange', wake);
  addEventListener('jq:back', wake);
  return () => {
    isOver = true;
    part.stop();
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', wake);
    removeEventListener('jq:back', wake);
  };
}
