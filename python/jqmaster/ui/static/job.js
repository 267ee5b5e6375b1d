// A job: what it is, what became of it, why it waits, and what can be done about it.
import { api, may, path, readJob, stringify, toJob, withQuery } from './api.js';
import { FIELDS } from './fields.js';
import { count, cut, duration, moment, now, straight, termsOf } from './format.js';
import { act, confirm, failed, form } from './forms.js';
import {
  Ago,
  Badge,
  Button,
  ENDED,
  Facts,
  Loaded,
  linked,
  Progress,
  Section,
  toQueue,
  Until,
  WAITING,
  Worker,
} from './parts.js';
import { actionOf, mass } from './query.js';
import { Tree } from './tree.js';
import { html, Link, mayOpen, navigate, setTitle, useData, useEffect, useRef, useState } from './view.js';
import { Dependents, Depends, dependsOf, SHOWN, Timeline, Why } from './why.js';

// -- what is known of it ------------------------------------------------------------------------------

const STEPS = 2; // from a job to those that it waits for, with each look
const WIDE = 5;
const MOST = 100; // jobs

/** All that a job waits for, and those wait for, as far as they are known. */
function rootward(job, others) {
  const awaited = new Set();
  const add = (ids = []) => {
    for (const id of ids) {
      if (awaited.has(id) || awaited.size === MOST) continue;
      awaited.add(id);
      add(others.get(id)?.waits_for?.slice(0, WIDE));
    }
  };
  add(job.waits_for);
  return awaited;
}

/**
 * Those it waits for, each time some steps nearer to the failed ones that hold all of them, and those that wait for it,
 * as far as they are shown; what has ended, and nobody waits for, stays as it is.
 */
async function lookAround(job, others) {
  const near = [...dependsOf(job).slice(0, SHOWN), ...(job.dependents || []).slice(0, SHOWN)];
  const asked = new Set();
  for (let step = 0; step < STEPS; step += 1) {
    const awaited = rootward(job, others);
    const isOver = (id) => ENDED.includes(others.get(id)?.status) && !awaited.has(id);
    const ids = [...new Set([...near, ...awaited])].filter((id) => !asked.has(id) && !isOver(id));
    if (!ids.length) return;
    const { jobs } = await api.post('/jobs/get', { ids }).catch(() => ({ jobs: [] }));
    if (!jobs.length) return;
    for (const [i, found] of jobs.entries()) {
      asked.add(ids[i]);
      others.set(ids[i], found);
    }
  }
}

/** Its document, history and explanation, as useData's answer; and documents of the jobs around it, by id. */
function useJob(id) {
  const at = path`/job/${id}`;
  const others = useRef(new Map()).current;
  const load = async (signal) => {
    const get = (target) => api.get(target, {}, { signal });
    const [job, history] = await Promise.all([get(at), get(`${at}/history`)]);
    const [explanation] = await Promise.all([
      WAITING.includes(job.status) ? get(`${at}/explain`) : null,
      lookAround(job, others),
    ]);
    return { job, history, explanation };
  };
  return { state: useData(load, { ms: 2000, deps: [id] }), others };
}

// -- its facts ----------------------------------------------------------------------------------------

const both = (ms) => html`${moment(ms)} <span class="muted">(<${ms > now() ? Until : Ago} ms=${ms} />)</span>`;
const seconds = (value) => duration(value * 1000);

