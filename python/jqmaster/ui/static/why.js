// Why a job waits, in plain words: the strongest reason first, with what can be done about it. What happened to it: its
// attempts and what it waited for between them, each with a bar on one line of time. And what it waits for, as a graph.
import { api, path, withQuery } from './api.js';
import { count, cut, duration, jobs as inJobs, moment, now } from './format.js';
import { act } from './forms.js';
import { Ago, Badge, Button, linked, Meter, onHold, toLimit, toQueue, Until, Worker } from './parts.js';
import { html, Link, Way } from './view.js';

const Line = ({ kind, children }) => html`<div class=${`alert why is-${kind}`}>${children}</div>`;

/** One way or the other, by how many: `of(n, 'comes', 'come')`. */
const of = (number, one, many) => (number === 1 ? one : many);

function keyText(by) {
  return by === undefined ? '' : typeof by === 'string' ? by : JSON.stringify(by);
}

/** One constraint: what it allows, and how much of that is in use. */
function Limited({ limit }) {
  const { concurrency, rate, starts } = limit;
  const much = rate && `${count(rate.limit)} in ${duration(rate.period * 1000)}`;
  return html`${
    concurrency
      ? html`<div class="why-use"><span>at once</span><${Meter} value=${limit.running} limit=${concurrency} unit="in use" /></div>`
      : null
  }
    ${
      rate
        ? html`<div class="why-use">${
            starts === undefined
              ? html`<span>starts: ${much}, evenly</span>`
              : html`<span>starts: ${much}</span><${Meter} value=${starts} limit=${rate.limit} />`
          }</div>`
        : null
    }`;
}

/** What closes a constraint, and when it opens as far as that is known: [state, view]. */
function closing(limit) {
  const isFull = limit.concurrency && limit.running >= limit.concurrency;
  const opens = html`<${Until} ms=${limit.opens_ms} />`;
  const freed = 'when one of those that have a place ends';
  const hold = onHold(limit);
  if (hold)
    return [
      'is on hold.',
      html` It opens <${Until} ms=${limit.opens_ms ?? hold} />${isFull ? `, but then only ${freed}.` : '.'}`,
    ];
  if (isFull)
    return ['is full.', html` It opens ${freed}${limit.opens_ms ? html`, and its rate has room ${opens}` : ''}.`];
  if (!limit.opens_ms) return ['has no room.', ''];
  return ['has no room.', html` It has room again ${opens}.`];
}

function Limit({ limit, e }) {
  const key = keyText(limit.by);
  const target = toLimit(limit.id);
  const name = html`Limit <${Link} to=${target}>${limit.id}<//>${key ? html` for <code>${cut(key, 60)}</code>` : null}`;
  // Open with all places taken: one of them is this job's.
  if (limit.open)
    return html`<${Line} kind="ok">
      <p>${name} has room.</p>
      <${Limited} limit=${limit} /><//>`;
  const [state, opens] = closing(limit);
  const running = html`<${Way} to=${withQuery('/jobs', { status: 'running', queue: e.queue })}>What runs in this queue<//> `;
  return html`<${Line} kind="full">
    <p><b>${name} ${state}</b>${opens}</p>
    <${Limited} limit=${limit} />
    <p>${limit.concurrency && e.running ? running : null}<${Way} to=${target}>Look at the limit<//></p><//>`;
}

function Served({ e }) {
  const some = `${inJobs(e.running)} of it ${of(e.running, 'runs', 'run')}`;
  const runs = e.running ? `; ${some}` : '';
  if (e.workers)
    return html`<${Line} kind="ok"><p>${count(e.workers)} ${of(e.workers, 'worker serves', 'workers serve')} its queue${runs}.</p><//>`;
  if (e.waiting) return html`<${Line} kind="ok"><p>A worker waits for jobs of its queue${runs}.</p><//>`;
  if (e.running)
    return html`<${Line} kind="note"><p>No worker waits for jobs of its queue now, but ${some}: who runs ${of(e.running, 'it', 'them')} may take the next.</p><//>`;
  return html`<${Line} kind="problem"><p><b>No worker is seen that serves its queue:</b> none names it, none waits
    for its jobs, none runs any. <${Way} to="/workers">Workers<//></p><//>`;
}

