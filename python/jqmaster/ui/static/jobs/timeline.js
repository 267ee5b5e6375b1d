// What happened to a job: its attempts and what it waited for between them, each with a bar on one line of time.
import { Ago } from '../components/time.js';
import { count, cut, duration, moment, now } from '../format.js';
import { html } from '../view.js';
import { Worker } from './worker.js';

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
export function attempts(events) {
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
  const held = (explanation?.constraints || []).filter((one) => !one.open).map((one) => one.id);
  if (explanation?.paused) return ['queued', 'in a queue that is paused'];
  if (held.length) return ['queued', `held by ${held.map((id) => cut(id, 40)).join(', ')}`];
  const words = { scheduled: 'for its time', blocked: 'for other jobs', retrying: 'for its next attempt' };
  return [job.status, words[job.status] || 'for a worker'];
}

/** reason: [kind, words] */
function Gap({ time, from, to, reason: [kind, words], isNow }) {
  if (to - from < 1) return null;
  const text = `${isNow ? 'waits' : 'waited'} ${duration(to - from)} ${words}`;
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
  const said = [
    part.group && part.group !== part.reason ? cut(part.group, 60) : '',
    part.reason && part.reason !== 'other' ? part.reason : '',
  ].filter(Boolean);
  return html`<li class=${`event is-${kind}`}>
    <b>Attempt ${part.attempt}</b> ${part.event === 'running' ? 'runs' : WORDS[part.event]} ${
      isOver ? `after ${duration(part.to - part.from)}` : `for ${duration(now() - part.from)}`
    }<span class="muted"> · <span title=${moment(part.from)}>started <${Ago} ms=${part.from} /></span>${
      part.worker_id ? html` · by <${Worker} id=${part.worker_id} />` : null
    }${said.map((text) => ` · ${text}`)}</span>
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
