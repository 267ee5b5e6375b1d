// What pages know of queues: how they do, in figures and words, and what can be done with one.
import { api, path } from './api.js';
import { Badge } from './components/badge.js';
import { beginBulk } from './components/bulks.js';
import { confirm, form } from './components/dialog.js';
import { Time as Since } from './components/time.js';
import { act } from './components/toast.js';
import { count, duration, jobs, now } from './format.js';
import { withQuery } from './router.js';
import { html, Link } from './view.js';

export const WAITING = ['queued', 'scheduled', 'blocked', 'retrying'];

/** Rates are of so many minutes. */
export const MINUTES = 5;

/** By how many jobs a minute it grows; null where nothing is counted. */
export function netOf({ recent }) {
  if (!recent) return null;
  const left = recent.done + recent.error + recent.cancelled + recent.skipped + recent.moved;
  return ((recent.enqueued - left) * 60000) / recent.span_ms;
}

export const isFull = (queue) =>
  queue.max_waiting && WAITING.reduce((sum, state) => sum + queue[state], 0) >= queue.max_waiting;

/** Whether a worker names a queue; the names of queues may have stars. */
export const serves = ({ queues }, name) =>
  queues.some((text) =>
    new RegExp(
      `^${text
        .split('*')
        .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
        .join('.*')}$`,
      's',
    ).test(name),
  );

/** What is not known, or did not happen: never 0. */
export const Gone = () => html`<span class="zero">–</span>`;

/** For how long: goes on counting while it is shown. */
export function Age({ ms }) {
  if (!ms) return html`<${Gone} />`;
  return html`<${Since} ms=${ms} textOf=${(since) => duration(Math.max(0, Math.floor((now() - since) / 1000) * 1000))} />`;
}

/** Jobs a minute. */
export function PerMinute({ of, isSigned }) {
  if (of === null || of === undefined) return html`<${Gone} />`;
  const size = Math.abs(of);
  if (size < 0.05) return html`<span class="zero">0</span>`;
  return html`<span>${isSigned ? (of > 0 ? '+' : '−') : ''}${size < 10 ? Math.round(size * 10) / 10 : count(size)}</span>`;
}

const CAUSES = {
  paused: ['paused', 'paused', 'It is paused'],
  'no worker': ['no worker', 'problem', 'No worker is registered for it, waits for its jobs or runs one'],
  'unknown job': ['unknown job', 'problem', 'No worker that serves it knows its oldest job'],
  slow: ['too slow', 'warning', 'It is served, and its oldest job waits for longer than late_after'],
};

/** Why its oldest ready job waits. */
export function Cause({ queue }) {
  if (queue.cause === 'constraint')
    return html`<span>held by ${queue.held_by.map((id, i) => html`${i ? ', ' : ''}<${Link} to=${path`/constraint/${id}`}>${id}<//>`)}</span>`;
  const [word, kind, title] = CAUSES[queue.paused ? 'paused' : queue.cause] || [];
  return word ? html`<${Badge} word=${word} kind=${kind} title=${title} />` : null;
}

export const pause = (queue) =>
  act(
    () => api.post(path`/queue/${queue.name}/${queue.paused ? 'resume' : 'pause'}`),
    queue.paused ? `${queue.name} goes on.` : `${queue.name} is paused: it takes jobs and starts none.`,
  );

export function limit(queue) {
  return form({
    title: `How many jobs may wait in ${queue.name}`,
    body: 'Whoever enqueues beyond it is refused. 0: no limit.',
    fields: [
      { name: 'max_waiting', label: 'Jobs that wait', type: 'number', value: queue.max_waiting, required: true },
    ],
    submit: (values) => api.patch(path`/queue/${queue.name}`, values),
  });
}

export function purge(queue) {
  const counted = [
    ['queued,scheduled,blocked,retrying', WAITING],
    ...['queued', 'scheduled', 'blocked', 'retrying', 'done', 'error', 'cancelled', 'skipped'].map((state) => [
      state,
      [state],
    ]),
  ].map(([states, list]) => [
    states,
    `${list.length > 1 ? 'All that wait' : list[0]} (${count(list.reduce((sum, state) => sum + queue[state], 0))})`,
  ]);
  return form({
    title: `Discard jobs of ${queue.name}`,
    body: 'Jobs that wait are cancelled; the records of all of them are removed. It goes on when this page is closed, and cannot be undone.',
    action: 'Discard',
    danger: true,
    fields: [
      { name: 'status', label: 'Which', type: 'select', options: counted },
      { name: 'typed', label: 'To confirm, type the name of the queue', required: true },
    ],
    submit: async ({ status, typed }) => {
      if (typed !== queue.name) throw Object.assign(new Error('This is not its name.'), { field: 'typed' });
      const states = status.split(',');
      const total = states.reduce((sum, state) => sum + queue[state], 0);
      return beginBulk('discard', { queue: queue.name, status: states }, { total });
    },
  });
}

export async function forget(queue) {
  const isSure = await confirm({
    title: `Forget ${queue.name}?`,
    action: 'Forget',
    body: 'A queue without jobs goes, with its settings and statistics. It comes back with the next job for it.',
  });
  return isSure && act(() => api.delete(path`/queue/${queue.name}`), `${queue.name} is forgotten.`);
}

/** Settings of its own; an empty field: as the namespace has it. */
export async function ownSettings(queue) {
  const settings = await api.get('/config', { describe: true });
  const usable = settings.filter((one) => one.queues);
  const own = queue.settings || {};
  return form({
    title: `Settings of ${queue.name}`,
    body: 'Empty: as for all queues.',
    wide: true,
    fields: usable.map((one) => ({
      name: one.name,
      label: one.name,
      unit: one.unit,
      type: 'number',
      value: own[one.name],
      hint: one.meaning,
      placeholder: String(one.value),
    })),
    submit: (values) => {
      const unset = Object.keys(own).filter((name) => !(name in values));
      const body = { ...(Object.keys(values).length ? { set: values } : {}), ...(unset.length ? { unset } : {}) };
      return Object.keys(body).length
        ? api.patch(path`/queue/${queue.name}`, body).catch((problem) => {
            throw Object.assign(problem, { field: problem.field?.replace(/^set\./, '') });
          })
        : true;
    },
  });
}

/** A number that leads to the jobs it counts. */
export function Counted({ queue, state }) {
  if (!queue[state]) return html`<span class="zero">0</span>`;
  const to = withQuery('/jobs', { queue: queue.name, status: state });
  return html`<${Link} to=${to} aria-label=${`${jobs(queue[state])} ${state}`}>${count(queue[state])}<//>`;
}
