// Bars: how much of a limit is in use, and how a whole is divided.
import { amount, count } from '../format.js';
import { html } from '../view.js';

/** "3 of 10 running" with a bar, without a limit the number alone: <Meter value=${3} limit=${10} unit="running" />. */
export function Meter({ value, limit, unit = '' }) {
  if (!limit) return html`<span>${count(value)}</span>`;
  const text = `${amount(value)} of ${amount(limit)}${unit ? ` ${unit}` : ''}`;
  const share = Math.min(1, value / limit);
  const kind = share >= 1 ? 'is-full' : share >= 0.8 ? 'is-high' : '';
  return html`<span class="meter" role="meter" aria-valuenow=${value} aria-valuemin="0" aria-valuemax=${limit} aria-label=${text}>
    <span class="meter-track"><span class=${`meter-fill ${kind}`} style=${{ width: `${share * 100}%` }}></span></span>
    <span class="meter-text">${text}</span>
  </span>`;
}

/** A bar of parts in proportion: <Stack parts=${[[kind, value, name], …]} />. */
export function Stack({ parts }) {
  const some = parts.filter(([, value]) => value);
  const sum = some.reduce((all, [, value]) => all + value, 0);
  const text = some.map(([, value, name]) => `${count(value)} ${name}`).join(', ') || 'empty';
  return html`<span class="stack" role="img" aria-label=${text} title=${text}>
    ${some.map(([kind, value]) => html`<span class=${`stack-part is-${kind}`} style=${{ flexGrow: value / sum }}></span>`)}
  </span>`;
}
