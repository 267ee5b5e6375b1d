// What a job waits for, as a small graph: on the left those, on the right the job. And what waits for it.
import { path } from '../api.js';
import { Badge } from '../components/badge.js';
import { count, cut, jobs as inJobs } from '../format.js';
import { html, Link } from '../view.js';

const HIGH = 46;
const WIDE = 64;
const TOLD = 100; // dependents that a document has at most
export const SHOWN = 12;

/** Of those a job depends on, the ones that it still waits for first: they are what one wants to see. */
export function dependsOf({ depends = [], waits_for = [] }) {
  const open = new Set(waits_for);
  return [...depends].sort((a, b) => open.has(b) - open.has(a));
}

const Nodes = ({ ids, others, kind = '' }) =>
  html`<ul class=${`nodes ${kind}`}>${ids.map((id) => {
    const job = others.get(id);
    const known = job === null ? 'record is gone' : 'not known';
    return html`<li key=${id}><div class="node"><${Link} to=${path`/job/${id}`}>${cut(job?.name || id, 28)}<//>
      ${job ? html`<${Badge} word=${job.status} />` : html`<span class="muted">${known}</span>`}</div></li>`;
  })}</ul>`;

const more = (ids) => (ids.length > SHOWN ? ` ${count(ids.length - SHOWN)} more are not drawn.` : '');

/** The jobs that wait for one; others: documents by id, null for those that are gone, undefined where nobody says. */
export const Dependents = ({
  ids,
  others,
}) => html`<${Nodes} ids=${ids.slice(0, SHOWN)} others=${others} kind="dependents" />
  <p class="muted">${ids.length >= TOLD ? 'At least ' : ''}${inJobs(ids.length)} ${ids.length === 1 ? 'waits' : 'wait'} for it.${more(ids)}</p>`;

/** `job` with `depends`; others: as above. */
export function Graph({ job, others }) {
  const open = new Set(job.waits_for || []);
  const ids = dependsOf(job);
  const shown = ids.slice(0, SHOWN);
  const high = shown.length * HIGH;
  const middle = high / 2;
  return html`<div class="graph" role="group" aria-label="What it waits for">
      <${Nodes} ids=${shown} others=${others} />
      <svg class="wires" width=${WIDE} height=${high} viewBox=${`0 0 ${WIDE} ${high}`} preserveAspectRatio="none" aria-hidden="true">
        ${shown.map((id, index) => {
          const y = index * HIGH + HIGH / 2;
          return html`<path class=${open.has(id) ? 'wire is-open' : 'wire'}
            d=${`M0 ${y} C${WIDE / 2} ${y} ${WIDE / 2} ${middle} ${WIDE - 7} ${middle}`} />`;
        })}
        <path class="wire-end" d=${`M${WIDE - 8} ${middle - 5} L${WIDE} ${middle} L${WIDE - 8} ${middle + 5} Z`} />
      </svg>
      <div class="nodes-self"><div class="node is-self"><b class="hide-narrow">${cut(job.name, 28)}</b>
        <${Badge} word=${job.status} /></div></div>
    </div>
    <p class="muted">${
      open.size
        ? `It still waits for ${count(open.size)} of ${count(ids.length)}.`
        : `All ${count(ids.length)} have ended.`
    }${more(ids)} If one of them fails: <b>${job.if_failed || 'wait'}</b>.</p>`;
}
