// A state in a word and a colour: never the colour alone.
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
  'skipped',
  'paused',
  'held',
  'open',
  'full',
  'ready',
  'busy',
  'unreachable',
  'pulling',
  'gone',
  'quiet',
  'stop',
  'problem',
  'warning',
  'note',
  'ok',
]);
export const STATES = [
  'queued',
  'scheduled',
  'blocked',
  'running',
  'retrying',
  'done',
  'error',
  'cancelled',
  'skipped',
];

/** <Badge word="running" title="…" kind="…" />; kind: the colour, where the word is not one of the above. */
export const Badge = ({ word, title, kind = word }) =>
  html`<span class=${`badge ${WORDS.has(kind) ? `is-${kind}` : ''}`} title=${title}>${word}</span>`;
