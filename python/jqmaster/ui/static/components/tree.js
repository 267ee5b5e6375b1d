// A value of any depth as a tree: what is closed is not built, long texts and lists come in parts.

import { stringify } from '../api.js';
import { button, h } from '../dom.js';
import { straight } from '../format.js';
import { Dom, html, useMemo } from '../view.js';

const PART = 100;
const LONG = 400;

/** Several lines, such as a traceback, as lines; else in quotes. */
const isLines = (value) => value.includes('\n') && value.trim().includes('\n');
const quoted = (value, lines = isLines(value)) => straight(lines ? value.replace(/\n$/, '') : JSON.stringify(value));

function text(value) {
  const lines = isLines(value);
  const most = lines ? LONG * 5 : LONG;
  const kind = lines ? 'j-text j-lines' : 'j-text';
  if (value.length <= most) return h('span', { class: kind }, quoted(value, lines));
  const shown = h('span', { class: kind }, quoted(value.slice(0, most), lines));
  const more = button(
    `… ${value.length - most} more characters`,
    () => {
      shown.textContent = quoted(value, lines);
      more.remove();
    },
    { class: 'inline' },
  );
  return h('span', {}, shown, more);
}

/** Bytes: the first in hexadecimal and as text, all of them as base64 on demand. */
function binary(base64) {
  let bytes;
  try {
    bytes = Array.from(atob(base64.slice(0, 64)), (one) => one.charCodeAt(0)).slice(0, 32);
  } catch {
    return `$bin: ${base64.slice(0, 60)}`;
  }
  const size = (base64.length / 4) * 3 - base64.match(/=*$/)[0].length;
  const hex = bytes.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
  const plain = bytes.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : '·')).join('');
  const all = button('base64', () => all.replaceWith(h('span', {}, ` ${base64}`)), { class: 'inline' });
  return h('span', {}, `binary, ${size} bytes: ${hex}${size > 32 ? ' …' : ''} ${plain} `, all);
}

/** What JSON lacks: {$bin: …}, {$ext: …} and so on (see the API's description). */
function special(value) {
  const keys = Object.keys(value);
  if (keys.length !== 1) return null;
  const [name] = keys;
  if (name === '$bin' && typeof value.$bin === 'string') return binary(value.$bin);
  if (name === '$float') return String(value.$float);
  if (name === '$ext') return `extension ${value.$ext?.[0]}: ${String(value.$ext?.[1]).slice(0, 60)}`;
  if (name === '$str') return `text that is not UTF-8: ${String(value.$str).slice(0, 60)}`;
  return null;
}

function leaf(value) {
  if (typeof value === 'string') return text(value);
  if (value === null || value === undefined) return h('span', { class: 'j-none' }, 'null');
  return h('span', { class: typeof value === 'boolean' ? 'j-bool' : 'j-number' }, String(value));
}

function branch(value, name, depth) {
  const isList = Array.isArray(value);
  const entries = isList ? value.map((item, index) => [index, item]) : Object.entries(value);
  const size = isList ? `[${entries.length}]` : `{${entries.length}}`;
  if (!entries.length) return h('div', { class: 'j-row' }, name, h('span', { class: 'muted' }, isList ? '[]' : '{}'));
  const inside = h('div', { class: 'j-inside' });
  let shown = 0;
  const grow = () => {
    inside.querySelector(':scope > button')?.remove();
    for (const [key, item] of entries.slice(shown, shown + PART)) inside.append(node(item, key, depth + 1));
    shown += PART;
    if (shown < entries.length) inside.append(button(`${entries.length - shown} more`, grow, { class: 'inline' }));
  };
  const details = h(
    'details',
    { class: 'j-branch', on: { toggle: () => details.open && !shown && grow() } },
    h('summary', {}, name, h('span', { class: 'muted' }, size)),
    inside,
  );
  if (depth < 2 && entries.length <= 20) {
    grow();
    details.open = true;
  }
  return details;
}

function node(value, key, depth) {
  const name = key === null ? null : h('span', { class: 'j-key' }, `${straight(String(key))}: `);
  if (value !== null && typeof value === 'object') {
    const known = special(value);
    return known
      ? h('div', { class: 'j-row' }, name, h('span', { class: 'j-none' }, known))
      : branch(value, name, depth);
  }
  return h('div', { class: 'j-row' }, name, leaf(value));
}

/** <Tree value=${job.argument} label="Argument" />: with a switch to the raw JSON, and a button that copies it. */
export function Tree({ value, label }) {
  const text = useMemo(() => stringify(value), [value]);
  // What somebody has opened stays open while the value is the same.
  return html`<${Dom} make=${() => tree(value, label)} deps=${[text]} />`;
}

function tree(value, label) {
  const raw = h('pre', { class: 'raw', hidden: true, tabindex: 0, 'aria-label': `${label}, raw` });
  const nice = h('div', { class: 'j-tree', role: 'group', 'aria-label': label }, node(value, null, 0));
  const turn = button(
    'Raw',
    () => {
      if (!raw.firstChild) raw.textContent = stringify(value, 2);
      raw.hidden = !raw.hidden;
      nice.hidden = !raw.hidden;
      turn.textContent = raw.hidden ? 'Raw' : 'Tree';
    },
    { class: 'quiet small' },
  );
  const copy = button(
    'Copy',
    async () => {
      try {
        await navigator.clipboard.writeText(stringify(value, 2));
        copy.textContent = 'Copied';
      } catch {
        copy.textContent = 'Not allowed';
      }
      setTimeout(() => {
        copy.textContent = 'Copy';
      }, 1500);
    },
    { class: 'quiet small' },
  );
  return h('div', { class: 'json' }, h('div', { class: 'json-tools' }, turn, copy), nice, raw);
}
