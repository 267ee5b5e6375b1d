// A state in a word and a colour: never the colour alone.
import { h } from '../dom.js';
import { html } from '../view.js';

const WORDS = new Set([
  'queued',
  'scheduled',
  'blocked',
  'running',
  'retrying',
  'done',
  'error',
  'cancelled',
  'paused',
  'held',
  'open',
  'full',
  'ready',
  'busy',
  'unreachable',
  'pulling',
  'quiet',
  'stop',
  'problem',
  'warning',
  'note',
  'ok',
]);
export const STATES = ['queued', 'scheduled', 'blocked', 'running', 'retrying', 'done', 'error', 'cancelled'];

/** kind: the colour, where the word is not one of the above. */
export function badge(word, title, kind = word) {
  return h('span', { class: `badge ${WORDS.has(kind) ? `is-${kind}` : ''}`, title }, word);
}

/** <Badge word="running" title="…" kind="…" /> */
export const Badge = ({ word, title, kind = word }) =>
  html`<span class=${`badge ${WORDS.has(kind) ? `is-${kind}` : ''}`} title=${title}>${word}</span>`;
