// Why a job waits, in plain words: the strongest reason first, with what can be done about it.
import { api, path } from '../api.js';
import { Badge } from '../components/badge.js';
import { Meter } from '../components/bar.js';
import { Button } from '../components/parts.js';
import { Until } from '../components/time.js';
import { act } from '../components/toast.js';
import { onHold } from '../constraints.js';
import { amount, count, cut, duration, jobs as inJobs, now } from '../format.js';
import { withQuery } from '../router.js';
import { html, Link } from '../view.js';

const Line = ({ kind, children }) => html`<div class=${`alert why is-${kind}`}>${children}</div>`;

/** One way or the other, by how many: `of(n, 'comes', 'come')`. */
const of = (number, one, many) => (number === 1 ? one : many);

function keyText(by) {
  return by === undefined ? '' : typeof by === 'string' ? by : JSON.stringify(by);
}

/** One constraint: what it allows, and how much of that is in use. */
function Limit({ one }) {
  const { concurrency, rate, starts, cost } = one;
  const much = rate && `${count(rate.limit)} in ${duration(rate.period * 1000)}`;
  return html`${
    concurrency
      ? html`<div class="why-use"><span>at once</span><${Meter} value=${one.running} limit=${concurrency} unit="in use" /></div>`
      : null
  }
    ${
      rate
        ? html`<div class="why-use">${
            starts === undefined
              ? html`<span>starts: ${much}, evenly</span>`
              : html`<span>${cost === undefined ? 'starts' : 'rate'}: ${much}</span>
                <${Meter} value=${starts} limit=${rate.limit} unit=${cost === undefined ? '' : 'used'} />`
          }</div>`
        : null
    }`;
}

/** What closes a constraint, and when it opens as far as that is known: [state, view]. */
function closing(one) {
  const isFull = one.concurrency && one.running >= one.concurrency;
  const opens = html`<${Until} ms=${one.opens_ms} />`;
  const freed = one.order
    ? 'when the job that has its place has ended for good, which keeps it while it waits for a retry as well'
    : 'when one of those that have a place ends';
  const hold = onHold(one);
  if (hold)
    return [
      'is on hold.',
      html` It opens <${Until} ms=${one.opens_ms ?? hold} />${isFull ? `, but then only ${freed}.` : '.'}`,
    ];
  if (isFull)
    return [
      'is full.',
      html`${one.order ? ' It is in strict order: it opens ' : ' It opens '}${freed}${
        one.opens_ms ? html`, and its rate has room ${opens}` : ''
      }.`,
    ];
  if (!one.opens_ms) return ['has no room.', ''];
  if (one.cost === undefined) return ['has no room.', html` It has room again ${opens}.`];
  const needs = ` This job needs ${amount(one.cost)}`;
  // It would fit: a larger one has found no room before.
  if (one.starts + one.cost <= one.rate.limit)
    return ['has no room.', html`${needs}, but what is left is kept for a job that needs more. It opens ${opens}.`];
  return ['has no room.', html`${needs}: there is room for that ${opens} at the earliest.`];
}

function Constraint({ one, e }) {
  const key = keyText(one.by);
  const target = path`/constraint/${one.id}`;
  const name = html`Constraint <${Link} to=${target}>${one.id}<//>${key ? html` for <code>${cut(key, 60)}</code>` : null}`;
  // Open with all places taken: one of them is this job's.
  if (one.open)
    return html`<${Line} kind="ok">
      <p>${name}${one.concurrency && one.running >= one.concurrency ? ' has a place that this job keeps.' : ' has room.'}</p>
      <${Limit} one=${one} /><//>`;
  const [state, opens] = closing(one);
  const jobs = (status, text) => html`<${Link} to=${withQuery('/jobs', { status, queue: e.queue })}>${text}<//> · `;
  return html`<${Line} kind="full">
    <p><b>${name} ${state}</b>${opens}</p>
    <${Limit} one=${one} />
    <p>${one.concurrency && e.running ? jobs('running', 'What runs in this queue') : null}${
      one.order ? jobs('retrying', 'What is to be retried') : null
    }<${Link} to=${target}>Look at the constraint<//></p><//>`;
}

function Served({ e }) {
  const some = `${inJobs(e.running)} of it ${of(e.running, 'runs', 'run')}`;
  const runs = e.running ? `; ${some}` : '';
  if (e.workers)
    return html`<${Line} kind="ok"><p>${count(e.workers)} registered ${of(e.workers, 'worker serves', 'workers serve')} its queue${runs}.</p><//>`;
  if (e.waiting) return html`<${Line} kind="ok"><p>A worker waits for jobs of its queue${runs}.</p><//>`;
  if (e.running)
    return html`<${Line} kind="note"><p>No worker waits for jobs of its queue now, but ${some}: who runs ${of(e.running, 'it', 'them')} may take the next.</p><//>`;
  return html`<${Line} kind="problem"><p><b>No worker is seen that serves its queue:</b> none is registered for it, none waits
    for its jobs, none runs any. <${Link} to="/workers">Workers<//></p><//>`;
}

