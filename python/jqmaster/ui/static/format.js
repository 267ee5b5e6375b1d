// Numbers and moments as text. All in the reader's own time zone, with the moment itself as a title.
const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const exact = new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 });
const short = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });

/** With one decimal at most: 3.4, but 1 and not 1.0. */
const tenths = (number) => String(Math.round(number * 10) / 10);

export const count = (number) => (number === undefined || number === null ? '–' : whole.format(number));

/** What need not be whole, such as a cost. */
export const amount = (number) => exact.format(number);

/** 1,234,567 as 1.2M: where there is little room. */
export const brief = (number) =>
  Math.abs(number) < 10000 ? (number < 10 && number % 1 ? tenths(number) : whole.format(number)) : short.format(number);

export const jobs = (number) => `${count(number)} ${number === 1 ? 'job' : 'jobs'}`;

/** A number of events per second, minute or hour, whichever can be read. */
export function rate(perSecond) {
  if (!perSecond) return '0/s';
  if (perSecond >= 10) return `${brief(Math.round(perSecond))}/s`;
  if (perSecond >= 0.1) return `${tenths(perSecond)}/s`;
  if (perSecond * 60 >= 1) return `${brief(Math.round(perSecond * 600) / 10)}/min`;
  return `${brief(Math.max(1, Math.round(perSecond * 3600)))}/h`;
}

const UNITS = [
  [86400000, 'd', 3600000, 'h'],
  [3600000, 'h', 60000, 'min'],
  [60000, 'min', 1000, 's'],
];

/** Milliseconds: 12 ms, 1 s, 3.4 s, 5 min 3 s, 2 h 10 min. */
export function duration(ms) {
  if (ms === undefined || ms === null || Number.isNaN(ms)) return '–';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${ms < 9950 ? tenths(ms / 1000) : Math.round(ms / 1000)} s`;
  for (const [size, unit, less, lesser] of UNITS) {
    if (ms >= size) {
      const rest = Math.floor((ms % size) / less);
      return `${Math.floor(ms / size)} ${unit}${rest ? ` ${rest} ${lesser}` : ''}`;
    }
  }
  return '–';
}

const two = (number) => String(number).padStart(2, '0');

/** 2026-11-21 13:45:10, of the reader's clock. */
export function moment(ms) {
  const at = new Date(ms);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export function clock(ms, withSeconds = false) {
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}${withSeconds ? `:${two(at.getSeconds())}` : ''}`;
}

/** The server's clock less this one, as far as it is known. */
let ahead = 0;
export const now = () => Date.now() + ahead;
export function setServerNow(ms) {
  const off = ms - Date.now();
  // What a message takes to arrive is no difference of clocks.
  ahead = Math.abs(off) > 3000 ? off : 0;
}

/** For how long something has been so: seconds while they matter, then the two largest units, then the largest alone. */
export function distance(ms) {
  const step = ms < 600000 ? 1000 : ms < 36000000 ? 60000 : ms < 864000000 ? 3600000 : 86400000;
  return ms < 60000 ? `${Math.floor(ms / 1000)} s` : duration(Math.floor(ms / step) * step);
}

/** Of a moment to come: tenths of a second while it is near. It is never said to have passed: another look tells more. */
export function untilText(ms) {
  const left = ms - now();
  if (left <= 0) return 'any moment';
  return `in ${left < 10000 ? `${Math.max(1, Math.ceil(left / 100)) / 10} s` : distance(left)}`;
}

/** Of a moment that has passed. After a restart of Redis ids, and so some moments, are ahead of the clock: "now". */
export function agoText(ms) {
  const past = now() - ms;
  return past < 1500 ? 'now' : `${distance(past)} ago`;
}

/** Characters that turn the direction of a text round would make names look like others: they are spelled out. */
const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
export const straight = (text) =>
  text.replace(TURNS, (turn) => `\\u${turn.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Any text, cut for a line. */
export function cut(text, most = 80) {
  const line = straight(String(text ?? ''))
    .replace(/\s+/g, ' ')
    .trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/** Number from 0 to 1. */
export const percent = (share) => `${share > 0 && share < 0.1 ? (share * 100).toFixed(1) : Math.round(share * 100)} %`;

// -- conditions of the lines that query.js reads -------------------------------------------------------

export const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
export const CONSTANTS = { true: true, false: false, null: null };
export const SPANS = { slower: 'slower_ms', older: 'to_ms', newer: 'from_ms' };
export const PLAIN = { queue: 'queue', name: 'name', tag: 'tag', group: 'group', worker: 'worker', error: 'message' };
export const KEYS = [...Object.keys(PLAIN), 'status', ...Object.keys(SPANS)];

/** A value as it stands in a line. */
export const quoted = (text) => (/^[^\s"*<>][^\s"*]*$/.test(text) ? text : `"${text.replace(/["\\]/g, '\\$&')}"`);

/** A condition on a value of an argument, as it stands in a line: `path` as of a constraint; null for what has none. */
export function termOf(path, value) {
  if (!path.startsWith('argument.') || /[\s":]/.test(path)) return null;
  const key = path.slice('argument.'.length);
  const isTaken = KEYS.includes(key) || key.startsWith('argument.');
  const text = typeof value === 'string' ? value : String(value);
  const looksElse = NUMBER.test(text) || Object.hasOwn(CONSTANTS, text);
  const operand = typeof value === 'string' && looksElse ? `"${text}"` : quoted(text);
  return `${isTaken ? path : key}:${operand}`;
}

const MOST_TERMS = 8;
const DEEP = 3;
const LONG = 60;
const LACKED = ['$bin', '$time', '$msgpack']; // spell what JSON lacks: no such path is in the argument

/** Terms for the short values of an argument, those near the top first. */
export function termsOf(argument) {
  const terms = [];
  let level = [['argument', argument]];
  for (let depth = 0; depth <= DEEP && level.length && terms.length < MOST_TERMS; depth += 1) {
    const next = [];
    for (const [path, value] of level) {
      if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
        for (const [key, inner] of Object.entries(value).filter(([key]) => !LACKED.includes(key)))
          next.push([`${path}.${key.replace(/[.\\]/g, '\\$&')}`, inner]);
      } else if (value !== null && typeof value !== 'object' && String(value).length <= LONG && String(value)) {
        const term = termOf(path, value);
        if (term) terms.push(term);
      }
    }
    level = next;
  }
  return terms.slice(0, MOST_TERMS);
}