function Paused({ queue, changed }) {
  const resume = async () => {
    if (await act(() => api.post(path`/queue/${queue}`, { paused: false }), `Queue ${queue} goes on.`)) changed();
  };
  return html`<${Line} kind="paused">
    <p><b>Its queue ${linked([queue], toQueue)} is paused.</b> Nothing in it starts. </p>
    <${Button} needs="operator" class="primary small" onClick=${resume}>Resume the queue<//><//>`;
}

const SOON_MS = 10000;

/** `isNext`: it is ready now; else what would hold it then, as far as it is so now. */
function Queued({ e, job, changed, isNext = true }) {
  const limits = e.constraints || [];
  const shut = limits.filter((limit) => !limit.open);
  const isServed = e.workers || e.waiting || e.running;
  const served = html`<${Served} e=${e} />`;
  const ahead = isNext ? e.ahead : 0;
  const waited = now() - Math.max(job.created_ms, job.ready_ms || 0, job.started_ms || 0);
  const isFree = !e.paused && !shut.length && isServed && !ahead;
  return html`${e.paused ? html`<${Paused} queue=${e.queue} changed=${changed} />` : null}
    ${shut.map((limit) => html`<${Limit} key=${limit.id} limit=${limit} e=${e} />`)}
    ${isServed || !isNext ? null : served}
    ${
      ahead
        ? html`<${Line} kind="note"><p><b>${inJobs(ahead)} ${of(ahead, 'is', 'are')} before it.</b> <${Way}
            to=${withQuery('/jobs', { queue: e.queue, status: 'queued' })}>See them in order<//></p><//>`
        : null
    }
    ${
      isFree && !e.running && waited >= SOON_MS
        ? html`<${Line} kind="problem"><p><b>Nothing holds it, and no worker took it for ${duration(waited)}.</b>
            See what <${Link} to=${withQuery('/workers', { queue: e.queue })}>its workers<//> do.</p><//>`
        : isFree
          ? html`<${Line} kind="ok"><p><b>Nothing holds it: it is the next of its queue.</b>${
              e.running ? ' It starts as soon as a worker has room.' : ' It should start any moment.'
            }</p><//>`
          : null
    }
    ${isServed && isNext ? served : null}
    ${isNext ? limits.filter((limit) => limit.open).map((limit) => html`<${Limit} key=${limit.id} limit=${limit} e=${e} />`) : null}`;
}

function Timed({ e, job }) {
  // Not `start_ms`: that is when its constraints open, too.
  const at = job.due_ms || e.start_ms;
  const when = at > now() ? html`due <${Until} ms=${at} />` : 'due, and about to become ready';
  if (e.status === 'scheduled')
    return html`<${Line} kind="scheduled"><p><b>Its time has not come: it is ${when}.</b>${
      job.schedule ? html` It was made by the schedule ${linked([job.schedule], (id) => path`/schedule/${id}`)}.` : null
    }</p><//>`;
  const left = job.max_retry - job.retry_count + 1;
  const attempts = left > 0 ? `${count(left)} ${of(left, 'attempt is', 'attempts are')} left` : 'none is left';
  return html`<${Line} kind="retrying">
    <p><b>It failed and waits for its next attempt, ${when}.</b> ${count(job.retry_count)} failed so far; ${attempts}.</p>
    ${job.message ? html`<p class="muted">Last: ${cut(job.message, 300)}</p>` : null}<//>`;
}

/** The failed jobs at the root of what a job waits for, as far as it was looked. */
const rootsOf = (job, others, deep = 0) =>
  (deep < 20 && job?.waits_for ? job.waits_for : []).flatMap((id) => {
    const other = others.get(id);
    return ['error', 'cancelled'].includes(other?.status) ? [id] : rootsOf(other, others, deep + 1);
  });

function Blocked({ job, others, changed }) {
  const ids = job.waits_for || [];
  const bad = [...new Set(rootsOf(job, others))];
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
  if (e.status === 'queued') return html`<${Queued} e=${e} job=${job} changed=${changed} />`;
  if (e.status === 'blocked') return html`<${Blocked} job=${job} others=${others} changed=${changed} />`;
  const isHeld = e.paused || (e.constraints || []).some((limit) => !limit.open);
  return html`<${Timed} e=${e} job=${job} />
    ${isHeld ? html`<${Queued} e=${e} job=${job} changed=${changed} isNext=${false} />` : null}`;
}

// -- what happened ------------------------------------------------------------------------------------

