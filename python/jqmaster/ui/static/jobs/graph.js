// What a job waits for, as a small graph: on the left those, on the right the job. And what waits for it.
import { path } from '../api.js';
import { badge } from '../components/badge.js';
import { h, svg } from '../dom.js';
import { count, cut, jobs as inJobs } from '../format.js';
import { link } from '../router.js';

const HIGH = 46;
const WIDE = 64;
export const SHOWN = 12;

function box(id, job) {
  return h(
    'div',
    { class: 'node' },
    link(path`/job/${id}`, cut(job?.name || id, 28)),
    job ? badge(job.status) : h('span', { class: 'muted' }, 'record is gone'),
  );
}

const TOLD = 100; // dependents that a document has at most

/** The jobs that wait for one; others: as below. */
export function dependents(job, others) {
  const ids = job.dependents;
  const shown = ids.slice(0, SHOWN);
  return [
    h(
      'ul',
      { class: 'nodes dependents' },
      shown.map((id) => h('li', {}, box(id, others.get(id)))),
    ),
    h(
      'p',
      { class: 'muted' },
      `${ids.length >= TOLD ? 'At least ' : ''}${inJobs(ids.length)} ${ids.length === 1 ? 'waits' : 'wait'} for it.`,
      ids.length > SHOWN ? ` ${count(ids.length - SHOWN)} more are not drawn.` : '',
    ),
  ];
}

/** `job` with `depends`; others: documents by id, null for those that are gone. */
export function graph(job, others) {
  const open = new Set(job.waits_for || []);
  // Those it still waits for are what one wants to see.
  const ids = [...job.depends].sort((a, b) => open.has(b) - open.has(a));
  const shown = ids.slice(0, SHOWN);
  const rows = shown.length;
  const high = rows * HIGH;
  const middle = high / 2;
  const wires = svg(
    'svg',
    {
      class: 'wires',
      width: WIDE,
      height: high,
      viewBox: `0 0 ${WIDE} ${high}`,
      preserveAspectRatio: 'none',
      'aria-hidden': 'true',
    },
    shown.map((id, index) => {
      const y = index * HIGH + HIGH / 2;
      return svg('path', {
        class: open.has(id) ? 'wire is-open' : 'wire',
        d: `M0 ${y} C${WIDE / 2} ${y} ${WIDE / 2} ${middle} ${WIDE - 7} ${middle}`,
      });
    }),
    svg('path', { class: 'wire-end', d: `M${WIDE - 8} ${middle - 5} L${WIDE} ${middle} L${WIDE - 8} ${middle + 5} Z` }),
  );
  const self = h(
    'div',
    { class: 'node is-self' },
    h('b', { class: 'hide-narrow' }, cut(job.name, 28)),
    badge(job.status),
  );
  return h(
    'div',
    {},
    h(
      'div',
      { class: 'graph', role: 'group', 'aria-label': 'What it waits for' },
      h(
        'ul',
        { class: 'nodes' },
        shown.map((id) => h('li', {}, box(id, others.get(id)))),
      ),
      wires,
      h('div', { class: 'nodes-self' }, self),
    ),
    h(
      'p',
      { class: 'muted' },
      open.size
        ? `It still waits for ${count(open.size)} of ${count(ids.length)}.`
        : `All ${count(ids.length)} have ended.`,
      ids.length > SHOWN ? ` ${count(ids.length - SHOWN)} more are not drawn.` : '',
      ' If one of them fails: ',
      h('b', {}, job.if_failed || 'wait'),
      '.',
    ),
  );
}
