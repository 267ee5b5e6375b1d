// Lines that find the jobs with the same values in their arguments.
import { cut } from '../format.js';
import { withQuery } from '../router.js';
import { html, Link } from '../view.js';
import { termOf } from './queryline.js';

const MOST = 8;
const DEEP = 3;
const LONG = 60;

/** Terms for the short values of an argument, those near the top first. */
function termsOf(argument) {
  const terms = [];
  let level = [['argument', argument]];
  for (let depth = 0; depth <= DEEP && level.length && terms.length < MOST; depth += 1) {
    const next = [];
    for (const [path, value] of level) {
      if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
        for (const [key, inner] of Object.entries(value))
          next.push([`${path}.${key.replace(/[.\\]/g, '\\$&')}`, inner]);
      } else if (value !== null && typeof value !== 'object' && String(value).length <= LONG && String(value)) {
        const term = termOf(path, value);
        if (term) terms.push(term);
      }
    }
    level = next;
  }
  return terms.slice(0, MOST);
}

/** Links to them; nothing where there are none. */
export function Alike({ argument }) {
  const terms = termsOf(argument);
  if (!terms.length) return null;
  return html`<p class="alike"><span class="muted">Jobs with the same </span>
    ${terms.map((q) => html`<${Link} class="tag" to=${withQuery('/jobs', { q })}>${cut(q, 80)}<//> `)}</p>`;
}
