// All that is known of a job and is not shown elsewhere on its page.
import { path } from '../api.js';
import { Ago } from '../components/time.js';
import { count, cut, duration, moment } from '../format.js';
import { withQuery } from '../router.js';
import { html, Link } from '../view.js';
import { FIELDS } from './fields.js';
import { Worker } from './worker.js';

const both = (ms) => html`${moment(ms)} <span class="muted">(<${Ago} ms=${ms} />)</span>`;
const seconds = (value) => duration(value * 1000);

// What a job was told that has a place of its own, here or elsewhere on its page.
const SHOWN = new Set(
  (
    'priority max_retry timeout keep_result tags unique unique_for unique_within depends if_failed retry_base retry_cap ' +
    'retry_jitter track headers'
  ).split(' '),
);

/** The value of a field, as of FIELDS. */
function text({ kind }, value) {
  if (value === undefined || value === null) return '';
  if (kind === 'seconds') return seconds(value);
  return cut(Array.isArray(value) ? value.join(', ') : String(value), 255);
}

const DUE = { running: 'Lease ends', retrying: 'Next attempt', scheduled: 'Due' };

/** A list of facts: [[name, value], …], empty ones left out. */
function list(job) {
  const retry = [
    ['from', job.retry_base, seconds],
    ['at most', job.retry_cap, seconds],
    ['jitter', job.retry_jitter, String],
  ]
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([word, value, as]) => `${word} ${as(value)}`)
    .join(', ');
  return [
    ['Id', html`<code>${job.id}</code>`],
    ['Name', html`<${Link} to=${withQuery('/jobs', { name: job.name })}>${cut(job.name, 255)}<//>`],
    ['Queue', html`<${Link} to=${path`/queue/${job.queue}`}>${cut(job.queue, 255)}<//>`],
    ['Priority', String(job.priority)],
    [
      'Attempts',
      `${count(job.attempt)} started, ${count(job.retry_count)} failed; ${count(job.max_retry)} ${job.max_retry === 1 ? 'retry' : 'retries'} allowed`,
    ],
    ['Worker', job.worker_id && html`<${Worker} id=${job.worker_id} size=${120} />`],
    ['Enqueued', both(job.created_ms)],
    ['Ready', job.ready_ms && both(job.ready_ms)],
    [DUE[job.status] || 'Due', job.due_ms && both(job.due_ms)],
    ['Started', job.started_ms && both(job.started_ms)],
    ['Ended', job.ended_ms && both(job.ended_ms)],
    ['Finished, as the worker says', job.finished_at && cut(job.finished_at, 60)],
    ['Expires', job.expires_ms && both(job.expires_ms)],
    ['Lease', seconds(job.timeout)],
    ...FIELDS.filter((one) => one.shown && !SHOWN.has(one.name)).map((one) => [one.label, text(one, job[one.name])]),
    ['Backoff', retry],
    ['Result', job.keep_result ? 'kept' : 'not kept'],
    [
      'Tags',
      job.tags?.length &&
        job.tags.map((tag) => html`<${Link} class="tag" to=${withQuery('/jobs', { tag })}>${cut(tag, 80)}<//> `),
    ],
    [
      'Unique key',
      job.unique &&
        html`<code>${cut(job.unique, 255)}</code>
          ${job.unique_for ? ` (and ${seconds(job.unique_for)} after its end)` : ''}
          ${job.unique_within ? ` (for ${seconds(job.unique_within)} from enqueueing)` : ''}`,
    ],
    [
      'Schedule',
      job.schedule &&
        html`<${Link} to="/schedules">${cut(job.schedule, 120)}<//>${job.schedule_ms ? `, for ${moment(job.schedule_ms)}` : ''}`,
    ],
    [
      'Headers',
      job.headers &&
        Object.entries(job.headers).map(
          ([name, said]) => html`<div><code>${cut(`${name}: ${said}`, 1100)}</code></div>`,
        ),
    ],
  ].filter(([, value]) => value !== undefined && value !== null && value !== '' && value !== 0 && value !== false);
}

export const Facts = ({ job }) =>
  html`<dl class="facts">${list(job).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