function Paused({ queue, changed }) {
  const resume = async () => {
    if (await act(() => api.post(path`/queue/${queue}/resume`), `Queue ${queue} goes on.`)) changed();
  };
  return html`<${Line} kind="paused">
    <p><b>Its queue <${Link} to=${path`/queue/${queue}`}>${queue}<//> is paused.</b> Nothing in it starts. </p>
    <${Button} needs="operator" class="primary small" onClick=${resume}>Resume the queue<//><//>`;
}

/** `isNext`: it is ready now; else what would hold it then, as far as it is so now. */
function Queued({ e, changed, isNext = true }) {
  const limits = e.constraints || [];
  const shut = limits.filter((one) => !one.open);
  const isServed = e.workers || e.waiting || e.running;
  const served = html`<${Served} e=${e} />`;
  const ahead = isNext ? e.ahead : 0;
  const isFree = !e.paused && !shut.length && isServed && !ahead;
  return html`${e.paused ? html`<${Paused} queue=${e.queue} changed=${changed} />` : null}
    ${shut.map((one) => html`<${Constraint} key=${one.id} one=${one} e=${e} />`)}
    ${isServed || !isNext ? null : served}
    ${
      ahead
        ? html`<${Line} kind="note"><p><b>${inJobs(ahead)} ${of(ahead, 'comes', 'come')} before it.</b> <${Link}
            to=${withQuery('/jobs', { queue: e.queue, status: 'queued' })}>See them in order<//></p><//>`
        : null
    }
    ${
      isFree
        ? html`<${Line} kind="ok"><p><b>Nothing holds it: it is the next of its queue.</b>${
            e.running ? ' It starts as soon as a worker has room.' : ' It should start any moment.'
          }</p><//>`
        : null
    }
    ${isServed && isNext ? served : null}
    ${isNext ? limits.filter((one) => one.open).map((one) => html`<${Constraint} key=${one.id} one=${one} e=${e} />`) : null}`;
}

function Timed({ e, job }) {
  // Not `start_ms`: that is when its constraints open, too.
  const at = job.due_ms || e.start_ms;
  const when = at > now() ? html`due <${Until} ms=${at} />` : 'due, and about to become ready';
  if (e.status === 'scheduled')
    return html`<${Line} kind="scheduled"><p><b>Its time has not come: it is ${when}.</b>${
      job.schedule ? html` It was made by the schedule <${Link} to="/schedules">${job.schedule}<//>.` : null
    }</p><//>`;
  const left = job.max_retry - job.retry_count + 1;
  const attempts = left > 0 ? `${count(left)} ${of(left, 'attempt is', 'attempts are')} left` : 'none is left';
  return html`<${Line} kind="retrying">
    <p><b>It failed and waits for its next attempt, ${when}.</b> ${count(job.retry_count)} failed so far; ${attempts}.</p>
    ${job.message ? html`<p class="muted">Last: ${cut(job.message, 300)}</p>` : null}<//>`;
}

function Blocked({ job, others, changed }) {
  const ids = job.waits_for || [];
  const bad = ids.filter((id) => ['error', 'cancelled'].includes(others.get(id)?.status));
  const retry = async () => {
    const say = ({ jobs }) => (jobs.includes('queued') ? 'In the queue again.' : 'It cannot be retried any more.');
    if (await act(() => api.post('/jobs/retry', { ids: bad }), say)) changed();
  };
  return html`${
    bad.length
      ? html`<${Line} kind="problem">
          <p><b>${inJobs(bad.length)} it waits for ${of(bad.length, 'has', 'have')} failed or ${of(bad.length, 'was', 'were')} cancelled.</b>
            ${` It goes on waiting until ${of(bad.length, 'that was retried and is', 'those were retried and are')} done:`}</p>
          <ul class="sample">${bad.slice(0, 5).map((id) => {
            const { status, name, message } = others.get(id);
            return html`<li key=${id}><${Badge} word=${status} /> <${Link} to=${path`/job/${id}`}>${cut(name, 60)}<//>${
              message ? html`<span class="muted"> ${cut(message, 120)}</span>` : null
            }</li>`;
          })}</ul>
          <${Button} needs="operator" class="primary small" onClick=${retry}>${of(bad.length, 'Retry it', `Retry all ${bad.length}`)}<//><//>`
      : null
  }
    <${Line} kind="blocked"><p><b>It waits for ${inJobs(ids.length)}${ids.length >= 100 ? ' or more' : ''} to be done.</b> See below.</p><//>`;
}

/** Why it waits. explanation: of one that does; others: documents by id, of those it depends on. */
export function Why({ explanation: e, job, others, changed }) {
  if (e.status === 'queued') return html`<${Queued} e=${e} changed=${changed} />`;
  if (e.status === 'blocked') return html`<${Blocked} job=${job} others=${others} changed=${changed} />`;
  const isHeld = e.paused || (e.constraints || []).some((one) => !one.open);
  return html`<${Timed} e=${e} job=${job} />
    ${isHeld ? html`<${Queued} e=${e} changed=${changed} isNext=${false} />` : null}`;
}