const KIND = {
  done: 'done',
  failed: 'error',
  lapsed: 'error',
  released: 'cancelled',
  moved: 'scheduled',
  blocked: 'blocked',
  cancelled: 'cancelled',
  skipped: 'cancelled',
};
const WORDS = {
  done: 'done',
  failed: 'failed',
  lapsed: 'its lease ran out',
  released: 'given back',
  moved: 'went on elsewhere',
  blocked: 'waits for others',
  cancelled: 'cancelled',
  skipped: 'not needed: no job that it waited for failed',
  expired: 'expired before it started',
  dependency: 'ended, because a job it waited for failed',
};

/** Attempts [{attempt, worker, from, to?, event, …}] and what stands between them. */
function attempts(events) {
  const parts = [];
  for (const event of events) {
    if (event.event === 'started') parts.push({ ...event, from: event.time_ms, event: 'running' });
    else {
      const last = parts.at(-1);
      if (event.attempt && last?.event === 'running' && last.attempt === event.attempt)
        Object.assign(last, event, { from: last.from, to: event.time_ms });
      else parts.push({ ...event, at: event.time_ms });
    }
  }
  return parts;
}

/** A bar from one moment to another. `time`: {begin, span} of the whole line. */
function Bar({ time, from, to, kind, words }) {
  const share = (ms) => Math.min(100, Math.max(0, ((ms - time.begin) / time.span) * 100));
  const left = Math.min(99.5, share(from));
  return html`<svg class="time-bar" role="img" width="100%" height="8" aria-label=${words}>
    <rect class="time-ground" x="0" y="3" width="100%" height="2" />
    <rect class=${`time-part is-${kind}`} x=${`${left.toFixed(3)}%`} y="0" height="8" rx="1"
      width=${`${Math.max(0.5, share(to) - left).toFixed(3)}%`}><title>${words}</title></rect>
  </svg>`;
}

/** What a job waited for behind an event: [state, words]. */
function reasonOf(before, job) {
  if (before.event === 'failed' || before.event === 'lapsed') return ['retrying', 'for its next attempt'];
  if (before.event === 'blocked') return ['blocked', 'for other jobs'];
  if (before.event === 'enqueued' && job.depends?.length) return ['blocked', 'for other jobs and a worker'];
  if (before.event === 'enqueued' && job.ready_ms > before.at + 1) return ['scheduled', 'for its time and a worker'];
  return ['queued', 'for a worker'];
}

/** What holds it now, as `explain` says. */
function reasonNow(job, explanation) {
  const held = (explanation?.constraints || []).filter((limit) => !limit.open).map((limit) => limit.id);
  if (explanation?.paused) return ['queued', 'in a queue that is paused'];
  if (held.length) return ['queued', `held by ${held.map((id) => cut(id, 40)).join(', ')}`];
  const words = { scheduled: 'for its time', blocked: 'for other jobs', retrying: 'for its next attempt' };
  return [job.status, words[job.status] || 'for a worker'];
}

/** reason: [kind, words] */
function Gap({ time, from, to, reason: [kind, words], isNow }) {
  if (to - from < 1) return null;
  const text = `${isNow ? 'has waited' : 'waited'} ${duration(to - from)} ${words}`;
  return html`<li class="gap muted">${text}
    <${Bar} time=${time} from=${from} to=${to} kind=${kind} words=${text} /></li>`;
}

/** What came in a moment: it was enqueued, moved, or ended without a start. */
const Moment = ({
  part,
}) => html`<li class=${`event is-${KIND[part.event] || (part.event === 'enqueued' ? 'queued' : 'error')}`}>
  <b>${part.event === 'enqueued' ? 'Enqueued' : WORDS[part.event] || part.event}</b> <span class="muted"><${Ago} ms=${part.at} /></span>
  ${part.message ? html`<p class="anywhere">${part.message}</p>` : null}
</li>`;

