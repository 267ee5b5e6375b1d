// A line that says which jobs are meant: `customer.id:acme worker:mail-1 slower:30s "no host"`.
// Python reads the same (engine/queryline.py); tests/js/querylines.json holds both to it.

const TOKEN = /(?:([^\s":]+):)?("(?:[^"\\]|\\.)*"|\S+)/g;
const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)?$/;
const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const BOUND = /^(>=|<=|>|<)(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;
const MS = { ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000, w: 604800000 };
const BOUNDS = { '>': 'gt', '>=': 'ge', '<': 'lt', '<=': 'le' };
const CONSTANTS = { true: true, false: false, null: null };
const SPANS = { slower: 'slower_ms', older: 'to_ms', newer: 'from_ms' };
const PLAIN = { queue: 'queue', name: 'name', tag: 'tag', group: 'group', worker: 'worker', error: 'message' };
const KEYS = [...Object.keys(PLAIN), 'status', ...Object.keys(SPANS)];

const problem = (text) => Object.assign(new Error(text), { field: 'q' });

/** As the API wants it; integers that a number cannot hold are BigInt. */
function number(text) {
  const value = Number(text);
  return /^-?\d+$/.test(text) && !Number.isSafeInteger(value) ? BigInt(text) : value;
}

function fits(value) {
  return typeof value !== 'bigint' || (value < 2n ** 63n && value > -(2n ** 63n));
}

function operand(text) {
  const bound = BOUND.exec(text);
  if (bound) return { [BOUNDS[bound[1]]]: number(bound[2]) };
  if (text.includes('*')) return { glob: text };
  if (NUMBER.test(text) && fits(number(text))) return [number(text), text];
  return Object.hasOwn(CONSTANTS, text) ? [CONSTANTS[text], text] : text;
}

function span(key, text) {
  const found = DURATION.exec(text);
  if (!found) throw problem(`${key}: expected a duration such as 30s, 5m or 2h, got '${text}'`);
  return Math.round(Number(found[1]) * MS[found[2] || 's']);
}

/** → [field of `where`, value, whether it belongs into its `match`] */
function condition(key, text, isQuoted, now) {
  if ((key === 'queue' || key === 'name') && text.includes('*') && !isQuoted) return [key, { glob: text }, true];
  if (Object.hasOwn(PLAIN, key)) return [PLAIN[key], text];
  if (key === 'status') return ['status', text.split(',')];
  if (Object.hasOwn(SPANS, key)) return [SPANS[key], key === 'slower' ? span(key, text) : now - span(key, text)];
  return [key.startsWith('argument.') ? key : `argument.${key}`, isQuoted ? text : operand(text), true];
}

/** `where` of the API. Throws an error with `field`. */
export function whereOfLine(line, now) {
  const where = {};
  const words = [];
  for (const [, key, raw] of line.matchAll(TOKEN)) {
    const isQuoted = raw.startsWith('"') && raw.length > 1;
    const text = isQuoted ? raw.slice(1, -1).replace(/\\(.)/g, '$1') : raw;
    if (!key) {
      words.push(text);
      continue;
    }
    const [field, value, isInside] = condition(key, text, isQuoted, now);
    if (isInside) where.match ??= {};
    const place = isInside ? where.match : where;
    if (Object.hasOwn(place, field)) throw problem(`${key} stands there twice`);
    place[field] = value;
  }
  if (words.length) where.argument = words.join(' ');
  return where;
}

/** A value as it stands in a line. */
export const quoted = (text) => (/^[^\s"*<>][^\s"*]*$/.test(text) ? text : `"${text.replace(/["\\]/g, '\\$&')}"`);

/** A condition on a value of an argument, as it stands in a line: `path` as of a constraint; null for what has none. */
export function termOf(path, value) {
  if (!path.startsWith('argument.') || /[\s":]/.test(path)) return null;
  const key = path.slice('argument.'.length);
  const isTaken = KEYS.includes(key) || key.startsWith('argument.');
  const text = typeof value === 'string' ? value : String(value);
  const looksElse = NUMBER.test(text) || Object.hasOwn(CONSTANTS, text);
  const said = typeof value === 'string' && looksElse ? `"${text}"` : quoted(text);
  return `${isTaken ? path : key}:${said}`;
}

/**
 * What may stand instead of the last word of a line: whole lines. `names`: for a key, what to complete its value with,
 * async (text) → texts.
 */
export async function completions(line, names) {
  const [, before, last] = /^(.*?)(\S*)$/.exec(line);
  const [, key, text] = /^([^\s":]+):"?(.*)$/.exec(last) || [];
  if (!key) return KEYS.filter((one) => one.startsWith(last)).map((one) => `${before}${one}:`);
  const found = names[key] ? await names[key](text) : [];
  return found.slice(0, 50).map((one) => `${before}${key}:${quoted(one)}`);
}