// What a job was told that has a place of its own, here or elsewhere on its page.
const TOLD = new Set(
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
function factsOf(job) {
  const used = Math.min(job.retry_count - (job.status === 'error' ? 1 : 0), job.max_retry); // the last failure had none
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
    ['Queue', linked([job.queue], toQueue)],
    ['Priority', String(job.priority)],
    [
      'Attempts',
      `${count(job.attempt)} started; ${count(Math.max(used, 0))} of ${count(job.max_retry)} ${job.max_retry === 1 ? 'retry' : 'retries'} used`,
    ],
    ['Worker', job.worker_id && html`<${Worker} id=${job.worker_id} size=${120} />`],
    ['Enqueued', both(job.created_ms)],
    ['Ready', job.ready_ms && both(job.ready_ms)],
    [DUE[job.status] || 'Due', job.due_ms && both(job.due_ms)],
    ['Started', job.started_ms && both(job.started_ms)],
    ['Ended', job.ended_ms && both(job.ended_ms)],
    ['Expires', job.expires_ms && both(job.expires_ms)],
    ['Lease', seconds(job.timeout)],
    ...FIELDS.filter(({ name }) => !TOLD.has(name)).map((field) => [field.label, text(field, job[field.name])]),
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
        html`<${Link} to=${path`/schedule/${job.schedule}`}>${cut(job.schedule, 120)}<//>${job.schedule_ms ? `, for ${moment(job.schedule_ms)}` : ''}`,
    ],
    [
      'Headers',
      job.headers &&
        Object.entries(job.headers).map(
          ([name, value]) => html`<div><code>${cut(`${name}: ${value}`, 1100)}</code></div>`,
        ),
    ],
  ];
}

// -- its error and argument ---------------------------------------------------------------------------

const LINES = 12; // lines; of a traceback the last ones tell the most

const isLines = (value) => typeof value === 'string' && value.trim().includes('\n');

function Lines({ value, name }) {
  const [isWhole, setWhole] = useState(false);
  const lines = straight(value.replace(/\n$/, '')).split('\n');
  const hidden = isWhole ? 0 : lines.length - LINES;
  return html`<div class="trace-box"><h3>${name}</h3>
    ${hidden > 0 ? html`<button type="button" class="inline" onClick=${() => setWhole(true)}>Show ${count(hidden)} lines before</button>` : null}
    <pre class="j-lines trace" tabindex="0" aria-label=${name}>${(isWhole ? lines : lines.slice(-LINES)).join('\n')}</pre>
  </div>`;
}

/** The error of a job; nothing where there is none. */
function Fault({ error }) {
  if (error === null || error === undefined) return null;
  if (isLines(error)) return html`<${Lines} value=${error} name="Error" />`;
  if (typeof error !== 'object' || Array.isArray(error)) return html`<${Tree} value=${error} label="Error" />`;
  const long = Object.entries(error).filter(([, value]) => isLines(value));
  const rest = Object.entries(error).filter(([, value]) => !isLines(value));
  return html`${rest.length || !long.length ? html`<${Tree} value=${Object.fromEntries(rest)} label="Error" />` : null}
    ${long.map(([name, value]) => html`<${Lines} key=${name} value=${value} name=${straight(name)} />`)}`;
}

/** Links to them; nothing where there are none. */
function Alike({ argument }) {
  const terms = termsOf(argument);
  if (!terms.length || !mayOpen('/jobs')) return null;
  return html`<p class="alike"><span class="muted">Jobs with the same </span>
    ${terms.map((q) => html`<${Link} class="tag" to=${withQuery('/jobs', { q })}>${cut(q, 80)}<//> `)}</p>`;
}

// -- what can be done ---------------------------------------------------------------------------------