function Attempt({ part, time }) {
  const isOver = part.to !== undefined;
  const kind = KIND[part.event] || 'running';
  const to = part.to ?? time.end;
  const notes = [
    part.group && part.group !== part.reason ? cut(part.group, 60) : '',
    part.reason && part.reason !== 'other' ? part.reason : '',
  ].filter(Boolean);
  return html`<li class=${`event is-${kind}`}>
    <b>Attempt ${part.attempt}</b> ${part.event === 'running' ? 'runs' : WORDS[part.event]} ${
      isOver ? `after ${duration(part.to - part.from)}` : `for ${duration(now() - part.from)}`
    }<span class="muted"> · <span title=${moment(part.from)}>started <${Ago} ms=${part.from} /></span>${
      part.worker_id ? html` · by <${Worker} id=${part.worker_id} />` : null
    }${notes.map((text) => ` · ${text}`)}</span>
    ${part.message ? html`<p class="anywhere">${part.message}</p>` : null}
    <${Bar} time=${time} from=${part.from} to=${to} kind=${kind}
      words=${`Attempt ${part.attempt}: ${WORDS[part.event] || 'runs'}, ${duration(to - part.from)}`} />
  </li>`;
}

/** A history. `job`: its document; explanation: of one that waits. */
export function Timeline({ history, job, explanation }) {
  const parts = attempts(history.events);
  if (!parts.length) return html`<p class="muted">Nothing is known of it.</p>`;
  const last = parts.at(-1);
  const begin = parts[0].from ?? parts[0].at;
  const isOver = job.ended_ms !== undefined;
  const end = isOver ? Math.max(job.ended_ms, last.to ?? last.from ?? last.at) : now();
  const time = { begin, end, span: Math.max(1, end - begin) };
  const endOf = (part) => part.to ?? part.at;
  return html`${
    history.forgotten
      ? html`<p class="muted">${count(history.forgotten)} attempts before these are not kept.</p>`
      : null
  }
    ${
      end - begin >= 1
        ? html`<div class="time-ends muted"><span>${moment(begin)}</span><span>${duration(time.span)}</span><span>${moment(end)}</span></div>`
        : null
    }
    <ol class="events">
      ${parts.map((part, index) => {
        const before = parts[index - 1];
        return html`${
          before
            ? html`<${Gap} time=${time} from=${endOf(before)} to=${part.from ?? part.at} reason=${reasonOf(before, job)} />`
            : null
        }${part.at ? html`<${Moment} part=${part} />` : html`<${Attempt} part=${part} time=${time} />`}`;
      })}
      ${
        !isOver && last.event !== 'running'
          ? html`<${Gap} time=${time} from=${endOf(last)} to=${end} reason=${reasonNow(job, explanation)} isNow />`
          : null
      }
    </ol>`;
}

// -- what it waits for --------------------------------------------------------------------------------

const TOLD = 100; // dependents that a document has at most
export const SHOWN = 12;
const IF_FAILED = {
  wait: 'goes on waiting until that one was retried and is done',
  fail: 'fails as well',
  run: 'runs all the same',
  only: 'runs then, and only then',
};

/** Of those a job depends on, the ones that it still waits for first: they are what one wants to see. */
export function dependsOf({ depends = [], waits_for = [] }) {
  const open = new Set(waits_for);
  return [...depends].sort((a, b) => open.has(b) - open.has(a));
}

const Nodes = ({ ids, others }) =>
  html`<ul class="nodes">${ids.slice(0, SHOWN).map((id) => {
    const job = others.get(id);
    return html`<li key=${id} class="node"><${Link} to=${path`/job/${id}`}>${cut(job?.name || id, 28)}<//>
      ${job ? html`<${Badge} word=${job.status} />` : html`<span class="muted">${job === null ? 'record is gone' : 'not known'}</span>`}</li>`;
  })}</ul>`;

const more = (ids) => (ids.length > SHOWN ? ` ${count(ids.length - SHOWN)} more are not shown.` : '');

/** The jobs that wait for one; others: documents by id, null for those that are gone, undefined where nobody says. */
export const Dependents = ({ ids, others }) => html`<${Nodes} ids=${ids} others=${others} />
  <p class="muted">${ids.length >= TOLD ? 'At least ' : ''}${inJobs(ids.length)} ${ids.length === 1 ? 'waits' : 'wait'} for it.${more(ids)}</p>`;

/** `job` with `depends`; others: as above. */
export function Depends({ job, others }) {
  const open = job.waits_for?.length;
  const ids = dependsOf(job);
  return html`<${Nodes} ids=${ids} others=${others} />
    <p class="muted">${
      open ? `It still waits for ${count(open)} of ${count(ids.length)}.` : `All ${count(ids.length)} have ended.`
    }${more(ids)} If one of them fails, it ${IF_FAILED[job.if_failed] || IF_FAILED.wait}.</p>`;
}
