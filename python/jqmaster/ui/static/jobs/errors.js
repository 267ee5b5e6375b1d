// What a worker said of a failure: texts of several lines, such as tracebacks, as lines; the rest as a tree.
import { Tree } from '../components/tree.js';
import { count, straight } from '../format.js';
import { html, useState } from '../view.js';

const SHOWN = 12; // lines; of a traceback the last ones tell the most

const isLines = (value) => typeof value === 'string' && value.trim().includes('\n');

function Lines({ value, name }) {
  const [isWhole, setWhole] = useState(false);
  const lines = straight(value.replace(/\n$/, '')).split('\n');
  const hidden = isWhole ? 0 : lines.length - SHOWN;
  return html`<div class="trace-box"><h3>${name}</h3>
    ${hidden > 0 ? html`<button type="button" class="inline" onClick=${() => setWhole(true)}>Show ${count(hidden)} lines before</button>` : null}
    <pre class="j-lines trace" tabindex="0" aria-label=${name}>${(isWhole ? lines : lines.slice(-SHOWN)).join('\n')}</pre>
  </div>`;
}

/** The error of a job; nothing where there is none. */
export function Fault({ error }) {
  if (error === null || error === undefined) return null;
  if (isLines(error)) return html`<${Lines} value=${error} name="Error" />`;
  if (typeof error !== 'object' || Array.isArray(error)) return html`<${Tree} value=${error} label="Error" />`;
  const long = Object.entries(error).filter(([, value]) => isLines(value));
  const rest = Object.entries(error).filter(([, value]) => !isLines(value));
  return html`${rest.length || !long.length ? html`<${Tree} value=${Object.fromEntries(rest)} label="Error" />` : null}
    ${long.map(([name, value]) => html`<${Lines} key=${name} value=${value} name=${straight(name)} />`)}`;
}
