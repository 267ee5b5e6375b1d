// The public HTTP API, in JSON. Nothing here is known to this page alone.
import { answered, came, missed } from './fresh.js';

// What a proxy has in front of all paths: '' or '/jq'.
export const ROOT = import.meta.url.startsWith('http') ? new URL('../..', import.meta.url).pathname.slice(0, -1) : '';

export const OFFLINE = 'The master cannot be reached.';

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

/** path`/queue/${name}/pause`: a name is one segment, whatever is in it. */
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

function withQuery(target, query) {
  const pairs = Object.entries(query || {}).filter(
    ([, value]) => value !== undefined && value !== null && value !== '',
  );
  return pairs.length ? `${target}?${new URLSearchParams(pairs)}` : target;
}

async function call(method, target, { query, body, signal } = {}) {
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
  } catch (problem) {
    if (['AbortError', 'TimeoutError'].includes(problem.name)) throw problem;
    missed(OFFLINE);
    throw new ApiError(0, 'OFFLINE', OFFLINE);
  }
  let value = null;
  try {
    value = text ? parse(text) : null;
  } catch {
    if (answer.ok) throw new ApiError(answer.status, 'INTERNAL', 'The answer cannot be read.');
  }
  const error = value?.error || {};
  if ([502, 503, 504].includes(answer.status)) missed(error.message || `The master answered ${answer.status}.`);
  else if (method === 'GET' && answer.status < 500 && !FRAME.has(target)) came(askedAt);
  else answered();
  if (answer.ok) return value;
  if (answer.status === 401 && target !== '/session') dispatchEvent(new Event('jq:unknown'));
  throw new ApiError(
    answer.status,
    error.code || 'INTERNAL',
    error.message || `The master answered ${answer.status}.`,
    error.field,
  );
}

/** api.get(path`/queue/${name}`, {count: 10}); options: {signal} */
export const api = {
  get: (target, query, options) => call('GET', target, { query, ...options }),
  post: (target, body, query) => call('POST', target, { body, query }),
  put: (target, body) => call('PUT', target, { body }),
  patch: (target, body) => call('PATCH', target, { body }),
  delete: (target, query) => call('DELETE', target, { query }),
};

/** The entries of a list, over its pages, which may be short: {found, isAll}. There may be some more than `most`. */
export async function all(where, query = {}, options = {}, most = 1000) {
  const found = [];
  let cursor = '';
  do {
    const { cursor: next, ...page } = await api.get(where, { ...query, cursor, count: Math.min(most, 1000) }, options);
    found.push(...Object.values(page)[0]);
    cursor = next;
  } while (cursor && found.length < most);
  return { found, isAll: !cursor };
}