/** Asks what is to be changed, and changes it → the changes; undefined when it was given up. */
async function changeForm(id) {
  const job = await api.get(path`/job/${id}`, {}, { read: readJob });
  const argument = stringify(job.argument, 2);
  const waits = WAITING.includes(job.status);
  const fields = [
    ...(waits
      ? [
          { name: 'queue', label: 'Queue', value: job.queue },
          {
            name: 'priority',
            label: 'Priority',
            type: 'number',
            value: job.priority,
            hint: 'The smallest runs first.',
          },
          { name: 'delay', label: 'Ready in', unit: 's from now', type: 'number', hint: 'Empty: as it is. 0: now.' },
          { name: 'max_retry', label: 'Retries at most', type: 'number', value: job.max_retry },
          { name: 'timeout', label: 'Lease', unit: 's', type: 'number', value: job.timeout },
          { name: 'argument', label: 'Argument', type: 'json', value: job.argument, rows: 8 },
        ]
      : []),
    { name: 'tags', label: 'Tags', type: 'list', value: job.tags || [], hint: 'With commas between.' },
  ];
  const before = { queue: job.queue, priority: job.priority, max_retry: job.max_retry, timeout: job.timeout };
  return form({
    title: `Change ${cut(job.name, 60)}`,
    fields,
    wide: true,
    body: waits ? [] : 'Of a job that runs or has ended, only tags can be changed.',
    submit: async (values) => {
      const changes = {};
      for (const [name, value] of Object.entries(before))
        if (values[name] !== undefined && values[name] !== value) changes[name] = values[name];
      if (values.delay !== undefined) changes.delay = values.delay;
      if (values.argument !== undefined && stringify(values.argument, 2) !== argument)
        changes.argument = values.argument;
      const tags = values.tags || [];
      if (tags.join('\n') !== (job.tags || []).join('\n')) changes.tags = tags;
      if (Object.keys(changes).length) await toJob('/jobs/change', { jobs: [{ id: job.id, ...changes }] });
      return changes;
    },
  });
}

// -- its page ----------------------------------------------------------------------------------------

function Actions({ job, changed }) {
  const at = (id) => actionOf(id).states.includes(job.status);
  const ask = (id) => async () => {
    const did = await mass(actionOf(id), { ids: [job.id], rows: [job] });
    if (id === 'discard' && did) navigate('/jobs');
    else if (did !== undefined) changed();
  };
  const doing = (step, message) => async () => (await act(step, message)) && changed();
  const take = async () => {
    const isSure = await confirm({
      title: 'Take it from its worker?',
      action: 'Take from worker',
      body: 'It waits again and no retry is spent. What it did so far may happen twice.',
    });
    if (isSure) await doing(() => toJob('/jobs/kick', { ids: [job.id] }), 'It waits in its queue again.')();
  };
  const change = async () => (await changeForm(job.id).catch(failed)) && changed();
  const retry = doing(() => toJob('/jobs/retry', { ids: [job.id] }), 'It is in the queue again.');
  const now = doing(
    () => toJob('/jobs/change', { jobs: [{ id: job.id, delay: 0 }] }),
    'It does not wait for its time any longer.',
  );
  // With keys: the focus goes with a button that goes, it does not move on to another.
  const button = (id, text, onClick, kind) =>
    html`<${Button} key=${id} needs="operator" class=${kind} onClick=${onClick}>${text}<//>`;
  return html`<div class="actions">
    ${at('retry') && button('retry', 'Retry', retry, 'primary')}
    ${at('run') && button('run', 'Run now', now, at('retry') ? '' : 'primary')}
    ${button('change', 'Change…', change)}
    <${Again} key="again" id=${job.id} />
    ${at('kick') && button('kick', 'Take from worker…', take)}
    ${at('cancel') && button('cancel', 'Cancel…', ask('cancel'), 'danger')}
    ${at('discard') && button('discard', 'Discard…', ask('discard'), 'danger')}
  </div>`;
}

const Again = ({ id }) =>
  may('pusher') && html`<${Link} class="button" to=${withQuery('/enqueue', { as: id })}>Enqueue again…<//>`;

const Top = ({ job, changed }) => html`<div class="head job-head">
  <h1>${cut(job.name, 200)} <${Badge} word=${job.status} /></h1>
  <${Actions} job=${job} changed=${changed} />
  <p class="muted job-line"><code>${job.id}</code> · in ${linked([job.queue], toQueue)} · enqueued <${Ago} ms=${job.created_ms} />${
    job.worker_id
      ? html` · ${job.status === 'running' ? 'runs' : 'ran last'} on <${Worker} id=${job.worker_id} />`
      : null
  }${job.started_ms && job.ended_ms ? ` · took ${duration(Math.max(0, job.ended_ms - job.started_ms))}` : ''}${
    job.attempt > 1 ? ` · ${count(job.attempt)} attempts` : ''
  }</p>
</div>`;

