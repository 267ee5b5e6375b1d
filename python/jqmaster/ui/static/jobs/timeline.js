// What happened to a job: its attempts and what it waited for between them, each with a bar on one line of time.
import { h, svg } from '../dom.js';
import { ago, count, cut, duration, moment, now } from '../format.js';
import { workerLink } from './worker.js';

const KIND = {
  done: 'done',
  failed: 'error',
  lapsed: 'error',
  released: 'cancelled',
  moved: 'scheduled',
  blocked: 'blocked',
  cancelled: 'cancelled',
};
const WORDS = {
  done: 'done',
  failed: 'failed',
  lapsed: 'its lease ran out',
  released: 'given back',
  moved: 'went on elsewhere',
  blocked: 'waits for others',
  cancelled: 'cancelled',
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
function bar(time, from, to, kind, words) {
  const share = (ms) => Math.min(100, Math.max(0, ((ms - time.begin) / time.span) * 100));
  const left = Math.min(99.5, share(from));
  return svg(
    'svg',
    { class: 'time-bar', role: 'img', width: '100%', height: 8, 'aria-label': words },
    svg('rect', { class: 'time-ground', x: 0, y: 3, width: '100%', height: 2 }),
    svg(
      'rect',
      {
        class: `time-part is-${kind}`,
        x: `${left.toFixed(3)}%`,
        y: 0,
        width: `${Math.max(0.5, share(to) - left).toFixed(3)}%`,
        height: 8,
        rx: 1,
      },
      svg('title', {}, words),
    ),
  );
}

const axis = ({ begin, end, span }) =>
  h(
    'div',
    { class: 'time-ends muted' },
    h('span', {}, moment(begin)),
    h('span', {}, duration(span)),
    h('span', {}, moment(end)),
  );

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

function gap(time, from, to, [kind, words], isNow) {
  if (to - from < 1) return null;
  const text = `${isNow ? 'waits' : 'waited'} ${duration(to - from)} ${words}`;
  return h('li', { class: 'gap muted' }, text, bar(time, from, to, kind, text));
}

function entry(part, time) {
  if (part.at) {
    return h(
      'li',
      { class: `event is-${KIND[part.event] || (part.event === 'enqueued' ? 'queued' : 'error')}` },
      h('b', {}, part.event === 'enqueued' ? 'Enqueued' : WORDS[part.event] || part.event),
      ' ',
      h('span', { class: 'muted' }, ago(part.at)),
      part.message ? h('p', { class: 'anywhere' }, part.message) : null,
    );
  }
  const worker = part.worker_id;
  const took =
    part.to === undefined ? ['for ', duration(now() - part.from)] : ['after ', duration(part.to - part.from)];
  return h(
    'li',
    { class: `event is-${KIND[part.event] || 'running'}` },
    h('b', {}, `Attempt ${part.attempt}`),
    ' ',
    part.event === 'running' ? 'runs ' : `${WORDS[part.event]} `,
    took,
    h(
      'span',
      { class: 'muted' },
      ' · ',
      h('span', { title: moment(part.from) }, 'started ', ago(part.from)),
      worker ? [' · by ', workerLink(worker)] : null,
      part.group && part.group !== part.reason ? [' · ', cut(part.group, 60)] : null,
      part.reason && part.reason !== 'other' ? ` · ${part.reason}` : null,
    ),
    part.message ? h('p', { class: 'anywhere' }, part.message) : null,
    bar(
      time,
      part.from,
      part.to ?? time.end,
      KIND[part.event] || 'running',
      `Attempt ${part.attempt}: ${WORDS[part.event] || 'runs'}, ${duration((part.to ?? time.end) - part.from)}`,
    ),
  );
}

/** The elements for a history. `job`: its document; explanation: of one that waits. */
export function timeline(history, job, explanation) {
  const parts = attempts(history.events);
  if (!parts.length) return [h('p', { class: 'muted' }, 'Nothing is known of it.')];
  const last = parts.at(-1);
  const begin = parts[0].from ?? parts[0].at;
  const isOver = job.ended_ms !== undefined;
  const end = isOver ? Math.max(job.ended_ms, last.to ?? last.from ?? last.at) : now();
  const time = { begin, end, span: Math.max(1, end - begin) };
  const list = h('ol', { class: 'events' });
  let before = null;
  for (const part of parts) {
    const from = part.from ?? part.at;
    if (before) list.append(gap(time, before.to ?? before.at, from, reasonOf(before, job)) || '');
    list.append(entry(part, time));
    before = part;
  }
  if (!isOver && last.event !== 'running')
    list.append(gap(time, last.to ?? last.at, end, reasonNow(job, explanation), true) || '');
  return [
    history.forgotten
      ? h('p', { class: 'muted' }, `${count(history.forgotten)} attempts before these are not kept.`)
      : null,
    end - begin >= 1 ? axis(time) : null,
    list,
  ];
}