function Failure({ job }) {
  const { status, message, error, reason, group } = job;
  if (status === 'done' || (!message && (error === null || error === undefined) && !reason)) return null;
  const text = group && cut(group, 80);
  return html`<section class="panel failure" aria-label="Last failure">
    <h2>${status === 'error' ? 'It failed for good' : 'Last failure'}</h2>
    <p class="problem clip said-all">${message || `reason: ${reason || 'not given'}`}</p>
    <p class="muted">${
      job.retry_count ? `${job.retry_count} of ${job.max_retry + 1} attempts failed` : 'It has begun anew since'
    }${reason && reason !== 'other' ? ` · ${reason}` : ''}${
      group
        ? html` · group ${status === 'error' ? html`<${Link} to=${withQuery('/jobs', { group })}>${text}<//>` : text}`
        : null
    }</p>
    <${Fault} error=${error} />
  </section>`;
}

function Values({ job }) {
  const { argument, result, status } = job;
  const hasResult = result !== null && result !== undefined;
  const nothing = job.keep_result ? 'Nothing, or it is not kept any longer.' : 'Results of this job are not kept.';
  return html`<div class="grid">
    <${Section} title="Argument"><${Tree} value=${argument} label="Argument" /><${Alike} argument=${argument} /><//>
    ${
      hasResult || status === 'done'
        ? html`<${Section} title="Result">${
            hasResult ? html`<${Tree} value=${result} label="Result" />` : html`<p class="muted">${nothing}</p>`
          }<//>`
        : null
    }
  </div>`;
}

/** Whether its id, and so the moment of its enqueueing, is ahead of the clock. */
const isAhead = ({ created_ms, started_ms, ended_ms }) => created_ms > (started_ms ?? ended_ms ?? now() + 2000);

function Shown({ known: { job, history, explanation }, others, changed, isGone }) {
  const isSomeReason = explanation && WAITING.includes(explanation.status);
  return html`<${Top} job=${job} changed=${changed} />
    ${isGone ? html`<${Section} title="It is gone"><p>Its record is not there any longer. <${Link} to="/jobs">All jobs<//></p><//>` : null}
    ${
      isAhead(job) && !isGone
        ? html`<p class="muted" role="note">Redis was restarted: ids go on from where they were, so for two minutes moments of enqueueing are up to 131 s late.</p>`
        : null
    }
    <${Progress} job=${job} isLong />
    ${
      isSomeReason && !isGone
        ? html`<${Section} title="Why it waits"><${Why} explanation=${explanation} job=${job} others=${others} changed=${changed} /><//>`
        : null
    }
    ${job.depends?.length ? html`<${Section} title="What it waits for"><${Depends} job=${job} others=${others} /><//>` : null}
    ${job.dependents ? html`<${Section} title="What waits for it"><${Dependents} ids=${job.dependents} others=${others} /><//>` : null}
    <${Failure} job=${job} />
    <${Values} job=${job} />
    <div class="grid job-grid">
      <${Section} title="What happened"><${Timeline} history=${history} job=${job} explanation=${explanation} /><//>
      <${Section} title="Facts"><${Facts} pairs=${factsOf(job)} /><//>
    </div>`;
}

export function Job({ params: { id } }) {
  const { state, others } = useJob(id);
  const { data, problem } = state;
  const name = data?.job.name;
  useEffect(() => {
    if (name !== undefined) setTitle(cut(name, 60));
  }, [name]);
  const isGone = problem?.status === 404;
  return html`<${Loaded} of=${state}>${(known) => html`<${Shown} known=${known} others=${others} changed=${state.reload} isGone=${isGone} />`}<//>`;
}
